package whatif

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// Kinds of objects that are edited beside those of Kubernetes.
const (
	KindSetting = "Setting" // of the stack, by its name
	KindEC2     = "EC2"     // what EC2 refused, by the error code
)

// Edit is one change of one object.
type Edit struct {
	Kind      string `json:"kind"`                // NodePool, Pod and so on; a Pod stands for the object that makes it
	Namespace string `json:"namespace,omitempty"` // empty for what has none
	Name      string `json:"name"`                // of the object
	Field     string `json:"field"`               // what is changed, as a path in the object
	From      string `json:"from,omitempty"`      // empty for what is added
	To        string `json:"to,omitempty"`        // empty for what is removed
	// a command that makes it, or file and path; empty until whoever has the objects adds it
	Place string `json:"place,omitempty"`

	order int                       // in which edits of one change are made
	at    path                      // of what a merge patch sets; nil where none does
	value any                       // that it sets, nil for nothing
	make  func(s *cluster.Snapshot) // makes it in a snapshot whose lists may be changed
}

// target is an object that is edited.
type target struct{ kind, namespace, name string }

// edit is an edit of the object. A merge patch sets the value to, or what it is as: nil where none does.
func (t target) edit(at path, from, to string, change func(s *cluster.Snapshot), as ...any) Edit {
	e := Edit{Kind: t.kind, Namespace: t.namespace, Name: t.name, Field: at.String(), From: from, To: to, at: at,
		value: to, make: change}
	switch {
	case len(as) > 0 && as[0] == nil:
		e.at = nil
	case len(as) > 0:
		e.value = as[0]
	case to == "":
		e.value = nil
	case to == noValue:
		e.value = ""
	}
	return e
}

// Object names what is edited, as kubectl would.
func (e Edit) Object() string {
	return e.Kind + " " + strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")
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
	Edits []Edit `json:"edits"` // one, or two that are made together
	ChangeEffect
}

// ChangeEffect holds the effect of a change.
type ChangeEffect struct {
	// the node that the pod comes to, or what becomes of the node
	Brings string `json:"brings"`
	// what new nodes cost more than without the change, USD per hour; below zero for what is saved
	AddsUSD float64 `json:"addsUSD"`
	// other pods that get a node too, namespace/name, sorted
	Others []string `json:"others,omitempty"`
	// other pods that get no node any more, because the pod takes what they would get, namespace/name, sorted
	Displaced []string `json:"displaced,omitempty"`
	landing   landing
}

// String says the change and what it brings in a sentence without a full stop.
func (c Change) String() string {
	out := strings.Join(lists.Of(c.Edits, Edit.String), " and ") + ": " + c.Brings
	if n := len(c.Others); n == 1 {
		out += ", and " + c.Others[0] + " gets a node too"
	} else if n > 1 {
		out += fmt.Sprintf(", and %d other pods get a node too, such as %s", n, c.Others[0])
	}
	if n := len(c.Displaced); n == 1 {
		out += ", but " + c.Displaced[0] + " gets no node any more"
	} else if n > 1 {
		out += fmt.Sprintf(", but %d other pods get no node any more, such as %s", n, c.Displaced[0])
	}
	return out
}

// Answer holds the changes that would change the answer.
type Answer struct {
	// first those without displaced pods, the cheapest of them first; each does nothing without any part of it
	Changes []Change `json:"changes,omitempty"`
	// edits that do not help alone
	Tried []Edit `json:"tried,omitempty"`
	// edits and pairs that no work was left for
	Unasked int `json:"unasked,omitempty"`
	// questions that were asked, and the work that they were
	Questions int `json:"questions"`
	Work      int `json:"work"` // in the unit of Limits.Work
}

// Apply is the snapshot with the change made: of one list the last elements first. The snapshot given is not changed.
func (c Change) Apply(s cluster.Snapshot) cluster.Snapshot {
	if slices.ContainsFunc(c.Edits, func(e Edit) bool { return e.Kind == "Pod" }) {
		s.Pods = slices.Clone(s.Pods)
	}
	s.Nodes, s.Pools = slices.Clone(s.Nodes), slices.Clone(s.Pools)
	s.Budgets, s.Classes = slices.Clone(s.Budgets), slices.Clone(s.Classes)
	inOrder := func(a, b Edit) int { return a.order - b.order }
	for _, e := range slices.SortedStableFunc(slices.Values(c.Edits), inOrder) {
		e.make(&s)
	}
	return s
}

// without is the list without its element i.
func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// withKey is the map with another value for the key, or without it where there is none.
func withKey(m map[string]string, key string, value ...string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, m)
	delete(out, key)
	for _, v := range value {
		out[key] = v
	}
	return out
}

// noValue shows a label that is there, and empty.
const noValue = `""`

// shown is the label as it is told, empty where there is none.
func shown(labels map[string]string, key string) string {
	if v, has := labels[key]; has {
		return cmp.Or(v, noValue)
	}
	return ""
}

// path leads to a field of an object: keys, and [0] or [key=value] for an element of a list.
type path []string

// pathOf is the path that goes on from the base, which is joined by dots.
func pathOf(base string, rest ...string) path { return append(strings.Split(base, "."), rest...) }

// elementAt is the part of a path for an element of a list.
func elementAt(i int) string { return fmt.Sprintf("[%d]", i) }

// String joins the path by dots.
func (p path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// MergePatch is the edit as a JSON merge patch, if one can say it. Pods are at the path of the object's pod template.
func (e Edit) MergePatch(template ...string) (patch string, ok bool) {
	if e.at == nil || strings.Contains(e.Field, "[") {
		return "", false
	}
	v := e.value
	for _, key := range slices.Backward(slices.Concat(template, e.at)) {
		v = map[string]any{key: v}
	}
	body, err := json.Marshal(v)
	return string(body), err == nil
}

// setting is a change of a setting of the stack.
func setting(name, from, to string, change func(*cluster.Settings)) Edit {
	return target{KindSetting, "", name}.edit(pathOf("value"), from, to,
		func(s *cluster.Snapshot) { change(&s.Rules) }, nil)
}
