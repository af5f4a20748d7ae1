package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/infra/lab/bench/compare/filter"
	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// Kinds of faults.
const (
	panics  = "panic"
	left    = "left"    // by Joiner, and Karpenter has a place
	refused = "refused" // by kube-scheduler
)

// fault is something that no documented difference explains.
type fault struct {
	Kind string `json:"kind"`
	Pod  string `json:"pod,omitempty"`
	Why  string `json:"why"`
}

// sameAs reports whether both are about the same kind of mistake, as far as a shorter cluster can show that.
func (f fault) sameAs(other fault) bool {
	return f.Kind == other.Kind && (f.Kind != refused || pluginOf(f.Why) == pluginOf(other.Why))
}

// pluginOf is the plugin that a reason begins with.
func pluginOf(why string) string {
	name, _, _ := strings.Cut(why, ":")
	return name
}

// verdict is what came of one cluster.
type verdict struct {
	faults    []fault
	explained []string // names of differences that explain something
	placed    int
}

// trial is one cluster with what both decide about it.
type trial struct {
	c            *manifests.Cluster
	pods         map[string]*corev1.Pod
	ours, theirs manifests.Outcome
	refused      map[string]string // pods that kube-scheduler does not let where Karpenter has them

	capacityOf map[string]corev1.ResourceList // by instance type
	roomOf     map[string]corev1.ResourceList // by instance type, what pods and DaemonSets may have of it
	typesOf    map[string][]string            // that a new node of Joiner's may become
	beside     map[string]bool                // groups of which Karpenter places more where Joiner's plan has come true
	// acceptedLater: kube-scheduler lets all pods where Joiner has them once those that are being deleted are gone
	acceptedLater bool
}

// judgeCluster lets both decide and holds what Joiner does against the scheduler, and what it leaves against Karpenter.
func judgeCluster(ctx context.Context, c *manifests.Cluster, all instancetypes.Catalog) (verdict, error) {
	var v verdict
	s, err := c.ReadSnapshot(ctx, all)
	if err != nil {
		return v, err
	}
	p, bad := decidePlan(s)
	if bad != nil {
		v.faults = []fault{{Kind: panics, Why: fmt.Sprintf("%v at %s", bad.value, bad.stack)}}
		return v, nil
	}
	t, err := newTrial(c, s, p)
	if err != nil {
		return v, err
	}
	v.placed = len(t.ours.PlacedPods())
	if err := t.checkPlaces(ctx, s, p, &v); err != nil {
		return v, err
	}
	return v, t.findMissing(ctx, s, all, &v)
}

// newTrial is the cluster with what Joiner decides about its snapshot.
func newTrial(c *manifests.Cluster, s cluster.Snapshot, p plan.Plan) (t *trial, err error) {
	t = &trial{c: c, pods: map[string]*corev1.Pod{}, typesOf: map[string][]string{}}
	t.capacityOf, t.roomOf = resourcesByType(s)
	for i, l := range p.Launches {
		t.typesOf[nameOf(i)] = l.Types
	}
	for i := range c.Pods {
		t.pods[c.Pods[i].Namespace+"/"+c.Pods[i].Name] = &c.Pods[i]
	}
	t.ours, err = outcomeOf(s, p, asChosen)
	return t, err
}

// checkPlaces asks the scheduler about every place that Joiner gives: where launches become what they chose, and
// something else that they allow.
func (t *trial) checkPlaces(ctx context.Context, s cluster.Snapshot, p plan.Plan, v *verdict) error {
	for _, become := range []another{asChosen, byChance(rand.New(rand.NewPCG(uint64(len(t.c.Pods)), 5)))} {
		o, err := outcomeOf(s, p, become)
		if err != nil {
			return err
		}
		no, err := filter.RefusedPods(ctx, t.c, o, comingNodes(s))
		if err != nil {
			return err
		}
		if len(no) == 0 {
			continue
		}
		later, err := filter.RefusedPods(ctx, withoutEnding(t.c), o, comingNodes(s))
		if err != nil {
			return err
		}
		t.acceptedLater = len(later) == 0
		for _, pod := range slices.Sorted(maps.Keys(no)) {
			v.addFault(t, fault{Kind: refused, Pod: pod, Why: no[pod]})
		}
		return nil
	}
	return nil
}

// withoutEnding is the cluster when the pods on nodes that are being deleted are gone.
func withoutEnding(c *manifests.Cluster) *manifests.Cluster {
	out := *c
	out.Pods = slices.DeleteFunc(slices.Clone(c.Pods),
		func(p corev1.Pod) bool { return p.Spec.NodeName != "" && p.DeletionTimestamp != nil })
	return &out
}

// findMissing finds the pods that Karpenter places and Joiner leaves.
func (t *trial) findMissing(ctx context.Context, s cluster.Snapshot, all instancetypes.Catalog, v *verdict) error {
	sold, err := t.c.SoldCatalog(all)
	if err != nil {
		return err
	}
	if t.theirs, err = karpenter.DecideProvisioning(ctx, t.c, sold); err != nil {
		return fmt.Errorf("karpenter: %w", err)
	}
	missing := t.missingPods()
	if len(missing) == 0 {
		return nil
	}
	if t.refused, err = filter.RefusedPods(ctx, t.c, t.theirs, nil); err != nil {
		return err
	}
	if err := t.placeBeside(ctx, s, sold); err != nil {
		return err
	}
	for _, pod := range missing {
		v.addFault(t, fault{Kind: left, Pod: pod, Why: t.ours.Left[pod]})
	}
	return nil
}

// missingPods are pods that Karpenter places and Joiner leaves: of each group of like pods as many as it leaves more.
func (t *trial) missingPods() []string {
	ours, theirs := t.ours.PlacedPods(), t.theirs.PlacedPods()
	more := map[string]int{}
	for pod := range theirs {
		more[groupOf(pod)]++
	}
	for pod := range ours {
		more[groupOf(pod)]--
	}
	var out []string
	for _, pod := range slices.Sorted(maps.Keys(theirs)) {
		if g := groupOf(pod); ours[pod] == "" && more[g] > 0 {
			more[g]--
			out = append(out, pod)
		}
	}
	return out
}

// groupOf is what the names of like pods have in common.
func groupOf(pod string) string { return pod[:max(0, strings.LastIndexByte(pod, '-'))] }

// addFault keeps the fault unless a difference explains it.
func (v *verdict) addFault(t *trial, f fault) {
	for _, d := range knownDifferences() {
		if d.kind == f.Kind && d.explains(t, f) {
			v.explained = append(v.explained, d.name)
			return
		}
	}
	v.faults = append(v.faults, f)
}
