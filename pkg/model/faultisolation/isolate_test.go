package faultisolation_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/plan"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// crowd is a snapshot of so many of each: pods that wait and that run, each unlike the others, NodePools, NodeClaims,
// overlays, DaemonSets and buffers of stopped capacity.
func crowd(n int) cluster.Snapshot {
	s := cluster.Snapshot{Now: noon()}
	for i := range n {
		at := noon().Add(time.Duration(i-n) * time.Minute)
		node := fmt.Sprintf("n%02d", i)
		port := []cluster.HostPort{{Port: int32(i + 1)}}
		s.Pods = append(s.Pods,
			cluster.Pod{Namespace: "a", Name: fmt.Sprintf("wait%02d", i), Unscheduled: true, Created: at, HostPorts: port},
			cluster.Pod{Namespace: "b", Name: fmt.Sprintf("run%02d", i), NodeName: node, Created: at, HostPorts: port})
		s.Nodes = append(s.Nodes, cluster.Node{Name: node})
		s.Pools = append(s.Pools, cluster.Pool{Name: fmt.Sprintf("pool%02d", i)})
		s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprintf("claim%02d", i), NodeName: node})
		s.Overlays = append(s.Overlays, cluster.Overlay{Name: fmt.Sprintf("overlay%02d", i)})
		s.Stopped = append(s.Stopped, cluster.StoppedBuffer{Namespace: "d", Name: fmt.Sprintf("buffer%02d", i)})
		s.Daemons = append(s.Daemons, cluster.Pod{Namespace: "c", Name: fmt.Sprintf("daemon%02d", i), HostPorts: port})
	}
	return s
}

// seen is what a decision finds in a snapshot: what waits, what runs and is not harmless, what may go, and the rest.
func seen(s cluster.Snapshot) map[string]bool {
	out := map[string]bool{}
	for _, p := range slices.Concat(s.Pods, s.Daemons) {
		if len(p.HostPorts) > 0 {
			out[p.Name] = true
		}
		for _, term := range p.NodeAffinity {
			for _, r := range term {
				for _, pool := range r.Values {
					out[p.Name+" keeps off "+pool] = true
				}
			}
		}
	}
	for _, p := range s.Pools {
		out[p.Name] = true
	}
	for _, o := range s.Overlays {
		out[o.Name] = true
	}
	for _, b := range s.Stopped {
		out[b.Name] = true
	}
	for _, c := range s.Claims {
		out[c.Name] = !slices.ContainsFunc(s.Aside, func(a cluster.Aside) bool { return a.Name == c.Name })
	}
	return out
}

// left is what is left out, by the names of its pods where it is pods, sorted.
func left(d faultisolation.Decided[int]) (out []string) {
	for _, f := range d.Faults {
		what := f.Name
		if len(f.Pods) > 0 {
			what = strings.Join(f.Pods, "+")
			if f.Kind == cluster.PoolPart {
				what = f.Name + " for " + what
			}
		}
		out = append(out, what)
	}
	slices.Sort(out)
	return out
}

// What the decision fails about is found, whatever it is, in few tries, and nothing else is left out.
func TestWhatFailsIsFound(t *testing.T) {
	hasAny := func(has map[string]bool, prefix string) bool {
		for name, is := range has {
			if is && strings.HasPrefix(name, prefix) && !strings.Contains(name, " ") {
				return true
			}
		}
		return false
	}
	for _, c := range []struct {
		name  string
		fails func(map[string]bool) bool
		want  []string
		most  int // tries
	}{
		{"a pod that waits", func(h map[string]bool) bool { return h["wait11"] }, []string{"a/wait11"}, 30},
		{"two pods that wait", func(h map[string]bool) bool { return h["wait00"] || h["wait17"] }, []string{"a/wait00", "a/wait17"}, 40},
		{"two pods that fail together", func(h map[string]bool) bool { return h["wait03"] && h["wait16"] }, []string{"a/wait16"}, 30},
		{"a NodePool", func(h map[string]bool) bool { return h["pool07"] }, []string{"pool07"}, 24},
		{"a NodePool once a pod waits", func(h map[string]bool) bool { return h["pool07"] && hasAny(h, "wait") }, []string{"pool07"}, 40},
		{"a pod in a NodePool", func(h map[string]bool) bool { return h["wait05"] && h["pool07"] && !h["wait05 keeps off pool07"] }, []string{"pool07 for a/wait05"}, 40},
		{"a pod that runs", func(h map[string]bool) bool { return h["run09"] }, []string{"b/run09"}, 24},
		{"a pod that runs once one waits", func(h map[string]bool) bool { return h["run09"] && hasAny(h, "wait") }, []string{"b/run09"}, 40},
		{"a DaemonSet", func(h map[string]bool) bool { return h["daemon19"] }, []string{"c/daemon19"}, 24},
		{"a NodeOverlay", func(h map[string]bool) bool { return h["overlay00"] }, []string{"overlay00"}, 24},
		{"a buffer", func(h map[string]bool) bool { return h["buffer12"] }, []string{"d/buffer12"}, 30},
		{"a buffer in a NodePool", func(h map[string]bool) bool { return h["buffer12"] && hasAny(h, "pool") }, []string{"d/buffer12"}, 40},
		{"a NodeClaim", func(h map[string]bool) bool { return h["claim13"] }, []string{"claim13"}, 24},
		{"a NodeClaim that comes to mind beside another", func(h map[string]bool) bool { return h["claim13"] && h["claim02"] }, []string{"claim02"}, 24},
		{"a pod that runs once a NodeClaim may go", func(h map[string]bool) bool { return h["run09"] && hasAny(h, "claim") }, []string{"b/run09"}, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			tries := 0
			take := func(s cluster.Snapshot) int {
				tries++
				if c.fails(seen(s)) {
					panic("it fails")
				}
				return len(seen(s))
			}
			d := faultisolation.Decision[int]{Take: take, Claims: true, Tries: 60}
			got := faultisolation.Decide(crowd(20), nil, d)
			if diff := cmp.Diff(c.want, left(got)); diff != "" || got.Failed {
				t.Errorf("left out (-want +got):\n%s", diff)
			}
			if tries > c.most {
				t.Errorf("%d tries", tries)
			}
			tries = 0
			next := faultisolation.Decide(crowd(20), got.Aside, d)
			if diff := cmp.Diff(got.Aside, next.Aside); tries != 1 || diff != "" || len(next.Faults) > 0 || next.Out != got.Out {
				t.Errorf("the next takes %d tries, faults %v; aside (-first +next):\n%s", tries, next.Faults, diff)
			}
		})
	}
}

