package main

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	api "joiner.sh/pkg/api/v1"
)

// difference is one between Joiner and Karpenter that is meant, and where users read about it.
type difference struct {
	name     string
	kind     string // of the faults that it explains
	page     string // of the repository
	row      string // text that stands on the page
	explains func(t *trial, f fault) bool
}

// knownDifferences are all that are meant. A predicate is about the pod and the reason that Joiner gives.
func knownDifferences() []difference {
	return slices.Concat(scarceDifferences(), ruleDifferences(), valueDifferences())
}

// scarceDifferences are about who is looked at, and who gets what there is little of.
func scarceDifferences() []difference {
	return []difference{
		{
			name: "pods being deleted", kind: left, page: "functions/differences.md",
			row: "| pods being deleted | get nodes | none |",
			explains: func(t *trial, f fault) bool {
				p := t.pods[f.Pod]
				return f.Why == "" && p.DeletionTimestamp != nil ||
					strings.Contains(f.Why, "pod affinity over ") && t.followsDeleted(p) && !t.roomBeside(f)
			},
		},
		{
			name: "Karpenter's place is none", kind: left, page: "infra/lab/bench/differences.md",
			row:      "kube-scheduler does not let a pod where Karpenter has it",
			explains: func(t *trial, f fault) bool { return t.refused[f.Pod] != "" },
		},
		{
			name: "another pod has the room", kind: left, page: "infra/lab/bench/differences.md",
			row: "Joiner gives what is limited to as many pods, but to others",
			explains: func(t *trial, f fault) bool {
				limited := isScarcity(f.Why) || strings.Contains(f.Why, "allows no more pods") || t.othersThere(f.Pod)
				return limited && len(t.ours.PlacedPods()) >= t.theirsAccepted() && !t.roomBeside(f)
			},
		},
		{
			name: "priority", kind: left, page: "functions/differences.md",
			row: "| priority | ignored | first when capacity, limits or places are short |",
			explains: func(t *trial, f fault) bool {
				p := t.pods[f.Pod]
				first := isScarcity(f.Why) && t.goesFirst(p, func(*corev1.Pod) bool { return true }) ||
					strings.Contains(f.Why, "anti-affinity ") &&
						t.goesFirst(p, func(o *corev1.Pod) bool { return excludesPod(p, o) || excludesPod(o, p) })
				return first && !t.roomBeside(f)
			},
		},
		{
			name: "a tight packing", kind: left, page: "infra/lab/bench/differences.md",
			row: "where limits or reservations leave just enough room",
			explains: func(t *trial, f fault) bool {
				return isScarcity(f.Why) && !t.roomBeside(f) &&
					len(t.theirs.PlacedPods())-len(t.ours.PlacedPods()) == 1
			},
		},
		{
			name: "limits are overshot", kind: left, page: "functions/differences.md",
			row: "| limits | may be overshot within a pass | counted within the pass, `nodes` too;",
			explains: func(t *trial, f fault) bool {
				return !t.roomBeside(f) && slices.ContainsFunc(t.exceededLimits(f.Pod),
					func(name string) bool { return strings.Contains(f.Why, "limit "+name+" ") })
			},
		},
	}
}

// ruleDifferences are about pods beside each other.
func ruleDifferences() []difference {
	return []difference{
		{
			name: "pods that a spread counts come in any order", kind: left, page: "infra/lab/bench/differences.md",
			row: "pods that a spread counts and that have none of their own, or one that allows more, may come before it",
			explains: func(t *trial, f fault) bool {
				spreads := strings.Contains(f.Why, "spread with maxSkew") ||
					strings.Contains(f.Why, "its spread or affinity would be broken")
				return spreads && t.countsOthers(t.pods[f.Pod])
			},
		},
		{
			name: "a spread over domains in which the pod cannot be", kind: left, page: "infra/lab/bench/differences.md",
			row: "a spread counts domains in which the pod cannot be",
			explains: func(t *trial, f fault) bool {
				key, _, found := strings.Cut(textBetween(f.Why, "spread with maxSkew", ":"), " allows")
				return found && t.spreadsBeyond(t.pods[f.Pod], textBetween(key+":", " over ", ":"))
			},
		},
		{
			name: "pods that exclude each other", kind: left, page: "infra/lab/bench/differences.md",
			row: "of pods that exclude each other one may keep several out",
			explains: func(t *trial, f fault) bool {
				key, _, found := strings.Cut(textBetween(f.Why, "affinity of other pods over ", ":"), " ")
				return found && key != keyHost && t.keepsOut(key)
			},
		},
		{
			name: "a group that no node holds", kind: left, page: "infra/lab/bench/differences.md",
			row: "a group that must share a node and fits on none",
			explains: func(t *trial, f fault) bool {
				return strings.Contains(f.Why, "no node has both the pods it must be near and room for it") &&
					t.theirsLeave(groupOf(f.Pod))
			},
		},
		{
			name: "pods that end", kind: refused, page: "infra/lab/bench/differences.md",
			row:      "a pod waits until one that is being deleted has ended",
			explains: func(t *trial, _ fault) bool { return t.acceptedLater },
		},
	}
}

