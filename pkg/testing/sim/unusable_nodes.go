package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// unusableNodes are nodes on which the agent of the network never starts, so that its taint stays and they are never
// initialized: those of some types, or all until somebody mends it. Their chance is a stream of its own.
type unusableNodes struct {
	rng     *rand.Rand
	blocked map[string]bool // types
	all     bool            // they are all types
	edits   bool            // who mends it edits the EC2NodeClass, and the nodes of before stay as they are
	mended  time.Time
	rests   map[string]*purchaseRest // by type, and of the class with the empty name
	ended   map[*machine]bool        // that never became usable
	tied    map[*pod]time.Time       // pods of a type that works, since when they wait
}

// purchaseRest holds the time for which no more nodes of a type, or of the class, may be bought.
type purchaseRest struct {
	ends  []time.Time     // of nodes that never became usable
	types map[string]bool // of those
	until time.Time
}

// What a trial of unusable nodes is like.
const (
	agentTaint    = "node.cilium.io/agent-not-ready"
	unusableFor   = 4 * time.Hour
	unusableTypes = 2         // so many nodes of one type are bought before it rests
	unusableClass = 3         // so many of two types or more before the class does
	purchaseRests = time.Hour // it is remembered for twice as long
	// tiedWait is the longest time that a pod waits that asks for a type of which all nodes become usable.
	tiedWait = 7 * time.Minute
	// bootAgain is the longest time that pods wait once nodes become usable: the time-out of the node that they were
	// nominated for, and another node.
	bootAgain = 45 * time.Minute
)

// taintsOf returns what the agent leaves on the node.
func (u *unusableNodes) taintsOf(m *machine) []cluster.Taint {
	if u == nil || m == nil || !u.isUnusable(m) {
		return nil
	}
	return []cluster.Taint{{Key: agentTaint, Effect: "NoSchedule"}}
}

// isUnusable reports whether the machine's node keeps the taint.
func (u *unusableNodes) isUnusable(m *machine) bool {
	return u.blocked[m.Type] && (u.mended.IsZero() || u.edits && m.Launched.Before(u.mended))
}

// setUpUnusable draws the types.
func (w *world) setUpUnusable(seed uint64) *unusableNodes {
	rng := rand.New(rand.NewPCG(seed, 0x6167656e74))
	u := &unusableNodes{rng: rng, blocked: map[string]bool{}, all: rng.IntN(2) == 0, edits: rng.IntN(2) == 0,
		rests: map[string]*purchaseRest{}, tied: map[*pod]time.Time{}, ended: map[*machine]bool{}}
	w.unusable, w.kubelets.unusable = u, u
	general := w.prepareOnePool()
	general.Disruption = cluster.Disruption{Never: true}
	general.ExpireAfter = 0
	general.Requirements = requirements.Set{}.And(requirements.Of(labelCapacity, "on-demand"))
	w.api.pools = []cluster.Pool{general}
	w.trouble, w.network.faults.rate, w.plan.together = false, 0, 1
	w.plan.lost, w.plan.double, w.plan.slow, w.plan.neverJoins, w.plan.neverReady = 0, 0, 0, 0, 0
	names := slices.Sorted(maps.Keys(w.catalog.types))
	if u.all {
		for _, name := range names {
			u.blocked[name] = true
		}
		return u
	}
	for range 1 + rng.IntN(2) {
		if name := names[rng.IntN(len(names))]; name != shortWhole {
			u.blocked[name] = true
			w.addTrace("nodes of %s keep the taint of an agent", name)
		}
	}
	return u
}

