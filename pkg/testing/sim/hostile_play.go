package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// hostileTrial is a cluster in which a tenant means the others ill, over time: pods that fit nowhere, that nobody may
// evict, that do not end, that keep others off, that come and go, and DaemonSets of any size. Its chance is a stream of
// its own.
type hostileTrial struct {
	rng   *rand.Rand
	apps  []*app
	since map[*pod]time.Time // of pods of the others: since when they wait
	moved map[*pod]time.Time // since when their node is to go
}

// What a trial of hostile tenants is like.
const (
	hostileFor = 45 * time.Minute
	// mostWait is the longest time that a pod of the others waits: a node for it takes three minutes.
	mostWait = 7 * time.Minute
	// mostMove is the longest time that a pod of the others stays on a node that is to go, once its budget allows.
	mostMove = 10 * time.Minute
)

const neighbourPays = "a neighbour of a hostile tenant pays"

// playHostile has users run apps, nodes be interrupted and deleted, and the hostile tenant act. Nothing else goes
// wrong. In the end the tenant goes, and the cluster comes to rest.
func (w *world) playHostile(seed uint64) {
	h := &hostileTrial{rng: rand.New(rand.NewPCG(seed, 0x686f7374)), since: map[*pod]time.Time{},
		moved: map[*pod]time.Time{}}
	w.hostile = h
	general := w.prepareOnePool()
	general.ExpireAfter = 0
	general.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", After: time.Minute,
		Budgets: []cluster.NodeBudget{{Nodes: "20%", Every: true}}}
	general.Requirements = requirements.Set{}.And(requirements.Of(labelCapacity, "spot", "on-demand"))
	w.api.pools = []cluster.Pool{general}
	w.api.namespaces = append(w.api.namespaces, cluster.Namespace{Name: HostileNamespace})
	w.trouble, w.network.faults.rate, w.plan.together = false, 0, 1
	w.plan.lost, w.plan.double, w.plan.slow, w.plan.neverJoins, w.plan.neverReady = 0, 0, 0, 0, 0
	w.workloads.drawDaemons()
	end := time.Now().Add(hostileFor)
	var next func()
	next = func() {
		if time.Now().Before(end) {
			h.act(w)
			w.runAfter(15*time.Second+time.Duration(h.rng.Int64N(int64(75*time.Second))), next)
		}
	}
	w.runAfter(time.Second, next)
	h.writeLeases(w, end)
	w.watchNeighbours(end)
	w.runUntil(end, w.network.admitRequest)
	if len(w.bad) > 0 {
		return
	}
	for _, a := range h.apps {
		a.stopTime = time.Second
		w.workloads.stopApp(a)
	}
	w.runUntilEmpty(restFor+90*time.Minute, aWhile, "not at rest without the hostile tenant", func() (bad []string) {
		for _, p := range selectInOrder(w.api.pods, func(p *pod) bool { return p.NodeName == "" }) {
			bad = append(bad, fmt.Sprintf("pod %s waits%s", p.Key(), whyNot(w, p)))
		}
		return append(bad, claimProblems(w)...)
	})
}

// act is one thing that users, EC2 or the hostile tenant do.
func (h *hostileTrial) act(w *world) {
	var others []*app
	for _, a := range w.workloads.apps {
		if !a.daemon && !slices.Contains(h.apps, a) {
			others = append(others, a)
		}
	}
	living := w.ec2.livingInstances()
	switch what := h.rng.IntN(10); {
	case len(others) < 2 || what == 0 && len(others) < 8:
		a := w.trialApp()
		a.bootTime, a.stateful, a.pattern.Owner = time.Second, false, cluster.OwnerOther
		w.workloads.startApp(a)
	case what <= 2:
		w.workloads.setReplicas(others[h.rng.IntN(len(others))], 1+h.rng.IntN(10))
	case what == 3 && len(living) > 0:
		w.ec2.interruptInstance(living[h.rng.IntN(len(living))])
	case what == 4 && len(living) > 0:
		if c := w.api.byUID[living[h.rng.IntN(len(living))].owner]; c != nil && c.Deleting.IsZero() {
			w.api.deleteClaim(c, nil)
		}
	case len(h.apps) < 8:
		a := h.drawApp(w)
		h.apps = append(h.apps, a)
		w.workloads.startApp(a)
	default:
		i := h.rng.IntN(len(h.apps))
		h.apps[i].stopTime = min(h.apps[i].stopTime, 5*time.Minute)
		w.workloads.stopApp(h.apps[i])
		h.apps = slices.Delete(h.apps, i, i+1)
	}
}

