package rollout_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/testing/shortrun"
)

var worlds = shortrun.NewCount("worlds", 100, 25, "random worlds")

// faults of a revision.
type faults struct{ neverReady, crash, condition bool }

// TestRandomWorlds plays rollouts in which passes die at every point, launches and losses come in between, and the
// revision has one fault, several, or none. However it goes, no more nodes ever run a bad revision than the steps that
// were reached allow and EC2 takes away, everything else is launched with the last good revision, and a good revision
// is trusted in the end.
func TestRandomWorlds(t *testing.T) {
	ended := map[string]int{}
	for seed := range uint64(worlds.N()) {
		g := &game{world: newWorld(), rnd: rand.New(rand.NewPCG(seed, 1)), ran: map[string]bool{}}
		f := faults{}
		switch seed % 5 {
		case 1:
			f.neverReady = true
		case 2:
			f.crash = true
		case 3:
			f.condition = true
		case 4:
			f = faults{true, true, true}
		}
		if err := g.play(f); err != nil {
			t.Fatalf("seed %d, %+v: %v\n%s", seed, f, err, g.say())
		}
		ended[fmt.Sprintf("%+v: %s", f, g.r.Status.Phase)]++
	}
	t.Log(ended)
	if n := ended[fmt.Sprintf("%+v: %s", faults{neverReady: true}, cluster.RolloutHealthy)]; n > 0 {
		t.Errorf("a revision that never gets ready was trusted %d times", n)
	}
}

// TestErrorRates plays rollouts of pools of 2 to 14 nodes with 8 pods each, of which a part fares badly on any node. The
// rates that it prints with -worlds 667 are those of infra/lab/bench/measurements.md.
func TestErrorRates(t *testing.T) {
	shortrun.Skip(t)
	of := max(worlds.N()*3/10, 1)
	goods, failed, bads, trusted := 0, 0, 0, 0
	for layout, name := range []string{"nodes: 1", "nodes: 1, pause, percent: 30, pause", "percent: 10, 50, 100"} {
		for _, base := range []int{0, 5, 20} {
			f, n := playRates(t, of, layout, base, faults{}), playRates(t, of, layout, base, faults{crash: true})
			t.Logf("%-36s %2d %% fare badly anyway: %4.1f %% of good revisions fail, %4.1f %% are trusted on which 20 %% more crash", name, base,
				100*float64(f.failed)/float64(of), 100*float64(n.trusted)/float64(of))
			goods, failed = goods+of, failed+f.failed
			if layout > 0 && base == 0 {
				bads, trusted = bads+of, trusted+n.trusted
			}
		}
	}
	if failed*100 > 8*goods {
		t.Errorf("%d of %d good revisions fail by their pods, at most 8 %% may", failed, goods)
	}
	if trusted*100 > 15*bads {
		t.Errorf("%d of %d revisions are trusted on which 20 %% of pods crash, at most 15 %% may where steps have several nodes", trusted, bads)
	}
}

// rates are how revisions ended: trusted, or failed by their pods.
type rates struct{ trusted, failed int }

func playRates(t *testing.T, of, layout, base int, f faults) (out rates) {
	for seed := range uint64(of) {
		g := &game{world: newWorld(), rnd: rand.New(rand.NewPCG(seed, 7)), ran: map[string]bool{}, base: base, layout: layout + 1}
		if err := g.play(f); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, g.say())
		}
		switch e := g.r.Status.Evidence; {
		case g.r.Status.LastGood == g.bad:
			out.trusted++
		case len(e) > 0 && strings.HasPrefix(e[0], "failed: ") && strings.Contains(e[0], "pods on new nodes fare badly"):
			out.failed++
		}
	}
	return out
}

type game struct {
	*world
	rnd           *rand.Rand
	good, bad     string
	ran           map[string]bool // claims that ever had the bad revision
	lost, reached int             // nodes that EC2 took; what the steps reached so far allow
	made          int
	base          int // percent of pods that fare badly on any node
	layout        int // which steps, from 1 on; 0 draws them
}

func (g *game) chance(percent int) bool { return g.rnd.IntN(100) < percent }

