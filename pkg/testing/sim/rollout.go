package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/api/joiner/v1alpha1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

// RolloutTrial is a NodeRollout in a cluster whose EC2NodeClass finds another image, and what is wrong with that image.
// Without a fault it is a good one.
type RolloutTrial struct {
	NeverReady bool // no node becomes Ready on it
	Crash      bool // pods crash on it in a fifth of their starts
	Alarm      bool // a CloudWatch alarm fires while the second step goes on
	Aborted    bool // nothing is wrong with it, and people abort it by mistake, and resume it soon
	Rollback   bool // what fails is rolled back; else halted or rolled back
}

// isGood reports whether nothing is wrong with the image.
func (t RolloutTrial) isGood() bool { return !t.NeverReady && !t.Crash && !t.Alarm }

// RolloutOutcome holds the result of the image's rollout.
type RolloutOutcome struct {
	Phase   string // of the NodeRollout
	Trusted bool   // the image is the last good revision
	Failed  bool
	Ran     int  // instances that were launched with it
	Most    int  // that might be, by the steps that were reached; 0 after it was trusted
	Starts  int  // of pods on its nodes, until it was trusted or failed
	Crashed int  // of them
	Alarmed bool // the alarm fired
	Moved   int  // pods that were evicted
	Twice   int  // of them, more than once
}

// rolloutTrial is the trial as it is played. The loop alone touches it.
type rolloutTrial struct {
	RolloutTrial
	stored  *v1alpha1.NodeRollout
	version int // of it
	kept    []keptRevision

	image   string // the new one, empty before it is there
	quiet   bool   // EC2 takes nothing back
	ran     map[string]bool
	claims  int // most that there were since the image is there
	most    int // instances of the image that the steps reached so far allow
	starts  int
	crashed int
	moved   map[string]int  // evictions of pods, by key, since the image is there
	tried   map[string]bool // those that were evicted from a node of the image
	failed  bool
	trusted bool

	aborted time.Time // when people aborted it
	resumed bool
	anew    bool // it is resumed, and what it begins anew is not stored yet

	alarmDue bool // the second step has begun
	alarmed  bool // the alarm fires, from then on
	step     int  // of the image, as stored last
}

// keptRevision is a ControllerRevision.
type keptRevision struct {
	name  string
	class *awsv1.EC2NodeClass
}

// Times of a trial.
const (
	trialFill    = 25 * time.Minute
	trialFor     = 100 * time.Minute
	trialReady   = 3 * time.Minute
	trialPause   = 2 * time.Minute
	trialLook    = 10 * time.Second
	trialCrashes = 0.2
	trialAlarm   = 90 * time.Second // from the second step on, at most
)

// trialAlarmName is the CloudWatch alarm that the NodeRollout names.
const trialAlarmName = "errors"

// imageFault says what is wrong with an image.
type imageFault struct {
	neverReady bool
	crash      float64
}

// setUpTrial makes a quiet cluster with one pool, whose nodes have the first image, and a NodeRollout.
func (w *world) setUpTrial(trial RolloutTrial) {
	w.plan.neverJoins, w.plan.neverReady, w.plan.drifts, w.plan.focus, w.plan.budget = 0, 0, false, "", 0
	w.catalog.market.Commitments = nil
	general, _ := w.api.poolOf("general")
	general.Limits, general.Limited, general.ExpireAfter = resources.List{}, nil, 0
	general.Requirements = requirements.Set{}.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
	general.Disruption = cluster.Disruption{Never: true,
		Budgets: []cluster.NodeBudget{{Nodes: strconv.FormatInt(w.drawInt(1, 3), 10), Every: true}}}
	w.api.pools = []cluster.Pool{general}
	maps.DeleteFunc(w.api.nodePools, func(name string, _ *v1.NodePool) bool { return name != general.Name })
	c := w.api.classes["default"]
	c.Finalizers = []string{awsv1.FinalizerTermination}
	c.Annotations = map[string]string{awsv1.AnnotationHash: c.Hash(caBundle),
		awsv1.AnnotationHashVersion: awsv1.HashVersion}
	nodeclass.UpdateStatus(c, w.account.resolveClass(c), time.Now())

	w.trial.RolloutTrial, w.trial.quiet = trial, w.drawChance(0.6)
	w.trial.ran, w.trial.moved, w.trial.tried = map[string]bool{}, map[string]int{}, map[string]bool{}
	w.trial.stored = w.drawRollout()
}

