package karpenter

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/workload"
)

// readShop is the workload of the command's own test.
func readShop(t *testing.T) *Input {
	t.Helper()
	PrepareProcess()
	f, err := workload.LoadWorkload(os.ReadFile, "../../../../pkg/cli/testdata/shop.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := cli.ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	in, err := TranslateWorkload(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// The workload of the command's own test: two pods fit the node there is, two need a new one, a giant has no node and a
// pod with a faulty request is never asked about.
func TestPeerPlansLikeKarpenter(t *testing.T) {
	in := readShop(t)
	r, err := in.Solve(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	got := in.GroupedPlacement(r)
	want := workload.Placement{
		Tool: "karpenter", Workload: "shop", Pods: 7, HourlyUSD: 0.096,
		NodeClaims: []workload.NodeClaim{{NodePool: "general", InstanceType: "m5.large", Zone: "us-west-2a", CapacityType: "on-demand",
			HourlyUSD: 0.096, TypeOptions: []string{"m5.large", "m5.xlarge"}, Pods: map[string]int{"web": 2}}},
		OnExisting: []workload.OnNode{{Node: "node-1", Pods: map[string]int{"web": 2}}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(workload.Placement{}, "Unplaced")); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
	if len(got.Unplaced) != 2 || got.Unplaced[0].Group != "giant" || got.Unplaced[0].Count != 2 || !strings.Contains(got.Unplaced[1].Reasons[0], "negative") {
		t.Errorf("unplaced %+v", got.Unplaced)
	}
}

func TestTimeIsUp(t *testing.T) {
	in := readShop(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r, err := in.Solve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	placed := 0
	for _, u := range in.GroupedPlacement(r).Unplaced {
		placed += u.Count
	}
	if placed != 7 {
		t.Errorf("%d of 7 pods are reported as unplaced when no time is given", placed)
	}
}

func TestStore(t *testing.T) {
	s := newStore()
	pod := func(ns, name, node, app string) {
		p := corev1.Pod{}
		p.Namespace, p.Name, p.Spec.NodeName, p.Labels = ns, name, node, map[string]string{"app": app}
		s.addPod(p)
	}
	pod("a", "1", "n", "x")
	pod("a", "2", "n", "y")
	pod("b", "3", "m", "x")
	s.nodes["n"] = &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "id"}}
	ctx := context.Background()
	names := func(opts ...client.ListOption) string {
		var list corev1.PodList
		if err := s.List(ctx, &list, opts...); err != nil {
			return err.Error()
		}
		var out []string
		for _, p := range list.Items {
			out = append(out, p.Name)
		}
		return strings.Join(out, " ")
	}
	x := client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(labels.Set{"app": "x"})}
	for want, got := range map[string]string{
		"1 2": names(client.MatchingFields{"spec.nodeName": "n"}), "3": names(client.InNamespace("b")), "1": names(client.InNamespace("a"), x),
		"list pods: field selector status.phase=Running is not known here": names(client.MatchingFields{"status.phase": "Running"}),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	var n corev1.Node
	if err := s.Get(ctx, types.NamespacedName{Name: "n"}, &n); err != nil || n.Spec.ProviderID != "id" {
		t.Errorf("get node: %v %v", err, n.Spec)
	}
	if err := s.Get(ctx, types.NamespacedName{Name: "gone"}, &n); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("get a node that is not there: %v", err)
	}
}
