package whatif

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

var worldNodes = shortrun.NewCount("whatif-nodes", 300, 12, "random nodes that stay that are asked about")

// stuckWorld is a random cluster with nodes that are larger than their pods need, and what keeps them.
func stuckWorld(t *testing.T, seed uint64) *scenario.World {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 41))
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	lines := []string{"type m.l cpu=2000 mem=8192 milliusd=96", "type m.xl cpu=4000 mem=16384 milliusd=192", "type m.2xl cpu=8000 mem=32768 milliusd=384",
		"pool p" + one("", "\nrequire type In m.xl m.2xl", "\nrequire zone In a b")}
	for i := range 1 + r.IntN(4) {
		lines = append(lines, fmt.Sprintf("node n%d type=%s zone=%s pool=p ready=7200", i, one("m.xl", "m.2xl"), one("a", "b")))
		for j := range r.IntN(3) {
			s := fmt.Sprintf("pods o%d%d on=n%d n=%d cpu=%d mem=512 ready%s\nlabel app=%s", i, j, i, 1+r.IntN(2), 100+r.IntN(9)*100, one("", "", "", " protected"), one("a", "b"))
			s += one("", "", "", "\nselect zone=a", "\nspread zone skew=1 app=a", "\napart host app=a", "\nselect type=m.xl")
			lines = append(lines, s)
		}
	}
	if r.IntN(3) == 0 {
		lines = append(lines, fmt.Sprintf("budget %s%s\napp=%s", one("x", "y"), one("", " blocking"), one("a", "b")))
	}
	w := scenario.Scripted(t, lines...)
	s := &w.Snapshot
	for i := range s.Claims {
		s.Claims[i].Created = s.Now.Add(-3 * time.Hour)
	}
	for i := range s.Nodes {
		s.Nodes[i].Created = s.Now.Add(-3 * time.Hour)
		if r.IntN(8) == 0 {
			s.Nodes[i].Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}
	}
	for i := range s.Pods {
		s.Pods[i].Controller = s.Pods[i].Name[:3]
	}
	d := cluster.Disruption{Policy: one("WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"),
		Budgets: []cluster.NodeBudget{{Every: true, Nodes: one("1", "1", "100%", "0", "0%")}}, Never: r.IntN(8) == 0}
	if r.IntN(4) == 0 {
		d.SavesUSD = 0.3
	}
	if r.IntN(4) == 0 {
		d.After = 5 * time.Hour
	}
	s.Pools[0].Disruption = d
	return w
}

// helpfulPair is the first of all pairs of edits that helps, by trying each; none where there is no such.
func helpfulPair(s cluster.Snapshot, all []family, helps func(s cluster.Snapshot) bool) Change {
	all = slices.DeleteFunc(all, func(f family) bool { return f.count == 0 })
	for i := range all {
		all[i].order = i
	}
	for i, f := range all {
		for _, g := range all[i+1:] {
			if pair := (Change{Edits: []Edit{f.widest(), g.widest()}}); helps(pair.Apply(s)) {
				return pair
			}
		}
	}
	return Change{}
}

// Whatever keeps a node: each change that is named lets it go, no half of a pair does, and no smaller step of the same
// edit does.
func TestWhatNodesNeed(t *testing.T) {
	asked, single, pairs := 0, 0, 0
	for seed := *firstWorld; asked < worldNodes.N(); seed++ {
		w := stuckWorld(t, seed)
		for _, c := range w.Snapshot.Claims {
			stays := func(s cluster.Snapshot) bool {
				_, goes := disruption.AskAbout(s, disruption.Memory{}, w.Market, nil, c.Name)
				return !goes
			}
			if !stays(w.Snapshot) || asked == worldNodes.N() {
				continue
			}
			asked++
			a := ForNode(w.Snapshot, disruption.Memory{}, w.Market, c.Name, Limits{})
			for _, x := range a.Changes {
				if stays(x.Apply(w.Snapshot)) {
					t.Errorf("seed %d, %s: does not help: %s", seed, c.Name, x)
				}
				for _, e := range x.Edits {
					if len(x.Edits) == 2 && !stays((Change{Edits: []Edit{e}}).Apply(w.Snapshot)) {
						t.Errorf("seed %d, %s: half of %s helps alone: %s", seed, c.Name, x, e)
					}
				}
			}
			switch {
			case len(a.Changes) == 0:
			case len(a.Changes[0].Edits) == 2:
				pairs++
			default:
				single++
			}
			if len(a.Changes) == 0 && a.Unasked == 0 && seed%8 == 0 {
				pair := helpfulPair(w.Snapshot, nodeFamilies(w.Snapshot, c.Name), func(s cluster.Snapshot) bool { return !stays(s) })
				if len(pair.Edits) > 0 {
					t.Errorf("seed %d, %s: a pair helps and is not named: %s", seed, c.Name, pair)
				}
			}
			for _, f := range nodeFamilies(w.Snapshot, c.Name) {
				for n := range min(f.count, 3) {
					e := f.step(n)
					if slices.ContainsFunc(a.Changes, func(x Change) bool {
						same := x.Edits[0].Object() == e.Object()
						return x.Edits[0].String() == e.String() || same && f.narrow != nil && x.Edits[0].Field == e.Field ||
							same && f.place != "" && (strings.HasSuffix(f.place, x.Edits[0].Field) || strings.HasPrefix(x.Edits[0].Field, f.place))
					}) {
						break
					}
					if !stays((Change{Edits: []Edit{e}}).Apply(w.Snapshot)) {
						t.Errorf("seed %d, %s: smaller and not named: %s; named: %v", seed, c.Name, e, a.Changes)
					}
				}
			}
		}
	}
	t.Logf("%d nodes: %d by one edit, %d by two", asked, single, pairs)
	if single < asked/4 {
		t.Errorf("one edit helps %d of %d nodes: that tests little", single, asked)
	}
}
