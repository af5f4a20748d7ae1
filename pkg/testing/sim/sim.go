package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/instancetypes"
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

	// Notices plays many spot notices instead of a storm.
	Notices *NoticeStorm

	// Trial plays a NodeRollout instead of a storm.
	Trial *RolloutTrial

	// Stopped plays stopped capacity instead of a storm.
	Stopped *StoppedTrial

	// Short plays nodes that turn out to have less for pods than was estimated instead of a storm.
	Short bool

	// Unusable plays nodes that never become usable instead of a storm.
	Unusable bool

	// Hostile plays a tenant who means the others ill instead of a storm.
	Hostile bool

	// Edit plays an edit of a quiet cluster instead of a storm.
	Edit *EditTrial

	// CacheFault says what is wrong with the caches of all functions; empty for nothing.
	CacheFault CacheFault

	// Ceiling bounds the whole cluster in a storm; without it, a quarter of them are.
	Ceiling bool
}

// Hour describes a cluster at the end of an hour of a day.
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

// Result holds what a run showed.
type Result struct {
	Violations []Violation
	Trace      string // its end, or all of it
	Sum        uint64 // of the whole trace
	Lines      int    // of the whole trace
	Virtual    time.Duration
	Calls      []CrashPoint // the calls that were made, Fault empty
	Hit        []CrashPoint
	Mutations  map[string]int
	Notices    NoticeOutcome
	Trial      RolloutOutcome
	Stopped    StoppedOutcome
	Edit       EditOutcome
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
		if s.Trial != nil {
			w.trial = &rolloutTrial{}
		}
		if s.Stopped != nil {
			w.stopped = &stoppedTrial{ran: map[string]bool{}}
		}
		w.lambda.caches.fault = s.CacheFault
		w.setUp(s)
		var notices NoticeOutcome
		var trial RolloutOutcome
		var edit EditOutcome
		switch {
		case s.Trial != nil:
			trial = w.playTrial(*s.Trial)
		case s.Stopped != nil:
			w.playStopped(*s.Stopped)
		case s.Short:
			w.playShort(s.Seed)
		case s.Unusable:
			w.playUnusable(s.Seed)
		case s.Hostile:
			w.playHostile(s.Seed)
		case s.Edit != nil:
			edit = w.playEdited(s.Seed, *s.Edit)
		case s.Notices != nil:
			notices = w.playNoticeStorm(*s.Notices)
		case s.Day > 0:
			w.simulateDay(s)
		default:
			w.playScenario(s.Seed)
		}
		w.endInvocations()
		out = Result{Violations: w.bad, Trace: w.trace.asText(), Sum: w.trace.sum, Lines: w.trace.count,
			Virtual: time.Since(w.began),
			Calls:   sortedPoints(w.network.faults.calls), Hit: sortedPoints(w.network.faults.hit),
			Mutations: w.changes.byCall, Notices: notices, Trial: trial, Edit: edit}
		if w.stopped != nil {
			out.Stopped = w.stopped.StoppedOutcome
		}
		if w.book != nil {
			out.Moves, out.Again = len(w.book.moves), w.book.again
		}
	})
	return out
}
