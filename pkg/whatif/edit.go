package whatif

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// Kinds of objects that are edited beside those of Kubernetes.
const (
	KindSetting = "Setting" // of the stack, by its name
	KindEC2     = "EC2"     // what EC2 refused, by the error code
)

// Edit is one change of one object.
type Edit struct {
	Kind      string `json:"kind"` // NodePool, Pod and so on; a Pod stands for the object that makes it
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Field     string `json:"field"`          // what is changed, as a path in the object
	From      string `json:"from,omitempty"` // empty for what is added
	To        string `json:"to,omitempty"`   // empty for what is removed
	// a command that makes it, or file and path; empty until whoever has the objects adds it
	Place string `json:"place,omitempty"`

	order int                       // in which edits of one change are made
	ops   []op                      // that write it into the object
	make  func(s *cluster.Snapshot) // makes it in a snapshot whose lists may be changed
}

// Object names what is edited, as kubectl would.
func (e Edit) Object() string {
	if e.Namespace != "" {
		return fmt.Sprintf("%s %s/%s", e.Kind, e.Namespace, e.Name)
	}
	return e.Kind + " " + e.Name
}

// String says the edit in a sentence without a full stop.
func (e Edit) String() string {
	switch {
	case e.From == "":
		return fmt.Sprintf("add %s %s to %s", e.Field, e.To, e.Object())
	case e.To == "":
		return fmt.Sprintf("remove %s %s from %s", e.Field, e.From, e.Object())
	}
	return fmt.Sprintf("change %s of %s from %s to %s", e.Field, e.Object(), e.From, e.To)
}

// Change is one edit, or two where no single one helps, that changes the answer.
type Change struct {
	Edits []Edit `json:"edits"`
	Outcome
}

// Outcome is what a change brings.
type Outcome struct {
	// the node that the pod comes to, or what becomes of the node
	Brings string `json:"brings"`
	// what new nodes cost more than without the change, USD per hour; below zero for what is saved
	AddsUSD float64 `json:"addsUSD"`
	// other pods that get a node too, namespace/name, sorted
	Others []string `json:"others,omitempty"`

	landing landing
}

// String says the change and what it brings in a sentence without a full stop.
func (c Change) String() string {
	var parts []string
	for _, e := range c.Edits {
		parts = append(parts, e.String())
	}
	out := strings.Join(parts, " and ") + ": " + c.Brings
	switch n := len(c.Others); {
	case n == 1:
		out += ", and " + c.Others[0] + " gets a node too"
	case n > 1:
		out += fmt.Sprintf(", and %d other pods get a node too, such as %s", n, c.Others[0])
	}
	return out
}

// Answer is what would change the answer.
type Answer struct {
	// the cheapest first; each does nothing without any part of it
	Changes []Change `json:"changes,omitempty"`
	// edits that do not help alone
	Tried []Edit `json:"tried,omitempty"`
	// edits and pairs that no work was left for
	Unasked int `json:"unasked,omitempty"`
	// questions that were asked, and the work that they were
	Questions int `json:"questions"`
	Work      int `json:"work"`
}

// Apply is the snapshot with the change made. The snapshot given is not changed.
func (c Change) Apply(s cluster.Snapshot) cluster.Snapshot {
	s = withOwnLists(s)
	s.Pods = slices.Clone(s.Pods)
	makeAll(&s, c.Edits)
	return s
}

// makeAll makes the edits in a snapshot whose lists may be changed: of one list the last elements first.
func makeAll(s *cluster.Snapshot, edits []Edit) {
	for _, e := range slices.SortedStableFunc(slices.Values(edits), func(a, b Edit) int { return a.order - b.order }) {
		e.make(s)
	}
}

// withOwnLists is the snapshot with lists that may be changed, but for its pods.
func withOwnLists(s cluster.Snapshot) cluster.Snapshot {
	s.Pools, s.Budgets, s.Nodes = slices.Clone(s.Pools), slices.Clone(s.Budgets), slices.Clone(s.Nodes)
	return s
}
