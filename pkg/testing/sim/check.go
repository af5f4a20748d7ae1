package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	decided "joiner/pkg/model/plan"
	"joiner/pkg/nodeclaim/launch"

	v1 "joiner/pkg/api/v1"
)

// seconds are how old what a decision read may be when it is carried out.
const seconds = 5 * time.Second

// late is how much older than the world an invocation may be when it acts: what it read, its lists, its way.
const late = 15 * time.Second

// replaceWithin is how long the pods of a node that EC2 takes back stay for their replacement.
const replaceWithin = 20 * time.Second

// checkIssued looks at a call when it is made.
func (w *world) checkIssued(r *portRequest) {
	if r.call != "create claim" && r.call != "launch" && r.call != "launch batch" {
		return
	}
	held := w.leases[capacityLease]
	if held.holder != r.inv.String() || !time.Now().Before(held.until) {
		w.addViolation("capacity without the lease", "%s calls %s %s while the lease is %q's until %s", r.inv, r.call,
			r.key,
			held.holder, held.until.Sub(w.began))
	}
}

// checkNewClaim looks at a claim that is about to be stored: the pods it is for must not all be waiting for others
// already.
func (w *world) checkNewClaim(c *claim, l decided.Launch) {
	w.countMutation("create claim")
	if len(c.pods) == 0 {
		return
	}
	waiting, runs := map[string]string{}, map[string]bool{}
	for _, p := range w.pods {
		runs[p.UID] = p.NodeName != ""
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		have := w.claims[name]
		late := have.Overdue(time.Now().Add(w.plan.skew), w.rules.RegistrationTimeout) // nobody waits for it any more
		if !have.Deleting.IsZero() || late || w.hadNode(have) || sameCommand(have, c) || w.tooMany(have) {
			continue
		}
		for _, uid := range w.waitFor(have) {
			// what runs may wait for the replacement of its node only
			if !runs[uid] || have.Annotations[disruption.AnnotationReplaces] != "" {
				waiting[uid] = have.Name
			}
		}
	}
	for _, uid := range c.pods {
		if waiting[uid] == "" {
			return
		}
	}
	w.addViolation("capacity counted twice", "a claim is made for %v, which wait for claim %s already", l.Pods,
		waiting[c.pods[0]])
}

// waitFor are the UIDs of the pods that wait for the claim: those that it was given to since it was made, as long as
// one of them has no node, or else those that it was made for. What a pod leaves to others because it has room
// elsewhere is not capacity for it any more.
func (w *world) waitFor(c *claim) []string {
	var given []string
	for _, key := range strings.Split(c.Annotations[v1.AnnotationNominatedPods], ",") {
		if p := w.pods[key]; p != nil && p.NodeName == "" && p.Active() {
			given = append(given, p.UID)
		}
	}
	if len(given) == 0 || c.Annotations[disruption.AnnotationReplaces] != "" {
		return c.pods
	}
	return given
}

// sameCommand reports whether both replace nodes of one disruption. Such a command brings what its pods need in
// whatever order the scheduler places them, so that a pod may be named twice.
func sameCommand(a, b *claim) bool {
	id := a.Annotations[disruption.AnnotationReplaces]
	return id != "" && id == b.Annotations[disruption.AnnotationReplaces]
}

// hadNode reports whether the claim has had a node, whatever became of it.
func (w *world) hadNode(c *claim) bool {
	for _, m := range w.machines {
		if m.owner == c.UID && m.node != nil {
			return true
		}
	}
	return false
}

func (w *world) nodeOf(c *claim) *node {
	for _, n := range w.nodes {
		if n.machine != nil && n.machine.owner == c.UID {
			return n
		}
	}
	return nil
}