// valueDifferences are about labels and how many values of them there are.
func valueDifferences() []difference {
	return []difference{
		{
			name: "a label that the pool does not have", kind: left, page: "infra/lab/bench/differences.md",
			row: "a node gets a label that its NodePool does not name",
			explains: func(t *trial, f fault) bool {
				_, key, found := strings.Cut(f.Why, "gives its nodes no label ")
				key, _, _ = strings.Cut(key, ",")
				return found && !t.poolGivesLabel(f.Pod, key) || t.asksForUnnamed(f)
			},
		},
		{
			name: "minValues beside a rule over the same label", kind: left, page: "infra/lab/bench/differences.md",
			row: "a pod with a rule over instance types or families is tied to one value",
			explains: func(t *trial, f fault) bool {
				few := strings.Contains(f.Why, "too few instance types can hold the pod for minValues")
				return t.mostValues() > 1 && slices.ContainsFunc([]string{keyType, keyFamily}, func(key string) bool {
					return strings.Contains(f.Why, "over "+key+" allows no more pods") ||
						few && t.hasRuleOver(t.pods[f.Pod], key)
				})
			},
		},
		{
			name: "minValues of several types in reservations", kind: left, page: "infra/lab/bench/differences.md",
			row: "a launch into a reservation names one type",
			explains: func(t *trial, f fault) bool {
				return strings.Contains(f.Why, "the capacity reservations that the pod may use have no room left") &&
					t.mostValues() > 1 && !t.c.Settings.RelaxMinValues
			},
		},
		{
			name: "anti-affinity over a label of no node", kind: left, page: "infra/lab/bench/differences.md",
			row: "anti-affinity over a label that no node has",
			explains: func(t *trial, f fault) bool {
				key, _, _ := strings.Cut(
					textBetween(f.Why, "pod anti-affinity over ", ": no value of it has room"), " ")
				return (key == keyPartition || key != "" && !t.anyNodeNames(key)) && len(t.pods[f.Pod].Spec.Volumes) > 0
			},
		},
	}
}

// isScarcity reports whether Joiner says that limits or reservations leave no room.
func isScarcity(why string) bool {
	return strings.Contains(why, ": limit ") || strings.Contains(why, " and limit ") ||
		strings.Contains(why, "the capacity reservations that the pod may use have no room left")
}

// goesFirst reports whether Joiner has a place, and Karpenter none, for such a pod of a higher priority.
func (t *trial) goesFirst(than *corev1.Pod, such func(*corev1.Pod) bool) bool {
	theirs := t.theirs.PlacedPods()
	for pod := range t.ours.PlacedPods() {
		if p := t.pods[pod]; theirs[pod] == "" && p != nil &&
			ptr.Deref(p.Spec.Priority, 0) > ptr.Deref(than.Spec.Priority, 0) && such(p) {
			return true
		}
	}
	return false
}

// countsOthers reports whether a required spread of the pod counts a pod that waits and has no spread as strict.
func (t *trial) countsOthers(p *corev1.Pod) bool {
	for _, c := range p.Spec.TopologySpreadConstraints {
		selector, err := metav1.LabelSelectorAsSelector(c.LabelSelector)
		if err != nil || c.WhenUnsatisfiable != corev1.DoNotSchedule {
			continue
		}
		for _, o := range t.pods {
			strict := slices.ContainsFunc(o.Spec.TopologySpreadConstraints,
				func(x corev1.TopologySpreadConstraint) bool {
					return x.TopologyKey == c.TopologyKey && x.WhenUnsatisfiable == c.WhenUnsatisfiable &&
						x.MaxSkew <= c.MaxSkew && ptr.Deref(x.MinDomains, 1) >= ptr.Deref(c.MinDomains, 1) &&
						samePolicies(x, c) && (ignoresAffinity(c) || sameNodes(p, o))
				})
			if o.Namespace == p.Namespace && !strict && selector.Matches(labels.Set(o.Labels)) {
				return true
			}
		}
	}
	return false
}

// textBetween is the text after the first mark and before the next second one, empty if there is none.
func textBetween(text, first, second string) string {
	_, after, _ := strings.Cut(text, first)
	out, _, _ := strings.Cut(after, second)
	return out
}

// keepsOut reports whether Joiner has a place, and Karpenter none, for a pod with anti-affinity over the label.
func (t *trial) keepsOut(key string) bool {
	theirs := t.theirs.PlacedPods()
	for pod := range t.ours.PlacedPods() {
		p := t.pods[pod]
		if theirs[pod] != "" || p == nil || p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
			continue
		}
		for _, term := range p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			if term.TopologyKey == key {
				return true
			}
		}
	}
	return false
}

// theirsLeave reports whether Karpenter leaves a pod of the group.
func (t *trial) theirsLeave(group string) bool {
	for pod := range t.theirs.Left {
		if groupOf(pod) == group {
			return true
		}
	}
	return false
}

// mostValues is the largest minValues of any NodePool.
func (t *trial) mostValues() int {
	most := 0
	for _, p := range t.c.NodePools {
		for _, r := range p.Spec.Template.Spec.Requirements {
			if r.MinValues != nil {
				most = max(most, *r.MinValues)
			}
		}
	}
	return most
}

// asksForUnnamed reports whether the pod asks for a label in one of several node affinity terms, and the NodePool in
// which Karpenter has it does not name the label.
func (t *trial) asksForUnnamed(f fault) bool {
	return asksNodes(t.pods[f.Pod], func(r corev1.NodeSelectorRequirement) bool {
		return !t.poolGivesLabel(f.Pod, r.Key) && strings.Contains(f.Why, r.Key+" exists")
	})
}

// poolGivesLabel reports whether the NodePool in which Karpenter has the pod gives its nodes the label, by its template
// or its requirements.
func (t *trial) poolGivesLabel(pod, key string) bool {
	for _, n := range t.theirs.New {
		i := slices.IndexFunc(t.c.NodePools, func(p api.NodePool) bool { return p.Name == n.NodePool })
		if i < 0 || !slices.Contains(n.Pods, pod) {
			continue
		}
		template := t.c.NodePools[i].Spec.Template
		_, given := template.Labels[key]
		return given || slices.ContainsFunc(template.Spec.Requirements,
			func(r api.Requirement) bool { return r.Key == key })
	}
	return true
}
