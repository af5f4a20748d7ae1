package rollout

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// Plan holds what is to be done about a rollout: to keep the class as a revision, to store the status, to tell of
// it, and to forget revisions. They are done in this order, and each may be repeated.
type Plan struct {
	Keep   string                // the revision to keep; empty for none
	Status cluster.RolloutStatus // to be stored, unchanged parts included
	Events []cluster.Event       // to write, in this order
	Forget []string              // revisions
}

// mostFailed caps the failed revisions that are remembered, mostTold the tried nodes.
const (
	mostFailed = 10
	mostTold   = 500
)

const timeForm = "2006-01-02 15:04:05 UTC"

// Advance takes the next step of the rollout. The revision that the class has when it is first seen is trusted; each
// other one is tried. A revision that failed is tried again only when people resume it.
func Advance(s cluster.Snapshot, r cluster.Rollout) Plan {
	out := Plan{Status: r.Status}
	st := &out.Status
	st.Refused, st.Unavailable, st.Message, st.ResumeToken = "", "", "", ""
	st.NoAlarm = alarmProblem(r)
	class, refused := ClassOf(s, r)
	if refused != "" {
		st.Refused, st.Message = refused, refused
		return out
	}
	a := advance{s: s, r: r, class: class, claims: claimsOf(s, r), revisionOf: revisionOf(r), out: &out}
	a.keepCurrent()
	a.choosePhase()
	a.count()
	st.Unavailable = a.unavailable()
	out.Forget = surplusRevisions(r, *st, lists.Set(a.claims, a.revisionOf))
	return out
}

type advance struct {
	s      cluster.Snapshot
	r      cluster.Rollout
	class  string
	claims []cluster.Claim
	now    string // the revision that the class has, empty while nobody knows
	out    *Plan

	revisionOf func(cluster.Claim) string
}

// keepCurrent keeps the class as it is, if no revision is like it. The first one is good.
func (a *advance) keepCurrent() {
	name, ok := currentRevision(a.s, a.r, a.class)
	if !ok {
		a.out.Status.Message = "EC2NodeClass " + a.class + " is not ready, or has not been looked at yet"
		return
	}
	a.now = name
	if _, kept := keptRevision(a.r, name); !kept {
		a.out.Keep = name
	}
	if st := &a.out.Status; st.LastGood == "" {
		st.LastGood, st.Revision, st.Phase, st.Step = name, name, cluster.RolloutHealthy, 0
		a.tell(false, "RevisionTrusted", "revision %s is what nodes have when the NodeRollout is made, and is trusted", name)
	}
}

