package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/lab/bench/karpenter"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/scheduling/binpack"
)

func TestMain(m *testing.M) {
	karpenter.PrepareProcess()
	os.Exit(m.Run())
}

func bothSides(t *testing.T) sides {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	return newSides(c)
}

// testSeeds are compared in each run of the tests.
const testSeeds = 50

// On random clusters both sides see the same, but for documented differences.
func TestNothingDiffersUnexplained(t *testing.T) {
	r := run{first: 1, seeds: testSeeds, workers: 1, sides: bothSides(t)}
	all, err := r.compareSeeds()
	if err != nil {
		t.Fatal(err)
	}
	t.Log(all)
	for seed, what := range all.Open {
		t.Errorf("seed %d: %s", seed, what)
	}
	if all.May < testSeeds || all.Commands["Drifted"] == 0 || all.Commands["Empty"] == 0 || all.Commands["Underutilized"] == 0 {
		t.Errorf("there is too little to compare: %s", all)
	}
}

// A drifted node of a static NodePool at its limit waits for the replacement of another, which Karpenter sees too.
func TestReplacementCountsForLimit(t *testing.T) {
	b := bothSides(t)
	out, err := b.compareScenario(generateScenario(b.catalog, 346))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range out.unexplainedFindings() {
		t.Error(f)
	}
}

// slips are mistakes that Joiner does not make, each in what it sees or in what it decides.
func slips() map[string]struct {
	see    func(*cluster.Snapshot)
	decide func(*disruption.Plan)
	kind   string // of the finding
} {
	type slip = struct {
		see    func(*cluster.Snapshot)
		decide func(*disruption.Plan)
		kind   string
	}
	pools := func(change func(*cluster.Pool)) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			s.Pools = slices.Clone(s.Pools)
			for i := range s.Pools {
				change(&s.Pools[i])
			}
		}
	}
	begun := func(change func(*disruption.Command)) func(*disruption.Plan) {
		return func(p *disruption.Plan) {
			for i := range p.Begin {
				change(&p.Begin[i])
			}
		}
	}
	return map[string]slip{
		"PodDisruptionBudgets are not looked at": {see: func(s *cluster.Snapshot) { s.Budgets = nil }, kind: "candidate"},
		"a node's do-not-disrupt is not looked at": {see: func(s *cluster.Snapshot) {
			s.Nodes = slices.Clone(s.Nodes)
			for i := range s.Nodes {
				s.Nodes[i].Annotations = nil
			}
		}, kind: "candidate"},
		"consolidateAfter is not looked at": {see: pools(func(p *cluster.Pool) { p.Disruption.After = 0 }), kind: "candidate"},
		"consolidateAfter is longer":        {see: pools(func(p *cluster.Pool) { p.Disruption.After += time.Minute }), kind: "candidate"},
		"NodePools have no budgets":         {see: pools(func(p *cluster.Pool) { p.Disruption.Budgets = nil }), kind: "budget"},
		"the policy WhenEmpty is not known": {see: pools(func(p *cluster.Pool) { p.Disruption.Policy = string(api.ConsolidationWhenEmptyOrUnderutilized) }), kind: "candidate"},
		"replacements are forgotten":        {decide: begun(func(c *disruption.Command) { c.Launches = nil }), kind: "room"},
		"a node more goes than was decided": {decide: begun(func(c *disruption.Command) { c.Claims = append(slices.Clone(c.Claims), "claim-node-0") }), kind: "candidate"},
		"drifted nodes are no case":         {decide: func(p *disruption.Plan) { p.Eligible[api.DisruptionDrifted] = nil }, kind: "candidate"},
		"replacements may be of any price":  {decide: begun(dearer), kind: "price"},
		"nodes are kept for want of room":   {decide: func(p *disruption.Plan) { p.Begin = nil; stick(p) }, kind: "left"},
	}
}

// dearer lets the replacements be of any type.
func dearer(c *disruption.Command) {
	c.Launches = slices.Clone(c.Launches)
	for i := range c.Launches {
		c.Launches[i].Types = strings.Fields("c5.4xlarge m5.4xlarge r5.4xlarge c6g.4xlarge")
	}
}

