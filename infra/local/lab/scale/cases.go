package main

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"joiner.sh/events"
	"joiner.sh/infra/local/lambdahost"
)

// row is what one function did in one case.
type row struct {
	Case        string  `json:"case"`
	Function    string  `json:"function"` // empty: all of them together
	Invocations int     `json:"invocations,omitempty"`
	Wall        float64 `json:"wallSeconds,omitempty"` // of the longest, init included
	CPU         float64 `json:"cpuSeconds,omitempty"`  // of all
	PeakMB      int64   `json:"peakMB,omitempty"`
	MemoryMB    int64   `json:"memoryMB,omitempty"` // that it may have
	TimedOut    int     `json:"timedOut,omitempty"`
	Killed      int     `json:"killed,omitempty"` // for their memory
	Failed      int     `json:"failed,omitempty"` // otherwise
	Traffic     traffic `json:"traffic,omitempty"`
	Cold        int     `json:"cold,omitempty"`
	LogBytes    int     `json:"logBytes,omitempty"` // Lambda's own lines among them
	// Calls of AWS, by action.
	Calls map[string]int `json:"awsCalls,omitempty"`
	// seconds from the first pod, or the first notice, to the first and the last CreateFleet, and until every pod had a
	// node; and until the last pod was created, and marked by kube-scheduler as without a place
	Created    float64 `json:"createdSeconds,omitempty"`
	Marked     float64 `json:"markedSeconds,omitempty"`
	FirstFleet float64 `json:"firstFleetSeconds,omitempty"`
	MostFleet  float64 `json:"mostFleetSeconds,omitempty"` // until nine of ten nodes were asked for
	LastFleet  float64 `json:"lastFleetSeconds,omitempty"`
	Bound      float64 `json:"boundSeconds,omitempty"`
	// processor time until then of the control plane, which shares the processors with the functions
	PlaneCPU float64 `json:"planeCPUSeconds,omitempty"`
	Launched int     `json:"launched,omitempty"`
	Waiting  int     `json:"waiting,omitempty"` // pods without a node in the end
	// LastFleet of each round, sorted, of which this row is the one in the middle
	Rounds []float64 `json:"lastFleetOfRounds,omitempty"`
	Waits  []float64 `json:"waitSeconds,omitempty"` // sorted, for bookmarks
}

const (
	mostToKnow = 6   // invocations in which a function is to know the cluster
	ofPage     = 500 // pods on a page of a list
	fewPages   = 4
)

// The cases.
const (
	idleCold   = "idle, silent, cold"
	idleWarm   = "idle, silent, warm"
	heartbeats = "idle, heartbeats, warm"
	replaced   = "1 % of the pods replaced a minute, warm"
	noticed    = "nodes interrupted, warm"
	foreign    = "a notice about a foreign instance, cold"
)

// scheduledFunctions are the functions that tick, in the order in which they are measured.
func scheduledFunctions() []string { return []string{"provision", "lifecycle", "disrupt", "refresh"} }

// noticeKinds are the kinds of notices, by the function that each wakes.
func noticeKinds() map[string]events.Kind {
	return map[string]events.Kind{"spotinterruption": events.KindSpotInterruption,
		"reservationinterruption": events.KindReservationInterruption, "rebalance": events.KindRebalance,
		"scheduledchange": events.KindScheduledChange, "statechange": events.KindStateChange}
}

// journal gathers what the host reports.
type journal struct {
	mu  sync.Mutex
	all []lambdahost.Report
}

func (j *journal) noteReport(r lambdahost.Report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.all = append(j.all, r)
}

func (j *journal) takeReports() []lambdahost.Report {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := j.all
	j.all = nil
	return out
}

// measured runs what is measured.
type measured struct {
	*kubelets
	journal *journal
	log     *logMeter
	gap     time.Duration // between two ticks of a function, a minute in production
	pods    int
	many    int             // pods that wait together
	struck  int             // nodes that are interrupted together
	full    map[string]bool // nodes, since a pod takes the room that was left on them
	rounds  int             // in which a case is measured in which nodes are launched
	cases   *regexp.Regexp  // of the groups to measure, nil for all
	rows    []row
	atRest  int // metrics that functions write when nothing is to be done
	say     func(string)
}

// warmFunctions has the functions that keep the cluster know it.
func (m *measured) warmFunctions(ctx context.Context) error {
	for _, f := range []string{"lifecycle", "disrupt"} {
		if err := m.tickUntilKnown(ctx, f); err != nil {
			return err
		}
	}
	return nil
}

// tickAll invokes each scheduled function alone.
func (m *measured) tickAll(ctx context.Context, what string, cold bool) error {
	for _, f := range scheduledFunctions() {
		if err := m.tickFunction(ctx, what, f, cold); err != nil {
			return err
		}
	}
	return nil
}

func (m *measured) tickFunction(ctx context.Context, what, function string, cold bool) error {
	if err := m.waitIdle(ctx); err != nil {
		return err
	}
	if cold {
		if err := m.endProcesses(function); err != nil {
			return err
		}
	}
	if err := m.invokeAlone(ctx, function); err != nil {
		return err
	}
	return m.closeCase(what, row{})
}

// invokeAlone forgets what was measured, invokes the function, and waits until nothing runs.
func (m *measured) invokeAlone(ctx context.Context, function string) error {
	m.forgetMeasured()
	if _, err := m.Host.InvokeFunction(ctx, m.FunctionName(function), "", nil); err != nil {
		return err
	}
	return m.waitIdle(ctx)
}

