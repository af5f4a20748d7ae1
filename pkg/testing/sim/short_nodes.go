package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// shortNodes are nodes that turn out to have less for pods than was estimated of their types, or take none. Their
// chance is a stream of its own. A type that all pods fit on is as estimated.
type shortNodes struct {
	rng     *rand.Rand
	has     map[string]resources.List // by type that is short
	blocked map[string]cluster.Taint  // by type that is as estimated: what stays on its nodes
	vain    []*machine                // bought for pods none of which fits there
	refused map[*machine]bool         // of them, those whose pods waited on after the scheduler had refused them
}

// What a trial of short nodes is like.
const (
	shortFor     = 50 * time.Minute
	shortWhole   = "m5.2xlarge" // is as estimated
	mostVain     = 3            // nodes of one type that are bought in vain, below three hundred of the pool
	refusalKnown = 90 * time.Second
	agentsTake   = 5 * time.Minute // a taint that nobody declared may be that of an agent that starts
	shortRest    = 45 * time.Minute
)

// What keeps pods off nodes of some types for ever: a taint that no NodePool declares, and a cordon.
const (
	foreignTaint = "agents.example.com/setup"
	cordonTaint  = "node.kubernetes.io/unschedulable"
)

// allocatable returns what a new node of the type has for pods where so much was estimated.
func (s *shortNodes) allocatable(instanceType string, estimate resources.List) resources.List {
	if s == nil || s.has[instanceType].IsZero() {
		return estimate
	}
	return s.has[instanceType]
}

// blockTypes has nodes of some types take no pods, for a reason that nobody says before.
func (s *shortNodes) blockTypes(w *world, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x7461696e74))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(w.catalog.types)),
		func(name string) bool { return name == shortWhole })
	for range rng.IntN(3) {
		name := names[rng.IntN(len(names))]
		s.blocked[name] = cluster.Taint{Key: []string{foreignTaint, cordonTaint}[rng.IntN(2)], Effect: "NoSchedule"}
		delete(s.has, name)
		w.addTrace("nodes of %s keep the taint %s", name, s.blocked[name])
	}
}

// taintOf returns what somebody puts on the node when it is ready, or nothing.
func (s *shortNodes) taintOf(n *node) []cluster.Taint {
	if s == nil || n.machine == nil || s.blocked[n.machine.Type].Key == "" {
		return nil
	}
	return []cluster.Taint{s.blocked[n.machine.Type]}
}

// knownAfter returns the time after such a node became ready after which it is known to take none of its pods.
func (s *shortNodes) knownAfter(instanceType string) time.Duration {
	if s.blocked[instanceType].Key == foreignTaint {
		return agentsTake + refusalKnown
	}
	return refusalKnown
}

// setUpShort draws which types are short, and of what: some so much that it cannot be learned of their nodes.
func (w *world) setUpShort(seed uint64) {
	s := &shortNodes{rng: rand.New(rand.NewPCG(seed, 0x73686f7274)), has: map[string]resources.List{},
		blocked: map[string]cluster.Taint{}, refused: map[*machine]bool{}}
	w.short, w.kubelets.short = s, s
	general := w.prepareOnePool()
	defer s.blockTypes(w, seed)
	general.Disruption = cluster.Disruption{Never: true}
	general.ExpireAfter = 0
	general.Requirements = requirements.Set{}.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
	w.api.pools = []cluster.Pool{general}
	w.trouble, w.network.faults.rate, w.plan.together = false, 0, 1
	w.plan.lost, w.plan.double, w.plan.slow = 0, 0, 0
	lacking := []string{resources.CPU, resources.Memory, resources.Ephemeral}
	for _, name := range slices.Sorted(maps.Keys(w.catalog.types)) {
		if name == shortWhole || s.rng.IntN(4) == 0 {
			continue
		}
		of, has := lacking[s.rng.IntN(len(lacking))], w.catalog.types[name].Allocatable
		s.has[name] = has.With(of, has.Get(of)*int64(20+s.rng.IntN(60))/100)
		w.addTrace("nodes of %s have no more than %d of %s", name, s.has[name].Get(of), of)
	}
}

