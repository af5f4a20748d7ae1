package main

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
			name: "Karpenter's place is none", kind: "left", page: "infra/bench/README.md", row: "kube-scheduler does not let a pod where Karpenter has it",
			explains: func(t *trial, f fault) bool { return t.refused[f.Pod] != "" },
		},
		{
			name: "pods being deleted", kind: "left", page: "README.md", row: "| pods being deleted | get nodes | do not |",
			explains: func(t *trial, f fault) bool { return f.Why == "" && t.pods[f.Pod].DeletionTimestamp != nil },
		},
	}
}
