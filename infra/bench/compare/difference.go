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
			name: "pods that end", kind: refused, page: "infra/bench/README.md", row: "a pod waits until one that is being deleted has ended",
			explains: func(t *trial, _ fault) bool { return t.acceptedLater },
		},
	}
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
