package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Annotations of the namespace joiner-system let every NodePool sleep that does not say otherwise, and status says so.
func TestTheWholeClusterSleeps(t *testing.T) {
	e := newEnv(t)
	e.node(t, "sleepy")
	e.node(t, "wakeful")
	patch := func(r schema.GroupVersionResource, name, annotations string) {
		t.Helper()
		if _, err := e.dynamic.Resource(r).Patch(t.Context(), name, "application/merge-patch+json", []byte(`{"metadata":{"annotations":`+annotations+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	namespaces := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	patch(pools(), "wakeful", `{"joiner.sh/hibernation-schedule":"never","joiner.sh/limit-usd-per-hour":"1.5"}`)
	patch(namespaces, "joiner-system", `{"joiner.sh/hibernation-schedule":"* * * * *","joiner.sh/hibernation-duration":"1h","joiner.sh/time-zone":"Europe/Berlin"}`)
	code, out, progress := e.joiner("status")
	for _, want := range []string{"sleepy: 1 nodes, 1 pods, 0.1942 USD/h, cpu 25%, memory 25%, asleep\n", "wakeful: 1 nodes, 1 pods, 0.1942 USD/h, cpu 25%, memory 25%, limit 1.5000 USD/h\n"} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit %d, status lacks %q:\n%s%s", code, want, out, progress)
		}
	}
	if code, out, progress = e.joiner("explain", "nodepool", "sleepy"); code != 0 || !strings.Contains(out, `it sleeps, for 1h0m0s from each "* * * * *" on`) {
		t.Errorf("exit %d, %s%s", code, out, progress)
	}
	patch(namespaces, "joiner-system", `{"joiner.sh/hibernation-schedule":null,"joiner.sh/hibernation-duration":null,"joiner.sh/time-zone":null}`)
	if code, out, progress = e.joiner("status"); code != 0 || strings.Contains(out, "asleep") {
		t.Errorf("it does not wake: exit %d, %s%s", code, out, progress)
	}
}

// The manifest to begin with applies as the guide says, for a cluster of another name.
func TestTheManifestToBeginWith(t *testing.T) {
	e := newEnv(t)
	path := filepath.Join(t.TempDir(), "first.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(readFile(t, "../../demo/manifests/nodepool-v1.yaml"), "demo", "prod")), 0o600); err != nil {
		t.Fatal(err)
	}
	out, problem := e.kubectl("apply", "-f", path)
	if problem != "" || !strings.Contains(out, "nodepool.karpenter.sh/default created") || !strings.Contains(out, "ec2nodeclass.karpenter.k8s.aws/default created") {
		t.Errorf("%s%s", out, problem)
	}
	if out, problem = e.kubectl("delete", "-f", path, "--wait=false"); problem != "" {
		t.Errorf("%s%s", out, problem)
	}
}