func (a *advance) tell(warning bool, reason, format string, args ...any) {
	a.out.Events = append(a.out.Events, cluster.Event{Kind: "NodeRollout", Name: a.r.Name, UID: a.r.UID,
		Warning: warning, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// choosePhase decides what the rollout is at, and takes the step if it may.
func (a *advance) choosePhase() {
	st := &a.out.Status
	switch {
	case st.LastGood == "":
	case a.r.Pinned != "":
		st.Phase, st.Message = cluster.RolloutPinned, "spec.pinnedRevision is "+a.r.Pinned
	case a.now == "" && isUnderWay(*st):
		a.takeSteps() // what is tried is judged all the same
	case a.now == "":
	case a.now == st.LastGood:
		a.finishRollback()
	case slices.Contains(st.Failed, a.now):
		a.remainFailed()
	case a.now != st.Revision || !isUnderWay(*st):
		a.begin()
		a.takeSteps()
	default:
		a.takeSteps()
	}
}

// isUnderWay reports whether a revision is tried.
func isUnderWay(st cluster.RolloutStatus) bool {
	return st.Phase == cluster.RolloutProgressing || st.Phase == cluster.RolloutPaused
}

// finishRollback ends a rollout whose class is back at the last good revision.
func (a *advance) finishRollback() {
	st := &a.out.Status
	if st.Revision != st.LastGood || st.Phase != cluster.RolloutHealthy {
		a.tell(false, "RolloutHealthy", "EC2NodeClass %s is at revision %s, the last good one", a.class, st.LastGood)
	}
	st.Phase, st.Revision, st.Step, st.Allowed = cluster.RolloutHealthy, st.LastGood, 0, 0
	st.Tried, st.Evidence, st.OldPods = nil, nil, nil
}

// begin begins the rollout of the revision that the class has.
func (a *advance) begin() {
	st := &a.out.Status
	st.Phase, st.Revision, st.Step, st.StepStarted = cluster.RolloutProgressing, a.now, 0, a.s.Now
	st.Tried, st.Evidence, st.OldPods, st.Allowed = nil, nil, nil, 0
	if a.r.Status.Revision != a.now {
		a.r.Workloads = nil // they were counted by the nodes of another revision
	}
	a.tell(false, "RolloutStarted", "revision %s is tried", a.now)
}

// retryToken names the failure that people end by resuming. Each has another name: what let the revision be tried again
// once does not let it be when it fails again.
func retryToken(revision string, failed time.Time) string {
	return fmt.Sprintf("%s/retry/%d", revision, failed.Unix())
}

// remainFailed leaves a failed revision alone until people resume it.
func (a *advance) remainFailed() {
	st := &a.out.Status
	if st.Revision != a.now {
		st.Revision, st.Tried, st.Evidence, st.OldPods = a.now, nil, nil, nil
	}
	st.Phase = a.failedPhase()
	token := a.r.Status.ResumeToken
	if !strings.HasPrefix(token, a.now+"/retry") {
		token = retryToken(a.now, a.s.Now)
	}
	if a.r.Resume == token && a.r.Abort != a.now {
		st.Failed = slices.DeleteFunc(slices.Clone(st.Failed), func(f string) bool { return f == a.now })
		a.begin()
		a.takeSteps()
		return
	}
	st.Allowed, st.ResumeToken = 0, token
	st.Message = "revision " + a.now + " failed: nothing more is launched with it until it is resumed"
	if n := len(st.Evidence); n > 0 && strings.HasPrefix(st.Evidence[0], "failed: ") {
		st.Message = st.Evidence[0] + "; nothing more is launched with revision " + a.now
	}
}

func (a *advance) failedPhase() string {
	if a.r.Rollback {
		return cluster.RolloutRollingBack
	}
	return cluster.RolloutHalted
}

// fail stops the rollout of the revision.
func (a *advance) fail(why string, words []string) {
	st := &a.out.Status
	st.Failed = append(slices.Clone(st.Failed), st.Revision)
	st.Failed = st.Failed[max(0, len(st.Failed)-mostFailed):]
	st.Phase, st.Allowed, st.ResumeToken = a.failedPhase(), 0, retryToken(st.Revision, a.s.Now)
	st.Evidence = []string{"failed: " + why}
	for _, w := range words {
		if w != why {
			st.Evidence = append(st.Evidence, w)
		}
	}
	st.Message = "failed: " + why
	reason := "RolloutHalted"
	if a.r.Rollback {
		reason = "RolloutRolledBack"
	}
	a.tell(true, reason, "revision %s failed at step %d: %s", st.Revision, st.Step, why)
}

// takeSteps judges the revision, and takes as many steps as are done.
func (a *advance) takeSteps() {
	st := &a.out.Status
	refunds := a.updateTried()
	if a.r.Abort == st.Revision {
		a.fail("people aborted it", st.Evidence)
		return
	}
	st.OldPods = rememberOld(st.OldPods, a.r.Workloads, a.s.Now)
	r := a.r
	r.Status = *st
	f := analyze(a.s, r, st.Tried)
	if refunds > mostRefunds && f.failed == "" {
		f.fail("EC2 took %d new nodes before they proved anything", refunds)
	}
	if st.Evidence = f.words; f.failed != "" {
		a.fail(f.failed, f.words)
		return
	}
	st.Phase = cluster.RolloutProgressing
	if f.stalls != "" {
		a.stall(f.stalls)
		return
	}
	for ; st.Step < len(a.r.Steps); st.Step++ {
		wait, paused := a.waitsFor(a.r.Steps[st.Step])
		if wait == "" && !a.isResumed() {
			if wait = a.awaitsEvidence(f); wait == "" && f.bad != "" {
				st.Evidence = f.words
				a.fail(f.bad, f.words)
				return
			}
		}
		if wait != "" {
			if paused {
				st.Phase = cluster.RolloutPaused
			}
			st.Message = wait
			break
		}
		a.tell(false, "RolloutStepDone", "step %d of revision %s is done", st.Step, st.Revision)
		st.StepStarted = a.s.Now
	}
	if st.Step >= len(a.r.Steps) {
		a.trust(f)
		return
	}
	st.Allowed = max(st.Allowed, a.target(st.Step)+refunds)
}

// stall takes no step. A pause that people did not end stays one, which they may end meanwhile.
func (a *advance) stall(why string) {
	st := &a.out.Status
	st.Message = why
	if st.Step < len(a.r.Steps) && a.r.Steps[st.Step].Pause && !a.isResumed() {
		st.Phase, st.ResumeToken = cluster.RolloutPaused, pauseToken(*st)
	}
}

// trust makes the revision the last good one: its steps are done.
func (a *advance) trust(f finding) {
	st := &a.out.Status
	a.tell(false, "RolloutCompleted", "revision %s has taken its steps and is the last good one: %s", st.Revision,
		tellPower(f.compared))
	st.PreviousGood, st.LastGood = st.LastGood, st.Revision
	st.Phase, st.Allowed, st.Tried, st.Step = cluster.RolloutHealthy, 0, nil, 0
	st.Message, st.OldPods = "", nil
}

// target returns the number of nodes that may have the revision at the step: what the largest step so far says.
func (a *advance) target(step int) (n int) {
	total := len(a.claims)
	for _, one := range a.r.Steps[:step+1] {
		n = max(n, one.Nodes, (one.Percent*total+99)/100)
	}
	return n
}

// isResumed reports whether people ended the pause that the step is.
func (a *advance) isResumed() bool {
	st := a.out.Status
	return a.r.Steps[st.Step].Pause && a.r.Resume == pauseToken(st)
}

func pauseToken(st cluster.RolloutStatus) string { return fmt.Sprintf("%s/%d", st.Revision, st.Step) }

// awaitsEvidence returns the evidence that a step waits for which is done otherwise. It does so no longer than a node
// may take to get ready, from when the last new node was initialized on.
func (a *advance) awaitsEvidence(f finding) string {
	if f.awaits == "" {
		return ""
	}
	var last time.Time
	for _, c := range a.claims {
		k := c.Condition(api.ConditionInitialized)
		if a.revisionOf(c) == a.out.Status.Revision && k.Status == "True" && k.Since.After(last) {
			last = k.Since
		}
	}
	until := last.Add(a.r.ReadyWithin)
	if last.IsZero() || !a.s.Now.Before(until) {
		return ""
	}
	return "waits until " + until.UTC().Format(timeForm) + " for " + f.awaits
}

// waitsFor returns what the step waits for, or nothing. paused tells a wait that only time or people end.
func (a *advance) waitsFor(step cluster.RolloutStep) (why string, paused bool) {
	st := a.out.Status
	if step.Pause {
		token := pauseToken(st)
		until := st.StepStarted.Add(step.For)
		switch {
		case a.r.Resume == token, step.For > 0 && !a.s.Now.Before(until):
			return "", false
		case step.For > 0:
			a.out.Status.ResumeToken = token
			return "paused until " + until.UTC().Format(timeForm), true
		}
		a.out.Status.ResumeToken = token
		return "paused until people resume it", true
	}
	count := map[string]int{}
	for _, t := range st.Tried {
		count[t.State]++
	}
	proven, starting := count[cluster.TriedInitialized], count[cluster.TriedStarting]
	want, old := a.target(st.Step), a.oldNodes()
	if starting == 0 && proven > 0 && (proven >= want || old == 0) {
		return "", false
	}
	return fmt.Sprintf("%d of %d nodes have the revision and are initialized", proven, min(want, max(proven+starting+old, 1))),
		false
}
