// Package crds runs Karpenter's own tests of its CRDs against Joiner's: schemas, defaults and rules in CEL.
//
// It has tests only. The suites run as they are, out of Karpenter's modules, with a real API server. Between them stands a
// proxy that installs Joiner's CRD wherever a suite installs Karpenter's.
package crds

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// suite is a package of Karpenter's whose tests install CRDs. Specs is how many it runs at least.
type suite struct {
	pkg   string
	specs int
}

func suites() []suite {
	return []suite{
		{"sigs.k8s.io/karpenter/pkg/apis/v1", 150},
		{"sigs.k8s.io/karpenter/pkg/apis/v1alpha1", 60},
		{"sigs.k8s.io/karpenter/pkg/apis/autoscaling/v1beta1", 15},
		{"github.com/aws/karpenter-provider-aws/pkg/apis/v1", 250},
	}
}

// Karpenter's suites pass with Joiner's CRDs, but for the specs listed with the reason.
func TestKarpentersSuitesPassWithJoinersCRDs(t *testing.T) {
	s, address := startSwap(t, startPlane(t))
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := api.Config{Clusters: map[string]*api.Cluster{"plane": {Server: address}},
		Contexts: map[string]*api.Context{"plane": {Cluster: "plane"}}, CurrentContext: "plane"}
	if err := clientcmd.WriteToFile(config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	allowed := differences()
	for _, suite := range suites() {
		t.Run(suite.pkg, func(t *testing.T) {
			specs := run(t, suite.pkg, kubeconfig)
			if len(specs) < suite.specs {
				t.Errorf("only %d specs ran, want %d", len(specs), suite.specs)
			}
			failed := 0
			for _, spec := range specs {
				name := suite.pkg + ": " + spec.name()
				why, listed := allowed[name]
				delete(allowed, name)
				switch {
				case spec.State == "passed" && listed:
					t.Errorf("passes, although it is listed as different, because %s: %s", why, name)
				case spec.State != "passed" && !listed:
					t.Errorf("%s: %s\n%s", spec.State, name, spec.Failure.Message)
				case spec.State != "passed":
					failed++
				}
			}
			t.Logf("%d specs ran, %d of them fail as listed", len(specs), failed)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		t.Errorf("listed as different, but there is no such spec: %s", name)
	}
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(s.ours)),
		func(name string) bool { return strings.HasSuffix(name, ".joiner.sh") }) // kinds that Karpenter has not
	if got := slices.Sorted(maps.Keys(s.taken)); !slices.Equal(want, got) {
		t.Errorf("Karpenter's suites installed %v, of Joiner's %v", got, want)
	}
}

// spec is one test of a suite as Ginkgo reports it.
type spec struct {
	ContainerHierarchyTexts []string
	LeafNodeText            string
	LeafNodeType            string
	State                   string
	Failure                 struct{ Message string }
}

func (s spec) name() string {
	return strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
}

// run runs the tests of a package of Karpenter's in an existing cluster. What was set up or torn down in vain counts as a spec.
func run(t *testing.T, pkg, kubeconfig string) []spec {
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command("go", "test", "-count=1", pkg, "-args", "-ginkgo.json-report="+report, "-ginkgo.seed=1")
	cmd.Dir = ".." // where flags of the environment find the module's files
	cmd.Env = append(cmd.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		t.Fatal(err)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var reports []struct{ SpecReports []spec }
	if err := json.Unmarshal(text, &reports); err != nil {
		t.Fatal(err)
	}
	var all []spec
	for _, r := range reports {
		for _, s := range r.SpecReports {
			if s.State != "pending" && s.State != "skipped" && (s.LeafNodeType == "It" || s.State != "passed") {
				all = append(all, s)
			}
		}
	}
	return all
}
