package rules

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/karpenter/pkg/scheduling"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/require"
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

func setOf(t *testing.T, p *v1.NodePool) require.Set {
	var all []require.Requirement
	for _, r := range p.Spec.Template.Spec.Requirements {
		one, err := require.New(r.Key, require.Operator(r.Operator), r.Values...)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return require.NewSet(all...)
}

// A node's labels meet the requirements of a pool exactly if they do by Karpenter's rules. Of requirements that nothing can meet, Joiner
// says so; Karpenter takes some of them for the absence of the label.
func TestLabelsDriftAsKarpentersDo(t *testing.T) {
	drifted, kept, impossible := 0, 0, 0
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
		refused := require.FromLabels(labels).Refusals(pool, nil)
		if len(pool.Impossible()) > 0 {
			impossible++
			if len(refused) == 0 {
				t.Fatalf("seed %d: labels %v meet what nothing can meet:\n%s", seed, labels, text)
			}
			continue
		}
		err := scheduling.NewLabelRequirements(labels).Compatible(scheduling.NewNodeSelectorRequirementsWithMinValues(theirs.Spec.Template.Spec.Requirements...))
		if (err != nil) != (len(refused) > 0) {
			t.Fatalf("seed %d: labels %v: refused by %v; by Karpenter: %v, of\n%s", seed, labels, refused, err, text)
		}
		if err != nil {
			drifted++
		} else {
			kept++
		}
	}
	t.Logf("%d drifted, %d kept, %d with impossible requirements", drifted, kept, impossible)
	if drifted < 10_000 || kept < 10_000 {
		t.Errorf("only %d drifted and %d kept", drifted, kept)
	}
}
