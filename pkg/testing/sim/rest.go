package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/resources"
	"joiner/pkg/nodeclaim/interruption"
)

// listProblems lists what must not be when everything has come to rest.
func (w *world) listProblems() []string {
	var bad []string
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		c := w.claims[name]
		switch {
		case !c.Deleting.IsZero():
			bad = append(bad, fmt.Sprintf("claim %s is still being deleted", name))
		case c.ProviderID == "":
			bad = append(bad, fmt.Sprintf("claim %s has no instance", name))
		case owners[c.ProviderID] != "":
			bad = append(bad, fmt.Sprintf("claims %s and %s have the same instance", owners[c.ProviderID], name))
		case !c.Is("Initialized"):
			bad = append(bad, fmt.Sprintf("claim %s is not initialized", name))
		}
		if l := interruption.LeaveOf(c.Claim); l.Cause != "" && time.Now().Before(l.Until) && !w.limitReached() {
			bad = append(bad, fmt.Sprintf("claim %s is to be left", name))
		}
		owners[c.ProviderID] = name
	}
	alive := map[string]*machine{}
	for _, m := range w.livingInstances() {
		alive[m.ProviderID()] = m
		owner := owners[m.ProviderID()]
		if owner == "" {
			bad = append(bad, fmt.Sprintf("instance %s of claim %s belongs to no claim", m.ID, m.Claim))
		} else if c := w.claims[owner]; c.Labels[instancetypes.LabelType] != m.Type ||
			c.Labels[instancetypes.LabelZone] != m.Zone ||
			c.Labels[instancetypes.LabelCapacityType] != m.CapacityType {
			bad = append(bad, fmt.Sprintf("claim %s does not say that it is a %s %s in %s", owner, m.CapacityType,
				m.Type, m.Zone))
		}
		if m.noticed {
			bad = append(bad, fmt.Sprintf("EC2 is about to take %s", m.ID))
		}
		if !m.ill.since.IsZero() && m.ill.until.IsZero() {
			bad = append(bad, fmt.Sprintf("instance %s fails a status check", m.ID))
		}
		if !m.tagged {
			bad = append(bad, fmt.Sprintf("instance %s has no name", m.ID))
		}
	}
	for id, name := range owners {
		if id != "" && alive[id] == nil {
			bad = append(bad, fmt.Sprintf("claim %s has %s, which does not run", name, id))
		}
	}
	bad = append(bad, w.nodeProblems(owners)...)
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[key]; !p.Ready && !w.cannotPlace(p) {
			bad = append(bad, fmt.Sprintf("pod %s on %q does not run%s", key, p.NodeName, w.whyNot(p)))
		}
	}
	bad = append(bad, w.countProblems()...)
	bad = append(bad, w.staticProblems()...)
	bad = append(bad, w.classProblems()...)
	bad = append(bad, w.driftProblems()...)
	bad = append(bad, w.disks.stuck(w.nodes)...)
	slices.Sort(bad)
	return bad
}

// nodeProblems are those of nodes; owners are the names of claims by provider id.
func (w *world) nodeProblems(owners map[string]string) (bad []string) {
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[name]
		if slices.ContainsFunc(n.Taints, cluster.Taint.IsNomination) {
			bad = append(bad, fmt.Sprintf("node %s is held", name))
		}
		if n.Deleting.IsZero() && slices.Contains(n.Taints, disruptedTaint()) {
			bad = append(bad, fmt.Sprintf("node %s takes no pods and stays", name))
		}
		if n.machine != nil && !n.machine.foreign && (owners[n.ProviderID] == "" || !n.Ready || !n.Deleting.IsZero()) {
			bad = append(bad, fmt.Sprintf("node %s: claim %q, ready %t, deleting %t", name, owners[n.ProviderID],
				n.Ready, !n.Deleting.IsZero()))
		}
	}
	return bad
}

// countProblems are pools whose status has another number of nodes than they have.
func (w *world) countProblems() (bad []string) {
	nodes := map[string]int64{}
	for _, c := range w.claims {
		if c.ProviderID != "" && c.Deleting.IsZero() {
			nodes[c.Pool]++
		}
	}
	for _, p := range w.pools {
		if have := p.Counted.Get(string(v1.LimitNodes)); !p.Uncounted && have != nodes[p.Name] {
			bad = append(bad, fmt.Sprintf("pool %s says that it has %d nodes and has %d", p.Name, have, nodes[p.Name]))
		}
	}
	return bad
}

// whyNot says of each node why it does not take the pod.
func (w *world) whyNot(p *pod) string {
	var out string
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if p.NodeName == "" {
			out += fmt.Sprintf("; %s: %s", name, cmp.Or(w.refusalReason(p, w.nodes[name]), "would"))
		}
	}
	return out
}

// patience is how long a pod waits at most until a scheduled provision has looked at it in vain.
const patience = 150 * time.Second

