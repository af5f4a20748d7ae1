package provisioning_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	gocmp "github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/testing/faults"
	"joiner.sh/pkg/testing/scenario"
)

// The world of two teams and others: evil-1 reaches every stage of packing that a pod can reach, and so does another.
const twoTeams = `
type m5.large cpu=2000 mem=8192 milliusd=96
----
type c5.xlarge cpu=4000 mem=8192 milliusd=170
----
type r5.large cpu=2000 mem=16384 milliusd=126
----
pool cheap
----
pool dear
require node.kubernetes.io/instance-type In r5.large
----
node n1 type=m5.large zone=a
----
pods web n=5 cpu=700 mem=3000 ns=team-a
----
pods db n=3 cpu=900 mem=1500 ns=team-a
spread zone skew=1 app=db
----
pods wide n=2 cpu=1500 mem=900 ns=team-a
----
pods giant cpu=90000 ns=team-a
----
pods batch n=4 cpu=300 mem=5000 ns=team-c
----
pods evil n=2 cpu=800 mem=700 ns=team-b
spread zone skew=1 app=evil
----
`

// read is the snapshot of a world in words, which buys a few types of the built-in catalog.
func read(t *testing.T, text string) cluster.Snapshot {
	t.Helper()
	w := scenario.New()
	datadriven.RunTestFromString(t, strings.ReplaceAll(text, "----\n", "----\n\n"), func(t *testing.T, d *datadriven.TestData) string {
		if known, err := w.Do(d); err != nil || !known {
			t.Fatalf("%s: %v", d.Cmd, err)
		}
		return d.Expected
	})
	return sells(t, w.Snapshot)
}

// sells is the snapshot in which EC2 sells a few types as it does in us-west-2.
func sells(t *testing.T, s cluster.Snapshot) cluster.Snapshot {
	t.Helper()
	var err error
	if s.Catalog, err = instancetypes.DecodeCatalog(builtin.Data()); err != nil {
		t.Fatal(err)
	}
	s.Catalog.Types = slices.DeleteFunc(s.Catalog.Types, func(f instancetypes.Facts) bool {
		return !slices.Contains([]string{"m5.large", "c5.xlarge", "r5.large"}, f.Name)
	})
	class := instancetypes.DefaultClass(s.Catalog)
	class.Name, s.Classes = s.Pools[0].Class, []instancetypes.Class{class}
	return s
}

func plantAt(s cluster.Snapshot, f faults.Fault) cluster.Snapshot {
	s.Follower = &f
	return s
}

// withoutPods is the snapshot without the pods whose keys begin so.
func withoutPods(s cluster.Snapshot, prefix string) cluster.Snapshot {
	s.Pods = slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return strings.HasPrefix(p.Key(), prefix) })
	return s
}

func withoutPool(s cluster.Snapshot, name string) cluster.Snapshot {
	s.Pools = slices.DeleteFunc(slices.Clone(s.Pools), func(p cluster.Pool) bool { return p.Name == name })
	return s
}

// others is the plan without what it says of what it was taken without.
func others(p plan.Plan) plan.Plan {
	p.Faults = nil
	p.Unplaced = slices.DeleteFunc(slices.Clone(p.Unplaced), func(u plan.Unplaced) bool { return u.Fault })
	p.Skipped = slices.DeleteFunc(slices.Clone(p.Skipped), func(x plan.Skip) bool { return strings.Contains(x.Why, "Joiner itself") })
	if len(p.Unplaced) == 0 {
		p.Unplaced = nil
	}
	if len(p.Skipped) == 0 {
		p.Skipped = nil
	}
	return p
}

func faultsOf(p plan.Plan) (out []string) {
	for _, f := range p.Faults {
		out = append(out, fmt.Sprintf("%s %s", f.Kind, strings.Join(f.Pods, ",")))
	}
	return out
}