// However few tries there are, decision after decision finds more, until nothing is left out but what fails.
func TestFewTriesGoOn(t *testing.T) {
	for _, tries := range []int{8, 12, 24} {
		s := crowd(40)
		fails := map[string]bool{"wait03": true, "wait20": true, "wait21": true, "claim30": true, "pool01": true}
		d := faultisolation.Decision[int]{Claims: true, Tries: tries, Take: func(s cluster.Snapshot) int {
			for name, is := range seen(s) {
				if is && fails[name] {
					panic("it fails")
				}
			}
			return 0
		}}
		var known []cluster.Aside
		passes := 0
		for ; passes < 40; passes++ {
			got := faultisolation.Decide(s, known, d)
			known = got.Aside
			if s.Now = s.Now.Add(time.Second); len(known) == len(fails) {
				break
			}
		}
		if len(known) != len(fails) || passes > 30 {
			t.Errorf("with %d tries %d parts are left out after %d decisions", tries, len(known), passes)
		}
	}
}

// What fails whatever is left out leaves every pod that waits without a place, with the reason.
func TestNothingHelps(t *testing.T) {
	got := faultisolation.Decide(crowd(3), nil, faultisolation.Decision[int]{Tries: 20, Take: func(cluster.Snapshot) int { panic("for nothing") }})
	if !got.Failed || len(got.Pods) != 3 || !got.Pods[0].Fault || len(got.Aside) > 0 || len(got.Faults) != 1 || got.Faults[0].Kind != "" || got.Faults[0].Why != "for nothing" {
		t.Errorf("%+v", got)
	}
}

// What does not fail is decided once, and the snapshot comes as it is.
func TestWithoutAFailureThereIsOneTry(t *testing.T) {
	s, tries := crowd(3), 0
	got := faultisolation.Decide(s, nil, faultisolation.Decision[int]{Tries: 20, Take: func(in cluster.Snapshot) int {
		if tries++; cmp.Diff(s, in) != "" {
			t.Error("another snapshot is decided about")
		}
		return 7
	}})
	if diff := cmp.Diff(faultisolation.Decided[int]{Out: 7}, got); diff != "" || tries != 1 {
		t.Errorf("%d tries, %s", tries, diff)
	}
}

// A pod that runs on a node that goes needs a place as one that waits does.
func TestAPodOfANodeThatGoes(t *testing.T) {
	s := crowd(3)
	s.Nodes[1].Deleting = noon()
	got := faultisolation.Decide(s, nil, faultisolation.Decision[int]{Tries: 20, Take: func(s cluster.Snapshot) int {
		if seen(s)["run01"] {
			panic("it fails")
		}
		return 0
	}})
	want := []plan.Unplaced{{Pod: "b/run01", Why: []string{"Joiner itself fails about this pod, and leaves it out so that others get their nodes: it fails"}, Fault: true}}
	if diff := cmp.Diff(want, got.Pods); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func fall(depth int) {
	if depth > 0 {
		fall(depth - 1)
		return
	}
	var none []int
	_ = none[depth]
}

// A panic says where it was, the same each time, and nothing else of the process.
func TestAPanicSaysWhere(t *testing.T) {
	p := faultisolation.Catch(func() { fall(2) })
	if p == nil || p.Why != "runtime error: index out of range [0] with length 0" || len(p.Stack) < 4 {
		t.Fatalf("%+v", p)
	}
	for _, frame := range p.Stack[:3] {
		if !strings.HasPrefix(frame, "joiner.sh/pkg/model/faultisolation_test.fall isolate_test.go:") {
			t.Errorf("stack is %q", p.Stack)
		}
	}
	if again := faultisolation.Catch(func() { fall(2) }); cmp.Diff(p.Stack[:3], again.Stack[:3]) != "" || strings.Contains(strings.Join(p.Stack, ""), "0x") {
		t.Errorf("%q, then %q", p.Stack, again.Stack)
	}
	if p := faultisolation.Catch(func() { panic(strings.Repeat("é", 300) + "\nmore") }); len(p.Why) > 210 || strings.Contains(p.Why, "more") {
		t.Errorf("%q", p.Why)
	}
	if p := faultisolation.Catch(func() {}); p != nil {
		t.Errorf("%+v", p)
	}
}