// playUnusable has pods come one after the other, and some that ask for a type that works.
func (w *world) playUnusable(seed uint64) {
	u := w.setUpUnusable(seed)
	end := time.Now().Add(unusableFor)
	var next func()
	next = func() {
		if time.Now().After(end) {
			return
		}
		a := w.trialApp()
		a.replicas, a.budget, a.stateful, a.pattern.Owner = 1+u.rng.IntN(2), nil, false, cluster.OwnerOther
		a.pattern.Need = resources.List{CPU: 500 + u.rng.Int64N(1500), Memory: 2048 * resources.MiB, Pods: 1}
		if !u.all && u.rng.IntN(3) == 0 {
			a.pattern.NodeSelector = map[string]string{labelType: shortWhole}
			w.runAfter(15*time.Minute, func() { w.workloads.stopApp(a) })
		}
		w.workloads.startApp(a)
		w.runAfter(3*time.Minute+time.Duration(u.rng.Int64N(int64(12*time.Minute))), next)
	}
	w.runAfter(time.Minute, next)
	w.watchTied(end)
	w.runUntil(end, w.network.admitRequest)
	rest := unusableTypes*time.Duration(len(u.blocked))*w.rules.InitializationTimeout + bootAgain
	if u.all {
		w.mendAgent()
		rest = bootAgain
		if !u.edits {
			rest += purchaseRests
		}
	}
	w.runUntilEmpty(rest, aWhile, "not at rest", func() (bad []string) {
		for _, p := range selectInOrder(w.api.pods, func(p *pod) bool { return p.NodeName == "" }) {
			bad = append(bad, fmt.Sprintf("pod %s waits%s", p.Key(), whyNot(w, p)))
		}
		return bad
	})
}

// mendAgent has the agent start on all nodes, or on those of the class as it is edited now.
func (w *world) mendAgent() {
	u := w.unusable
	u.mended = time.Now()
	w.addTrace("somebody mends the agent")
	if u.edits {
		w.users.editClass(w.api.classes["default"])
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.api.nodes)) {
		n := w.api.nodes[name]
		n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool { return t.Key == agentTaint })
	}
	w.api.notifyChange(aNode, nil)
	w.scheduler.trySchedule()
}

// watchTied looks at pods that ask for a type that works.
func (w *world) watchTied(end time.Time) {
	tied := w.unusable.tied
	for _, p := range selectInOrder(w.api.pods, func(p *pod) bool { return len(p.NodeSelector) > 0 }) {
		if p.NodeName != "" {
			delete(tied, p)
			continue
		}
		if tied[p].IsZero() {
			tied[p] = time.Now()
		}
		if time.Since(tied[p]) > tiedWait {
			w.addViolation("a type that works is left out", "pod %s waits since %s%s", p.Key(),
				tied[p].Format(time.TimeOnly), whyNot(w, p))
			return
		}
	}
	if time.Now().Before(end) {
		w.runAfter(10*time.Second, func() { w.watchTied(end) })
	}
}

// noteUnusable notes a node that goes without ever having been usable.
func (w *world) noteUnusable(m *machine) {
	c := w.api.byUID[m.owner]
	if w.unusable == nil || !w.unusable.isUnusable(m) || c == nil || c.expired.IsZero() || w.unusable.ended[m] {
		return
	}
	w.unusable.ended[m] = true
	w.unusable.noteEnd(m.Type, m.Type, unusableTypes, 1)
	if w.unusable.all {
		w.unusable.noteEnd("", m.Type, unusableClass, 2)
	}
}

// noteEnd begins a rest where enough nodes, of enough types, ended without ever having been usable.
func (u *unusableNodes) noteEnd(of, instanceType string, nodes, types int) {
	r := u.rests[of]
	if r == nil || time.Since(r.ends[len(r.ends)-1]) > 2*purchaseRests {
		r = &purchaseRest{types: map[string]bool{}}
		u.rests[of] = r
	}
	r.ends, r.types[instanceType] = append(r.ends, time.Now()), true
	const unsure = 3 * time.Minute // the functions knew of it before
	if len(r.ends) >= nodes && len(r.types) >= types && time.Since(r.until) > unsure {
		r.until = time.Now().Add(purchaseRests)
	}
}

// checkUnusable: while a type or a class rests no node of it is bought that will not be usable.
func checkUnusable(w *world, s instanceStarted) []string {
	u, c := w.unusable, w.api.byUID[s.machine.owner]
	if u == nil || c == nil || !u.mended.IsZero() || !u.blocked[s.machine.Type] {
		return nil
	}
	for _, of := range []string{s.machine.Type, ""} {
		if r := u.rests[of]; r != nil && c.Created.After(r.until.Add(late-purchaseRests)) &&
			c.Created.Before(r.until.Add(-5*time.Minute)) {
			return broken("%s is one more %s, after %d nodes of %q that never became usable", s.machine.ID, s.machine.Type,
				len(r.ends), of)
		}
	}
	return nil
}