// One pod makes each stage of packing fail. All others get what they would get without it, and it is told why it does
// not.
func TestEachStageMayFailForOnePod(t *testing.T) {
	s := read(t, twoTeams)
	for _, stage := range []string{cluster.StageDemand, cluster.StageRelax, cluster.StageDomains, cluster.StagePlace, cluster.StageOpen, cluster.StagePrice, cluster.StageOptions} {
		t.Run(stage, func(t *testing.T) {
			failing := plantAt(s, faults.Fault{Stage: stage, About: "team-b/evil-1"})
			got := provisioning.Decide(failing)
			if diff := gocmp.Diff([]string{"waiting pods team-b/evil-1,team-b/evil-2"}, faultsOf(got.Plan)); diff != "" {
				t.Fatalf("faults (-want +got):\n%s", diff)
			}
			if f := got.Plan.Faults[0]; !strings.HasPrefix(f.Why, "planted at "+stage) || len(f.Stack) < 3 || !strings.HasPrefix(f.Stack[1], "joiner.sh/pkg/scheduling/podclass.StageTeller.Tell stages.go:") {
				t.Errorf("the fault says %q from %q", f.Why, f.Stack)
			}
			want := provisioning.Decide(withoutPods(s, "team-b/")).Plan
			if diff := gocmp.Diff(others(want), others(got.Plan)); diff != "" {
				t.Errorf("the others (-alone +beside the pod that fails):\n%s", diff)
			}
			var told []string
			for _, u := range got.Plan.Unplaced {
				if u.Fault {
					told = append(told, u.Pod+": "+u.Message())
				}
			}
			why := ": Joiner itself fails about this pod, and leaves it out so that others get their nodes: planted at " + stage + ` for "team-b/evil-1" in NodePool ""`
			if diff := gocmp.Diff([]string{"team-b/evil-1" + why, "team-b/evil-2" + why}, told); diff != "" {
				t.Errorf("what is told (-want +got):\n%s", diff)
			}
			if len(want.Launches) < 2 || len(want.Existing) == 0 {
				t.Errorf("a plan that proves little:\n%s", want)
			}
			if again := provisioning.Decide(failing); gocmp.Diff(got, again) != "" {
				t.Errorf("the same snapshot, another plan:\n%s", gocmp.Diff(got, again))
			}
		})
	}
}

// The search for a lower price fails: the plan is the one that it would begin with, and no pod and no pool is left out.
func TestTheSearchMayFail(t *testing.T) {
	s := read(t, twoTeams)
	for _, f := range []faults.Fault{{}, {About: "team-b/evil-1"}, {Pool: "cheap"}} {
		f.Stage = cluster.StageSearch
		got := provisioning.Decide(plantAt(s, f))
		if diff := gocmp.Diff([]string{"search "}, faultsOf(got.Plan)); diff != "" || len(got.Aside) > 0 {
			t.Fatalf("aside are %v, faults (-want +got):\n%s", got.Aside, diff)
		}
		quick := s
		quick.Rules.PackingIterations = cluster.NoIterations
		if diff := gocmp.Diff(provisioning.Decide(quick).Plan, others(got.Plan)); diff != "" {
			t.Errorf("the plan (-without a search +with one that fails):\n%s", diff)
		}
		if diff := gocmp.Diff([]string{"team-a/giant-1"}, unplaced(got.Plan)); diff != "" {
			t.Errorf("without a place (-want +got):\n%s", diff)
		}
	}
}

