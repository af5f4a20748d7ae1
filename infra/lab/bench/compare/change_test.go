package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// Each change that Joiner names for a pod without a node is made in the objects, as people make it. Joiner has a place
// for the pod then, and kube-scheduler's plugins have nothing against where all pods go.
func TestNamedChangesWork(t *testing.T) {
	ctx, all := context.Background(), sold(t)
	asked, made := 0, newChangeCount()
	for seed := *wanted.first; seed < *wanted.first+uint64(*wanted.seeds); seed++ {
		c, err := randomCluster(seed, all)
		if err != nil {
			t.Fatal(err)
		}
		s, err := c.ReadSnapshot(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		unplaced := binpack.Pods(s).Unplaced
		for _, u := range unplaced[:min(3, len(unplaced))] {
			asked++
			for _, x := range whatif.ForPod(s, binpack.ResolveOfferings(s), u.Pod, whatif.Limits{}).Changes {
				edited, err := makeChange(c, s, x)
				if !made.count(t, seed, x, err) {
					continue
				}
				if bad := judgeChange(ctx, edited, all, u.Pod); bad != "" {
					t.Errorf("seed %d, %s: %s: %s", seed, u.Pod, x, bad)
				}
			}
		}
	}
	t.Logf("%d changes of %d pods: %v; not made: %v", made.judged, asked, made.fields, made.left)
	if made.judged < *wanted.seeds/2 || len(made.fields) < 6 {
		t.Errorf("%d changes of %d kinds test little", made.judged, len(made.fields))
	}
}

// changeCount counts the changes that a test judges.
type changeCount struct {
	judged       int
	fields, left map[string]int // by what is edited, and by what is not made here
}

func newChangeCount() changeCount {
	return changeCount{fields: map[string]int{}, left: map[string]int{}}
}

// count counts the change, and reports whether it is made. One that the API server refuses is a fault.
func (n *changeCount) count(t *testing.T, seed uint64, x whatif.Change, err error) bool {
	t.Helper()
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		t.Errorf("seed %d: %s: %v", seed, x, err)
	}
	if err != nil {
		n.left[err.Error()]++
		return false
	}
	n.judged++
	for _, e := range x.Edits {
		n.fields[e.Kind+" "+strings.Split(e.Field, "[")[0]]++
	}
	return true
}

// judgeChange says what is wrong with the cluster for the pods, or nothing.
func judgeChange(ctx context.Context, c *manifests.Cluster, all instancetypes.Catalog, pods ...string) string {
	s, err := c.ReadSnapshot(ctx, all)
	if err != nil {
		return err.Error()
	}
	p := binpack.Pods(s)
	tr, err := newTrial(c, s, p)
	if err != nil {
		return err.Error()
	}
	for _, pod := range pods {
		if tr.ours.PlacedPods()[pod] == "" {
			return pod + " has no place: " + tr.ours.Left[pod]
		}
	}
	var v verdict
	if err := tr.checkPlaces(ctx, s, p, &v); err != nil {
		return err.Error()
	}
	for _, f := range v.faults {
		return fmt.Sprintf("kube-scheduler refuses %s: %s", f.Pod, f.Why)
	}
	return ""
}

// Each change that Joiner names for a node that stays is made in the objects. Joiner lets the node go then, and
// kube-scheduler's plugins have nothing against where its pods go.
func TestNamedChangesLetNodesGo(t *testing.T) {
	ctx, all := context.Background(), sold(t)
	asked, moved, made := 0, 0, newChangeCount()
	for seed := *wanted.first; seed < *wanted.first+uint64(*wanted.seeds); seed++ {
		c, err := randomCluster(seed, all, (*draw).addServingNodes)
		if err != nil {
			t.Fatal(err)
		}
		guardNodes(c, seed)
		s, err := c.ReadSnapshot(ctx, all)
		if err != nil {
			t.Fatal(err)
		}
		for _, claim := range s.Claims {
			asked++
			for _, x := range whatif.ForNode(s, disruption.Memory{}, binpack.ResolveOfferings(s), claim.Name,
				whatif.Limits{}).Changes {
				edited, err := makeChange(c, s, x)
				if !made.count(t, seed, x, err) {
					continue
				}
				n, bad := judgeLeaving(ctx, edited, all, claim.Name)
				moved += n
				if bad != "" {
					t.Errorf("seed %d, %s: %s: %s", seed, claim.Name, x, bad)
				}
			}
		}
	}
	t.Logf("%d changes of %d nodes, of which %d pods move: %v; not made: %v", made.judged, asked, moved, made.fields, made.left)
	if made.judged < *wanted.seeds/2 || moved < made.judged/4 || len(made.fields) < 4 {
		t.Errorf("%d changes of %d kinds, of which %d pods move, test little", made.judged, len(made.fields), moved)
	}
}