// drawRollout is a NodeRollout of two steps at least, so that an alarm may fire in the second.
func (w *world) drawRollout() *v1alpha1.NodeRollout {
	number := func(n int32) *int32 { return &n }
	nodes := func(n int32) v1alpha1.RolloutStep { return v1alpha1.RolloutStep{Nodes: number(n)} }
	percent := func(n int32) v1alpha1.RolloutStep { return v1alpha1.RolloutStep{Percent: number(n)} }
	pause := v1alpha1.RolloutStep{Pause: &v1alpha1.RolloutPause{Duration: &v1.Duration{Duration: trialPause}}}
	o := &v1alpha1.NodeRollout{}
	o.Name, o.UID, o.Generation = "canary", "uid-canary", 1
	o.Spec.NodePoolSelector.Names = []string{"general"}
	o.Spec.Steps = [][]v1alpha1.RolloutStep{
		{nodes(1), nodes(2)},
		{nodes(1), pause, percent(50)},
		{percent(10), pause, percent(60), percent(100)},
	}[w.rng.IntN(3)]
	o.Spec.OnFailure = []v1alpha1.OnFailure{v1alpha1.Halt, v1alpha1.Rollback}[w.rng.IntN(2)]
	if w.trial.Rollback {
		o.Spec.OnFailure = v1alpha1.Rollback
	}
	o.Spec.Analysis = &v1alpha1.RolloutAnalysis{ReadyWithin: &v1.Duration{Duration: trialReady},
		MinPods: number(5), Alarms: []string{trialAlarmName}}
	return o
}

// playTrial fills the cluster, brings the new image, and waits for what becomes of it.
func (w *world) playTrial(trial RolloutTrial) RolloutOutcome {
	w.setUpTrial(trial)
	w.workloads.drawDaemons()
	for range w.drawInt(5, 9) {
		w.workloads.startApp(w.trialApp())
	}
	w.waitFor(trialFill, "the cluster does not fill", func() bool {
		return w.trial.stored.Status.LastGoodRevision != "" && len(podProblems(w)) == 0
	})
	w.account.newImage()
	w.trial.image = fmt.Sprintf("ami-%d", w.account.image)
	fault := imageFault{neverReady: trial.NeverReady}
	if trial.Crash {
		fault.crash = trialCrashes
	}
	w.account.faults = map[string]imageFault{w.trial.image: fault}
	w.disturbTrial(time.Now().Add(trialFor))
	if trial.Aborted {
		w.runAfter(trialLook, w.abortAndResume)
	}
	w.waitFor(trialFor, "", w.trialIsOver)
	w.endTrouble()
	w.waitFor(trialFor, "the trial does not end", w.trialIsOver)
	w.runUntilEmpty(driftRest, fullRound, "not at rest", w.restProblems)
	w.runSilently(silentFor)
	w.judgeTrial()
	return w.trial.outcome()
}

// trialApp is a StatefulSet, so that a pod is known again when it was evicted.
func (w *world) trialApp() *app {
	w.made++
	a := &app{name: fmt.Sprintf("app%d", w.made), replicas: int(w.drawInt(3, 8)), stateful: true,
		bootTime: w.drawDuration(time.Second, 8*time.Second), stopTime: w.drawDuration(0, 5*time.Second)}
	a.pattern = cluster.Pod{Namespace: firstNamespace, Labels: map[string]string{"app": a.name},
		Owner: cluster.OwnerStatefulSet, GraceSec: 10,
		Need: resources.List{CPU: 100 * w.drawInt(2, 6), Memory: 256 * resources.MiB, Pods: 1}}
	if w.drawChance(0.3) {
		a.budget = &budget{minAvailable: a.replicas - 1}
	}
	return a
}