func (g *game) play(f faults) error {
	layouts := [][]cluster.RolloutStep{
		{{Nodes: 1}},
		{{Nodes: 1}, {Pause: true, For: 15 * time.Minute}, {Percent: 30}, {Pause: true, For: 15 * time.Minute}},
		{{Percent: 10}, {Percent: 50}, {Percent: 100}},
	}
	if g.layout == 0 {
		g.layout = 1 + g.rnd.IntN(len(layouts))
	}
	g.r.Steps = layouts[g.layout-1]
	g.r.Rollback, g.r.NodeConditions = g.chance(50), []cluster.Condition{{Type: "Bad", Status: "True"}}
	for range 2 + g.rnd.IntN(8) {
		g.made++
		g.node(fmt.Sprintf("old%d", g.made), "")
		g.addPods(g.s.Claims[len(g.s.Claims)-1], false)
	}
	for g.r.Status.LastGood == "" || len(g.r.Revisions) == 0 {
		g.advance([]string{"", "keep", "status"}[g.rnd.IntN(3)])
	}
	g.good = g.r.Status.LastGood
	g.s.Classes[0] = class("2", "ami-2")
	g.bad = rollout.RevisionName(g.s.Classes[0])
	failed := false
	for round, since := 0, 0; round < 200 && since < 12; round++ {
		if failed {
			since++
		}
		g.s.Now = g.s.Now.Add(time.Duration(10+g.rnd.IntN(110)) * time.Second)
		g.live(f)
		g.advance([]string{"", "", "", "keep", "status"}[g.rnd.IntN(5)])
		if st := g.r.Status; st.Revision == g.bad && st.Phase != cluster.RolloutHealthy {
			g.reached = max(g.reached, g.allows(st.Step))
		}
		failed = failed || slices.Contains(g.r.Status.Failed, g.bad)
		if g.r.Status.LastGood == g.bad {
			break
		}
		if err := g.launch(failed); err != nil {
			return err
		}
		if len(g.ran) > g.reached+g.lost {
			return fmt.Errorf("%d nodes ran the bad revision, the steps allow %d and EC2 took %d", len(g.ran), g.reached, g.lost)
		}
	}
	if f == (faults{}) && g.base == 0 && g.r.Status.LastGood != g.bad && g.lost == 0 {
		return fmt.Errorf("a good revision was not trusted")
	}
	return nil
}

// allows is what the steps up to this one allow.
func (g *game) allows(step int) (n int) {
	for _, s := range g.r.Steps[:min(step+1, len(g.r.Steps))] {
		n = max(n, s.Nodes, (len(g.s.Claims)*s.Percent+99)/100)
	}
	return n
}

// live lets nodes start, and EC2 take some.
func (g *game) live(f faults) {
	for _, c := range slices.Clone(g.s.Claims) {
		isBad := g.ran[c.Name]
		switch {
		case !c.Deleting.IsZero():
			if g.chance(50) {
				g.drop(c.Name)
			}
		case !c.Is(api.ConditionInitialized) && !(isBad && f.neverReady) && g.chance(70):
			at := g.claim(c.Name)
			at.Conditions = append(slices.Clone(at.Conditions), cluster.Condition{Type: api.ConditionInitialized, Status: "True", Since: g.s.Now})
			g.addPods(*at, isBad && f.crash)
			if isBad && f.condition {
				n := &g.s.Nodes[slices.IndexFunc(g.s.Nodes, func(n cluster.Node) bool { return n.Name == c.NodeName })]
				n.Conditions = []cluster.Condition{{Type: "Bad", Status: "True"}}
			}
		case g.chance(1) && g.r.Status.Phase != "" && len(g.s.Claims) > 2:
			at := g.claim(c.Name)
			at.Deleting, at.Annotations = g.s.Now, map[string]string{api.AnnotationDeletionReason: "spot_interrupted", api.AnnotationNodeRevision: c.Annotations[api.AnnotationNodeRevision]}
			if isBad {
				g.lost++
			}
		}
	}
}

// addPods gives the node pods of three workloads; on bad nodes a fifth of them crash.
func (g *game) addPods(c cluster.Claim, bad bool) {
	for i := range 8 {
		p := cluster.Pod{Namespace: "d", Name: fmt.Sprintf("%s-%d", c.Name, i), Controller: fmt.Sprint("w", i%3), NodeName: c.NodeName, Phase: "Running", Ready: true, Created: g.s.Now}
		if bad && g.chance(20) || g.chance(g.base) {
			p.Trouble = "Crashed"
		}
		g.s.Pods = append(g.s.Pods, p)
	}
}

// launch makes nodes for pods that wait, and replaces a drifted one, as far as the stored status allows. Whoever does
// it may die in the middle.
func (g *game) launch(failed bool) error {
	s := g.snapshot()
	var wanted []plan.Launch
	for range g.rnd.IntN(3) {
		wanted = append(wanted, plan.Launch{Pool: "p", Annotations: s.Pools[0].Annotations})
	}
	if len(g.s.Claims) > 14 {
		wanted = nil
	}
	wanted = rollout.AssignLaunches(s, wanted)
	taken := 0
	for _, l := range wanted {
		if l.Annotations[api.AnnotationNodeRevision] == g.bad {
			taken++
		}
	}
	if r := s.Pools[0].Rollout; r != nil && r.Try == g.bad && r.Slots > taken && g.chance(60) {
		wanted = append(wanted, rollout.WithRevision(plan.Launch{Pool: "p"}, r.Try))
	}
	for _, l := range wanted {
		revision := l.Annotations[api.AnnotationNodeRevision]
		if revision != g.good && revision != g.bad {
			return fmt.Errorf("a launch of revision %q", revision)
		}
		if failed && revision == g.bad {
			return fmt.Errorf("a launch of the revision that failed")
		}
		if g.chance(20) { // it dies before the claim is stored
			break
		}
		g.made++
		c := g.node(fmt.Sprintf("new%d", g.made), revision)
		c.Conditions = c.Conditions[1:]
		if revision == g.bad {
			g.ran[c.Name] = true
		}
	}
	return nil
}
