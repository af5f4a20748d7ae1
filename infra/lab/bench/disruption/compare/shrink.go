package main

import (
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	api "joiner.sh/pkg/api/v1"
)

// mostTries bounds the comparisons that shrinking one scenario takes.
const mostTries = 3000

// shrinkScenario takes away what the difference does not need, one thing at a time, until nothing more can go.
func (b sides) shrinkScenario(s *scenario, f finding) *scenario {
	tries := 0
	differs := func(s *scenario) bool {
		tries++
		out, err := b.compareScenario(s)
		if err != nil {
			return false
		}
		return slices.ContainsFunc(out.unexplainedFindings(),
			func(g finding) bool { return g.Kind == f.Kind && g.Reason == f.Reason && g.ours == f.ours })
	}
	for again := true; again && tries < mostTries; {
		again = false
		for _, smaller := range allReductions() {
			for i := 0; tries < mostTries; {
				next, ok := smaller(s, i)
				switch {
				case !ok:
				case next != nil && differs(next):
					s, again = next, true
					continue // the next thing has its number now
				default:
					i++
					continue
				}
				break
			}
		}
	}
	return s
}

// reduction is the scenario without its i-th thing of a kind, nil where that would be the same, and false where there
// are no more.
type reduction func(s *scenario, i int) (*scenario, bool)

func allReductions() []reduction {
	return []reduction{
		withoutNode,
		withoutEntry(func(s *scenario) *[]api.NodeClaim { return &s.Claims }),
		withoutEntry(func(s *scenario) *[]corev1.Pod { return &s.Pods }),
		withoutEntry(func(s *scenario) *[]policyv1.PodDisruptionBudget { return &s.Budgets }),
		withoutEntry(func(s *scenario) *[]appsv1.DaemonSet { return &s.DaemonSets }),
		withoutEntry(func(s *scenario) *[]api.NodePool { return &s.Pools }),
		tryEach(func(s *scenario) []func() bool {
			var out []func() bool
			for i := range s.Pools {
				out = append(out, plainPool(&s.Pools[i])...)
			}
			for i := range s.Pods {
				out = append(out, plainPod(&s.Pods[i])...)
			}
			for i := range s.Nodes {
				n := &s.Nodes[i]
				out = append(out, unsetField(&n.Annotations), unsetField(&n.Spec.Taints))
			}
			for i := range s.Claims {
				n := &s.Claims[i]
				out = append(out, unsetField(&n.Annotations), unsetField(&n.Spec.TerminationGracePeriod),
					unsetField(&n.Status.LastPodEventTime), unsetField(&n.OwnerReferences),
					unsetField(&n.Spec.Requirements))
			}
			return append(out, unsetField(&s.BestEffort))
		}),
	}
}

// plainPool are ways to make the pool simpler.
func plainPool(p *api.NodePool) []func() bool {
	out := []func() bool{unsetField(&p.Spec.Weight), unsetField(&p.Spec.Limits),
		unsetField(&p.Spec.Template.Spec.Taints), unsetField(&p.Spec.Template.Labels), unsetField(&p.Spec.Replicas),
		unsetField(&p.DeletionTimestamp), unsetField(&p.Spec.Template.Spec.TerminationGracePeriod)}
	for i := range p.Spec.Disruption.Budgets {
		out = append(out, removeEntry(&p.Spec.Disruption.Budgets, i))
	}
	for i := range p.Spec.Template.Spec.Requirements {
		out = append(out, removeEntry(&p.Spec.Template.Spec.Requirements, i))
	}
	return out
}

// plainPod are ways to make the pod simpler.
func plainPod(p *corev1.Pod) []func() bool {
	return []func() bool{unsetField(&p.Annotations), unsetField(&p.Labels), unsetField(&p.Spec.Tolerations),
		unsetField(&p.Spec.NodeSelector), unsetField(&p.Spec.Affinity),
		unsetField(&p.Spec.TopologySpreadConstraints), unsetField(&p.Spec.Priority), unsetField(&p.OwnerReferences),
		unsetField(&p.DeletionTimestamp)}
}

// unsetField makes the field its zero value, false where it is that.
func unsetField[T any](field *T) func() bool {
	return func() bool {
		var zero T
		if reflect.ValueOf(field).Elem().IsZero() {
			return false
		}
		*field = zero
		return true
	}
}

// removeEntry takes the i-th entry from the list.
func removeEntry[T any](list *[]T, i int) func() bool {
	return func() bool {
		*list = slices.Delete(slices.Clone(*list), i, i+1)
		return true
	}
}

// tryEach tries the ways one after the other, each on a copy.
func tryEach(ways func(*scenario) []func() bool) reduction {
	return func(s *scenario, i int) (*scenario, bool) {
		next := s.clone()
		all := ways(next)
		if i >= len(all) {
			return nil, false
		}
		if !all[i]() {
			return nil, true
		}
		return next, true
	}
}

// withoutEntry takes the i-th entry from the list.
func withoutEntry[T any](list func(*scenario) *[]T) reduction {
	return func(s *scenario, i int) (*scenario, bool) {
		next := *s
		all := list(&next)
		if i >= len(*all) {
			return nil, false
		}
		removeEntry(all, i)()
		return &next, true
	}
}

// withoutNode takes a node with its claim and its pods.
func withoutNode(s *scenario, i int) (*scenario, bool) {
	if i >= len(s.Nodes) {
		return nil, false
	}
	gone := s.Nodes[i]
	next := *s
	next.Nodes = slices.Delete(slices.Clone(s.Nodes), i, i+1)
	next.Claims = slices.DeleteFunc(slices.Clone(s.Claims),
		func(n api.NodeClaim) bool { return n.Status.ProviderID == gone.Spec.ProviderID })
	next.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p corev1.Pod) bool { return p.Spec.NodeName == gone.Name })
	return &next, true
}