// waitFor runs until it is so; the invariant, if there is one, is broken when that takes too long.
func (w *world) waitFor(limit time.Duration, invariant string, isSo func() bool) {
	for end := time.Now().Add(limit); len(w.bad) == 0; {
		w.runUntil(time.Now().Add(10*time.Second), w.network.admitRequest)
		if isSo() {
			return
		}
		if time.Now().After(end) {
			if invariant != "" {
				w.addViolation(invariant, "after %s: %+v, %v", limit, w.trial.stored.Status, podProblems(w))
			}
			return
		}
	}
}

// disturbTrial scales apps now and then, and takes instances back where the trial is not quiet.
func (w *world) disturbTrial(end time.Time) {
	var next func()
	next = func() {
		if !w.trouble || time.Now().After(end) {
			return
		}
		if a := w.workloads.anyApp(); w.trial.quiet || w.drawChance(0.7) {
			w.workloads.setReplicas(a, int(w.drawInt(2, 9)))
		} else if m := w.storm.anyMachine(w.ec2.livingInstances()); m != nil {
			w.ec2.interruptInstance(m)
		}
		w.runAfter(w.drawDuration(time.Minute, 10*time.Minute), next)
	}
	w.runAfter(w.drawDuration(time.Minute, 5*time.Minute), next)
}

// abortAndResume has people abort the rollout when it has two nodes, and resume it a little later, when some of them
// may be on their way out: of a rollback as a rule while they still stand and take no pods.
func (w *world) abortAndResume() {
	t := w.trial
	st, set := t.stored.Status, func(key, value string) {
		o := t.stored.DeepCopy()
		o.Annotations = map[string]string{key: value}
		t.version++
		t.stored = o
	}
	isIt := t.revisionImage(st.Revision) == t.image
	switch {
	case t.trusted, t.failed && t.aborted.IsZero():
		return
	case isIt && t.aborted.IsZero() && len(t.ran) > 1 && st.Phase != cluster.RolloutHealthy:
		t.aborted = time.Now()
		w.addTrace("people abort the rollout")
		set(v1alpha1.AnnotationAbort, st.Revision)
	case isIt && t.failed && st.ResumeToken != "" && (w.drawChance(0.1) || w.rollsBack() && w.drawChance(0.5)):
		t.failed, t.resumed, t.anew = false, true, true
		w.addTrace("people resume the rollout")
		set(v1alpha1.AnnotationResume, st.ResumeToken)
		return
	}
	w.runAfter(trialLook, w.abortAndResume)
}

// rollsBack reports whether a node of the image stands that takes no pods any more, because the image failed.
func (w *world) rollsBack() bool {
	for _, n := range w.api.nodes {
		if n.machine != nil && n.machine.ImageID == w.trial.image &&
			slices.ContainsFunc(n.Taints, cluster.Taint.IsFailedRevision) {
			return true
		}
	}
	return false
}

// trialIsOver reports whether the image is trusted and everywhere, or has failed and is gone where it is rolled back.
func (w *world) trialIsOver() bool {
	with, without := 0, 0
	for _, m := range w.ec2.livingInstances() {
		if m.ImageID == w.trial.image {
			with++
		} else {
			without++
		}
	}
	t := w.trial
	if t.failed && !t.aborted.IsZero() && !t.resumed {
		return false
	}
	return t.trusted && without == 0 || t.failed && (t.stored.Spec.OnFailure == v1alpha1.Halt || with == 0)
}

