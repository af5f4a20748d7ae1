package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/requestlimits"
)

// NoticeStorm is a cluster of spot nodes in which nothing fails, and in which EC2 takes every node back within a short
// time. Each node has a pod that fills it.
type NoticeStorm struct {
	Nodes       int
	Types       []string              // of the nodes: instance types with room for one pod of 1.2 CPU
	Over        time.Duration         // within which the notices come, evenly
	Concurrency int                   // notices that Lambda has handled at once; 0: any number
	Limits      []requestlimits.Limit // of the account
}

// NoticeOutcome holds the results of the notices. Nodes stand in the order of their notices.
type NoticeOutcome struct {
	// Lost are the nodes whose NodeClaims were not deleted when EC2 ended their instances.
	Lost []string
	// Late are the nodes with pods when EC2 ended their instances, and those whose replacements were not launched by
	// then: the n-th launch is held to be the replacement for the n-th notice.
	Late     []string
	Launched int            // instances
	Refused  map[string]int // calls for their rate, by action
	Slowest  time.Duration  // from a notice to the deletion of its NodeClaim
}

// noticed is an instance with its notice.
type noticed struct {
	machine *machine
	at      time.Time
	lost    bool
	full    bool // it had pods at its end
}

const (
	stackShare  = 5               // equal launches from which on they share a request, as the stack has it
	stormApps   = 20              // that the pods belong to, each with a budget
	stormBudget = 0.25            // of the pods of an app that may be down
	fillFor     = 2 * time.Hour   // at most, until every node is there
	spotNotice  = 2 * time.Minute // that EC2 gives
)

// playNoticeStorm fills the cluster, gives the notices and waits until the last instance has ended.
func (w *world) playNoticeStorm(s NoticeStorm) NoticeOutcome {
	w.calmForNotices(s)
	for i := range stormApps {
		w.workloads.startApp(stormApp(i, s.Nodes*(i+1)/stormApps-s.Nodes*i/stormApps))
	}
	w.fillNodes(s.Nodes)
	w.network.refused = map[string]int{}
	before := maps.Clone(w.ec2.machines)
	var all []*noticed
	for i, m := range w.ec2.livingInstances() {
		w.runAfter(s.Over*time.Duration(i)/time.Duration(s.Nodes), func() {
			n := &noticed{machine: m, at: time.Now()}
			all = append(all, n)
			w.runAfter(spotNotice, func() { w.recordNoticeEnd(n) })
			w.ec2.interruptInstance(m)
		})
	}
	w.runUntil(time.Now().Add(s.Over+spotNotice+time.Minute), w.network.admitRequest)
	return w.judgeNotices(all, before)
}

// calmForNotices has nothing go wrong, with one pool of spot nodes.
func (w *world) calmForNotices(s NoticeStorm) {
	w.trouble, w.network.faults.rate = false, 0
	w.plan.lost, w.plan.double, w.plan.slow, w.plan.together, w.plan.drifts = 0, 0, 0, 1, false
	w.plan.stay = 50 * time.Second
	w.catalog.market.Commitments = nil
	w.api.pools = []cluster.Pool{{Name: "general", UID: "uid-general", Class: "default", Ready: true, Uncounted: true,
		Hash: "1", Requirements: requirements.Set{}.And(requirements.Of(labelCapacity, instancetypes.Spot)).
			And(requirements.Of(labelType, s.Types...)),
		Disruption: cluster.Disruption{Never: true}}}
	w.network.account = requestlimits.NewAccount(s.Limits)
	w.lambda.functions["spotinterruption"].Reserved = s.Concurrency
}

// stormApp is an app of so many pods, each of which fills more than half of the smallest node.
func stormApp(i, pods int) *app {
	name := fmt.Sprintf("storm-%d", i)
	return &app{name: name, replicas: pods, bootTime: time.Second, stopTime: time.Second,
		budget: &budget{minAvailable: pods - int(stormBudget*float64(pods)+0.5)},
		pattern: cluster.Pod{Namespace: firstNamespace, Labels: map[string]string{"app": name},
			Owner: cluster.OwnerOther, GraceSec: 5,
			Need: resources.List{CPU: 1200, Memory: 512 * resources.MiB, Pods: 1}}}
}

// fillNodes waits until every pod is ready, each on a node of its own.
func (w *world) fillNodes(nodes int) {
	for end := time.Now().Add(fillFor); time.Now().Before(end) && len(w.bad) == 0; {
		w.runUntil(time.Now().Add(10*time.Second), w.network.admitRequest)
		ready := 0
		for _, p := range w.api.pods {
			if p.Ready {
				ready++
			}
		}
		if ready == nodes && len(w.ec2.livingInstances()) == nodes {
			return
		}
	}
	w.addViolation("not at rest", "%d instances for %d nodes", len(w.ec2.livingInstances()), nodes)
}

// recordNoticeEnd notes how things stand with an instance whose two minutes are over.
func (w *world) recordNoticeEnd(n *noticed) {
	if n.machine.Gone() {
		return
	}
	c := w.api.byUID[n.machine.owner]
	n.lost = c == nil || c.Deleting.IsZero()
	n.full = n.machine.node != nil && len(w.api.podsOn(n.machine.node.Name)) > 0
}

func (w *world) judgeNotices(all []*noticed, before map[string]*machine) NoticeOutcome {
	out := NoticeOutcome{Refused: w.network.refused}
	var launches []time.Time
	for _, id := range slices.Sorted(maps.Keys(w.ec2.machines)) {
		if m := w.ec2.machines[id]; before[id] == nil {
			launches = append(launches, m.began)
		}
	}
	slices.SortFunc(launches, time.Time.Compare)
	out.Launched = len(launches)
	for i, n := range all {
		if n.lost {
			out.Lost = append(out.Lost, n.machine.ID)
		}
		if n.full || i >= len(launches) || launches[i].After(n.at.Add(spotNotice)) {
			out.Late = append(out.Late, n.machine.ID)
		}
		if c := w.api.byUID[n.machine.owner]; c != nil && !c.Deleting.IsZero() {
			out.Slowest = max(out.Slowest, c.Deleting.Sub(n.at))
		}
	}
	return out
}