// stick gives all nodes that stay the reason that their pods have no room.
func stick(p *disruption.Plan) {
	for i := range p.NotDisrupted {
		p.NotDisrupted[i].Reason = disruption.IneligiblePodsUnschedulable
	}
}

// Each slip is noticed on the clusters of the tests, or on a few more.
func TestSlipsAreNoticed(t *testing.T) {
	const most = 6 * testSeeds
	for name, slip := range slips() {
		t.Run(name, func(t *testing.T) {
			b := bothSides(t)
			b.joiner = func(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings) (disruption.Plan, disruption.Memory) {
				if slip.see != nil {
					slip.see(&s)
				}
				p, after := disruption.Next(s, m, sells)
				if slip.decide != nil {
					slip.decide(&p)
				}
				return p, after
			}
			for seed := uint64(1); seed <= most; seed++ {
				out, err := b.compareScenario(generateScenario(b.catalog, seed))
				if err != nil {
					t.Fatal(err)
				}
				if slices.ContainsFunc(out.unexplainedFindings(), func(f finding) bool { return f.Kind == slip.kind }) {
					return
				}
			}
			t.Errorf("nobody noticed on %d clusters", most)
		})
	}
}

// A difference shrinks to what it needs, and what is printed of it can be compared again.
func TestShrink(t *testing.T) {
	b := bothSides(t)
	b.joiner = func(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings) (disruption.Plan, disruption.Memory) {
		s.Budgets = nil
		return disruption.Next(s, m, sells)
	}
	for seed := uint64(1); ; seed++ {
		s := generateScenario(b.catalog, seed)
		out, err := b.compareScenario(s)
		if err != nil {
			t.Fatal(err)
		}
		open := out.unexplainedFindings()
		if len(open) == 0 || len(s.Nodes) < 4 || len(s.Budgets) < 2 {
			continue
		}
		small := b.shrinkScenario(s, open[0])
		if len(small.Nodes) != 1 || len(small.Pods) != 1 || len(small.Pools) != 1 || len(small.Budgets) != 1 {
			t.Errorf("seed %d: %d nodes, %d pods, %d pools and %d budgets are left:\n%s", seed, len(small.Nodes), len(small.Pods), len(small.Pools), len(small.Budgets), small)
		}
		again, err := parseScenario([]byte(small.String()))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(small.String(), again.String()); diff != "" {
			t.Error(diff)
		}
		if out, err := b.compareScenario(again); err != nil || len(out.unexplainedFindings()) == 0 {
			t.Errorf("what was printed shows no difference: %v", err)
		}
		return
	}
}

// What was found is kept, and not looked for again.
func TestResume(t *testing.T) {
	r := run{first: 1, seeds: 60, workers: 2, state: t.TempDir(), sides: bothSides(t)}
	whole, err := r.compareSeeds()
	if err != nil {
		t.Fatal(err)
	}
	r.sides.joiner = func(cluster.Snapshot, disruption.Memory, binpack.Offerings) (disruption.Plan, disruption.Memory) {
		panic("it was asked again")
	}
	again, err := r.compareSeeds()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, again); diff != "" {
		t.Error(diff)
	}
}

// The page of differences has a row for each, and none for one that is no more.
func TestDifferencesHaveRows(t *testing.T) {
	text, err := os.ReadFile("../../differences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "## Disruption")
	if !found {
		t.Fatal("the section is gone")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []string
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) > 2 && cells[0] != "| difference" {
			rows = append(rows, strings.TrimPrefix(cells[0], "| "))
		}
	}
	want := differenceNames()
	slices.Sort(want)
	slices.Sort(rows)
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
}

// differenceNames are all that explainFinding gives.
func differenceNames() []string {
	out := []string{severalOfThese}
	for _, e := range allEasings() {
		if !slices.Contains(out, e.name) { // several changes may show one
			out = append(out, e.name)
		}
	}
	for _, d := range knownDifferences() {
		out = append(out, d.name)
	}
	return out
}
