package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

// StoppedTrial is a CapacityBuffer of stopped capacity in a storm of its own: EC2 refuses starts, forgets or delays
// them, and people end, start and change what waits.
type StoppedTrial struct {
	// Calm plays waves of pods instead, and nothing fails but starts.
	Calm bool
	// Without plays the same waves without the buffer.
	Without bool
}

// StoppedOutcome holds the results for pods and stopped nodes.
type StoppedOutcome struct {
	Starts  int
	Pods    int
	Longest time.Duration // that a pod waited until it was ready
	Waited  time.Duration // of all pods
}

// stoppedTrial is the trial as it is played. The loop alone touches it.
type stoppedTrial struct {
	StoppedOutcome
	ran map[string]bool // pods that have been ready, by UID
}

// Times of a trial of stopped capacity.
const (
	stoppedFill  = 5 * time.Minute
	stoppedStorm = 30 * time.Minute
	waveEvery    = 14 * time.Minute
	waveStays    = 6 * time.Minute
	waves        = 5
)

// setUpStopped makes one pool, and a buffer of equal pods.
func (w *world) setUpStopped(trial StoppedTrial) {
	general := w.prepareOnePool()
	if w.drawChance(0.5) {
		general.Requirements = requirements.Set{}.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
	}
	general.Disruption = cluster.Disruption{Never: true}
	if !trial.Calm && w.drawChance(0.5) {
		general.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", After: 10 * time.Second}
	}
	w.api.pools = []cluster.Pool{general}
	w.plan.slowStart, w.plan.failsStart = []float64{0, 0.2}[w.rng.IntN(2)], []float64{0, 0.2}[w.rng.IntN(2)]
	buffer := w.drawBuffer()
	if !trial.Without {
		w.api.buffers = []cluster.StoppedBuffer{buffer}
	}
}

// prepareOnePool leaves one pool without limits, which nothing happens to but what a trial is about, and returns it.
func (w *world) prepareOnePool() cluster.Pool {
	w.plan.drifts, w.plan.focus, w.plan.budget, w.plan.patient = false, "", 0, false
	w.rules.MaxClaims, w.volumes.most = 100, 0
	w.catalog.market.Commitments = nil
	general, _ := w.api.poolOf("general")
	general.Limits, general.Limited = resources.List{}, nil
	w.api.pools = []cluster.Pool{general}
	maps.DeleteFunc(w.api.nodePools, func(name string, _ *v1.NodePool) bool { return name != general.Name })
	c := w.api.classes["default"]
	c.Finalizers = []string{awsv1.FinalizerTermination}
	c.Annotations = map[string]string{awsv1.AnnotationHash: c.Hash(caBundle),
		awsv1.AnnotationHashVersion: awsv1.HashVersion}
	nodeclass.UpdateStatus(c, w.account.resolveClass(c), time.Now())
	return general
}

// drawBuffer is a buffer of a few pods, all alike.
func (w *world) drawBuffer() cluster.StoppedBuffer {
	b := cluster.StoppedBuffer{Namespace: firstNamespace, Name: "spare"}
	need := resources.List{CPU: 100 * w.drawInt(4, 15), Memory: 512 * resources.MiB, Pods: 1}
	for i := range w.drawInt(1, 4) {
		name := fmt.Sprintf("capacity-buffer-spare-%d", i+1)
		b.Pods = append(b.Pods, cluster.Pod{Namespace: firstNamespace, Name: name, UID: "uid-" + name, Need: need,
			Priority: -1 << 31, Created: w.toSecond(), Unscheduled: true, Virtual: true})
	}
	return b
}

// playStopped fills the buffer, plays the storm or the waves, and asks for silence, a full buffer, and in the end for
// nothing.
func (w *world) playStopped(trial StoppedTrial) {
	w.setUpStopped(trial)
	w.workloads.drawDaemons()
	if trial.Calm {
		w.playWaves()
	} else {
		end := time.Now().Add(stoppedFill + stoppedStorm)
		w.stormStopped(end)
		w.runUntil(end, w.network.admitRequest)
	}
	w.endTrouble()
	w.runUntilEmpty(driftRest, fullRound, "not at rest", w.restProblems)
	w.runSilently(silentFor)
	if len(w.bad) > 0 {
		return
	}
	w.addTrace("-- the buffer is deleted --")
	w.api.buffers = nil
	w.runUntilEmpty(restFor, aWhile, "stopped nodes without a buffer", w.restProblems)
	if len(w.bad) == 0 {
		w.endEverything()
	}
}

// playWaves has pods come and go, and something happen to what waits just before some of them.
func (w *world) playWaves() {
	w.trouble, w.plan.together, w.plan.lost, w.plan.slow = false, 1, 0, 0
	w.api.pools[0].ExpireAfter, w.plan.stay = 0, 50*time.Second
	w.plan.bootTime, w.plan.powerOn = 20*time.Second, []time.Duration{0, 20 * time.Second,
		time.Minute}[w.rng.IntN(3)]
	a := w.trialApp()
	a.replicas, a.budget, a.stateful, a.bootTime = 0, nil, false, time.Second
	a.pattern.Owner, a.pattern.Need = cluster.OwnerOther, w.drawBuffer().Pods[0].Need
	w.workloads.startApp(a)
	for i := range waves {
		at := stoppedFill + time.Duration(i)*waveEvery + w.drawDuration(0, time.Minute)
		n, what := int(w.drawInt(1, 5)), w.rng.IntN(5)
		w.runAfter(at-2*time.Second, func() { w.spoilWaiting(what) })
		w.runAfter(at, func() { w.workloads.setReplicas(a, n) })
		w.runAfter(at+waveStays, func() { w.endWave(a) })
	}
	w.runUntil(time.Now().Add(stoppedFill+waves*waveEvery), w.network.admitRequest)
}

