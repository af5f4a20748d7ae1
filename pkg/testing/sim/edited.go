package sim

import (
	"math/rand/v2"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// EditTrial plays a quiet cluster, has somebody edit its objects once, and plays on.
type EditTrial struct {
	// Waiting has apps ask for what the NodePool does not give; else nodes are guarded, and larger than pods need.
	Waiting bool
	// Edit is given the cluster and what disrupt remembers of it, and returns it edited: pods that wait, guards of
	// pods, nodes and budgets, NodePools, settings. Without an edit nothing is played on.
	Edit func(s cluster.Snapshot, m disruption.Memory) (edited cluster.Snapshot, is bool)
}

// EditOutcome holds the result of an edit.
type EditOutcome struct {
	USDBefore, USDAfter float64           // per hour, of all nodes
	Nodes               map[string]string // of each pod in the end, by namespace/name
}

// What a trial of edits is like.
const (
	editedGrowth = 8 * time.Minute  // until all pods that can have nodes
	editedRest   = 50 * time.Minute // until disruption finds no more
	editedHelp   = 8 * time.Minute  // until a pod that gets a node has it
)

// playEdited is the trial. Nothing goes wrong in it.
func (w *world) playEdited(seed uint64, trial EditTrial) (out EditOutcome) {
	rng := rand.New(rand.NewPCG(seed, 0x65646974))
	general := w.prepareOnePool()
	general.ExpireAfter = 0
	general.Requirements = requirements.Set{}.And(requirements.Of(labelCapacity, "on-demand"))
	general.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", After: time.Minute,
		Budgets: []cluster.NodeBudget{{Nodes: "0", Every: true}}}
	w.api.pools = []cluster.Pool{general}
	w.trouble, w.network.faults.rate, w.plan.together = false, 0, 1
	w.plan.lost, w.plan.double, w.plan.slow, w.plan.neverJoins, w.plan.neverReady = 0, 0, 0, 0, 0
	w.plan.throttle, w.plan.spent = 0, 0
	run := func(d time.Duration) { w.runUntil(time.Now().Add(d), w.network.admitRequest) }
	rest := editedRest
	if trial.Waiting {
		w.startWaiting(rng)
		run(editedGrowth)
		rest = editedHelp
	} else {
		apps := w.startGuarded(rng)
		run(editedGrowth)
		for _, a := range apps {
			w.workloads.setReplicas(a, 1+rng.IntN(3))
		}
		run(time.Minute)
		w.guard(rng, apps)
		run(rest)
	}
	out.USDBefore = w.hourlyUSD()
	if s, is := trial.Edit(w.bill.atOnce(), w.state.memory); is && len(w.bad) == 0 {
		w.writeEdited(s)
		run(rest)
	}
	out.USDAfter, out.Nodes = w.hourlyUSD(), map[string]string{}
	for key, p := range w.api.pods {
		out.Nodes[key] = p.NodeName
	}
	return out
}

func (w *world) hourlyUSD() (usd float64) {
	for _, m := range w.ec2.livingInstances() {
		usd += w.catalog.priceOf(m)
	}
	return usd
}