// judgeTrial checks what must be true of a trial in the end.
func (w *world) judgeTrial() {
	t := w.trial
	switch {
	case len(w.bad) > 0:
	case t.isGood() && t.quiet && !t.trusted:
		w.addViolation("good image", "it is not trusted: %+v", t.stored.Status)
	case len(movesProblems(t)) > 0:
		w.addViolation("moved too often", "%v", movesProblems(t))
	case t.NeverReady && !t.failed, t.alarmed && !t.failed && !t.trusted:
		w.addViolation("bad image", "it has not failed: %+v", t.stored.Status)
	}
}

func (t *rolloutTrial) outcome() RolloutOutcome {
	out := RolloutOutcome{Phase: t.stored.Status.Phase, Trusted: t.trusted, Failed: t.failed, Ran: len(t.ran),
		Most: t.most, Starts: t.starts, Crashed: t.crashed, Alarmed: t.alarmed, Moved: len(t.moved)}
	for _, n := range t.moved {
		if n > 1 {
			out.Twice++
		}
	}
	return out
}

// alarmState returns the state of the alarm that the NodeRollout names.
func (t *rolloutTrial) alarmState() string {
	if t.alarmed {
		return cluster.AlarmFires
	}
	return "OK"
}

// scheduleAlarm has the alarm fire some time after the second step of the image has begun, unless the image is trusted
// by then. It does not end.
func (w *world) scheduleAlarm() {
	t := w.trial
	if !t.Alarm || t.alarmDue || t.step < 1 {
		return
	}
	t.alarmDue = true
	w.runAfter(w.drawDuration(0, trialAlarm), func() {
		if !t.trusted && !t.failed {
			t.alarmed = true
			w.addTrace("the alarm fires")
		}
	})
}

// revisionImage is the image of a revision that is kept, or empty.
func (t *rolloutTrial) revisionImage(name string) string {
	i := slices.IndexFunc(t.kept, func(k keptRevision) bool { return k.name == name })
	if i < 0 || len(t.kept[i].class.Status.AMIs) == 0 {
		return ""
	}
	return t.kept[i].class.Status.AMIs[0].ID
}

// noteStart counts the start of a pod on the image.
func (t *rolloutTrial) noteStart(image string, crashed bool) {
	if t == nil || t.image == "" || image != t.image || t.trusted || t.failed {
		return
	}
	if t.starts++; crashed {
		t.crashed++
	}
}

// noteStatus remembers what a status that is stored allows.
func (w *world) noteStatus() {
	t := w.trial
	st, claims := t.stored.Status, len(w.api.claims)
	if t.claims = max(t.claims, claims); t.image == "" {
		return
	}
	t.trusted = t.trusted || t.revisionImage(st.LastGoodRevision) == t.image
	for _, name := range st.FailedRevisions {
		t.failed = t.failed || t.revisionImage(name) == t.image
	}
	if t.revisionImage(st.Revision) != t.image || st.Phase == cluster.RolloutHealthy {
		return
	}
	if t.anew && slices.Contains([]string{cluster.RolloutProgressing, cluster.RolloutPaused}, st.Phase) {
		t.countAnew(w)
	}
	t.step = int(st.Step)
	w.scheduleAlarm()
	for _, s := range t.stored.Spec.Steps[:min(int(st.Step)+1, len(t.stored.Spec.Steps))] {
		switch {
		case s.Nodes != nil:
			t.most = max(t.most, int(*s.Nodes))
		case s.Percent != nil:
			t.most = max(t.most, (int(*s.Percent)*t.claims+99)/100)
		}
	}
}

// countAnew counts from a resumption on: the steps allow again what they allow, and of the nodes that ran the image
// those that stay are among it.
func (t *rolloutTrial) countAnew(w *world) {
	t.anew, t.most, t.step, t.ran = false, 0, 0, map[string]bool{}
	for _, m := range w.ec2.livingInstances() {
		if c := w.api.byUID[m.owner]; m.ImageID == t.image && c != nil && c.Deleting.IsZero() {
			t.ran[m.ID] = true
		}
	}
}