// endWave has the pods and their nodes go, so that the next wave finds none.
func (w *world) endWave(a *app) {
	for _, p := range w.workloads.podsOf(a) {
		if !w.stopped.ran[p.UID] {
			w.stopped.noteRun(p)
		}
	}
	w.ec2.scarce = map[instancetypes.OfferingKey]bool{}
	w.workloads.setReplicas(a, 0)
	for _, c := range selectInOrder(w.api.claims, func(c *claim) bool { return !c.Standby() }) {
		w.api.deleteClaim(c, nil)
	}
}

// noteRun remembers how long a pod has waited until it is ready.
func (t *stoppedTrial) noteRun(p *pod) {
	if t == nil || p.app.daemon || t.ran[p.UID] {
		return
	}
	t.ran[p.UID] = true
	t.Pods++
	t.Waited += time.Since(p.Created)
	t.Longest = max(t.Longest, time.Since(p.Created))
}

func (t *stoppedTrial) noteStart() {
	if t != nil {
		t.Starts++
	}
}

// waitingInstances returns the instances that are stopped and wait.
func (w *world) waitingInstances() []*machine {
	return selectInOrder(w.ec2.machines, func(m *machine) bool { return m.State == "stopped" && isIdle(w, m) })
}

// spoilWaiting spoils all that waits: EC2 has no capacity for it, or somebody ends or starts it.
func (w *world) spoilWaiting(what int) {
	for _, m := range w.waitingInstances() {
		switch what {
		case 0:
			w.ec2.scarce[instancetypes.OfferingKey{CapacityType: m.CapacityType, Type: m.Type, Zone: m.Zone}] = true
		case 1:
			w.ec2.endInstance(m, "somebody")
		case 2:
			w.ec2.restartInstance(m, "somebody")
		}
	}
}

// stormStopped has people, workloads and EC2 do things at random until the time given.
func (w *world) stormStopped(end time.Time) {
	var next func()
	next = func() {
		if time.Now().After(end) {
			return
		}
		if w.drawChance(0.5) {
			w.changeDemand()
		} else if !w.spoilOne() {
			w.disturbOne()
		}
		w.runAfter(w.drawDuration(2*time.Second, 80*time.Second), next)
	}
	w.runAfter(w.drawDuration(time.Minute, stoppedFill), next)
}

// changeDemand has pods come or go, or the buffer grow or shrink.
func (w *world) changeDemand() {
	a := w.workloads.anyApp()
	switch what := w.rng.IntN(8); {
	case a == nil || what < 2 && len(w.workloads.apps) < 7:
		w.workloads.startApp(w.trialApp())
	case what == 2:
		w.workloads.stopApp(a)
	case what == 3:
		n := len(w.api.buffers[0].Pods)
		w.api.buffers = []cluster.StoppedBuffer{w.resizeBuffer(w.api.buffers[0], int(w.drawInt(max(n-2, 1), n+1)))}
	default:
		w.workloads.setReplicas(a, int(w.drawInt(0, 7)))
	}
}

// resizeBuffer is kubectl patch of its replicas.
func (w *world) resizeBuffer(b cluster.StoppedBuffer, n int) cluster.StoppedBuffer {
	w.addTrace("the buffer is to have %d pods", n)
	pods := make([]cluster.Pod, n)
	for i := range pods {
		pods[i] = b.Pods[0]
		pods[i].Name = fmt.Sprintf("capacity-buffer-%s-%d", b.Name, i+1)
		pods[i].UID = "uid-" + pods[i].Name
	}
	b.Pods = pods
	return b
}

// spoilOne does something to one that waits; it is false where none does.
func (w *world) spoilOne() bool {
	m := w.storm.anyMachine(w.waitingInstances())
	if m == nil {
		return false
	}
	switch w.rng.IntN(5) {
	case 0:
		w.ec2.endInstance(m, "somebody")
	case 1:
		w.ec2.restartInstance(m, "somebody")
	case 2:
		types := slices.Sorted(maps.Keys(w.catalog.types))
		m.Type = types[w.rng.IntN(len(types))]
		w.addTrace("somebody makes %s a %s", m.ID, m.Type)
	case 3:
		w.ec2.scarce[instancetypes.OfferingKey{CapacityType: m.CapacityType, Type: m.Type, Zone: m.Zone}] = true
		w.addTrace("EC2 has no capacity for %s", m.ID)
	default:
		return false
	}
	return true
}

// disturbOne is a mishap of another kind.
func (w *world) disturbOne() {
	m := w.storm.anyMachine(selectInOrder(w.ec2.machines, func(m *machine) bool { return m.State == "running" }))
	names := slices.Sorted(maps.Keys(w.api.claims))
	switch what := w.rng.IntN(8); {
	case what == 0:
		w.ec2.changeSupply()
	case what == 1 && w.drawChance(0.3):
		w.account.newImage()
		w.account.edited = true
	case len(names) > 0 && what == 2:
		c := w.api.claims[names[w.rng.IntN(len(names))]]
		w.addTrace("somebody deletes claim %s", c.Name)
		w.api.deleteClaim(c, nil)
	case m == nil:
	case what == 3:
		w.ec2.stopInstance(m, "somebody", stoppedByUser)
	case what == 4:
		w.ec2.endInstance(m, "somebody")
	case what == 5 && m.node != nil && w.api.nodes[m.node.Name] == m.node:
		w.addTrace("somebody deletes node %s", m.node.Name)
		w.api.deleteNode(m.node, nil)
	case what == 6 && m.CapacityType == instancetypes.Spot:
		w.ec2.interruptInstance(m)
	}
}
