package sim

import (
	"time"

	"joiner.sh/pkg/model/cluster"
)

// seedPlan says what a seed is about: how fast, how faulty and how crowded its world is.
type seedPlan struct {
	slow        float64       // chance of a call that takes ten times as long
	lost        float64       // chance of an event or tick that never comes
	double      float64       // chance of an event that comes twice
	throttle    float64       // chance of a launch that EC2 throttles
	partial     float64       // chance of each instance of a shared request that EC2 has not
	share       int           // equal launches from which on they share a request, 0 for never
	spent       float64       // chance of a launch whose error sticks to its token
	neverJoins  float64       // chance of an instance whose kubelet never registers
	neverReady  float64       // chance of a node that never becomes ready
	watchLag    time.Duration // most
	listLag     time.Duration // until EC2 lists an instance, at most
	stateLag    time.Duration // until lists show a new state, at most
	bootTime    time.Duration // most
	skew        time.Duration // of the clocks of invocations, at most
	stay        time.Duration // how long an invocation with work stays
	storm       time.Duration // how long things happen
	budget      int           // nodes of a pool that may go at a time by our choice, 0 for what is usual
	budgetSince time.Time     // when users set it, zero from the beginning on
	patient     bool          // disruption by choice gets the peace that it needs
	drifts      bool          // nodes drift, and are replaced
	focus       string        // the function whose events come often
	powerOn     time.Duration // longer than usual until an instance runs
	slowStart   float64       // chance of a start that takes minutes
	failsStart  float64       // chance of a start that EC2 accepts and does not carry out
	together    int           // invocations of a function that must be alone that run at once
}

// How long things happen: in most runs, and in those that need nodes old enough to be left on a recommendation.
const (
	usualStorm = 6 * time.Minute
	longStorm  = 24 * time.Minute
)

// memoryOverhead is the share of the memory that EC2's hypervisor takes.
const memoryOverhead = 0.075

func drawPlan(e *engine) seedPlan {
	pick := func(list ...float64) float64 { return list[e.rng.IntN(len(list))] }
	span := func(list ...time.Duration) time.Duration { return list[e.rng.IntN(len(list))] }
	return seedPlan{storm: usualStorm, budget: e.rng.IntN(2), slow: pick(0, 0.01, 0.05), lost: pick(0, 0.05, 0.2),
		double: pick(0, 0.1, 0.3), throttle: pick(0, 0.05, 0.3),
		spent: pick(0, 0, 0.05), neverJoins: pick(0, 0.03, 0.1), neverReady: pick(0, 0.02, 0.1),
		watchLag: span(150*time.Millisecond, time.Second, 5*time.Second),
		listLag:  span(time.Second, 5*time.Second, 12*time.Second),
		stateLag: span(time.Second, 5*time.Second), bootTime: span(25*time.Second, 60*time.Second),
		skew:     span(time.Nanosecond, time.Second, 2*time.Second),
		stay:     span(5*time.Second, 20*time.Second, 50*time.Second),
		together: 1 + e.rng.IntN(2), share: []int{0, 0, 2, 5}[e.rng.IntN(4)], partial: pick(0, 0.1, 0.4)}
}

// drawRules draws the settings of the functions, with time-outs short enough to be seen. Nodes that are held share no
// request, so most runs have one or the other.
func drawRules(e *engine, shares bool) cluster.Settings {
	hold := 0.9
	if shares {
		hold = 0.1
	}
	claims := []int{3, 100}[e.rng.IntN(2)]
	return cluster.Settings{MaxClaims: claims, LaunchTimeout: 2 * time.Minute, RegistrationTimeout: 3 * time.Minute,
		InitializationTimeout: 4 * time.Minute, GarbageCollectionMinAge: 30 * time.Second,
		MemoryOverhead:    memoryOverhead,
		NominatedPodsOnly: e.drawChance(hold), ConsolidationPayback: 10 * time.Minute, ConsolidationMaxEvaluations: 12,
		DriftedPerCommand: claims / 20}
}
