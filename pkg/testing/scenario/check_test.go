package scenario

import (
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/model/plan"
)

// A checker that finds nothing proves nothing: each of these plans breaks one rule.
func TestCheckFinds(t *testing.T) {
	for _, c := range []struct {
		name, world string
		existing    map[string][]string // node to pods
		want        string              // part of some fault
	}{
		{"too much", "pods web n=3 cpu=900 mem=100", map[string][]string{"n1": {"web-1", "web-2", "web-3"}}, "want 2700 of cpu, there is 2000"},
		{"forgotten", "pods web n=2 cpu=100 mem=100", map[string][]string{"n1": {"web-1"}}, "web-2 has 0 places in the plan"},
		{"twice", "pods web cpu=100 mem=100", map[string][]string{"n1": {"web-1"}, "n2": {"web-1"}}, "web-1 has 2 places in the plan"},
		{"wrong zone", "pods web cpu=100 mem=100\nselect zone=b", map[string][]string{"n1": {"web-1"}}, "its labels keep web-1 away"},
		{"taint", "pods web cpu=100 mem=100", map[string][]string{"n3": {"web-1"}}, "does not tolerate dedicated:NoSchedule"},
		{"ports", "pods web n=2 cpu=100 mem=100\nport 80", map[string][]string{"n1": {"web-1", "web-2"}}, "want port TCP/80"},
		{"volumes", "pods web n=2 cpu=100 mem=100\nattach ebs", map[string][]string{"n1": {"web-1", "web-2"}}, "2 volumes of ebs, at most 1 can be attached"},
		{"together", "pods web n=2 cpu=100 mem=100\napart host app=web", map[string][]string{"n1": {"web-1", "web-2"}}, "web-1 must not share a value of kubernetes.io/hostname with web"},
		{"one zone", "pods web n=2 cpu=100 mem=100\napart zone app=web", map[string][]string{"n1": {"web-1"}, "n3": {"web-2"}}, "must not share a value of topology"},
		{"far", "pods web n=2 cpu=100 mem=100\nnear zone app=web", map[string][]string{"n1": {"web-1"}, "n2": {"web-2"}}, "nobody to be near to in [b]"},
		{"uneven", "pods web n=2 cpu=100 mem=100\nspread zone skew=1 app=web", map[string][]string{"n1": {"web-1", "web-2"}}, "0 in the least"},
	} {
		w := New()
		for _, s := range []string{
			"type m cpu=2000 mem=8192 milliusd=96", "pool default", "node n1 type=m zone=a pool=default\nattaches ebs 1", "node n2 type=m zone=b pool=default",
			"node n3 type=m zone=a pool=default\ntaint dedicated:NoSchedule", c.world,
		} {
			head, rest, _ := strings.Cut(s, "\n")
			cmd, args, err := datadriven.ParseLine(head)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Do(&datadriven.TestData{Cmd: cmd, CmdArgs: args, Input: rest}); err != nil {
				t.Fatal(err)
			}
		}
		var p plan.Plan
		for _, node := range []string{"n1", "n2", "n3"} {
			for _, pod := range c.existing[node] {
				p.Existing = append(p.Existing, plan.Placement{Pod: "default/" + pod, Node: node})
			}
		}
		faults := w.Check(p)
		if !slices.ContainsFunc(faults, func(f string) bool { return strings.Contains(f, c.want) }) {
			t.Errorf("%s: want a fault with %q, got %q", c.name, c.want, faults)
		}
	}
}