// checkOrder looks at what is asked of EC2: nothing that was marked as sold out before the invocation began. A claim of
// an earlier invocation may ask for all, once, to find what was launched for it. So may one of an earlier pass of the
// same invocation, which a conflict on another claim of its batch left without a launch: what passes know of each other
// is on the objects, and a token stands there before it is used.
func (w *world) checkOrder(by *invocation, o launch.Order) {
	now := time.Now()
	if members := w.membersOf(o); o.Batch.ID != "" && members < o.Count() {
		w.addViolation("asks for more than there are claims", "%s asks for %d instances for the %d claims of batch %s",
			by, o.Count(), members, o.Batch.ID)
	}
	who := cmp.Or(o.ClaimUID, o.Batch.ID)
	if c := w.orderedFor(o); c == nil || (c.maker != by || c.made.Before(by.leased)) && !by.recalled[who] {
		by.recalled[who] = true
		return
	}
	for _, offer := range o.Offers() {
		for _, m := range w.marks {
			if m.Offer == offer && m.made.Before(by.started) && m.Until.After(now.Add(2*w.plan.skew+time.Second)) {
				w.addViolation("asks for what is sold out", "%s asks for %s, which is marked until %s", by, offer,
					m.Until.Sub(w.began))
			}
		}
	}
}

// checkStart looks at an instance that starts.
func (w *world) checkStart(m *machine, o launch.Order) {
	c := w.orderedFor(o)
	if c == nil {
		w.addViolation("launch without a claim", "instance %s starts for claim %s%s, which was never stored", m.ID,
			o.ClaimName, o.Batch.ID)
		return
	}
	if !c.Finalizer && !c.released {
		w.addViolation("launch before the finalizer",
			"instance %s starts for claim %s, which nothing keeps from vanishing", m.ID, c.Name)
	}
	for _, other := range w.livingInstances() {
		if other.owner == m.owner && m.owner != "" {
			w.addViolation("doubled instance", "%s and %s both run for claim %s", other.ID, m.ID, m.Claim)
		}
	}
	if have := w.ofBatch(o.Batch.ID); len(have) >= o.Count() && o.Batch.ID != "" {
		w.addViolation("doubled instance", "batch %s has %d instances for %d claims when %s starts", o.Batch.ID,
			len(have), o.Count(), m.ID)
	}
	pool, ok := w.poolOf(c.Pool)
	if !ok || len(pool.Limited) == 0 || !c.Deleting.IsZero() {
		return
	}
	for _, over := range w.overLimit(pool, c.UID, w.types[m.Type]) {
		w.addViolation("limit of the pool", "with %s pool %s has %s", m.ID, pool.Name, over)
	}
}

func (w *world) poolOf(name string) (cluster.Pool, bool) {
	for _, p := range w.pools {
		if p.Name == name {
			return p, true
		}
	}
	return cluster.Pool{}, false
}

// checkStatus looks at a claim that is given an instance.
func (w *world) checkStatus(c *claim, before cluster.Claim) {
	if before.ProviderID != "" && c.ProviderID != before.ProviderID {
		w.addViolation("claim changed its instance", "claim %s had %s and is given %s", c.Name, before.ProviderID,
			c.ProviderID)
	}
	if c.ProviderID == "" || before.ProviderID != "" {
		return
	}
	m := w.instanceOf(c)
	if b, _ := c.Batch(); m != nil && m.Batch != "" && m.Batch == b.ID && m.owner == "" {
		m.owner = c.UID
	}
	if m == nil || m.owner != c.UID {
		w.addViolation("adopted the wrong instance", "claim %s is given %s, which was not launched for it", c.Name,
			c.ProviderID)
	}
}

// checkRelease looks at a claim that loses our finalizer: its instance must be gone, or at least be told to go where
// lists do not show it yet.
func (w *world) checkRelease(c *claim) {
	for _, id := range slices.Sorted(maps.Keys(w.machines)) {
		if m := w.machines[id]; m.owner == c.UID && m.State == "shutting-down" && time.Since(m.showAt) > late {
			w.addViolation("finalizer gone before the instance", "claim %s is released while %s is shutting down",
				c.Name, m.ID)
		}
	}
	for _, m := range w.livingInstances() {
		if m.owner == c.UID && !m.asked && time.Since(m.showAt) > late {
			w.addViolation("finalizer gone before the instance", "claim %s is released while %s runs", c.Name, m.ID)
		}
		if m.owner == c.UID && c.ProviderID == m.ProviderID() && !m.asked {
			w.addViolation("finalizer gone before the instance", "claim %s is released while %s runs, which it names",
				c.Name, m.ID)
		}
	}
}

