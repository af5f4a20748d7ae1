package main

import "strings"

// difference is one between Joiner and Karpenter that is meant, and where users read about it.
type difference struct {
	name     string
	kind     string // of the faults that it explains
	page     string // of the repository
	row      string // text that stands on the page
	explains func(t *trial, f fault) bool
}

// differences are all that are meant. A predicate is about the pod and the reason that Joiner gives.
func differences() []difference {
	return []difference{
		{
			name: "pods being deleted", kind: left, page: "README.md", row: "| pods being deleted | get nodes | do not |",
			explains: func(t *trial, f fault) bool { return f.Why == "" && t.pods[f.Pod].DeletionTimestamp != nil },
		},
		{
			name: "Karpenter's place is none", kind: left, page: "infra/bench/README.md", row: "kube-scheduler does not let a pod where Karpenter has it",
			explains: func(t *trial, f fault) bool { return t.refused[f.Pod] != "" },
		},
		{
			name: "another pod has the room", kind: left, page: "infra/bench/README.md", row: "Joiner gives what is limited to as many pods, but to others",
			explains: func(t *trial, f fault) bool {
				scarce := strings.Contains(f.Why, ": limit ") || strings.Contains(f.Why, "have no room left") || strings.Contains(f.Why, "allows no more pods")
				return scarce && len(t.ours.Placed()) >= len(t.theirs.Placed())
			},
		},
		{
			name: "a label that the pool does not have", kind: left, page: "infra/bench/README.md", row: "a node gets a label that its NodePool does not name",
			explains: func(t *trial, f fault) bool {
				_, key, found := strings.Cut(f.Why, "gives its nodes no label ")
				key, _, _ = strings.Cut(key, ",")
				return found && !t.named(key)
			},
		},
		{
			name: "minValues beside a rule over the same label", kind: left, page: "infra/bench/README.md", row: "a pod with a rule over instance types or families is tied to one value",
			explains: func(t *trial, f fault) bool {
				tied := strings.Contains(f.Why, "over "+keyType+" allows no more pods") || strings.Contains(f.Why, "over "+keyFamily+" allows no more pods")
				return tied && t.mostValues() > 1
			},
		},
		{
			name: "minValues of several types in reservations", kind: left, page: "infra/bench/README.md", row: "a launch into a reservation names one type",
			explains: func(t *trial, f fault) bool {
				return strings.Contains(f.Why, "the capacity reservations that the pod may use have no room left") && t.mostValues() > 1 && !t.c.Settings.RelaxMinValues
			},
		},
		{
			name: "anti-affinity over a label of no node", kind: left, page: "infra/bench/README.md", row: "anti-affinity over a label that no node has",
			explains: func(t *trial, f fault) bool {
				return strings.Contains(f.Why, "pod anti-affinity over "+keyPartition+" allows no more pods: no value of it has room") && len(t.pods[f.Pod].Spec.Volumes) > 0
			},
		},
		{
			name: "pods that end", kind: refused, page: "infra/bench/README.md", row: "a pod waits until one that is being deleted has ended",
			explains: func(t *trial, _ fault) bool { return t.acceptedLater },
		},
	}
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

// named reports whether some NodePool has the label in its template or its requirements.
func (t *trial) named(key string) bool {
	for _, p := range t.c.NodePools {
		if _, ok := p.Spec.Template.Labels[key]; ok {
			return true
		}
		for _, r := range p.Spec.Template.Spec.Requirements {
			if r.Key == key {
				return true
			}
		}
	}
	return false
}