func (w *world) limitReached() bool {
	return slices.ContainsFunc(w.pools, func(p cluster.Pool) bool { return len(p.Limited) > 0 })
}

// cannotPlace reports whether no node may be made for the pod, because with any that holds it its pool would be above
// its limits. Of pods that a limit keeps from being spread, all may have to wait.
func (w *world) cannotPlace(p *pod) bool {
	if p.NodeName != "" || time.Since(p.Created) < patience || time.Since(w.calmed) < patience {
		return false
	}
	pool := w.pools[0]
	for _, other := range w.pools {
		if !other.Static && p.NodeSelector["team"] == other.Labels["team"] {
			pool = other
		}
	}
	if len(pool.Limited) > 0 && len(p.Spread) > 0 || w.volumesApart(p, pool) {
		return true
	}
	zone := cmp.Or(p.NodeSelector[labelZone], w.disks.zoneOf(p.disks, 0))
	need := p.Need
	for _, a := range w.apps {
		if a.daemon {
			need = need.Add(a.pattern.Need)
		}
	}
	for _, t := range w.types {
		if need.FitsIn(t.Allocatable) && w.isOffered(t, zone) && len(w.overLimit(pool, "", t)) == 0 {
			return false
		}
	}
	return true
}

func (w *world) isOffered(t instancetypes.Type, zone string) bool {
	return slices.ContainsFunc(t.Offerings, func(o instancetypes.Offering) bool { return zone == "" || o.Zone == zone })
}

// overLimit says which limits of the pool one more instance of the type would break. Claims and nodes that are being
// deleted do not count, nor those that are being replaced because they drifted, which would never end at a limit, nor
// the claim of that UID.
func (w *world) overLimit(pool cluster.Pool, except string, t instancetypes.Type) []string {
	sum, nodes := t.Capacity, int64(1)
	waiting := w.waitingForBatches()
	for _, m := range w.livingInstances() {
		c := w.byUID[m.owner]
		if m.owner == "" { // one more than claims wait for is leaked, and will be ended
			if waiting[m.Batch]--; waiting[m.Batch] < 0 {
				continue
			}
		}
		if m.pool != pool.Name || c != nil && (c.UID == except || !c.Deleting.IsZero() || goesForDrift(c)) ||
			m.node != nil && !m.node.Deleting.IsZero() {
			continue
		}
		sum, nodes = sum.Add(w.types[m.Type].Capacity), nodes+1
	}
	sum = sum.With("nodes", nodes)
	var out []string
	for _, name := range pool.Limited {
		if have, most := sum.Get(name), pool.Limits.Get(name); have > most {
			out = append(out, fmt.Sprintf("%s of %s, %s are allowed", resources.Format(name, have), name,
				resources.Format(name, most)))
		}
	}
	return out
}

// waitingForBatches is how many claims of each batch have no instance.
func (w *world) waitingForBatches() map[string]int {
	out := map[string]int{}
	for _, c := range w.claims {
		if b, ok := c.Batch(); ok && c.ProviderID == "" && c.Deleting.IsZero() {
			out[b.ID]++
		}
	}
	return out
}

// remainingObjects lists what exists of ours.
func (w *world) remainingObjects() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		out = append(out, "claim "+name)
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if n := w.nodes[name]; n.machine != nil && !n.machine.foreign {
			out = append(out, "node "+name)
		}
	}
	for _, m := range w.livingInstances() {
		out = append(out, "instance "+m.ID)
	}
	return out
}

// echo is how long what began before the calm may still arrive: late events, and handlers that are tried again.
const echo = 200 * time.Second

// How long nothing must be wrong: at rest until every function has run again, since refresh learns from the nodes that
// came last.
const (
	aWhile    = 30 * time.Second
	fullRound = 5*time.Minute + aWhile
)

// runUntilEmpty runs until the list stays empty for as long as stay says, and says that an invariant is broken when it
// does not become so in time.
func (w *world) runUntilEmpty(limit, stay time.Duration, invariant string, list func() []string) {
	const look = 10 * time.Second
	good := time.Duration(0)
	for end := time.Now().Add(limit); len(w.bad) == 0; {
		w.runUntil(time.Now().Add(look), w.admitRequest)
		w.dropLate()
		left := list()
		if good += look; len(left) > 0 || time.Since(w.calmed) < echo {
			good = 0
		}
		if good >= stay {
			return
		}
		if len(w.bad) == 0 && len(left) > 0 && time.Now().After(end) {
			w.addViolation(invariant, "after %s: %v", limit, left)
		}
	}
}

// runSilently runs on for a while, in which nobody may change anything.
func (w *world) runSilently(d time.Duration) {
	before := w.totalMutations()
	w.runUntil(time.Now().Add(d), w.admitRequest)
	if n := w.totalMutations() - before; n > 0 {
		w.addViolation("no silence", "%d calls changed something at rest, the last was %s", n, w.lastDeed)
	}
}