// addServingNodes adds nodes that are in service.
func (d *draw) addServingNodes() {
	d.addNodes(4)
	for _, x := range d.nodes {
		x.state = stateInitialized
	}
}

// guardNodes has the nodes of the cluster stay, each for something else.
func guardNodes(c *manifests.Cluster, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 60))
	old := metav1.NewTime(manifests.ClusterTime().Add(-3 * time.Hour))
	guard := func(o *metav1.ObjectMeta) {
		if r.IntN(4) == 0 {
			o.Annotations = map[string]string{api.AnnotationDoNotDisrupt: "true"}
		}
	}
	for i := range c.NodePools {
		d := &c.NodePools[i].Spec.Disruption
		d.ConsolidationPolicy, d.ConsolidateAfter = api.ConsolidationWhenEmptyOrUnderutilized, api.After(0)
		d.Budgets = []api.Budget{{Nodes: []string{"0", "1", "100%", "100%"}[r.IntN(4)]}}
		switch r.IntN(4) {
		case 0:
			d.ConsolidateAfter = api.After(5 * time.Hour)
		case 1:
			d.ConsolidationPolicy = api.ConsolidationWhenEmpty
		}
	}
	for i := range c.NodeClaims {
		c.NodeClaims[i].CreationTimestamp = old
	}
	for i := range c.Nodes {
		c.Nodes[i].CreationTimestamp = old
		guard(&c.Nodes[i].ObjectMeta)
	}
	for i := range c.Pods {
		if c.Pods[i].Spec.NodeName != "" {
			guard(&c.Pods[i].ObjectMeta)
		}
	}
}

// judgeLeaving says what is wrong with the cluster for the node to go, or nothing, and how many pods move.
func judgeLeaving(ctx context.Context, c *manifests.Cluster, all instancetypes.Catalog, claim string) (int, string) {
	s, err := c.ReadSnapshot(ctx, all)
	if err != nil {
		return 0, err.Error()
	}
	if _, goes := disruption.AskAbout(s, disruption.Memory{}, binpack.ResolveOfferings(s), nil, claim); !goes {
		return 0, "it stays"
	}
	gone, moved := withoutNode(c, s, claim)
	return len(moved), judgeChange(ctx, gone, all, moved...)
}

// withoutNode is the cluster without the node of the claim. The pods that move wait in it, and no others, which may want
// the same room.
func withoutNode(c *manifests.Cluster, s cluster.Snapshot, claim string) (out *manifests.Cluster, moved []string) {
	i := slices.IndexFunc(s.Claims, func(x cluster.Claim) bool { return x.Name == claim })
	name, next := s.Claims[i].NodeName, *c
	next.NodeClaims = slices.DeleteFunc(slices.Clone(c.NodeClaims),
		func(x api.NodeClaim) bool { return x.Name == claim })
	next.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n corev1.Node) bool { return n.Name == name })
	for _, p := range s.Pods {
		if p.NodeName == name && p.Reschedulable() && !p.Terminating() {
			moved = append(moved, p.Key())
		}
	}
	next.Pods = nil
	for _, p := range c.Pods {
		if p.Spec.NodeName == name || p.Spec.NodeName == "" {
			if !slices.Contains(moved, p.Namespace+"/"+p.Name) {
				continue
			}
			p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
		}
		next.Pods = append(next.Pods, p)
	}
	return &next, moved
}
