package provisioning_test

import (
	"cmp"
	api "joiner.sh/pkg/api/v1"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/syntax"
)

// TestScenarios plays testdata: the words of a scenario's world; "pool-budget POOL NODES"; "leave NODE IN", which has EC2
// disturb the node then; "sells", which has EC2 sell a few types; and "decide", which prints the plan of a pass and
// which nodes wait to be left.
func TestScenarios(t *testing.T) {
	words := syntax.NewGrammar(scenario.Words(), "decide", "pool-budget POOL NODES", "leave NODE IN", "sells")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := scenario.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			switch d.Cmd {
			case "decide":
				return decided(provisioning.Decide(scenario.AsRead(w.Snapshot, provisioning.MayEmpty)))
			case "pool-budget":
				for i := range w.Snapshot.Pools {
					if p := &w.Snapshot.Pools[i]; p.Name == d.CmdArgs[0].Key {
						p.Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: d.CmdArgs[1].Key}}
					}
				}
				return "ok\n"
			case "sells":
				w.Snapshot = sells(t, w.Snapshot)
				return "ok\n"
			case "leave":
				in, err := time.ParseDuration(d.CmdArgs[1].Key)
				if err != nil {
					d.Fatalf(t, "%v", err)
				}
				leave(&w.Snapshot, d.CmdArgs[0].Key, in)
				return "ok\n"
			}
			if known, err := w.Do(d); err != nil || !known {
				d.Fatalf(t, "%q: %v", d.Cmd, err)
			}
			return "ok\n"
		})
	})
}

func decided(o provisioning.Decision) string {
	out := o.Plan.String() + "\n"
	for _, g := range o.Replacements {
		out += g.Claim + ": " + cmp.Or(g.Wait, "may go") + "\n"
	}
	return out
}

func leave(s *cluster.Snapshot, node string, in time.Duration) {
	for i := range s.Claims {
		if c := &s.Claims[i]; c.NodeName == node {
			l := interruption.ReplaceRequest{Cause: interruption.Scheduled, Since: s.Now, Until: s.Now.Add(in)}
			c.Annotations = map[string]string{api.AnnotationReplaceRequested: l.String()}
		}
	}
}

// A node that EC2 wants left, and whose pods need more new nodes than one pass may make, is replaced all the same.
func TestReplacementOfMoreNodesThanAPassMakes(t *testing.T) {
	s := read(t, `
type m5.2xlarge cpu=8000 mem=32768 milliusd=384
----
pool default
require node.kubernetes.io/instance-type In m5.large
require karpenter.sh/capacity-type In on-demand
----
node n1 type=m5.2xlarge zone=us-west-2a pool=default
----
pods web n=3 on=n1 cpu=1500
----
`)
	leave(&s, "n1", 70*time.Hour)
	for i := range s.Pools {
		s.Pools[i].Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "2"}}
	}
	s.Rules.MaxClaims = 2
	got := provisioning.Decide(s)
	if len(got.Plan.Launches) != 3 || len(got.Plan.Unplaced) != 0 {
		t.Error(decided(got))
	}
}
