package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/drain"
)

// Plan holds what one pass does.
type Plan struct {
	Actions []plan.Action // in the order in which they are taken
	// Busy says that some object has a next step soon, so that it is worth looking again in a second.
	Busy bool
	// Faults are the objects about which the decision fails. They stay as they are.
	Faults []plan.Fault
}

// Where tests let the decision fail about one object.
const (
	StageLive   = "live"   // a NodeClaim that nobody has deleted
	StageEnding = "ending" // one that is being deleted
	StageNode   = "node"   // a node without a NodeClaim
)

// Next decides the next step of everything in the snapshot.
func Next(s cluster.Snapshot) Plan {
	st := newState(s)
	var p Plan
	var ending []cluster.Claim
	outcomes := map[string][]cluster.Registration{} // by pool
	for _, c := range st.s.Claims {
		switch {
		case c.Deleting.IsZero():
			p.decideAbout(cluster.ClaimPart, c.Name, func() {
				st.s.TellStage(StageLive, c.Name)
				actions, busy := st.advanceClaim(c)
				o, ended := st.registrationOutcome(c, actions)
				p.Busy = p.Busy || busy
				p.addActions(actions...)
				if ended {
					outcomes[c.Pool] = append(outcomes[c.Pool], o)
				}
			})
		case c.Finalizer:
			ending = append(ending, c)
		}
	}
	// Whoever must be gone first is served first from what the budgets allow.
	slices.SortStableFunc(ending, func(a, b cluster.Claim) int {
		return cmp.Or(byDeadline(a, b), a.Deleting.Compare(b.Deleting))
	})
	for _, c := range ending {
		p.decideAbout(cluster.ClaimPart, c.Name, func() {
			st.s.TellStage(StageEnding, c.Name)
			steps := st.advanceEnding(c)
			p.Busy = p.Busy || !st.blockedForLong(c, steps)
			p.addActions(steps...)
		})
	}
	for _, n := range st.s.Nodes {
		p.decideAbout("Node", n.Name, func() {
			st.s.TellStage(StageNode, n.Name)
			actions, busy := st.finalizeOrphanNode(n)
			p.Busy = p.Busy || busy
			p.addActions(actions...)
		})
	}
	p.decideAbout("", "leaked instances", func() { p.addActions(st.terminateLeaked()...) })
	for _, pool := range st.s.Pools {
		if list := outcomes[pool.Name]; len(list) > 0 {
			p.addActions(plan.Action{Do: plan.Registrations, Pool: pool.Name, Outcomes: list})
		}
	}
	p.decideAbout(cluster.PoolPart, "all", func() { p.addActions(st.countPoolNodes()...) })
	p.decideAbout(cluster.PoolPart, "zonal shifts", func() { p.addActions(st.announceShifts()...) })
	return p
}

// decideAbout decides about one object. Where that panics the object stays as it is, and the others take their steps.
func (p *Plan) decideAbout(kind cluster.PartKind, name string, decide func()) {
	if failed := faultisolation.Catch(decide); failed != nil {
		p.Faults = append(p.Faults, plan.Fault{Kind: kind, Name: name, Why: failed.Why, Stack: failed.Stack})
	}
}

func (p *Plan) addActions(actions ...plan.Action) { p.Actions = append(p.Actions, actions...) }

// state decides: about living claims itself, and by its parts about those that come and go.
type state struct {
	index
	registrar
	finalizer
	repairs map[string]int // nodes that this step repairs, by pool
}

// index is the snapshot, sorted, with the look-ups that every step needs.
type index struct {
	s         cluster.Snapshot
	nodes     map[string][]cluster.Node // by provider id
	misnamed  map[string]string         // by provider id: a node with it that is not the instance's
	pods      *podIndex
	instances map[string]cluster.Instance   // by provider id
	started   map[string][]cluster.Instance // by the UID of the claim in their tags
	claims    map[string]cluster.Claim      // by UID
	batches   map[string]bool               // of claims that wait for their instances
	owners    map[string]cluster.Claim      // by provider id; of several the first that is not being deleted
	away      map[string]string             // names of zones that are shifted away from, to their ids
}