// tickUntilKnown ticks a function until it knows the cluster from before: a list that takes longer than an invocation
// has goes on in the next. Few pages are no list of many pods: pods are asked for by node, too.
func (m *measured) tickUntilKnown(ctx context.Context, function string) error {
	for range mostToKnow {
		if err := m.invokeAlone(ctx, function); err != nil {
			return err
		}
		if m.meter.takeTraffic()["list pods"].Requests <= max(fewPages, m.pods/ofPage/2) {
			return nil
		}
	}
	m.say(fmt.Sprintf("%s lists all pods in each of %d invocations", function, mostToKnow))
	return nil
}

// foreignNotices gives every function of notices one that is not about this cluster.
func (m *measured) foreignNotices(ctx context.Context) error {
	for _, f := range slices.Sorted(maps.Keys(noticeKinds())) {
		sample, err := noticeKinds()[f].Sample()
		if err != nil {
			return err
		}
		m.forgetMeasured()
		if _, err := m.Host.DeliverEvent(sample); err != nil {
			return err
		}
		if err := m.waitIdle(ctx); err != nil {
			return err
		}
		if err := m.closeCase(foreign, row{}); err != nil {
			return err
		}
	}
	return nil
}

// underHeartbeats ticks while kubelets only tell that they live, then while pods are replaced as well.
func (m *measured) underHeartbeats(ctx context.Context) error {
	m.beating.Store(true)
	if err := m.tickTwice(ctx, heartbeats); err != nil {
		return err
	}
	replacing, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { m.replacePods(replacing, m.pods, 1) })
	defer done.Wait()
	defer stop()
	return m.tickTwice(ctx, replaced)
}

// tickTwice ticks each scheduled function alone, one after the other, and again the gap after its own tick began, as
// the schedule does: the API server knows for little more than a minute what has changed. The second time counts. Where
// the ticks of others took so long that it would come late, the function ticks once more before.
func (m *measured) tickTwice(ctx context.Context, what string) error {
	began := map[string]time.Time{}
	tick := func(f, what string) error {
		began[f] = time.Now()
		return m.tickFunction(ctx, what, f, false)
	}
	for _, f := range scheduledFunctions() { // whatever came before is seen by then
		if err := tick(f, ""); err != nil {
			return err
		}
	}
	for _, f := range scheduledFunctions() {
		if time.Since(began[f]) > m.gap+m.gap/6 {
			if err := tick(f, ""); err != nil {
				return err
			}
		}
		if err := waitFor(ctx, time.Until(began[f].Add(m.gap))); err != nil {
			return err
		}
		if err := tick(f, what); err != nil {
			return err
		}
	}
	return nil
}

// waitIdle waits until nothing runs.
func (m *measured) waitIdle(ctx context.Context) error {
	limit, cancel := context.WithTimeout(ctx, mayWait)
	defer cancel()
	return m.Host.WaitIdle(limit)
}

func (m *measured) forgetMeasured() {
	m.journal.takeReports()
	m.meter.takeTraffic()
	m.log.takeBytes()
	m.Cloud.ForgetCalls()
}

// closeCase makes rows of what was reported since forgetMeasured: one for each function, and one for all with the
// requests. What a case without a name did is forgotten.
func (m *measured) closeCase(what string, together row) error {
	reports, seen := m.journal.takeReports(), m.meter.takeTraffic()
	logged, calls := m.log.takeBytes(), m.Cloud.CallCounts()
	if what == "" {
		return nil
	}
	byFunction := map[string]*row{}
	for _, r := range reports {
		f := byFunction[r.Function]
		if f == nil {
			f = &row{Case: what, Function: r.Function, MemoryMB: r.MemoryMB, LogBytes: logged[r.Function]}
			byFunction[r.Function] = f
		}
		f.addInvocation(r)
	}
	if len(byFunction) == 0 {
		return fmt.Errorf("measure %q: no function ran", what)
	}
	names, before := slices.Sorted(maps.Keys(byFunction)), len(m.rows)
	for _, name := range names {
		m.rows = append(m.rows, *byFunction[name])
	}
	together.Case, together.Traffic, together.Calls = what, seen, calls
	if len(names) == 1 && together.Launched == 0 && together.Bound == 0 {
		m.rows[len(m.rows)-1].Traffic, m.rows[len(m.rows)-1].Calls = seen, calls
	} else {
		m.rows = append(m.rows, together)
	}
	for _, r := range m.rows[before:] {
		m.say(r.String())
	}
	return nil
}

// addInvocation counts an invocation.
func (r *row) addInvocation(i lambdahost.Report) {
	r.Invocations++
	r.Wall = max(r.Wall, (i.Init + i.Took).Seconds())
	r.CPU += i.CPU.Seconds()
	r.PeakMB = max(r.PeakMB, i.PeakMB)
	if i.Cold {
		r.Cold++
	}
	switch {
	case i.Status == "timeout":
		r.TimedOut++
	case i.WasKilled():
		r.Killed++
	case i.Status != "":
		r.Failed++
	}
}

// String is the row on a line.
func (r row) String() string {
	if r.Function == "" {
		return fmt.Sprintf("%s: pods created by %.1f s and marked by %.1f s, %d launched, CreateFleet after %.1f to %.1f s, "+
			"all pods bound after %.1f s (%d wait), CPU of the control plane %.1f s, %v",
			r.Case, r.Created, r.Marked, r.Launched, r.FirstFleet, r.LastFleet, r.Bound, r.Waiting, r.PlaneCPU,
			r.Traffic.topKinds(5))
	}
	c := r.Traffic.sumTraffic()
	return fmt.Sprintf("%s: %s: %d times, %.1f s, CPU %.2f s, %d MB; %d timed out, %d killed, %d failed; %d requests, %.1f MiB %v",
		r.Case, r.Function, r.Invocations, r.Wall, r.CPU, r.PeakMB, r.TimedOut, r.Killed, r.Failed, c.Requests,
		float64(c.Bytes)/(1<<20), r.Traffic.topKinds(4))
}
