package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/faults"
)

// half is a world in which each of eight nodes is half empty, and two are empty, so that there is something to do about
// each.
func half(t *testing.T) *world {
	t.Helper()
	text := `
type m5.large cpu=2000 mem=8192 milliusd=96
----
type c5.large cpu=2000 mem=4096 milliusd=85
----
pool default
----
`
	for i := range 10 {
		text += fmt.Sprintf("node n%d type=m5.large zone=a pool=default\n----\n", i)
		if i < 8 {
			text += fmt.Sprintf("pods app%d on=n%d cpu=%d mem=512\n----\n", i, i, 700+i)
		}
	}
	w := newWorld()
	datadriven.RunTestFromString(t, strings.ReplaceAll(text, "----\n", "----\n\n"), func(t *testing.T, d *datadriven.TestData) string {
		if _, err := w.do(d); err != nil {
			t.Fatal(err)
		}
		return d.Expected
	})
	w.Snapshot.Pools[0].Disruption.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "100%"}}
	return w
}

// passes decides so often, as passes half a minute apart, and carries out what is decided. It returns the faults, and
// the claims that are left.
func (w *world) passes(n int) (faults []string, left []string) {
	for range n {
		p := w.next()
		for _, f := range p.Faults {
			faults = append(faults, fmt.Sprintf("%s %s", f.Kind, f.Name))
		}
		follower := w.Snapshot.Follower
		w.Snapshot.Follower = nil // what comes to pass does not fail
		w.act(p)
		w.initialize()
		w.Snapshot.Follower = follower
		w.Snapshot.Now = w.Snapshot.Now.Add(30 * time.Second)
	}
	for _, c := range w.Snapshot.Claims {
		left = append(left, c.Name)
	}
	slices.Sort(left)
	return faults, left
}

// Decisions about one node fail. One node stays and says so; of the others as much goes as if it were protected.
func TestADecisionMayFailForOneNode(t *testing.T) {
	for _, stage := range []string{stageQuestion, stageCommand} {
		t.Run(stage, func(t *testing.T) {
			w, beside := half(t), half(t)
			w.Snapshot.Follower = &faults.Fault{Stage: stage, About: "claim-n3"}
			for i := range beside.Snapshot.Nodes {
				if n := &beside.Snapshot.Nodes[i]; n.Name == "n3" {
					n.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
				}
			}
			faults, left := w.passes(14)
			_, want := beside.passes(14)
			stays, isClaim := strings.CutPrefix(strings.Join(faults, ","), "NodeClaim ")
			if !isClaim || !slices.Contains(left, stays) || len(left) > len(want) || len(want) > 5 {
				t.Errorf("faults %v, left are %v, and %v where it is protected", faults, left, want)
			}
			p := w.next()
			if i := slices.IndexFunc(p.NotDisrupted, func(s NotDisrupted) bool { return s.Claim == stays }); i < 0 || p.NotDisrupted[i].Reason != IneligibleFault || !strings.Contains(p.NotDisrupted[i].Why, "planted at") {
				t.Errorf("why it stays: %+v", p.NotDisrupted)
			}
		})
	}
}

// One pod that waits makes every pass fail before it comes to any node.
func TestAPodThatWaitsMayFail(t *testing.T) {
	w := half(t)
	for _, at := range []string{"pods good cpu=100 mem=100", "pods evil ns=team-b cpu=99000 mem=101"} {
		datadriven.RunTestFromString(t, at+"\n----\n\n", func(t *testing.T, d *datadriven.TestData) string {
			if _, err := w.do(d); err != nil {
				t.Fatal(err)
			}
			return d.Expected
		})
	}
	w.Snapshot.Follower = &faults.Fault{Stage: cluster.StageDemand, About: "team-b/evil-1"}
	faults, left := w.passes(14)
	if len(faults) != 1 || !strings.HasPrefix(faults[0], "waiting pods team-b/") || len(left) > 5 {
		t.Errorf("faults %v, left are %v", faults, left)
	}
}

// A pod that runs makes every question fail, whichever node it is about: its own node stays, and no other.
func TestAPodThatRunsMayFail(t *testing.T) {
	w := half(t)
	w.Snapshot.Follower = &faults.Fault{Stage: cluster.StageDemand, About: "default/app5-1"}
	faults, left := w.passes(20)
	if !slices.ContainsFunc(faults, func(f string) bool { return strings.HasPrefix(f, "running pods default/") }) || !slices.Contains(left, "claim-n5") || len(left) > 6 {
		t.Errorf("faults %v, left are %v", faults, left)
	}
}

// A command under way fails: it waits, its replacement is kept, and the others go.
func TestACommandUnderWayMayFail(t *testing.T) {
	w := half(t)
	w.Snapshot.Pools[0].Disruption.Never = true // so that it goes for its drift
	w.Snapshot.Claims[3].Conditions = append(slices.Clone(w.Snapshot.Claims[3].Conditions), cluster.Condition{Type: "Drifted", Status: "True", Since: w.Snapshot.Now})
	name := w.Snapshot.Claims[3].Name
	for range 2 {
		w.act(w.next())
		w.Snapshot.Now = w.Snapshot.Now.Add(20 * time.Second)
	}
	w.Snapshot.Follower = &faults.Fault{Stage: stageProgress, About: name}
	faults, left := w.passes(8)
	if !slices.Contains(left, name) || len(faults) != 1 || faults[0] != "NodeClaim "+name {
		t.Errorf("faults %v, left are %v", faults, left)
	}
}

// The cache of a pass that failed is not used again: what it was finding out may be wrong.
func TestTheCacheOfOfferingsIsEmptiedWhenAPassFails(t *testing.T) {
	w := half(t)
	c := &Cache{}
	if NextFrom(w.Snapshot, Memory{}, w.Market, c); cmp.Equal(fmt.Sprintf("%+v", Cache{}), fmt.Sprintf("%+v", *c)) {
		t.Fatal("the cache keeps nothing")
	}
	w.Snapshot.Follower = &faults.Fault{Stage: stageQuestion, About: "claim-"}
	if NextFrom(w.Snapshot, Memory{}, w.Market, c); !cmp.Equal(fmt.Sprintf("%+v", Cache{}), fmt.Sprintf("%+v", *c)) {
		t.Errorf("the cache keeps %+v", *c)
	}
}