// registrar decides how a claim comes to its initialized node, and whether it has failed to: launch, registration,
// initialization.
type registrar struct {
	index
	waiting   map[string]int // pods without a node, by the hold they tolerate
	evictions nomination.OwnerNominations
}

// finalizer decides how claims and nodes that are being deleted come to their end.
type finalizer struct {
	index
	podBudgets *drain.PodBudgets
}

func newState(s cluster.Snapshot) state {
	x := newIndex(s)
	return state{x, registrar{x, nomination.CountWaiting(x.s.Pods), nomination.FindOwnerNominations(x.s)},
		finalizer{x, drain.NewPodBudgets(x.s.Budgets)}, map[string]int{}}
}

func newIndex(s cluster.Snapshot) index {
	s.Claims = sortedBy(s.Claims, func(c *cluster.Claim) string { return c.Name })
	s.Pools = sortedBy(s.Pools, func(p *cluster.Pool) string { return p.Name })
	s.Nodes = sortedBy(s.Nodes, func(n *cluster.Node) string { return n.Name })
	s.Instances = ownedByLabel(sortedBy(s.Instances, func(i *cluster.Instance) string { return i.ID }), s.Claims)
	s.Impaired = slices.SortedFunc(slices.Values(s.Impaired), func(a, b cluster.Impairment) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), a.Since.Compare(b.Since),
			strings.Compare(fmt.Sprint(a.System), fmt.Sprint(b.System)))
	})
	s.Changes = slices.SortedFunc(slices.Values(s.Changes), func(a, b cluster.ScheduledChange) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), a.At.Compare(b.At), strings.Compare(a.Code, b.Code))
	})
	x := index{s: s, nodes: map[string][]cluster.Node{}, pods: &podIndex{all: s.Pods},
		instances: map[string]cluster.Instance{}, started: map[string][]cluster.Instance{},
		claims: map[string]cluster.Claim{}, owners: map[string]cluster.Claim{}, batches: map[string]bool{},
		misnamed: map[string]string{}, away: shiftedZones(s)}
	for _, i := range s.Instances {
		x.instances[i.ProviderID()] = i
		if i.ClaimUID != "" {
			x.started[i.ClaimUID] = append(x.started[i.ClaimUID], i)
		}
	}
	for _, c := range s.Claims {
		x.claims[c.UID] = c
		if b, ok := c.Batch(); ok && c.ProviderID == "" && c.Deleting.IsZero() {
			x.batches[b.ID] = true
		}
		if c.ProviderID == "" {
			continue
		}
		if o, taken := x.owners[c.ProviderID]; !taken || !o.Deleting.IsZero() && c.Deleting.IsZero() {
			x.owners[c.ProviderID] = c
		}
	}
	x.indexNodes()
	return x
}

// indexNodes finds the nodes of provider ids. One that EC2 knows by another name belongs to none: a kubelet may write
// any provider id into a Node that it makes. A node that its claim names already is not doubted.
func (x index) indexNodes() {
	for _, n := range x.s.Nodes {
		i, listed := x.instances[n.ProviderID]
		switch {
		case n.ProviderID == "":
		case listed && !i.MayBeNode(n.Name) && x.owners[n.ProviderID].NodeName != n.Name:
			x.misnamed[n.ProviderID] = n.Name
		default:
			x.nodes[n.ProviderID] = append(x.nodes[n.ProviderID], n)
		}
	}
}

// ownedByLabel are the instances, those of a shared launch with the claim that names them in its label: it is written
// before the provider id, and whoever wrote it may have died between.
func ownedByLabel(instances []cluster.Instance, claims []cluster.Claim) []cluster.Instance {
	named := map[string]cluster.Claim{}
	for _, c := range claims {
		if id := c.Labels[v1.LabelInstance]; id != "" && c.ProviderID == "" {
			if _, taken := named[id]; !taken {
				named[id] = c
			}
		}
	}
	if len(named) == 0 {
		return instances
	}
	instances = slices.Clone(instances)
	for i := range instances {
		if c, ok := named[instances[i].ID]; ok && instances[i].ClaimUID == "" {
			instances[i].Claim, instances[i].ClaimUID = c.Name, c.UID
		}
	}
	return instances
}

