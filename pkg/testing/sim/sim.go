package sim

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"joiner/pkg/model/instancetypes"
)

// Scenario is one run. All but Seed and Catalog may be left out.
type Scenario struct {
	Seed    uint64
	Catalog instancetypes.Catalog
	// where invocations are to be hit, each once; events that invoke the first one's function come often
	Aims    []CrashPoint
	KeepAll bool // the whole trace, not only its end

	// Day plays so many hours of a working day instead of a storm: apps grow and shrink with the hour, and disrupt runs
	// too. Nothing fails. It begins at the hour From of the day. Each hour is told to Hour, if there is one.
	Day, From int
	Hour      func(Hour)
}

// Hour is what a cluster is like at the end of an hour of a day.
type Hour struct {
	Hour     int
	Nodes    int
	Pods     int     // with a node
	Waiting  int     // without one
	USD      float64 // that the hour cost
	AnewUSD  float64 // that it had cost with a fleet made anew for the pods at every moment
	BoundUSD float64 // that it had cost at least with any fleet
	// USD less AnewUSD by where it went, in words: WasteStarting and others here, or why disrupt spares the nodes
	Wasted    map[string]float64
	Mutations int // calls that changed something, since the hour before
}

// Result is what a run showed.
type Result struct {
	Violations []Violation
	Trace      string // its end, or all of it
	Sum        uint64 // of the whole trace
	Lines      int    // of the whole trace
	Virtual    time.Duration
	Calls      []CrashPoint // the calls that were made, Fault empty
	Hit        []CrashPoint
	Mutations  map[string]int
	Moves      int // of a day: consolidations begun
	// of a day: nodes launched for pods although one of their kind was given up within the hour and no app has grown
	// since
	Again int
}

// Times of a run.
const (
	restFor   = 12 * time.Minute
	silentFor = 130 * time.Second
)

// RunScenario plays a scenario. It fails t only when the simulation itself is broken; what it found is in the result.
func RunScenario(t *testing.T, s Scenario) (out Result) {
	synctest.Test(t, func(*testing.T) {
		w := newWorld(s.Seed, s.Catalog, s.KeepAll)
		w.setUp(s)
		if s.Day > 0 {
			w.simulateDay(s)
		} else {
			w.playScenario()
		}
		w.endInvocations()
		out = Result{Violations: w.bad, Trace: w.story.asText(), Sum: w.story.sum, Lines: w.story.count,
			Virtual: time.Since(w.began),
			Calls:   sortedPoints(w.faults.calls), Hit: sortedPoints(w.faults.hit), Mutations: w.mutations}
		if w.book != nil {
			out.Moves, out.Again = len(w.book.moves), w.book.again
		}
	})
	return out
}

// setUp draws what the seed is about, and starts the schedules.
func (w *world) setUp(s Scenario) {
	w.plan = drawPlan(w.eventLoop)
	w.rules = drawRules(w.eventLoop, w.plan.share > 0)
	if s.Day > 0 {
		// as the stack has it
		w.rules.NominatedPodsOnly, w.rules.MaxClaims, w.rules.ConsolidationPayback,
			w.rules.ConsolidationMaxEvaluations = true, 100, 0, 0
		// six types are sold
		w.rules.MinSpotInstanceTypes = 2
		w.disks.most = 0
	}
	w.faults.on, w.faults.aims, w.faults.rate = true, slices.Clone(s.Aims), []float64{0, 0.003, 0.02}[w.rng.IntN(3)]
	if len(s.Aims) > 0 {
		w.plan.focus = s.Aims[0].Function
	}
	w.focusPlan()
	w.drawDrift()
	w.drawPools()
	w.focusPools()
	w.drawClasses()
	w.drawCommitment()
	for _, f := range Functions(w.rules, w.plan.share) {
		w.order = append(w.order, &f)
		w.functions[f.Name] = &f
		if f.Every > 0 {
			w.scheduleFunction(&f, w.drawDuration(0, f.Every))
		}
	}
}

// playScenario is the story of every run: a storm, rest, silence, and the end of everything.
func (w *world) playScenario() {
	w.drawDaemons()
	end := time.Now().Add(w.plan.storm)
	w.runStorm(end)
	w.runUntil(end, w.admitRequest)
	w.endTrouble()
	rest := restFor
	if w.plan.drifts {
		rest = driftRest
	}
	w.runUntilEmpty(rest, fullRound, "not at rest", w.listProblems)
	w.runSilently(silentFor)
	if len(w.bad) > 0 {
		return
	}
	w.addTrace("-- the end of everything --")
	for len(w.apps) > 0 {
		w.stopApp(w.apps[0])
	}
	if p := w.staticPool(); p != nil {
		p.Replicas = 0
		w.runUntilEmpty(restFor/2, aWhile, "a static pool keeps nodes", w.staticProblems)
	}
	w.runUntil(time.Now().Add(time.Minute), w.admitRequest)
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		w.deleteClaim(w.claims[name], nil)
	}
	w.runUntilEmpty(restFor/2, aWhile, "something is left", w.remainingObjects)
}

// endInvocations ends all invocations, so that no goroutine is left.
func (w *world) endInvocations() {
	w.over = true
	for len(w.alive) > 0 {
		w.killInvocation(w.alive[0], "is stopped with the simulation")
	}
	synctest.Wait()
	w.admitPosted(func(r *portRequest) {
		if !r.ending {
			r.reply <- portAnswer{err: context.Canceled}
		}
	})
	synctest.Wait()
}