// checkNodeRelease looks at a node that loses our finalizer: nothing may run there any more.
func (w *world) checkNodeRelease(n *node) {
	w.checkOurs(n, "released")
	if n.machine != nil && !n.machine.Gone() {
		w.addViolation("node released alive", "node %s is released while %s runs", n.Name, n.machine.ID)
	}
}

// checkOurs looks at a node that is changed: it must be one of ours.
func (w *world) checkOurs(n *node, what string) {
	if n.machine == nil || n.machine.foreign {
		w.addViolation("foreign node", "node %s of somebody else is %s", n.Name, what)
	}
}

// checkEviction looks at an eviction: the node takes no pods any more, and the pod is not protected.
func (w *world) checkEviction(p *pod) {
	n := w.nodes[p.NodeName]
	if n == nil {
		return
	}
	tainted := n.isTainted()
	// who evicts and who takes a disruption back may not know of each other yet
	if !tainted && time.Since(n.untainted) > seconds {
		w.addViolation("eviction before the taint", "pod %s is evicted from %s, which still takes pods", p.Key(),
			n.Name)
	}
	w.checkFirst(p, n)
	if p.Protected(time.Now().Add(w.plan.skew)) && !w.isDying(n) {
		w.addViolation("protected pod evicted", "pod %s is evicted from %s", p.Key(), n.Name)
	}
}

// isDying reports whether the node ends whatever anybody does: its instance is noticed, or its grace period is over.
func (w *world) isDying(n *node) bool {
	if n.down || n.machine == nil || n.machine.Gone() || n.machine.noticed &&
		time.Until(n.machine.dies) < time.Hour+late || w.isUnsound(n.machine) {
		return true
	}
	c := w.byUID[n.machine.owner]
	if c == nil || c.TerminationGrace == nil || c.Deleting.IsZero() {
		return false
	}
	return time.Now().After(c.Deleting.Add(*c.TerminationGrace - 2*time.Minute))
}

// checkDeletion looks at a pod that is deleted past its budget, which only a node that dies excuses.
func (w *world) checkDeletion(p *pod) {
	n := w.nodes[p.NodeName]
	if n != nil {
		w.checkFirst(p, n)
	}
	if n == nil || w.isDying(n) || p.Terminating() {
		return
	}
	w.addViolation("pod deleted past its budget", "pod %s on %s", p.Key(), n.Name)
}

// checkFirst looks at a pod that is to go from an instance that EC2 takes back, and was there when its notice was
// handled. Within seconds of the condemnation, and if its grace period leaves the time, there is another place for it,
// or capacity is on its way.
func (w *world) checkFirst(p *pod, n *node) {
	if n.machine == nil || !n.machine.taken || p.Terminating() || p.app.daemon {
		return
	}
	c := w.byUID[n.machine.owner]
	by, err := time.Parse(time.RFC3339, c.Annotations[v1.AnnotationTerminationTimestamp])
	until := c.condemned.Add(replaceWithin - 2*w.plan.skew - time.Second)
	grace := time.Duration(p.GraceSec) * time.Second
	if err != nil || c.condemned.IsZero() || p.Started.After(c.condemned) || time.Now().After(until) ||
		until.Add(grace+30*time.Second).After(by) {
		return
	}
	for _, m := range w.livingInstances() {
		host := w.byUID[m.owner]
		coming := host == nil || (host.Deleting.IsZero() || time.Since(host.condemned) < seconds) &&
			(m.node == nil || !host.Is(v1.ConditionInitialized))
		if since := launchedSince(m, c); m != n.machine && (coming || since) { // or taken back by now
			return
		}
	}
	for _, m := range w.machines { // what has just ended was on its way for who acts now
		if !m.stopped.IsZero() && time.Since(m.stopped) < seconds && launchedSince(m, c) {
			return
		}
	}
	p.NodeName = "" // it does not stand in its own way, nor does the node in that of a spread once it is gone
	delete(w.nodes, n.Name)
	defer func() { p.NodeName, w.nodes[n.Name] = n.Name, n }()
	for _, other := range w.nodes {
		why := w.willRefuse(p, other)
		if why == "" || why == "spread" && w.someoneLeaves(n) || time.Since(other.bound) < late ||
			w.droppedLately(other) {
			return
		}
	}
	w.addViolation("removal before replacement", "pod %s goes from %s, which EC2 takes back, %s after the notice was handled, and nothing is on its way",
		p.Key(), n.Name, time.Since(c.condemned))
}

