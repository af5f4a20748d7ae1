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

// shrink takes away what the difference does not need, one thing at a time, until nothing more can go.
func (b sides) shrink(s *scenario, f finding) *scenario {
	tries := 0
	differs := func(s *scenario) bool {
		tries++
		out, err := b.compare(s)
		if err != nil {
			return false
		}
		return slices.ContainsFunc(out.unexplained(),
			func(g finding) bool { return g.Kind == f.Kind && g.Reason == f.Reason && g.ours == f.ours })
	}
	for again := true; again && tries < mostTries; {
		again = false
		for _, smaller := range reductions() {
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

func reductions() []reduction {
	return []reduction{
		withoutNode,
		without(func(s *scenario) *[]api.NodeClaim { return &s.Claims }),
		without(func(s *scenario) *[]corev1.Pod { return &s.Pods }),
		without(func(s *scenario) *[]policyv1.PodDisruptionBudget { return &s.Budgets }),
		without(func(s *scenario) *[]appsv1.DaemonSet { return &s.DaemonSets }),
		without(func(s *scenario) *[]api.NodePool { return &s.Pools }),
		simpler(func(s *scenario) []func() bool {
			var out []func() bool
			for i := range s.Pools {
				out = append(out, plainPool(&s.Pools[i])...)
			}
			for i := range s.Pods {
				out = append(out, plainPod(&s.Pods[i])...)
			}
			for i := range s.Nodes {
				n := &s.Nodes[i]
				out = append(out, unset(&n.Annotations), unset(&n.Spec.Taints))
			}
			for i := range s.Claims {
				n := &s.Claims[i]
				out = append(out, unset(&n.Annotations), unset(&n.Spec.TerminationGracePeriod),
					unset(&n.Status.LastPodEventTime), unset(&n.OwnerReferences), unset(&n.Spec.Requirements))
			}
			return append(out, unset(&s.BestEffort))
		}),
	}
}

// plainPool are ways to make the pool simpler.
func plainPool(p *api.NodePool) []func() bool {
	out := []func() bool{unset(&p.Spec.Weight), unset(&p.Spec.Limits), unset(&p.Spec.Template.Spec.Taints),
		unset(&p.Spec.Template.Labels), unset(&p.Spec.Replicas),
		unset(&p.DeletionTimestamp), unset(&p.Spec.Template.Spec.TerminationGracePeriod)}
	for i := range p.Spec.Disruption.Budgets {
		out = append(out, remove(&p.Spec.Disruption.Budgets, i))
	}
	for i := range p.Spec.Template.Spec.Requirements {
		out = append(out, remove(&p.Spec.Template.Spec.Requirements, i))
	}
	return out
}

// plainPod are ways to make the pod simpler.
func plainPod(p *corev1.Pod) []func() bool {
	return []func() bool{unset(&p.Annotations), unset(&p.Labels), unset(&p.Spec.Tolerations),
		unset(&p.Spec.NodeSelector), unset(&p.Spec.Affinity),
		unset(&p.Spec.TopologySpreadConstraints), unset(&p.Spec.Priority), unset(&p.OwnerReferences),
		unset(&p.DeletionTimestamp)}
}

// unset makes the field its zero value, false where it is that.
func unset[T any](field *T) func() bool {
	return func() bool {
		var zero T
		if reflect.ValueOf(field).Elem().IsZero() {
			return false
		}
		*field = zero
		return true
	}
}

// remove takes the i-th entry from the list.
func remove[T any](list *[]T, i int) func() bool {
	return func() bool {
		*list = slices.Delete(slices.Clone(*list), i, i+1)
		return true
	}
}

// simpler tries the ways one after the other, each on a copy.
func simpler(ways func(*scenario) []func() bool) reduction {
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

// without takes the i-th entry from the list.
func without[T any](list func(*scenario) *[]T) reduction {
	return func(s *scenario, i int) (*scenario, bool) {
		next := *s
		all := list(&next)
		if i >= len(*all) {
			return nil, false
		}
		remove(all, i)()
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
