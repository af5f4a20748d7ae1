package lambdahost

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// Stats is what the host has seen so far. It is a copy.
type Stats struct {
	Functions   map[string]FunctionStats // by physical name
	Undelivered []Undelivered
	Skipped     int // times at which a schedule did not fire because of PauseSchedules
}

// FunctionStats counts the attempts of one function.
type FunctionStats struct {
	Invocations int // attempts that a process was sought for
	Errors      int // function errors, time-outs and failed starts among them
	Throttles   int
	TimedOut    int
	MostAtOnce  int             // invocations
	Init        []time.Duration // process start to first next, one for each cold start
	MaxMemoryMB int64
	DeadLetters []DeadLetter
	// LongestChain is how often the function ran at most in one chain of invocations that asked for each other, and
	// Recursions is how often Lambda stopped such a chain.
	LongestChain int
	Recursions   int

	running int
}

// DeadLetter is an asynchronous event that a function gave up.
type DeadLetter struct {
	RequestID  string
	Condition  string // RetriesExhausted or EventAgeExceeded
	Failures   int    // attempts that ran and failed; a throttled one did not run
	QueueARN   string // empty: neither dead-letter queue nor destination, the event is lost
	Body       []byte
	Attributes map[string]string // of the message, as Lambda sets them
	Lost       string            // why the queue did not take it
}

// GaveUp counts the events that the function failed on until the end, or that a queue of the stack has now. A tick or a
// wake-up that grew too old behind a busy function, without a queue to keep it, is none: that function was doing what
// it asks for.
func (s FunctionStats) GaveUp() (n int) {
	for _, l := range s.DeadLetters {
		if l.Condition != "EventAgeExceeded" || l.Failures > 0 || l.QueueARN != "" {
			n++
		}
	}
	return n
}

// Undelivered is an event that a rule matched and EventBridge could not deliver.
type Undelivered struct {
	Rule     string
	Target   string
	Code     string // NO_PERMISSIONS, NO_RESOURCE or INTERNAL_ERROR
	Why      string
	QueueARN string // dead-letter queue that has it; empty: dropped
	Event    []byte
}

// CurrentStats returns what happened so far.
func (h *Host) CurrentStats() Stats {
	s := Stats{Functions: map[string]FunctionStats{}}
	h.EventBus.mu.Lock()
	s.Undelivered, s.Skipped = slices.Clone(h.undelivered), h.skipped
	h.EventBus.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.functions {
		s.Functions[f.Name] = FunctionStats{}
	}
	for name, counted := range h.ledger {
		one := *counted
		one.Init = slices.Clone(counted.Init)
		one.DeadLetters = slices.Clone(counted.DeadLetters)
		for i := range one.DeadLetters {
			one.DeadLetters[i].Attributes = maps.Clone(one.DeadLetters[i].Attributes)
		}
		s.Functions[name] = one
	}
	return s
}

func (h *Host) updateStats(f *function, change func(*FunctionStats)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ledger[f.Name] == nil {
		h.ledger[f.Name] = &FunctionStats{}
	}
	change(h.ledger[f.Name])
}

// addAttempt counts one finished attempt.
func (s *FunctionStats) addAttempt(box *sandbox, cold bool, o outcome) {
	if o.fault != "" {
		s.Errors++
	}
	if o.status == "timeout" {
		s.TimedOut++
	}
	box.mu.Lock()
	defer box.mu.Unlock()
	if cold && box.initTook > 0 {
		s.Init = append(s.Init, box.initTook)
	}
	s.MaxMemoryMB = max(s.MaxMemoryMB, box.maxRSS>>20)
}

// gauge counts work under way and lets others wait until there is none.
type gauge struct {
	mu    sync.Mutex
	n     int
	empty chan struct{}
}

func newGauge() *gauge {
	g := &gauge{empty: make(chan struct{})}
	close(g.empty)
	return g
}

func (g *gauge) addCount(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n == 0 {
		g.empty = make(chan struct{})
	}
	g.n += n
	if g.n == 0 {
		close(g.empty)
	}
}

// zeroReached is closed once nothing is under way.
func (g *gauge) zeroReached() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.empty
}
