package nodeclass

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
)

// Limits of Kubernetes labels, in characters.
const (
	maxLabelText   = 63
	maxLabelPrefix = 253
)

// PoolProblems are the rules that the schema cannot check.
func PoolProblems(p *v1.NodePool) []string {
	spec := p.Spec.Template.Spec
	var out []string
	seen := map[string]bool{}
	for _, t := range slices.Concat(spec.Taints, spec.StartupTaints) {
		key := t.Key + ":" + string(t.Effect)
		if seen[key] {
			out = append(out, "taint "+key+" stands twice in taints and startupTaints: remove one")
		}
		seen[key] = true
	}
	labels := p.Spec.Template.Labels
	for _, k := range sortedKeys(labels) {
		out = append(out, labelProblems("label", k, labels[k])...)
	}
	for _, r := range spec.Requirements {
		out = append(out, labelProblems("requirement", r.Key, r.Values...)...)
		if r.Key == v1.LabelCapacityType && r.Operator == corev1.NodeSelectorOpIn {
			out = append(out, capacityTypeProblems(r)...)
		}
	}
	return out
}

func labelProblems(what, key string, values ...string) []string {
	var out []string
	if !isLabelKey(key) {
		out = append(out, fmt.Sprintf("%s key %q is no label key", what, key))
	}
	if key == v1.LabelNodePool {
		out = append(out, what+"s may not hold "+key+": it is set for every node of the pool")
	}
	for _, v := range values {
		if v != "" && !isLabelText(v) {
			out = append(out, fmt.Sprintf("%s %s has a value that no label can have: %q", what, key, v))
		}
	}
	return out
}

func capacityTypeProblems(r v1.Requirement) []string {
	known := 0
	for _, c := range []string{v1.CapacityTypeOnDemand, v1.CapacityTypeReserved, v1.CapacityTypeSpot} {
		if slices.Contains(r.Values, c) {
			known++
		}
	}
	switch {
	case known == 0:
		return []string{fmt.Sprintf("requirement %s allows none of on-demand, reserved and spot: %v", r.Key, r.Values)}
	case r.MinValues != nil && known < *r.MinValues:
		return []string{fmt.Sprintf("requirement %s has minValues %d, but allows %d of on-demand, reserved and spot",
			r.Key, *r.MinValues, known)}
	}
	return nil
}

// isLabelKey reports whether s is a name, or a DNS name, a slash and a name.
func isLabelKey(s string) bool {
	prefix, name, found := strings.Cut(s, "/")
	if !found {
		return isLabelText(s)
	}
	if len(prefix) > maxLabelPrefix || prefix != strings.ToLower(prefix) {
		return false
	}
	for part := range strings.SplitSeq(prefix, ".") {
		if !isLabelText(part) || strings.Contains(part, "_") {
			return false
		}
	}
	return isLabelText(name)
}

// isLabelText reports whether s has 1 to 63 letters, digits, -, _ and ., with a letter or digit at either end.
func isLabelText(s string) bool {
	if s == "" || len(s) > maxLabelText || strings.Trim(s, "-_.") != s {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	})
}