// sortedBy is the list by name. One that is sorted is returned as it is.
func sortedBy[T any](list []T, name func(*T) string) []T {
	for i := 1; i < len(list); i++ {
		if name(&list[i-1]) > name(&list[i]) {
			return slices.SortedFunc(slices.Values(list),
				func(a, b T) int { return strings.Compare(name(&a), name(&b)) })
		}
	}
	return list
}

// advanceClaim is the step of a claim that nobody has deleted.
func (st state) advanceClaim(c cluster.Claim) (actions []plan.Action, busy bool) {
	if c.IsStopping() {
		return st.advanceStopped(c)
	}
	if i, early := st.endedEarly(c); early {
		return st.failLaunch(c, i), true
	}
	if reason, why := st.deletionReason(c); reason != "" {
		return append(append(st.noteMissing(c, reason), st.noteUseless(c, reason)...),
			plan.Action{Do: plan.DeleteClaim, Claim: c.Name, Reason: reason, Why: why}), true
	}
	if impaired, doomed := st.endImpaired(c); doomed {
		return impaired, true
	}
	changes, doomed := st.pendingChanges(c)
	if doomed {
		return changes, true
	}
	repair, doomed := st.repairNode(c)
	if doomed {
		return repair, true
	}
	actions = append(append(changes, st.adoptClaim(c)...), repair...)
	switch {
	case !c.Is(v1.ConditionLaunched):
		return append(actions, st.noteStartedInstance(c)...), true // provision launches it
	case !c.Is(v1.ConditionRegistered):
		return append(actions, st.registerClaim(c)...), !c.LostNode(st.s.Now)
	case len(st.nodes[c.ProviderID]) == 0 && c.LostNode(st.s.Now):
		return append(actions, st.writeCondition(c, st.absentNode(c))...), false
	}
	if c.Standby() && c.Is(v1.ConditionInitialized) {
		return append(append(actions, st.stopWarmed(c)...), st.tagInstance(c)...), true
	}
	steps, ready := append(st.relabelOnDemand(c), st.noteStarted(c)...), c.Is(v1.ConditionInitialized)
	if ready {
		steps = append(append(steps, st.reopenNode(c)...), st.checkConsistency(c)...)
	} else {
		steps = append(steps, st.initializeNode(c)...)
	}
	if !slices.ContainsFunc(steps, func(a plan.Action) bool { return a.Do != plan.Tell }) {
		steps = append(steps, st.tagInstance(c)...) // last, because EC2 takes few tags a second
	}
	// whatever it is kept for then, nobody stays to watch it come
	return append(actions, steps...), !ready && !st.isOverdue(c)
}

// adoptClaim makes a claim and its node ours if somebody took our finalizer off or never put it on, as on a claim made
// by hand, or if the label of the class or the instance is missing.
func (st state) adoptClaim(c cluster.Claim) (out []plan.Action) {
	// notices about its instance would not find it quickly
	unnamed := c.ProviderID != "" && c.Labels[v1.LabelInstance] == ""
	if !c.Finalizer || c.Labels[awsv1.LabelEC2NodeClass] != c.Class || unnamed {
		out = append(out, plan.Action{Do: plan.AdoptClaim, Claim: c.Name})
	}
	nodes := st.nodes[c.ProviderID]
	if !c.Is(v1.ConditionRegistered) || len(nodes) != 1 {
		return out
	}
	if n := nodes[0]; !n.Finalizer || n.Labels[awsv1.LabelEC2NodeClass] == "" {
		out = append(out, plan.Action{Do: plan.RegisterNode, Claim: c.Name, Node: n.Name})
	}
	return out
}

