package whatif

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/ceiling"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

var (
	worldPods  = shortrun.NewCount("whatif-pods", 60, 5, "random pods without a node that are asked about")
	firstWorld = flag.Uint64("first-world", 0, "seed of the first random world")
)

// decide is a pass with all the search that it may do.
func decide(w *scenario.World) plan.Plan {
	return ceiling.LimitPlan(w.Snapshot, binpack.PodsFrom(w.Snapshot, w.Market))
}

// changedWorld is the world with the edits made.
func changedWorld(w *scenario.World, edits ...Edit) *scenario.World {
	out := *w
	out.Snapshot = Change{Edits: edits}.Apply(w.Snapshot)
	return &out
}

// placed reports whether a pass gives the pod of the world a place, by a plan that the checker has nothing against.
func placed(w *scenario.World, key string) (ok bool, faults []string) {
	p := decide(w)
	for _, u := range p.Unplaced {
		if u.Pod == key {
			return false, nil
		}
	}
	return true, w.Check(p)
}

// Whatever the cluster looks like: each change that is named for a pod without a node gives it one, by a pass with all
// its search and by the plan checker; no part of a pair does alone; no smaller step of the same edit does; and where
// nothing is named, no edit there is helps.
func TestWhatPodsNeed(t *testing.T) {
	asked, found, pairs, none, questions, took := 0, 0, 0, 0, 0, time.Duration(0)
	for seed := *firstWorld; asked < worldPods.N(); seed++ {
		w, err := scenario.Wild(seed)
		if err != nil {
			t.Fatal(err)
		}
		left := decide(w).Unplaced
		for i := 0; i < len(left) && i < 3 && asked < worldPods.N(); i++ {
			key := left[i*len(left)/min(3, len(left))].Pod
			if slices.ContainsFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.Key() == key && (p.Virtual || p.NodeName != "") }) {
				continue
			}
			began := time.Now()
			a := ForPod(w.Snapshot, w.Market, key, Limits{})
			took += time.Since(began)
			questions += a.Questions
			asked++
			switch {
			case len(a.Changes) == 0:
				none++
			case len(a.Changes[0].Edits) == 2:
				pairs++
			default:
				found++
			}
			for _, bad := range wrongAbout(w, key, a, seed%8 == 0) {
				t.Errorf("world %d, %s: %s", seed, key, bad)
			}
		}
	}
	t.Logf("%d pods: %d by one edit, %d by two, %d by none; %d questions in %s", asked, found, pairs, none, questions, took)
	if found < asked/3 {
		t.Errorf("one edit helps %d of %d pods: that tests little", found, asked)
	}
}

// wrongAbout is what is wrong with the answer about the pod; where nothing is named, all pairs are tried if it is said.
func wrongAbout(w *scenario.World, key string, a Answer, pairs bool) (bad []string) {
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	before, _ := placed(w, key)
	if before {
		return nil // search finds it a place where a quick answer does not
	}
	named := map[string]bool{}
	for _, c := range a.Changes {
		ok, faults := placed(changedWorld(w, c.Edits...), key)
		if !ok {
			say("does not help: %s", c)
		}
		if len(faults) > 0 {
			say("%s: %s", c, strings.Join(faults, "; "))
		}
		for _, e := range c.Edits {
			named[e.Object()+" "+e.Field] = true
			if ok, _ := placed(changedWorld(w, e), key); ok && len(c.Edits) > 1 {
				say("half of it helps alone: %s: %s", c, e)
			}
		}
	}
	if len(a.Changes) > 0 && len(a.Changes[0].Edits) > 1 || a.Unasked > 0 { // which the answer says
		return bad
	}
	quick := newPlacing(w.Snapshot, w.Market, key)
	if len(a.Changes) == 0 && pairs {
		i := slices.IndexFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.Key() == key })
		pair := helpfulPair(w.Snapshot, podFamilies(w.Snapshot, waitingAlike(w.Snapshot, i)), func(s cluster.Snapshot) bool {
			some := s
			some.Rules.PackingIterations = cluster.NoIterations
			some.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return p.NodeName == "" && p.Key() != key })
			if _, ok := quick.answer(some); !ok {
				return false
			}
			out := *w
			out.Snapshot = s
			ok, _ := placed(&out, key)
			return ok
		})
		if len(pair.Edits) > 0 {
			say("a pair helps and is not named: %s", pair)
		}
	}
	i := slices.IndexFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.Key() == key })
	for _, e := range smallerEdits(w, key, a) {
		s := changedWorld(w, e).Snapshot
		s.Rules.PackingIterations = cluster.NoIterations
		if x := w.Snapshot.Pods[i]; len(x.Affinity)+len(x.Spread) == 0 { // what it does not get alone it gets beside nobody
			s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return p.NodeName == "" && p.Key() != key })
		}
		if _, ok := quick.answer(s); !ok {
			continue
		}
		if ok, _ := placed(changedWorld(w, e), key); ok {
			say("smaller and not named: %s, named: %v, %d unasked", e, a.Changes, a.Unasked)
		}
	}
	return bad
}

// smallerEdits are all steps of all families that are smaller than what the answer names of them.
func smallerEdits(w *scenario.World, key string, a Answer) (out []Edit) {
	i := slices.IndexFunc(w.Snapshot.Pods, func(p cluster.Pod) bool { return p.Key() == key })
	for _, f := range podFamilies(w.Snapshot, waitingAlike(w.Snapshot, i)) {
		if f.count == 0 {
			continue
		}
		helped := func(e Edit) bool {
			return slices.ContainsFunc(a.Changes, func(c Change) bool {
				return c.Edits[0].String() == e.String() ||
					f.narrow != nil && c.Edits[0].Object() == e.Object() && c.Edits[0].Field == e.Field
			})
		}
		for n := range min(f.count, firstSteps) {
			if helped(f.at(n)) {
				break
			}
			if f.place == "" || !slices.ContainsFunc(a.Changes, func(c Change) bool {
				return strings.HasSuffix(f.place, c.Edits[0].Field) || strings.HasPrefix(c.Edits[0].Field, f.place) || strings.HasPrefix(c.Edits[0].Field, strings.TrimPrefix(f.place, f.pool+" "))
			}) {
				out = append(out, f.at(n))
			}
		}
	}
	return out
}
