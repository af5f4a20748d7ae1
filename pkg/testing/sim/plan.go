package sim

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// seedPlan is what a seed is about: how fast, how faulty and how crowded its world is.
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
	together    int           // invocations of a function that must be alone that run at once
}

// How long things happen: in most runs, and in those that need nodes old enough to be left on a recommendation.
const (
	usualStorm = 6 * time.Minute
	longStorm  = 24 * time.Minute
)

func drawPlan(e *eventLoop) seedPlan {
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

// rules are the settings of the functions, with time-outs short enough to be seen.
// Nodes that are held share no request, so most runs have one or the other.
func drawRules(e *eventLoop, shares bool) cluster.Settings {
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

// unavailableOfferingTTL is how long functions are told to leave an offer alone.
const (
	unavailableOfferingTTL = 90 * time.Second
	quarantineFor          = 10 * time.Minute
)

const (
	labelZone     = "topology.kubernetes.io/zone"
	labelHost     = "kubernetes.io/hostname"
	labelCapacity = "karpenter.sh/capacity-type"
	teamTaint     = "team"
)

// drawPools makes the pool that takes everything, and sometimes another one.
func (w *world) drawPools() {
	general := cluster.Pool{Name: "general", UID: "uid-general", Class: "default", Ready: true, Uncounted: true,
		Hash: "1"}
	if w.drawChance(0.3) {
		general.Limits, general.Limited = resources.List{CPU: 1000 * w.drawInt(12, 40)}, []string{resources.CPU}
	}
	if w.drawChance(0.15) {
		general.Limits, general.Limited = general.Limits.With("nodes", w.drawInt(4, 10)),
			append(general.Limited, "nodes")
	}
	if w.drawChance(0.45) {
		grace := w.drawDuration(15*time.Second, 90*time.Second).Truncate(time.Second)
		general.TerminationGrace = &grace
	}
	if w.drawChance(0.15) {
		general.ExpireAfter = w.drawDuration(3*time.Minute, 5*time.Minute).Truncate(time.Second)
	}
	general.Disruption.Never = true
	if w.drawChance(0.5) || w.plan.focus == "disrupt" {
		general.Disruption = cluster.Disruption{Policy: []string{"WhenEmpty",
			"WhenEmptyOrUnderutilized"}[w.rng.IntN(2)], After: w.drawDuration(0, time.Minute).Truncate(time.Second)}
	}
	if w.plan.budget > 0 {
		general.Disruption.Budgets = []cluster.NodeBudget{{Nodes: strconv.Itoa(w.plan.budget), Every: true}}
	}
	if w.drawChance(0.2) {
		general.Requirements = general.Requirements.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
	}
	w.pools = []cluster.Pool{general}
	if w.drawChance(0.4) {
		w.pools = append(w.pools, cluster.Pool{Name: "batch", UID: "uid-batch", Class: "default", Ready: true,
			Uncounted: true, Hash: "1", Weight: 10,
			Labels: map[string]string{"team": "batch"},
			Taints: []cluster.Taint{{Key: teamTaint, Value: "batch", Effect: "NoSchedule"}}})
		slices.SortFunc(w.pools, func(a, b cluster.Pool) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) })
	}
	w.drawStatic()
}

func (w *world) drawInt(least, most int) int64 { return int64(least + w.rng.IntN(most-least+1)) }

// drawApp makes an app that could run.
func (w *world) drawApp() *app {
	w.made++
	a := &app{name: fmt.Sprintf("app%d", w.made), replicas: int(w.drawInt(1, 6)),
		bootTime: w.drawDuration(time.Second, 8*time.Second),
		stopTime: w.drawDuration(0, 12*time.Second)}
	p := cluster.Pod{Labels: map[string]string{"app": a.name}, Owner: cluster.OwnerOther, GraceSec: w.drawInt(1, 30),
		Need: resources.List{CPU: 100 * w.drawInt(2, 17), Memory: 256 * w.drawInt(1, 12) * resources.MiB, Pods: 1}}
	a.stateful = w.drawChance(0.15)
	if a.stateful {
		p.Owner = cluster.OwnerStatefulSet
	}
	if w.drawChance(0.08) && !a.stateful {
		a.bare, p.Owner = true, cluster.OwnerNone
	}
	if w.drawChance(0.1) {
		a.stopTime = time.Hour // it ignores SIGTERM
	}
	if w.drawChance(0.35) && a.replicas > 1 {
		a.budget = &budget{minAvailable: a.replicas - int(w.drawInt(1, a.replicas-1)), unhealthy: w.drawChance(0.3)}
	}
	if w.drawChance(0.08) {
		p.DoNotDisrupt = []string{"true", "2m"}[w.rng.IntN(2)]
	}
	if w.drawChance(0.1) {
		p.Priority = int32(w.drawInt(1, 100))
	}
	w.drawConstraints(a, &p)
	if w.plan.share > 0 && w.drawChance(0.4) { // a node for each, all alike
		a.replicas = int(w.drawInt(4, 7))
		p.NodeSelector, p.Spread = nil, nil
		p.AntiAffinity = []cluster.AffinityTerm{{Key: labelHost,
			Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}}}
		if a.budget != nil {
			a.budget.minAvailable = min(a.budget.minAvailable, a.replicas-1)
		}
	}
	a.pattern = p
	w.disks.furnish(a)
	return a
}

func (w *world) drawConstraints(a *app, p *cluster.Pod) {
	zones := w.zoneNames()
	own := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}
	switch w.rng.IntN(8) {
	case 0:
		p.NodeSelector = map[string]string{labelZone: zones[w.rng.IntN(len(zones))]}
	case 1:
		p.Spread = []cluster.Spread{{Key: labelZone, MaxSkew: 1, Selector: own}}
	case 2:
		p.Spread = []cluster.Spread{{Key: labelHost, MaxSkew: int32(w.drawInt(1, 2)), Selector: own}}
	case 3:
		p.AntiAffinity = []cluster.AffinityTerm{{Key: labelHost, Selector: own}}
	case 4:
		if slices.ContainsFunc(w.pools, func(p cluster.Pool) bool { return p.Name == "batch" }) {
			p.Tolerations = []cluster.Toleration{{Key: teamTaint, Operator: "Equal", Value: "batch",
				Effect: "NoSchedule"}}
			p.NodeSelector = map[string]string{"team": "batch"}
		}
	}
}

func (w *world) zoneNames() []string {
	var out []string
	for _, t := range w.market.Types {
		for _, z := range t.Zones {
			if !slices.Contains(out, z) {
				out = append(out, z)
			}
		}
	}
	slices.Sort(out)
	return out
}

// daemons are on every node: one that stays to the end, and sometimes one that must be drained.
func (w *world) drawDaemons() {
	for i, name := range []string{"net", "logs"} {
		if i == 1 && w.drawChance(0.6) {
			continue
		}
		p := cluster.Pod{Namespace: namespace, Labels: map[string]string{"app": name}, Owner: cluster.OwnerDaemonSet,
			GraceSec: 5,
			Need:     resources.List{CPU: 50, Memory: 64 * resources.MiB, Pods: 1},
			Tolerations: []cluster.Toleration{{Key: taintNotReady, Operator: "Exists"},
				{Key: taintUnreachable, Operator: "Exists"}}}
		p.Tolerations = append(p.Tolerations, cluster.Toleration{Key: teamTaint, Operator: "Exists"})
		if i == 0 {
			p.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
		}
		w.startApp(&app{name: name, daemon: true, pattern: p, bootTime: time.Second, stopTime: time.Second})
	}
}
