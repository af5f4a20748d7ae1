package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// dumpedCluster serves a dump of a cluster as its API server would, by paths of lists and of objects.
type dumpedCluster struct {
	lists   map[string][]any
	kinds   map[string]string // of lists, by path
	objects map[string]any
	broken  map[string]string // bodies that come instead, by path of a list
}

// readDump reads what kubectl get -o yaml printed.
func readDump(t *testing.T, path string) *dumpedCluster {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []map[string]any }
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	s := &dumpedCluster{lists: map[string][]any{}, kinds: map[string]string{}, objects: map[string]any{}, broken: map[string]string{}}
	for _, o := range list.Items {
		at := "/apis/" + o["apiVersion"].(string)
		if o["apiVersion"] == "v1" {
			at = "/api/v1"
		}
		plural := strings.ToLower(o["kind"].(string)) + "s"
		if strings.HasSuffix(plural, "sss") || strings.HasSuffix(plural, "classs") {
			plural = strings.TrimSuffix(plural, "s") + "es"
		}
		s.kinds[at+"/"+plural] = o["apiVersion"].(string) + "," + o["kind"].(string) + "List"
		meta := o["metadata"].(map[string]any)
		s.lists[at+"/"+plural] = append(s.lists[at+"/"+plural], o)
		if ns, of := meta["namespace"]; of {
			at += fmt.Sprintf("/namespaces/%s", ns)
		}
		s.objects[fmt.Sprintf("%s/%s/%s", at, plural, meta["name"])] = o
	}
	return s
}

func (s *dumpedCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if body, of := s.broken[r.URL.Path]; of {
		if strings.HasPrefix(body, "<") {
			w.Header().Set("Content-Type", "text/html")
		}
		_, _ = w.Write([]byte(body))
		return
	}
	var answer any = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
		"message": "the server could not find the requested resource"}
	items, list := s.lists[r.URL.Path]
	o, found := s.objects[r.URL.Path]
	switch {
	case r.URL.Path == "/version":
		answer = map[string]any{"major": "1", "minor": "34", "gitVersion": "v1.34.1-eks-1"}
	case found:
		answer = o
	case list:
		version, kind, _ := strings.Cut(s.kinds[r.URL.Path], ",")
		if strings.Contains(r.URL.Query().Get("fieldSelector"), "status.phase!=Failed") {
			items = slices.DeleteFunc(slices.Clone(items), func(o any) bool {
				phase, _, _ := unstructured.NestedString(o.(map[string]any), "status", "phase")
				return phase == "Failed" || phase == "Succeeded"
			})
		}
		answer = map[string]any{"kind": kind, "apiVersion": version, "metadata": map[string]any{"resourceVersion": "1"}, "items": items}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// runAgainst runs a command line against the cluster.
func runAgainst(t *testing.T, h http.Handler, args ...string) (code int, out, said string) {
	t.Helper()
	server := httptest.NewServer(h)
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}],"current-context":"c"}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(append(args, "--kubeconfig", file)...)
}

// Clusters hold objects of other clouds, of other versions and of nobody: what is ours is shown beside them, and what
// cannot be used says why.
func TestForeignObjectsAreShown(t *testing.T) {
	dump := readDump(t, "testdata/clusters/foreign.yaml")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"status"}, []string{"ip-10-0-1-2.us-west-2.compute.internal", "shop/web-1"}},
		{[]string{"status", "-o", "json"}, []string{`"ip-10-0-1-2.us-west-2.compute.internal"`}},
		{[]string{"explain", "pod", "web-1", "-n", "shop"}, []string{"shop/web-1"}},
		{[]string{"explain", "pod", "gated", "-n", "shop"}, []string{"gate"}},
		{[]string{"explain", "pod", "other-scheduler", "-n", "shop"}, []string{"no node is made for it", "its schedulerName is volcano: that scheduler decides"}},
		{[]string{"explain", "pod", "on-fargate", "-n", "shop"}, []string{"no node is made for it: AWS Fargate runs it"}},
		{[]string{"explain", "pod", "mirror", "-n", "kube-system"}, []string{"gke-a"}},
		{[]string{"explain", "pod", "on-a-node-that-is-gone", "-n", "shop"}, []string{"was-here"}},
		{[]string{"explain", "pod", "evicted", "-n", "shop"}, []string{"it has ended (Failed, Evicted), on node ip-10-0-1-2"}},
		{[]string{"explain", "node", "ip-10-0-1-2.us-west-2.compute.internal"}, []string{"m5.large"}},
		{[]string{"explain", "node", "aks-nodepool1-1"}, []string{"aks-nodepool1-1"}},
		{[]string{"explain", "node", "virtual-kubelet"}, []string{"virtual-kubelet"}},
		{[]string{"explain", "node", "gke-a"}, []string{"gke-a"}},
		{[]string{"explain", "nodepool", "of-tomorrow"}, []string{"it is static"}},
	} {
		code, out, said := runAgainst(t, dump, c.args...)
		if code != 0 {
			t.Errorf("%v: exit %d: %s%s", c.args, code, out, said)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(out+said, w) {
				t.Errorf("%v lacks %q:\n%s%s", c.args, w, out, said)
			}
		}
	}
}

// What belongs to others is no object of ours, and nothing is said of it.
func TestObjectsOfOthersAreNotExplained(t *testing.T) {
	dump := readDump(t, "testdata/clusters/foreign.yaml")
	for _, args := range [][]string{{"nodeclaim", "aks-z"}, {"nodeclaim", "without-anything"}, {"nodepool", "aks"}, {"nodepool", "general-purpose"}, {"nodepool", "bare"}} {
		code, out, said := runAgainst(t, dump, append([]string{"explain"}, args...)...)
		if code != 2 || out != "" || !strings.Contains(said, "there is no node") || !strings.Contains(said, args[1]) {
			t.Errorf("%v: exit %d: %s%s", args, code, out, said)
		}
	}
}

// An answer that is cut, or is none of an API server, is told by what was asked, and not taken for an empty cluster.
func TestAnswersThatAreNone(t *testing.T) {
	var answers sync.WaitGroup
	defer answers.Wait()
	for name, body := range map[string]string{
		"cut in the middle":   `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"}},{"metadata":{"na`,
		"a page of a proxy":   "<!DOCTYPE html><html><body>Sign in</body></html>",
		"nothing":             "",
		"null":                "null",
		"a failure, with 200": `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"backend is away","code":500}`,
		"no list":             `{"kind":"NodeList","apiVersion":"v1","items":{"a":1}}`,
	} {
		for path, what := range map[string]string{"/api/v1/nodes": "nodes", "/api/v1/pods": "pods", "/apis/karpenter.sh/v1/nodepools": "nodepools",
			"/apis/karpenter.sh/v1/nodeclaims": "nodeclaims"} {
			dump := readDump(t, "testdata/clusters/foreign.yaml")
			dump.broken[path] = body
			answers.Go(func() { // each waits before it asks again
				code, out, said := runAgainst(t, dump, "status")
				if code == 0 || !strings.Contains(said, what) {
					t.Errorf("%s for %s: exit %d, without its name: %s%s", name, path, code, out, said)
				}
			})
		}
	}
}