// playShort has pods come one after the other, each of which about fills a node of a type as that is estimated.
func (w *world) playShort(seed uint64) {
	w.setUpShort(seed)
	w.workloads.drawDaemons()
	end := time.Now().Add(shortFor)
	var next func()
	next = func() {
		if time.Now().After(end) {
			return
		}
		w.workloads.startApp(w.short.drawApp(w))
		w.runAfter(time.Minute+time.Duration(w.short.rng.Int64N(int64(3*time.Minute))), next)
	}
	w.runAfter(time.Minute, next)
	w.watchRefusals()
	w.runUntil(end, w.network.admitRequest)
	w.runUntilEmpty(shortRest, aWhile, "not at rest", func() (bad []string) {
		for _, p := range selectInOrder(w.api.pods, func(p *pod) bool { return p.NodeName == "" }) {
			bad = append(bad, fmt.Sprintf("pod %s waits%s", p.Key(), whyNot(w, p)))
		}
		return bad
	})
}

func (s *shortNodes) drawApp(w *world) *app {
	names := slices.Sorted(maps.Keys(w.catalog.types))
	a := w.trialApp()
	a.replicas, a.budget, a.bootTime = 1+s.rng.IntN(2), nil, time.Second
	estimate := w.catalog.types[names[s.rng.IntN(len(names))]].Allocatable
	part := func(of int64) int64 { return of * int64(70+s.rng.IntN(18)) / 100 }
	a.pattern.Need = resources.List{CPU: part(estimate.CPU), Memory: part(estimate.Memory),
		Ephemeral: part(estimate.Ephemeral), Pods: 1}
	return a
}

// watchRefusals notes nodes that were bought in vain while their pods go on waiting.
func (w *world) watchRefusals() {
	for _, m := range w.short.vain {
		c := w.api.byUID[m.owner]
		if n := m.node; c == nil || n == nil || !n.Ready || time.Since(n.ReadySince) < w.short.knownAfter(m.Type) {
			continue
		}
		waits := func(p *pod) bool { return slices.Contains(c.pods, p.UID) && p.NodeName == "" }
		if len(selectInOrder(w.api.pods, waits)) > 0 {
			w.short.refused[m] = true
		}
	}
	w.runAfter(10*time.Second, w.watchRefusals)
}

// checkVain: once so many nodes of a type were bought in vain as may be, no more are.
func checkVain(w *world, s instanceStarted) []string {
	if w.short == nil || !w.short.isVain(w, s.machine) {
		return nil
	}
	w.short.vain = append(w.short.vain, s.machine)
	known := 0
	for m := range w.short.refused {
		if m.Type == s.machine.Type && !servesPods(w, m) {
			known++
		}
	}
	if known < mostVain {
		return nil
	}
	return broken("%s is one more %s for pods that do not fit there, after %d that were refused", s.machine.ID,
		s.machine.Type, known)
}

// isVain reports whether the instance is for pods none of which its node will have.
func (s *shortNodes) isVain(w *world, m *machine) bool {
	c, has := w.api.byUID[m.owner], s.has[m.Type]
	if c == nil || len(c.pods) == 0 {
		return false
	}
	if s.blocked[m.Type].Key != "" || has.IsZero() {
		return s.blocked[m.Type].Key != ""
	}
	fits := func(p *pod) bool { return slices.Contains(c.pods, p.UID) && p.Need.FitsIn(has) }
	return len(selectInOrder(w.api.pods, fits)) == 0
}

// servesPods reports whether the machine's node has pods other than those of daemons.
func servesPods(w *world, m *machine) bool {
	return m.node != nil && slices.ContainsFunc(w.api.podsOn(m.node.Name), func(p *pod) bool { return !p.app.daemon })
}
