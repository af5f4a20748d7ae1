package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/karpenter/pkg/scheduling"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/requirements"
)

// keys are a custom label, a well-known one and one with numbers, in no order.
func keys() []string {
	return []string{"team", "topology.kubernetes.io/zone", "karpenter.k8s.aws/instance-cpu"}
}

func (d dice) value(key string) string {
	if strings.HasSuffix(key, "cpu") {
		return d.one("1", "2", "4", "8", "x")
	}
	return d.one("a", "b", "c")
}

func (d dice) requirements() string {
	var all []string
	for range d.IntN(5) {
		key := keys()[d.IntN(3)]
		operator := d.one("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
		values := ""
		switch operator {
		case "In", "NotIn":
			values = fmt.Sprintf("%q", d.value(key))
			if d.coin() {
				values += fmt.Sprintf(", %q", d.value(key))
			}
		case "Gt", "Lt", "Gte", "Lte":
			values = "'" + d.number(9) + "'"
		}
		all = append(all, fmt.Sprintf("{key: %s, operator: %s, values: [%s]}", key, operator, values))
	}
	return "spec: {template: {spec: {requirements: [" + strings.Join(all, ", ") + "]}}}"
}

func setOf(t *testing.T, p *v1.NodePool) requirements.Set {
	var all []requirements.Requirement
	for _, r := range p.Spec.Template.Spec.Requirements {
		one, err := requirements.NewRequirement(r.Key, requirements.Operator(r.Operator), r.Values...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return requirements.NewSet(all...)
}

// several reports whether the pool has more than one requirement on the key.
func several(p *v1.NodePool, key string) bool {
	n := 0
	for _, r := range p.Spec.Template.Spec.Requirements {
		if r.Key == key {
			n++
		}
	}
	return n > 1
}

// A node's labels meet the requirements of a pool exactly if they do by Karpenter's rules, but for one: where one of
// several requirements on a key asks for the label, Karpenter may forget that (In without a value in common, NotIn
// beside Exists or a bound).
func TestLabelsDriftAsKarpentersDo(t *testing.T) {
	drifted, kept, forgotten := 0, 0, 0
	for seed := range uint64(60_000) {
		d := roll(seed)
		text := d.requirements()
		theirs, ours := read(t, text)
		labels := map[string]string{}
		for _, k := range keys() {
			if d.IntN(3) > 0 {
				labels[k] = d.value(k)
			}
		}
		pool := setOf(t, ours)
		all := requirements.FromLabels(labels).Refusals(pool, nil)
		refused := slices.DeleteFunc(slices.Clone(all), func(r requirements.Requirement) bool { return labels[r.Key] == "" && several(ours, r.Key) })
		err := scheduling.NewLabelRequirements(labels).Compatible(scheduling.NewNodeSelectorRequirementsWithMinValues(theirs.Spec.Template.Spec.Requirements...))
		if err != nil && len(all) == 0 || err == nil && len(refused) > 0 {
			t.Fatalf("seed %d: labels %v: refused by %v; by Karpenter: %v, of\n%s", seed, labels, all, err, text)
		}
		switch {
		case err != nil:
			drifted++
		case len(all) > 0:
			forgotten++
		default:
			kept++
		}
	}
	t.Logf("%d drifted, %d kept; %d times Karpenter forgets that a label must be there", drifted, kept, forgotten)
	if drifted < 10_000 || kept < 10_000 || forgotten < 100 {
		t.Errorf("only %d drifted, %d kept, %d forgotten", drifted, kept, forgotten)
	}
}