// deletionReason says why a claim must go: its node was deleted, its instance is gone, expiration, time-outs. A node
// that never initialises ends too, which Karpenter leaves running; but not one that is usable by now, or lacks nothing
// but devices that a DRA driver may serve.
func (st state) deletionReason(c cluster.Claim) (reason, why string) {
	now, rules := st.s.Now, st.s.Rules
	switch {
	case c.ProviderID != "" && slices.ContainsFunc(st.nodes[c.ProviderID],
		func(n cluster.Node) bool { return !n.Deleting.IsZero() }):
		return "node_deleted", "its node was deleted"
	case c.Expired(now) && !st.expiresWithinBudgets(c):
		return "expired", fmt.Sprintf("it is older than %s", c.ExpireAfter)
	case st.instanceVanished(c):
		return "garbage_collected", "its instance is gone"
	case st.blockEnds(c):
		return "capacity_block_expiring", "its capacity block is about to end"
	case st.instanceStopped(c):
		return "instance_stopped", "its instance was stopped"
	case st.typeChanged(c):
		return instanceChanged, fmt.Sprintf("its instance is a %s now", st.instances[c.ProviderID].Type)
	case rules.LaunchTimeout > 0 && !c.Is(v1.ConditionLaunched) && !st.startedHasJoined(c) &&
		!now.Before(c.Condition(v1.ConditionLaunched).Since.Add(st.launchLimit(c))):
		return launchTimeout, fmt.Sprintf("it was not launched within %s", st.launchLimit(c))
	case c.Overdue(now, rules.RegistrationTimeout) && !st.hasJoined(c) && c.LostNode(now):
		return "node_removed", fmt.Sprintf("its node %s was removed, and none has registered for it within %s",
			c.NodeName, rules.RegistrationTimeout)
	case c.Overdue(now, rules.RegistrationTimeout) && !st.hasJoined(c):
		return registrationTimeout, fmt.Sprintf("no node registered for it within %s", rules.RegistrationTimeout)
	case st.isOverdue(c) && !st.isUsable(c):
		return initializationTimeout, fmt.Sprintf("its node was not usable within %s of registering",
			rules.InitializationTimeout)
	}
	return "", ""
}

// expiresWithinBudgets reports whether the claim's pool has nodes that expire replaced within its budgets, which
// disruption does (package drift).
func (st state) expiresWithinBudgets(c cluster.Claim) bool {
	p, ok := st.s.PoolOf(c.Pool)
	return ok && !p.Deleting && p.Disruption.ExpireGently && c.Is(v1.ConditionLaunched)
}

// instanceVanished reports whether the instance of a launched claim ended, or is not listed any more. A Ready node
// contradicts the second, and so does a launch or a start within GarbageCollectionMinAge, because EC2 may not show the
// instance yet.
func (st state) instanceVanished(c cluster.Claim) bool {
	if c.ProviderID == "" {
		return false
	}
	if i, ok := st.instances[c.ProviderID]; ok {
		return i.Gone()
	}
	begun := c.Condition(v1.ConditionLaunched).Since
	if started := c.StartRequested(); started.After(begun) {
		begun = started
	}
	if st.s.Now.Before(begun.Add(st.s.Rules.GarbageCollectionMinAge)) {
		return false
	}
	return !slices.ContainsFunc(st.nodes[c.ProviderID], func(n cluster.Node) bool { return n.Ready })
}

// instanceStopped reports whether somebody stopped the instance, the event about which may have been lost. Nobody
// starts it again for us. Of one that we started just now EC2 may tell what was before.
func (st state) instanceStopped(c cluster.Claim) bool {
	i, ok := st.instances[c.ProviderID]
	return ok && isStopped(i) && (!c.JustStarted(st.s.Now) || !endedOnPurpose(i.StateReason))
}

// terminateLeaked terminates instances that carry the cluster's tag and belong to no claim: the claim is gone, or the
// claim has another instance; and deletes their nodes.
func (st state) terminateLeaked() []plan.Action {
	var out []plan.Action
	for _, i := range st.s.Instances {
		if i.Gone() || st.s.Now.Before(i.Launched.Add(st.s.Rules.GarbageCollectionMinAge)) || st.claimHasInstance(i) ||
			st.isShifted(i) {
			continue
		}
		out = append(out, plan.Action{Do: plan.Terminate, Instance: i.ID, Reason: "leaked",
			Why: fmt.Sprintf("no NodeClaim owns it (it was launched for %q)", i.Claim)})
		for _, n := range st.nodes[i.ProviderID()] {
			if n.Deleting.IsZero() {
				out = append(out, plan.Action{Do: plan.DeleteNode, Node: n.Name, Reason: "leaked",
					Why: "its instance belongs to no NodeClaim"})
			}
		}
	}
	return out
}
