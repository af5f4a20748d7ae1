package nodeclass

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// LearnedFact is one thing that a class carries of what its nodes reported.
type LearnedFact struct {
	Type string // instance type; empty for text that nobody can read
	What string // for people
}

// learnedAnnotations hold what a class learned from its nodes.
func learnedAnnotations() []string {
	return []string{v1.AnnotationObservedMemory, v1.AnnotationObservedShortfalls}
}

// ListLearned lists what the class carries, also of images and of a spec that it no longer has, sorted by type.
func ListLearned(c *awsv1.EC2NodeClass) (out []LearnedFact) {
	var m observedMemories
	if text := c.Annotations[v1.AnnotationObservedMemory]; text != "" && json.Unmarshal([]byte(text), &m) != nil {
		out = append(out, LearnedFact{What: "memory by type, unreadable"})
	}
	for name, known := range m.Types {
		out = append(out, LearnedFact{name, fmt.Sprintf("memory of %d MiB, seen %s", known.MiB, known.Seen)})
	}
	var s observedShortfalls
	if text := c.Annotations[v1.AnnotationObservedShortfalls]; text != "" && json.Unmarshal([]byte(text), &s) != nil {
		out = append(out, LearnedFact{What: "what nodes have less of than expected, unreadable"})
	}
	for _, o := range s.Seen {
		has := lists.Of(o.Has,
			func(x resources.Extended) string { return x.Name + " " + resources.Format(x.Name, x.Count) })
		out = append(out, LearnedFact{o.Type, fmt.Sprintf("only %s for pods, on %s", strings.Join(has, ", "), o.Instance)})
	}
	slices.SortFunc(out, func(a, b LearnedFact) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.What, b.What))
	})
	return out
}

// WithoutLearned returns the annotations of the class that hold what it learned, as they are to be once it forgets one
// instance type: those with other text, and the keys of those that then hold nothing. An empty type stands for all.
func WithoutLearned(c *awsv1.EC2NodeClass, instanceType string) (set map[string]string, remove []string) {
	if instanceType == "" {
		return nil, slices.DeleteFunc(learnedAnnotations(), func(key string) bool {
			_, there := c.Annotations[key]
			return !there
		})
	}
	set = map[string]string{}
	keep := func(key string, left int, rest any) {
		text, err := json.Marshal(rest)
		switch {
		case left == 0:
			remove = append(remove, key)
		case err == nil:
			set[key] = string(text)
		}
	}
	var m observedMemories
	if json.Unmarshal([]byte(c.Annotations[v1.AnnotationObservedMemory]), &m) == nil {
		if _, known := m.Types[instanceType]; known {
			delete(m.Types, instanceType)
			keep(v1.AnnotationObservedMemory, len(m.Types), m)
		}
	}
	var s observedShortfalls
	if json.Unmarshal([]byte(c.Annotations[v1.AnnotationObservedShortfalls]), &s) == nil {
		before := len(s.Seen)
		s.Seen = slices.DeleteFunc(s.Seen, func(o shortObservation) bool { return o.Type == instanceType })
		if len(s.Seen) < before {
			keep(v1.AnnotationObservedShortfalls, len(s.Seen), s)
		}
	}
	return set, remove
}
