package main

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner/infra/bench/compare/filter"
	"joiner/infra/bench/karpenter"
	"joiner/infra/bench/manifests"
	"joiner/pkg/catalog"
)

// fault is something that no documented difference explains.
type fault struct {
	Kind string `json:"kind"` // panic, left or refused
	Pod  string `json:"pod,omitempty"`
	Why  string `json:"why"`
}

// sameAs reports whether both are about the same kind of mistake, as far as a shorter cluster can show that.
func (f fault) sameAs(other fault) bool {
	return f.Kind == other.Kind && (f.Kind != "refused" || pluginOf(f.Why) == pluginOf(other.Why))
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
}

// judge lets both decide and holds what Joiner does against the scheduler, and what it leaves against Karpenter.
func judge(ctx context.Context, c *manifests.Cluster, all catalog.Catalog) (verdict, error) {
	var v verdict
	s, err := c.Snapshot(ctx, all)
	if err != nil {
		return v, err
	}
	p, bad := decide(s)
	if bad != nil {
		v.faults = []fault{{Kind: "panic", Why: fmt.Sprintf("%v at %s", bad.value, bad.stack)}}
		return v, nil
	}
	t := &trial{c: c, pods: map[string]*corev1.Pod{}}
	for i := range c.Pods {
		t.pods[c.Pods[i].Namespace+"/"+c.Pods[i].Name] = &c.Pods[i]
	}
	if t.ours, err = outcomeOf(s, p, asChosen); err != nil {
		return v, err
	}
	v.placed = len(t.ours.Placed())
	refused, err := filter.Refused(ctx, c, t.ours, coming(s))
	if err != nil {
		return v, err
	}
	if len(refused) == 0 && len(p.Launches) > 0 {
		o, err := outcomeOf(s, p, byChance(rand.New(rand.NewPCG(uint64(len(c.Pods)), 5))))
		if err != nil {
			return v, err
		}
		if refused, err = filter.Refused(ctx, c, o, coming(s)); err != nil {
			return v, err
		}
		if len(refused) > 0 {
			t.ours = o
		}
	}
	for _, pod := range slices.Sorted(maps.Keys(refused)) {
		v.add(t, fault{Kind: "refused", Pod: pod, Why: refused[pod]})
	}
	return v, t.compare(ctx, all, &v)
}

// compare finds the pods that Karpenter places and Joiner leaves.
func (t *trial) compare(ctx context.Context, all catalog.Catalog, v *verdict) error {
	sold, err := t.c.Catalog(all)
	if err != nil {
		return err
	}
	if t.theirs, err = karpenter.Provision(ctx, t.c, sold); err != nil {
		return fmt.Errorf("karpenter: %w", err)
	}
	missing := t.missing()
	if len(missing) == 0 {
		return nil
	}
	if t.refused, err = filter.Refused(ctx, t.c, t.theirs, nil); err != nil {
		return err
	}
	for _, pod := range missing {
		v.add(t, fault{Kind: "left", Pod: pod, Why: t.ours.Left[pod]})
	}
	return nil
}

// missing are pods that Karpenter places and Joiner leaves: of each group of like pods as many as it leaves more.
func (t *trial) missing() []string {
	ours, theirs := t.ours.Placed(), t.theirs.Placed()
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

// add keeps the fault unless a difference explains it.
func (v *verdict) add(t *trial, f fault) {
	for _, d := range differences() {
		if d.kind == f.Kind && d.explains(t, f) {
			v.explained = append(v.explained, d.name)
			return
		}
	}
	v.faults = append(v.faults, f)
}
