package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/install"
	"joiner.sh/pkg/workload/manifest"
)

const (
	poll     = 50 * time.Millisecond
	patience = 4 * time.Minute
	owner    = "clitest" // field manager
)

func TestMain(m *testing.M) { os.Exit(client.RunTests(m)) }

// env is the shared plane with everything that Joiner installs.
type env struct {
	dynamic dynamic.Interface
	plane   *client.Plane
}

// installed is done once: a test that changes what is installed puts it back.
var installed sync.Once

func newEnv(t *testing.T) env {
	t.Helper()
	plane := client.ForTest(t)
	d, err := dynamic.NewForConfig(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	e := env{d, plane}
	installed.Do(func() { e.install(t) })
	return e
}

func (e env) install(t *testing.T) {
	t.Helper()
	objects, err := install.Objects()
	if err != nil {
		t.Fatal(err)
	}
	borrowed, err := install.Borrowed()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range append(objects, borrowed...) {
		e.apply(t, o)
	}
	e.eventually(t, "the CRDs to be served", func(ctx context.Context) (string, bool) {
		for _, p := range []schema.GroupVersionResource{pools(), classes(), claims()} {
			if _, err := e.dynamic.Resource(p).List(ctx, metav1.ListOptions{}); err != nil {
				return err.Error(), false
			}
		}
		return "", true
	})
}

func pools() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
}

func claims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
}

func classes() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}
}

func resourceOf(o *unstructured.Unstructured) schema.GroupVersionResource {
	kind := strings.ToLower(o.GetKind())
	switch {
	case strings.HasSuffix(kind, "s"):
		kind += "es"
	case strings.HasSuffix(kind, "cy"):
		kind = strings.TrimSuffix(kind, "y") + "ies"
	default:
		kind += "s"
	}
	gvk := o.GroupVersionKind()
	return schema.GroupVersionResource{Group: gvk.Group, Version: gvk.Version, Resource: kind}
}

// apply stores the object as the API server takes it, and returns what it stored.
func (e env) apply(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	out, err := e.tryApply(t.Context(), o)
	if err != nil {
		t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
	}
	return out
}

func (e env) tryApply(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var to dynamic.ResourceInterface = e.dynamic.Resource(resourceOf(o))
	if o.GetNamespace() != "" {
		to = e.dynamic.Resource(resourceOf(o)).Namespace(o.GetNamespace())
	}
	return to.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: owner, Force: true})
}

// applyAll stores the objects of a stream and deletes those of ours when the test ends.
func (e env) applyAll(t *testing.T, stream string) {
	t.Helper()
	for _, o := range parse(t, stream) {
		e.apply(t, o)
		e.cleanUp(t, o)
	}
}

func (e env) cleanUp(t *testing.T, o *unstructured.Unstructured) {
	t.Cleanup(func() {
		var to dynamic.ResourceInterface = e.dynamic.Resource(resourceOf(o))
		if o.GetNamespace() != "" {
			to = e.dynamic.Resource(resourceOf(o)).Namespace(o.GetNamespace())
		}
		_ = to.Delete(context.Background(), o.GetName(), metav1.DeleteOptions{})
	})
}

func parse(t *testing.T, stream string) []*unstructured.Unstructured {
	t.Helper()
	docs, err := manifest.ParseManifests("test", []byte(stream))
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, d := range docs {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(d.Body, &o.Object); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// status writes the status of an object, given as YAML.
func (e env) status(t *testing.T, gvr schema.GroupVersionResource, name, status string) {
	t.Helper()
	var s map[string]any
	if err := yaml.Unmarshal([]byte(status), &s); err != nil {
		t.Fatal(err)
	}
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		o, err := e.dynamic.Resource(gvr).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		o.Object["status"] = s
		_, err = e.dynamic.Resource(gvr).UpdateStatus(t.Context(), o, metav1.UpdateOptions{})
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func (e env) eventually(t *testing.T, what string, done func(context.Context) (state string, ok bool)) {
	t.Helper()
	var state string
	err := wait.PollUntilContextTimeout(t.Context(), poll, patience, true, func(ctx context.Context) (ok bool, err error) {
		state, ok = done(ctx)
		return ok, nil
	})
	if err != nil {
		t.Fatalf("wait for %s: %v; last seen: %s", what, err, state)
	}
}

// joiner runs a command against the plane.
func (e env) joiner(args ...string) (code int, out, progress string) {
	return run(append(args, "--kubeconfig", e.plane.KubeconfigPath())...)
}

func run(args ...string) (code int, out, progress string) {
	var o, p bytes.Buffer
	code = cli.Run(args, &o, &p)
	return code, o.String(), p.String()
}

const ready = `conditions:
- {type: Ready, status: "True", reason: Ready, message: "", observedGeneration: 1, lastTransitionTime: "2026-01-01T00:00:00Z"}
subnets:
- {id: subnet-1, zone: us-west-2a, zoneID: usw2-az1}
amis:
- {id: ami-1, name: x, requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]}
`

const class = `apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %s}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: demo
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
      taints: [{key: only, value: %[1]s, effect: NoSchedule}]
      requirements:
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: node.kubernetes.io/instance-type, operator: In, values: [%s]}
`

// pool makes a NodePool with its class, ready to be launched from, and returns the toleration that its nodes ask for.
func (e env) pool(t *testing.T, name, types string) (toleration string) {
	t.Helper()
	e.applyAll(t, fmt.Sprintf(class, name, types))
	e.status(t, classes(), name, ready)
	return fmt.Sprintf("tolerations: [{key: only, value: %s, operator: Equal}]", name)
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
