package nodeclass

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

// PoolProblems are the rules that the schema cannot check.
func PoolProblems(p *v1.NodePool) []string {
	spec := p.Spec.Template.Spec
	var out []string
	stands := map[string]int{}
	for _, t := range slices.Concat(spec.Taints, spec.StartupTaints) {
		key := t.Key + ":" + string(t.Effect)
		if stands[key]++; stands[key] == 2 {
			out = append(out, "taint "+key+" stands more than once in taints and startupTaints: leave one")
		}
		out = append(out, taintProblems(t)...)
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

// taintProblems returns what keeps a kubelet from starting with the taint.
func taintProblems(t corev1.Taint) []string {
	var out []string
	if len(validation.IsQualifiedName(t.Key)) > 0 {
		out = append(out, fmt.Sprintf("taint key %q is no label key", t.Key))
	}
	if len(validation.IsValidLabelValue(t.Value)) > 0 {
		out = append(out, fmt.Sprintf("taint %s has a value that no taint can have: %q", t.Key, t.Value))
	}
	return out
}

func labelProblems(what, key string, values ...string) []string {
	var out []string
	if len(validation.IsQualifiedName(key)) > 0 {
		out = append(out, fmt.Sprintf("%s key %q is no label key", what, key))
	}
	if key == v1.LabelNodePool {
		out = append(out, what+"s may not hold "+key+": it is set for every node of the pool")
	}
	for _, v := range values {
		if len(validation.IsValidLabelValue(v)) > 0 {
			out = append(out, fmt.Sprintf("%s %s has a value that no label can have: %q", what, key, v))
		}
	}
	return out
}

func capacityTypeProblems(r v1.Requirement) []string {
	known := lists.Count([]string{instancetypes.OnDemand, instancetypes.Reserved, instancetypes.Spot},
		func(c string) bool { return slices.Contains(r.Values, c) })
	switch {
	case known == 0:
		return []string{fmt.Sprintf("requirement %s allows none of on-demand, reserved and spot: %v", r.Key, r.Values)}
	case r.MinValues != nil && known < *r.MinValues:
		return []string{fmt.Sprintf("requirement %s has minValues %d, but allows %d of on-demand, reserved and spot",
			r.Key, *r.MinValues, known)}
	}
	return nil
}
