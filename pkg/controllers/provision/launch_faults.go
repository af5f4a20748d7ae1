package provision

import (
	"context"
	"fmt"
	"sync"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/ceiling"
)

// ProcessState is what an invocation leaves to the next one of its process: what decisions fail about, or the API
// server refuses, and are taken without, and how fast the process launches. The zero value is ready.
type ProcessState struct {
	aside    []cluster.Aside
	refused  refusedClaims
	pacing   ceiling.Pacing
	launched int // nodes, by the last pass
	late     lateDecision
	help     wouldHelp
	unused   unusedNodes
}

// launchFaults are the NodeClaims about whose launch a panic was caught. The zero value is ready; it may be used by
// several goroutines.
type launchFaults struct {
	mu    sync.Mutex
	rest  controllers.StepBackoff // by UID
	fresh []plan.Fault            // since they were taken last
}

func (f *launchFaults) addFault(uid string, fault plan.Fault, why error, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rest == nil {
		f.rest = controllers.StepBackoff{}
	}
	f.rest.AddFailure(uid, why, now)
	f.fresh = append(f.fresh, fault)
}

// isBackingOff reports whether the claim is to be left alone for now.
func (f *launchFaults) isBackingOff(uid string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rest.IsBackingOff(uid, now)
}

// takeFaults returns what is new.
func (f *launchFaults) takeFaults() []plan.Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.fresh
	f.fresh = nil
	return out
}

// launchClaim launches one instance for a stored claim, as launch does. A claim about which that panics says so and
// rests for a while; its pods wait for it, and all others go on.
func (l *claimLauncher) launchClaim(ctx context.Context, c cluster.Claim, stored bool) (after cluster.Claim,
	err error) {
	return l.shieldClaim(ctx, c, func() (cluster.Claim, error) { return l.launch(ctx, c, stored) })
}

// shieldClaim does something about a claim for its launch. Where that panics the claim stays as it is.
func (l *claimLauncher) shieldClaim(ctx context.Context, c cluster.Claim,
	do func() (cluster.Claim, error)) (after cluster.Claim, err error) {
	p := faultisolation.Catch(func() { after, err = do() })
	if p == nil {
		return after, err
	}
	fault := plan.Fault{Kind: cluster.ClaimPart, Name: c.Name, Pods: c.NominatedPods(), Why: p.Why, Stack: p.Stack}
	l.p.Shield().Report(fault)
	l.p.mishaps.addFault(c.UID, fault, p, l.p.Now())
	ctx = context.WithoutCancel(ctx)
	why := "Joiner itself fails about launching its node, and tries again: " + p.Why
	l.p.events().recordEvents(ctx, append(l.p.events().eventsOn(l.s, fault.Pods, why),
		cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true,
			Reason: controllers.ReasonDecisionFailed, Message: why}))
	after, err = l.recordUnlaunched(ctx, c, controllers.ReasonDecisionFailed, why)
	if err != nil { // the launch may have written it before
		l.p.Log.Warn("status of claim "+c.Name, "error", err)
	}
	return after, nil
}

// launchTogether launches claims that share a request. Where that panics, each is launched by itself.
func (l *claimLauncher) launchTogether(ctx context.Context, batch []cluster.Claim,
	do func(context.Context, []cluster.Claim) ([]cluster.Claim, error)) (after []cluster.Claim, err error) {
	failed := l.p.Shield().Do(fmt.Sprintf("a request for %d NodeClaims", len(batch)),
		func() error { after, err = do(ctx, batch); return nil })
	if failed == nil {
		return after, err
	}
	alone := make([]cluster.Claim, len(batch))
	for i, c := range batch {
		c.Version = ""
		alone[i] = c
	}
	return l.launchSeparately(ctx, alone)
}

// eventsOn are events on the pods.
func (w eventWriter) eventsOn(s cluster.Snapshot, pods []string, message string) (out []cluster.Event) {
	on := lists.SetOf(pods)
	for _, pod := range s.Pods {
		if on[pod.Key()] && !pod.Virtual && len(out) < maxEvents {
			out = append(out, cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
				Warning: true, Reason: controllers.ReasonDecisionFailed, Message: message})
		}
	}
	return out
}

// recordFaults logs and counts what a decision failed about, and says so on NodePools and on pods that run. Pods that
// wait say so with their reason.
func (c *Controller) recordFaults(ctx context.Context, s cluster.Snapshot, faults []plan.Fault) {
	c.Shield().Report(faults...)
	var events []cluster.Event
	for _, f := range faults {
		pool, isPool := s.PoolOf(f.Name)
		switch {
		case f.Kind == cluster.PoolPart && isPool && len(f.Pods) == 0:
			events = append(events, poolEvent(pool,
				"Joiner itself fails about it, and leaves it out so that others are used: "+f.Why))
		case f.Kind == cluster.PoolPart && isPool:
			events = append(events, poolEvent(pool,
				fmt.Sprintf("Joiner itself fails about pods on its nodes, and keeps them off: %s: %s",
					plan.NamePods(f.Pods), f.Why)))
		case f.Kind == cluster.RunningPods:
			events = append(events, c.events().eventsOn(s, f.Pods,
				"Joiner itself fails about what this pod asks for, and reckons with its room alone: "+f.Why)...)
		}
	}
	c.events().recordEvents(ctx, events[:min(len(events), maxEvents)])
}

func poolEvent(pool cluster.Pool, message string) cluster.Event {
	return cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
		Reason: controllers.ReasonDecisionFailed, Message: message}
}