// startWaiting starts apps of which some ask for what the pool does not give.
func (w *world) startWaiting(rng *rand.Rand) {
	p := &w.api.pools[0]
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	switch rng.IntN(5) {
	case 0:
		p.Taints = []cluster.Taint{{Key: "team", Value: one("a", "b"), Effect: "NoSchedule"}}
	case 1:
		p.Requirements = p.Requirements.And(requirements.Of(labelType, "m5.large", "c5.large"))
	case 2:
		p.Limits, p.Limited = resources.List{}.With(resources.CPU, 2000*int64(1+rng.IntN(3))), []string{resources.CPU}
	case 3:
		p.Requirements = p.Requirements.And(requirements.Of(labelZone, w.catalog.zoneNames()[0]))
	case 4:
		p.Labels = map[string]string{"team": one("a", "b")}
	}
	for range 2 + rng.IntN(4) {
		a := w.trialApp()
		a.budget, a.bootTime = nil, time.Second
		a.pattern.Need.CPU *= int64(1 + rng.IntN(9))
		own := cluster.AffinityTerm{Key: labelZone, Selector: a.appSelector()}
		switch rng.IntN(7) {
		case 0:
			a.pattern.NodeSelector = map[string]string{"team": one("a", "b", "c")}
		case 1:
			zones := w.catalog.zoneNames()
			a.pattern.NodeSelector = map[string]string{labelZone: zones[rng.IntN(len(zones))]}
		case 2:
			a.pattern.AntiAffinity = []cluster.AffinityTerm{own}
		case 3:
			a.pattern.Spread = []cluster.Spread{{Key: labelZone, MaxSkew: 1, Selector: a.appSelector()}}
		case 4:
			a.pattern.NodeAffinity = [][]requirements.Requirement{
				{requirements.Of(labelType, one("r5.large", "m5.2xlarge", "m5.none"))}}
		}
		w.workloads.startApp(a)
	}
}

// startGuarded starts apps that will be smaller.
func (w *world) startGuarded(rng *rand.Rand) (apps []*app) {
	for range 2 + rng.IntN(4) {
		a := w.trialApp()
		a.budget, a.bootTime, a.replicas = nil, time.Second, 3+rng.IntN(6)
		a.pattern.Need.CPU = 100 * int64(3+rng.IntN(9))
		if rng.IntN(5) == 0 {
			a.pattern.Spread = []cluster.Spread{{Key: labelHost, MaxSkew: 1, Selector: a.appSelector()}}
		}
		w.workloads.startApp(a)
		apps = append(apps, a)
	}
	return apps
}

// guard has pods, budgets, nodes and the pool keep nodes from disruption, which begins.
func (w *world) guard(rng *rand.Rand, apps []*app) {
	for _, a := range apps {
		switch rng.IntN(5) {
		case 0:
			a.pattern.DoNotDisrupt = "true"
			for _, p := range w.workloads.podsOf(a) {
				p.DoNotDisrupt = "true"
			}
		case 1:
			a.budget = &budget{minAvailable: a.replicas}
		}
	}
	for _, n := range selectInOrder(w.api.nodes, func(*node) bool { return true }) {
		if rng.IntN(8) == 0 {
			n.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
		}
	}
	d := &w.api.pools[0].Disruption
	d.Policy = []string{"WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "WhenEmpty"}[rng.IntN(3)]
	d.Budgets[0].Nodes = []string{"1", "2", "100%", "0"}[rng.IntN(4)]
	if rng.IntN(6) == 0 {
		d.SavesUSD = 0.3
	}
}

// writeEdited has the objects be what somebody made of them. Pods that are made from now on are so too.
func (w *world) writeEdited(s cluster.Snapshot) {
	before := w.bill.atOnce()
	for i, p := range s.Pods {
		at, was := w.api.pods[p.Key()], before.Pods[i]
		for _, o := range []*cluster.Pod{&at.Pod, &at.app.pattern} {
			if o.DoNotDisrupt, o.Spread = p.DoNotDisrupt, p.Spread; was.NodeName == "" {
				o.NodeSelector, o.NodeAffinity, o.Tolerations = p.NodeSelector, p.NodeAffinity, p.Tolerations
				o.Need, o.Affinity, o.AntiAffinity = p.Need, p.Affinity, p.AntiAffinity
			}
		}
	}
	for i, b := range s.Budgets {
		for _, a := range w.workloads.apps {
			if a.budget != nil && a.name == b.Name && a.pattern.Namespace == b.Namespace {
				a.budget.minAvailable -= int(b.DisruptionsAllowed - before.Budgets[i].DisruptionsAllowed)
			}
		}
	}
	for _, n := range s.Nodes {
		w.api.nodes[n.Name].Annotations = n.Annotations
	}
	w.api.pools, w.rules = s.Pools, s.Rules
	w.api.notifyChange(aPod, nil)
	w.scheduler.trySchedule()
}