// launchedSince reports whether the instance was launched after the claim was condemned.
func launchedSince(m *machine, c *claim) bool {
	return !m.Launched.Before(c.condemned.Truncate(time.Second))
}

// checkRemoval looks at a pod that is removed without asking its kubelet: nothing runs there any more.
func (w *world) checkRemoval(p *pod) {
	if n := w.nodes[p.NodeName]; n != nil && !n.down {
		w.addViolation("pod removed alive", "pod %s is removed while it runs on %s", p.Key(), n.Name)
	}
}

// checkTerminate looks at an instance that we end: it is ours, and nothing runs there that the drain waits for.
func (w *world) checkTerminate(by *invocation, m *machine) {
	if m.foreign {
		w.addViolation("foreign instance", "%s ends %s of somebody else", by, m.ID)
		return
	}
	n := m.node
	c := w.byUID[m.owner]
	if n == nil || n.down || !n.Ready || w.nodes[n.Name] != n || c == nil || w.claims[c.Name] != c ||
		w.graceExpired(c) || w.isUnsound(m) {
		return
	}
	if c.Deleting.IsZero() {
		w.addViolation("instance of a living claim ended", "%s ends %s, which claim %s needs", by, m.ID, c.Name)
	} else if time.Since(n.Created) < seconds {
		return // it joined after whoever acts now had read
	}
	for _, p := range w.podsOn(n.Name) {
		stuck := p.Terminating() && time.Now().After(p.Deleting.Add(50*time.Second))
		taint := []cluster.Taint{{Key: v1.TaintDisrupted, Effect: "NoSchedule"}}
		if p.Terminal() || p.Owner == cluster.OwnerNode || stuck ||
			len(cluster.Untolerated(taint, p.Tolerations)) == 0 {
			continue
		}
		w.addViolation("instance ended before its drain", "%s ends %s while pod %s runs there", by, m.ID, p.Key())
		return
	}
}

// graceExpired reports whether the grace period of a claim is over.
func (w *world) graceExpired(c *claim) bool {
	return c.TerminationGrace != nil && !c.Deleting.IsZero() &&
		!time.Now().Before(c.Deleting.Add(*c.TerminationGrace-5*time.Second))
}

// checkEnded looks at an invocation that has come to its end without any fault: what it learned is written down, or
// told to whom it concerns.
func (w *world) checkEnded(inv *invocation) {
	if inv.faulty || inv.err != nil {
		return
	}
	if inv.fn.Name == "lifecycle" && inv.unseen && !inv.woke {
		w.addViolation("refresh is not told", "%s saw a class that refresh has not looked at, and did not wake it", inv)
	}
	for _, l := range inv.learned {
		if !slices.ContainsFunc(w.marks, func(m unavailableMark) bool {
			return m.Offer == l.offer &&
				!m.made.Before(l.at)
		}) {
			w.addViolation("sold out and not marked", "%s was refused %s and did not mark it", inv, l.offer)
			return
		}
	}
}

// learnUnavailable remembers what an invocation was told is sold out.
func (w *world) learnUnavailable(inv *invocation, marks []instancetypes.UnavailableOffering) {
	for _, m := range marks {
		inv.learned = append(inv.learned, refusedOffer{m.Offer, time.Now()})
	}
}
