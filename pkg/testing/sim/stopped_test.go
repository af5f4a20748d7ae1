package sim_test

import (
	"flag"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/shortrun"
	"joiner.sh/pkg/testing/sim"
)

var buffers = flag.Int("buffers", 8, "how many worlds with a buffer of stopped capacity TestStoppedCapacity plays, by seeds from first on")

// stoppedPoints are the crash points at which nodes are stopped and started, and refilled.
func stoppedPoints() []sim.CrashPoint {
	return pointsOf([]calls{
		{"provision", []string{"start instance", "list buffers", "annotate claim", "write status of claim", "mark unavailable", "write event", "create claim", "launch", "delete claim"}},
		{"lifecycle", []string{"stop", "write status of claim", "delete node", "release node", "register node", "initialize node", "delete claim", "terminate", "release claim"}},
		{"statechange", []string{"list claims of instances", "get node", "delete claim"}},
	})
}

// ownStoppedPoints are those that other worlds do not have.
func ownStoppedPoints() []sim.CrashPoint {
	return pointsOf([]calls{{"provision", []string{"start instance", "list buffers"}}, {"lifecycle", []string{"stop"}}})
}

// eachSeed plays so many seeds on all cores.
func eachSeed(n int, play func(seed uint64)) {
	next := make(chan uint64, n)
	for i := range n {
		next <- *first + uint64(i)
	}
	close(next)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for seed := range next {
				play(seed)
			}
		})
	}
	wg.Wait()
}

// TestStoppedCapacity plays buffers of stopped capacity while EC2 refuses, delays or forgets starts, people end, start
// and change what waits, stop what runs, and invocations die at each of their calls: make buffers SEEDS=n. What must
// not be is an invariant of the simulation.
func TestStoppedCapacity(t *testing.T) {
	shortrun.Skip(t)
	var mu sync.Mutex
	points := stoppedPoints()
	hit, sum := map[sim.CrashPoint]bool{}, sim.StoppedOutcome{}
	stops := 0
	eachSeed(*buffers, func(seed uint64) {
		aim := points[seed%uint64(len(points))]
		r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Aims: []sim.CrashPoint{aim}, Stopped: &sim.StoppedTrial{}, KeepAll: *story})
		mu.Lock()
		defer mu.Unlock()
		for _, v := range r.Violations[:min(1, len(r.Violations))] {
			t.Errorf("seed %d, aims at %s: %s\n%s", seed, aim, v, r.Trace)
		}
		for _, p := range r.Hit {
			hit[p] = true
		}
		for _, p := range r.Calls {
			if !hasCall(crashPoints(), p) && !hasCall(ownStoppedPoints(), p) {
				t.Errorf("%s calls %q, which stoppedPoints does not list", p.Function, p.Call)
			}
		}
		sum.Starts, sum.Pods, stops = sum.Starts+r.Stopped.Starts, sum.Pods+r.Stopped.Pods, stops+r.Mutations["stop"]
	})
	t.Logf("%d worlds: %d instances were stopped, %d started, %d pods ran", *buffers, stops, sum.Starts, sum.Pods)
	if stops < *buffers || sum.Starts < *buffers/2 {
		t.Errorf("%d instances were stopped and %d started in %d worlds", stops, sum.Starts, *buffers)
	}
	missed := slices.DeleteFunc(points, func(p sim.CrashPoint) bool { return hit[p] })
	if t.Logf("%d of %d crash points were hit", len(points)-len(missed), len(points)); len(missed) > 0 && *buffers >= 2*len(points) {
		t.Errorf("not hit: %v", missed)
	}
}

// TestAStoppedNodeIsNoDelay plays the same waves of pods with a buffer and without: with one no pod waits longer than
// with launches by more than a pass, although EC2 refuses what waits, or somebody ends or starts it just before. A
// start takes as long as a launch here.
func TestAStoppedNodeIsNoDelay(t *testing.T) {
	shortrun.Skip(t)
	const pass = time.Minute
	var mu sync.Mutex
	var with, without sim.StoppedOutcome
	eachSeed(max(4, *buffers/4), func(seed uint64) {
		var out [2]sim.StoppedOutcome
		story := ""
		for i, trial := range []sim.StoppedTrial{{Calm: true}, {Calm: true, Without: true}} {
			r := sim.RunScenario(t, sim.Scenario{Seed: seed, Catalog: objects.FewTypes(), Stopped: &trial, KeepAll: !trial.Without})
			for _, v := range r.Violations[:min(1, len(r.Violations))] {
				t.Errorf("seed %d, %+v: %s\n%s", seed, trial, v, r.Trace)
			}
			if out[i] = r.Stopped; !trial.Without {
				story = r.Trace
			}
		}
		if out[0].Pods != out[1].Pods || out[0].Pods == 0 || out[1].Starts > 0 {
			t.Errorf("seed %d: %+v with a buffer, %+v without", seed, out[0], out[1])
		}
		if out[0].Longest > out[1].Longest+pass {
			t.Errorf("seed %d: a pod waits %s with a buffer and at most %s without\n%s", seed, out[0].Longest, out[1].Longest, story)
		}
		mu.Lock()
		defer mu.Unlock()
		with.Waited, with.Pods, with.Starts = with.Waited+out[0].Waited, with.Pods+out[0].Pods, with.Starts+out[0].Starts
		without.Waited, without.Pods = without.Waited+out[1].Waited, without.Pods+out[1].Pods
	})
	t.Logf("%d pods waited %s with a buffer, of which %d starts, and %s without", with.Pods, with.Waited, with.Starts, without.Waited)
	if with.Starts == 0 {
		t.Error("nothing was started")
	}
}
