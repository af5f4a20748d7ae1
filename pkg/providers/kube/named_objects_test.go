package kube_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/api/autoscaling/v1beta1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// objectsServer answers with the object of a path, 403 for "forbidden", and 404 for what is not there. It keeps what
// was written.
func objectsServer(t *testing.T, objects map[string]string) (c *kube.Client, written *[]string) {
	t.Helper()
	written = &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := objects[r.URL.Path]
		switch {
		case body == "forbidden":
			w.WriteHeader(http.StatusForbidden)
			body = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden"}`
		case body == "":
			w.WriteHeader(http.StatusNotFound)
			body = `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound"}`
		case r.Method != http.MethodGet:
			sent, _ := io.ReadAll(r.Body)
			*written = append(*written, r.Method+" "+r.URL.Path+" "+string(sent))
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return client(t, s.URL, nil), written
}

const (
	classPath = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/web"
	class     = `{"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
		"metadata": {"name": "web", "uid": "1", "resourceVersion": "7", "annotations": {"old": "x", "kept": "y"}}}`
)

// A revision is read by its own name, with the class that it is of.
func TestRevisionIsReadByName(t *testing.T) {
	c, _ := objectsServer(t, map[string]string{
		"/apis/apps/v1/namespaces/" + kube.Namespace + "/controllerrevisions/web-2": `{"apiVersion": "apps/v1",
			"kind": "ControllerRevision", "metadata": {"name": "web-2"}, "revision": 2,
			"data": {"metadata": {"name": "web"}, "spec": {"userData": "second"}}}`,
		classPath: class,
	})
	got, err := c.Rollouts.ReadRevision(t.Context(), "web", "web-2")
	if err != nil || got.Spec.UserData == nil || *got.Spec.UserData != "second" {
		t.Errorf("%+v, error %v", got, err)
	}
	if _, err := c.Rollouts.ReadRevision(t.Context(), "web", "web-1"); err == nil {
		t.Error("a revision that is not there is read")
	}
}

// A headless Service says nothing of where DNS is.
func TestDNSAddressOfAHeadlessService(t *testing.T) {
	for ip, want := range map[string]string{"None": "", "10.100.0.10": "10.100.0.10", "fd00::a": "fd00::a"} {
		c, _ := objectsServer(t, map[string]string{"/api/v1/namespaces/kube-system/services/kube-dns": `{"apiVersion": "v1",
			"kind": "Service", "metadata": {"name": "kube-dns"}, "spec": {"clusterIP": "` + ip + `"}}`})
		if got, err := c.ReadDNSAddress(t.Context()); got != want || err != nil {
			t.Errorf("%s: %q, error %v", ip, got, err)
		}
	}
}

// A pod is patched in its own namespace.
func TestPodThatToleratesIsPatchedInItsNamespace(t *testing.T) {
	const path = "/api/v1/namespaces/shop/pods/web-1"
	c, written := objectsServer(t, map[string]string{path: `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web-1",
		"namespace": "shop", "uid": "u1", "resourceVersion": "9"}}`})
	err := c.Pods.TolerateNomination(t.Context(), cluster.Pod{Namespace: "shop", Name: "web-1", UID: "u1"},
		cluster.Taint{Key: "joiner.sh/nominated", Value: "n1", Effect: "NoSchedule"})
	if err != nil || len(*written) != 1 || !strings.HasPrefix((*written)[0], "PATCH "+path+" ") {
		t.Errorf("written %q, error %v", *written, err)
	}
}

// An annotation to remove goes, others stay, and one that is not there is no reason to write.
func TestRemovedAnnotationIsTheOneNamed(t *testing.T) {
	c, written := objectsServer(t, map[string]string{classPath: class})
	for _, key := range []string{"old", "absent"} {
		if err := c.PatchClassMeta(t.Context(), "web", kube.MetaChange{Remove: []string{key}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(*written) != 1 || !strings.Contains((*written)[0], `"annotations":{"old":null}`) {
		t.Errorf("written %q", *written)
	}
}

// NodeRollouts whose pools, classes or revisions cannot be read are an error, not rollouts without any.
func TestRolloutsWithoutWhatTheyAreAbout(t *testing.T) {
	list := func(group, kind string) string {
		return `{"apiVersion": "` + group + `/v1", "kind": "` + kind + `", "items": []}`
	}
	paths := map[string]string{
		"/apis/karpenter.sh/v1/nodepools":                                     list("karpenter.sh", "NodePoolList"),
		"/apis/karpenter.k8s.aws/v1/ec2nodeclasses":                           list("karpenter.k8s.aws", "EC2NodeClassList"),
		"/apis/apps/v1/namespaces/" + kube.Namespace + "/controllerrevisions": list("apps", "ControllerRevisionList"),
		"/apis/joiner.sh/v1alpha1/noderollouts": `{"apiVersion": "joiner.sh/v1alpha1", "kind": "NodeRolloutList",
			"items": [{"metadata": {"name": "canary"}}]}`,
	}
	c, _ := objectsServer(t, paths)
	if got, err := c.Rollouts.ListRollouts(t.Context()); len(got) != 1 || err != nil {
		t.Errorf("%v, error %v", got, err)
	}
	for path, whole := range paths {
		paths[path] = "forbidden"
		c, _ := objectsServer(t, paths)
		if got, err := c.Rollouts.ListRollouts(t.Context()); err == nil {
			t.Errorf("without %s: %v", path, slices.Clip(got))
		}
		paths[path] = whole
	}
}

// What the functions share and the status of a buffer are written where they are read from.
func TestWritesGoToTheirNamespaces(t *testing.T) {
	maps := "/api/v1/namespaces/" + kube.Namespace + "/configmaps"
	const buffer = "/apis/autoscaling.x-k8s.io/v1beta1/namespaces/shop/capacitybuffers/spare/status"
	c, written := objectsServer(t, map[string]string{
		maps: `{"apiVersion": "v1", "kind": "ConfigMap"}`, maps + "/ledger": `{"apiVersion": "v1", "kind": "ConfigMap"}`,
		buffer: `{"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": {"name": "spare",
			"namespace": "shop"}}`})
	b := &v1beta1.CapacityBuffer{}
	b.Namespace, b.Name, b.ResourceVersion = "shop", "spare", "7"
	for path, err := range map[string]error{
		"POST " + maps:            c.WriteData(t.Context(), "ledger", map[string]string{"a": "1"}, ""),
		"PUT " + maps + "/ledger": c.WriteData(t.Context(), "ledger", map[string]string{"a": "1"}, "7"),
		"PUT " + buffer:           c.WriteBufferStatus(t.Context(), b),
	} {
		if err != nil || !slices.ContainsFunc(*written, func(w string) bool { return strings.HasPrefix(w, path+" ") }) {
			t.Errorf("%s: error %v, written %q", path, err, *written)
		}
	}
}