// What failed before is left out of the quick plan too, and is taken in again when its time is over.
func TestTheSearchMayFailBesideAPod(t *testing.T) {
	s := plantAt(read(t, twoTeams), faults.Fault{Stage: cluster.StageOpen, About: "team-b/evil-1"})
	s.Aside = provisioning.Decide(s).Aside
	s = plantAt(s, faults.Fault{Stage: cluster.StageSearch})
	got := provisioning.Decide(s)
	if diff := gocmp.Diff(s.Aside, got.Aside); diff != "" || len(got.Aside) != 1 {
		t.Errorf("aside (-before +now):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{"team-a/giant-1", "team-b/evil-1", "team-b/evil-2"}, unplaced(got.Plan)); diff != "" {
		t.Errorf("without a place (-want +got):\n%s", diff)
	}
	s.Now = s.Now.Add(11 * time.Minute)
	if later := provisioning.Decide(s); len(later.Aside) > 0 || len(unplaced(later.Plan)) != 1 {
		t.Errorf("eleven minutes later: aside %v, without a place %v", later.Aside, unplaced(later.Plan))
	}
}

// Explaining why a pod has no place fails: only that pod lacks its reasons.
func TestExplainingMayFailForOnePod(t *testing.T) {
	s := read(t, twoTeams+"pods vast n=2 cpu=80000 ns=team-b\n----\n")
	got := provisioning.Decide(plantAt(s, faults.Fault{Stage: cluster.StageExplain, About: "team-b/vast-2"})).Plan
	if diff := gocmp.Diff([]string{"waiting pods team-b/vast-1,team-b/vast-2"}, faultsOf(got)); diff != "" {
		t.Fatalf("faults (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff(others(provisioning.Decide(withoutPods(s, "team-b/vast")).Plan), others(got)); diff != "" {
		t.Errorf("the others (-alone +beside the pod that fails):\n%s", diff)
	}
}

// One NodePool makes each stage fail that knows it, for every pod. The pods get nodes of the other pool.
func TestEachStageMayFailForOnePool(t *testing.T) {
	s := read(t, twoTeams)
	for _, stage := range []string{cluster.StagePools, cluster.StageOpen, cluster.StagePrice, cluster.StageOptions} {
		t.Run(stage, func(t *testing.T) {
			got := provisioning.Decide(plantAt(s, faults.Fault{Stage: stage, Pool: "cheap"}))
			if diff := gocmp.Diff([]string{"NodePool "}, faultsOf(got.Plan)); diff != "" {
				t.Fatalf("faults (-want +got):\n%s", diff)
			}
			want := provisioning.Decide(withoutPool(s, "cheap")).Plan
			if diff := gocmp.Diff(others(want), others(got.Plan)); diff != "" {
				t.Errorf("the plan (-without the pool +with the pool that fails):\n%s", diff)
			}
			if i := slices.IndexFunc(got.Plan.Skipped, func(x plan.Skip) bool { return x.Pool == "cheap" }); i < 0 || !strings.HasPrefix(got.Plan.Skipped[i].Why, "Joiner itself fails about this NodePool") {
				t.Errorf("nobody is told why the pool is not used: %+v", got.Plan.Skipped)
			}
			if len(want.Launches) == 0 {
				t.Errorf("a plan that proves little:\n%s", want)
			}
		})
	}
}

// A pod and a pool that fail together: the pod gets a node of another pool, and the pool stays for others.
func TestAPodMayFailInOnePoolAlone(t *testing.T) {
	s := read(t, twoTeams)
	got := provisioning.Decide(plantAt(s, faults.Fault{Stage: cluster.StageOpen, About: "team-b/evil", Pool: "cheap"})).Plan
	if len(got.Faults) != 1 || got.Faults[0].Kind != cluster.PoolPart || got.Faults[0].Name != "cheap" || len(got.Faults[0].Pods) != 2 {
		t.Fatalf("faults are %v", got.Faults)
	}
	pools := map[string]int{}
	for _, l := range got.Launches {
		pools[l.Pool]++
		if l.Pool != "dear" && slices.ContainsFunc(l.Pods, func(p string) bool { return strings.HasPrefix(p, "team-b/") }) {
			t.Errorf("it is planned for a node of the pool in which that fails: %s", l)
		}
	}
	for _, u := range got.Unplaced {
		if u.Pod != "team-a/giant-1" {
			t.Errorf("%s has no place: %s", u.Pod, u.Message())
		}
	}
	if pools["cheap"] == 0 || pools["dear"] == 0 {
		t.Errorf("launches by pool: %v", pools)
	}
}

// Two kinds of pods that are harmless alone fail together: the one that came first gets its node.
func TestTwoThatFailTogether(t *testing.T) {
	s := read(t, twoTeams)
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		if s.Pods[i].Namespace == "team-a" && strings.HasPrefix(s.Pods[i].Name, "web") {
			s.Pods[i].Created = s.Now.Add(-time.Hour)
		} else {
			s.Pods[i].Created = s.Now.Add(-time.Minute)
		}
	}
	got := provisioning.Decide(plantAt(s, faults.Fault{Stage: cluster.StageDemand, About: "team-a/web-1", Together: "team-b/evil-2"})).Plan
	if diff := gocmp.Diff([]string{"waiting pods team-b/evil-1,team-b/evil-2"}, faultsOf(got)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// What fails is left out of the passes that follow without another try, and tried again after ten minutes.
func TestWhatFailsRestsForAWhile(t *testing.T) {
	s := plantAt(read(t, twoTeams), faults.Fault{Stage: cluster.StageOpen, About: "team-b/evil-1"})
	first := provisioning.Decide(s)
	if len(first.Aside) != 1 || !first.Aside[0].Until.Equal(s.Now.Add(10*time.Minute)) {
		t.Fatalf("aside are %+v", first.Aside)
	}
	s.Aside, s.Now = first.Aside, s.Now.Add(9*time.Minute)
	next := provisioning.Decide(s)
	if len(next.Plan.Faults) > 0 || gocmp.Diff(first.Aside, next.Aside) != "" || gocmp.Diff(unplaced(first.Plan), unplaced(next.Plan)) != "" {
		t.Errorf("nine minutes later: faults %v, aside %+v, unplaced %v", next.Plan.Faults, next.Aside, unplaced(next.Plan))
	}
	s.Now = s.Now.Add(2 * time.Minute)
	again := provisioning.Decide(s)
	if diff := gocmp.Diff(faultsOf(first.Plan), faultsOf(again.Plan)); diff != "" || len(again.Aside) != 1 || !again.Aside[0].Until.Equal(s.Now.Add(10*time.Minute)) {
		t.Errorf("eleven minutes later: aside %+v, faults (-first +now):\n%s", again.Aside, diff)
	}
	s.Follower, s.Now = nil, s.Now.Add(11*time.Minute)
	if mended := provisioning.Decide(s); len(mended.Aside)+len(mended.Plan.Faults) > 0 || slices.Contains(unplaced(mended.Plan), "team-b/evil-1") {
		t.Errorf("mended: aside %+v, plan\n%s", mended.Aside, mended.Plan)
	}
}

func unplaced(p plan.Plan) (out []string) {
	for _, u := range p.Unplaced {
		out = append(out, u.Pod)
	}
	return out
}

// Where the decision fails whatever is left out, nothing is launched, and every pod that waits says why.
func TestNothingHelps(t *testing.T) {
	s := read(t, twoTeams)
	got := provisioning.Decide(plantAt(s, faults.Fault{Stage: cluster.StageWhole})).Plan
	if len(got.Faults) != 1 || got.Faults[0].Kind != "" || len(got.AllLaunches())+len(got.Existing) > 0 || len(got.Unplaced) != 17 || !got.Unplaced[0].Fault {
		t.Errorf("%d unplaced, plan\n%s", len(got.Unplaced), got)
	}
}

// Many kinds of pods fail, more than the tries of one pass find. Pass after pass more of the others get a place, until
// all have one.
func TestMoreThanOnePassFinds(t *testing.T) {
	text := twoTeams
	for i := range 60 {
		text += fmt.Sprintf("pods app%d cpu=%d ns=team-d\n----\n", i, 100+i)
	}
	for i := range 14 {
		text += fmt.Sprintf("pods evil%d cpu=%d ns=team-b\n----\n", i, 200+i)
	}
	s := plantAt(read(t, text), faults.Fault{Stage: cluster.StageDemand, About: "team-b/"})
	left := func(p plan.Plan) int {
		return len(slices.DeleteFunc(unplaced(p), func(pod string) bool { return strings.HasPrefix(pod, "team-b/") || pod == "team-a/giant-1" }))
	}
	waiting := []int{}
	for range 8 {
		o := provisioning.Decide(s)
		s.Aside, s.Now = o.Aside, s.Now.Add(time.Second)
		waiting = append(waiting, left(o.Plan))
	}
	if !slices.IsSortedFunc(waiting, func(a, b int) int { return cmp.Compare(b, a) }) || waiting[len(waiting)-1] != 0 {
		t.Errorf("others without a place, pass by pass: %v", waiting)
	}
	for _, a := range s.Aside {
		if !strings.HasPrefix(a.Name, "team-b/") {
			t.Errorf("%s %s is left out in the end: %s", a.Kind, a.Name, a.Why)
		}
	}
}
