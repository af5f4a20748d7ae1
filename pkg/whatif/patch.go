package whatif

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// path leads to a field of an object: keys, and [0] or [key=value] for an element of a list.
type path []string

// pathOf is the path that goes on from the base, which is joined by dots.
func pathOf(base string, rest ...string) path { return append(strings.Split(base, "."), rest...) }

// elementAt is the part of a path for an element of a list.
func elementAt(i int) string { return fmt.Sprintf("[%d]", i) }

// String joins the path by dots.
func (p path) String() string { return strings.ReplaceAll(strings.Join(p, "."), ".[", "[") }

// MergePatch is the edit as a JSON merge patch, where one can say it without what else is in a list. Pods are at the
// path of the object's pod template, which is empty for a pod.
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