// drawApp returns the app that the hostile tenant runs.
func (h *hostileTrial) drawApp(w *world) *app {
	a := w.trialApp()
	a.name, a.replicas, a.budget, a.stateful = "evil"+a.name, 1+h.rng.IntN(12), nil, false
	p := &a.pattern
	p.Namespace, p.Labels, p.Owner = HostileNamespace, map[string]string{"app": a.name}, cluster.OwnerOther
	p.Need = resources.List{CPU: 100, Memory: 128 * resources.MiB, Pods: 1}
	own := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}
	switch h.rng.IntN(8) {
	case 0:
		p.Need.CPU = []int64{1_000_000, 1 << 52}[h.rng.IntN(2)]
	case 1:
		a.budget = &budget{minAvailable: a.replicas}
	case 2:
		p.DoNotDisrupt = "true"
	case 3:
		a.stopTime, p.GraceSec = time.Hour, 3600
	case 4:
		p.AntiAffinity = []cluster.AffinityTerm{{Key: labelHost, Selector: own}}
		a.replicas = min(a.replicas, 4)
	case 5:
		p.Priority = 1_000_000_000
	case 6:
		a.daemon, p.Owner, p.Need.CPU = true, cluster.OwnerDaemonSet, 1_000_000_000
		p.Tolerations = []cluster.Toleration{{Operator: "Exists"}}
	case 7:
		p.NodeSelector = map[string]string{labelType: "m7i.nothing"}
	}
	return a
}

// watchNeighbours looks at the pods of the others until the time given.
func (w *world) watchNeighbours(end time.Time) {
	h := w.hostile
	ofOthers := func(p *pod) bool { return p.Namespace != HostileNamespace && !p.app.daemon }
	for _, p := range selectInOrder(w.api.pods, ofOthers) {
		n := w.api.nodes[p.NodeName]
		switch {
		case p.NodeName == "":
			h.noteSince(h.since, p, true)
			delete(h.moved, p)
		default:
			delete(h.since, p)
			var c *claim
			if n != nil {
				c = w.api.byUID[n.owner]
			}
			h.noteSince(h.moved, p, c != nil && !c.Deleting.IsZero() && !p.Terminating() &&
				(p.app.budget == nil || w.workloads.allowedEvictions(p.app) > 0))
		}
		if at, ok := h.since[p]; ok && time.Since(at) > mostWait {
			w.addViolation(neighbourPays, "pod %s waits since %s%s", p.Key(), at.Format(time.TimeOnly), whyNot(w, p))
			return
		}
		if at, ok := h.moved[p]; ok && time.Since(at) > mostMove {
			w.addViolation(neighbourPays, "pod %s is on %s, which is to go since %s", p.Key(), p.NodeName,
				at.Format(time.TimeOnly))
			return
		}
	}
	if time.Now().Before(end) {
		w.runAfter(10*time.Second, func() { w.watchNeighbours(end) })
	}
}

// noteSince notes since when it is so, or that it is not.
func (h *hostileTrial) noteSince(of map[*pod]time.Time, p *pod, is bool) {
	if _, known := of[p]; !is {
		delete(of, p)
	} else if !known {
		of[p] = time.Now()
	}
}
