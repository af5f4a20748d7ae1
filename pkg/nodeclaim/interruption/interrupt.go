package interruption

import (
	"cmp"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

// Kind is the subject of a notice, in the words of the metrics.
type Kind string

// The kinds of notices.
const (
	Spot        Kind = "spot_interrupted"
	Reservation Kind = "capacity_reservation_interrupted"
	Rebalance   Kind = "rebalance_recommendation"
	Scheduled   Kind = "scheduled_change"
	Running     Kind = "instance_running"
	Stopping    Kind = "instance_stopping"
	Stopped     Kind = "instance_stopped"
	Ending      Kind = "instance_shutting_down"
	Ended       Kind = "instance_terminated"
)

const (
	noticeTime = 2 * time.Minute  // between an interruption warning and the end
	safety     = 10 * time.Second // by which a drain ends before the instance does
	least      = 5 * time.Second  // that a drain gets however late the notice is
)

// Notice is one warning about one instance.
type Notice struct {
	Kind     Kind
	Instance string    // instance id
	Time     time.Time // of the event, by the clock of AWS
	At       time.Time // when EC2 acts, zero if the notice does not say
	Action   string    // terminate, stop or hibernate; empty if the notice does not say
	InForce  bool      // At is what EC2's own status says now, and no event that may be late or out of date
}

// isStateChange reports whether the notice is about a state, which lifecycle and provision find out by themselves.
func (n Notice) isStateChange() bool {
	return n.Kind == Running || n.Kind == Stopping || n.Kind == Stopped || n.Kind == Ending || n.Kind == Ended
}

// Urgent reports whether the notice leaves no more than minutes.
func (n Notice) Urgent() bool { return n.Kind == Spot || n.Kind == Reservation }

// PodRemoval says what becomes of the pods of a node on which nothing can be drained any more.
type PodRemoval int

// What to do with the pods.
const (
	LeaveToDrain PodRemoval = iota // lifecycle drains
	EndPods                        // the kubelet goes down: delete them, so that others are made in their place
	ForgetPods                     // nothing runs there any more: remove them
)

// Response holds what a notice asks for. The zero value asks for nothing.
type Response struct {
	Claim cluster.Claim // of the instance; zero unless Found
	Found bool          // a claim has the instance
	Final bool          // not found, and the instance cannot turn out to be ours later
	// not found, and worth deciding again when launches have been written down
	Later       bool
	DeleteClaim bool // false when it is being deleted already
	// by when its pods must be gone, to be written onto the claim before; zero for no change
	Deadline time.Time
	// until when its pods stay for their replacement to be asked for; zero for not
	First       time.Time
	Unavailable []instancetypes.UnavailableOffering // offerings not to be bought for a while, without Until
	Leave       ReplaceRequest                      // the node is to be left, replacement first; zero for not
	Pods        PodRemoval                          // what becomes of its pods beside a drain
	Release     bool                                // the instance is gone: let go of node and claim
	Drain       bool                                // lifecycle has something to do now
	Provide     bool                                // provision has something to do now
	Tell        []NoticeEvent                       // events to write, in this order
	Why         string                              // what was decided, for the log
}

// NoticeEvent is an event to write onto the claim and its node.
type NoticeEvent struct {
	Warning         bool   // of type Warning, not Normal
	Reason, Message string // a word, and a sentence
}

// Interrupted decides about a warning that EC2 takes an instance back: the offering is unavailable, the claim is marked
// for deletion, and its pods get until shortly before the end, whatever budgets and do-not-disrupt say.
func Interrupted(n Notice, claims []cluster.Claim, now time.Time) Response {
	o := outcomeFor(n, claims, now)
	if !o.Found {
		return o
	}
	o.Deadline, o.First = earlierDeadline(o.Claim, podDeadline(n, now), now),
		replacementDeadline(o.Claim, podDeadline(n, now), now)
	o.DeleteClaim, o.Drain, o.Provide = o.Claim.Deleting.IsZero(), true, true
	o.Why = "its pods get until " + reasonText(podDeadline(n, now))
	offering := instancetypes.OfferingKeyOf(o.Claim.Labels)
	told := NoticeEvent{true, "SpotInterrupted", "EC2 takes the spot instance " + n.Instance + " back in two minutes"}
	bought := instancetypes.Spot
	if n.Kind == Reservation {
		told.Reason, bought = "CapacityReservationInstanceInterrupted", instancetypes.Reserved
		told.Message = "the capacity reservation of instance " + n.Instance + " is taken back in two minutes"
	}
	if offering.Type != "" && offering.Zone != "" && offering.CapacityType == bought {
		o.Unavailable = []instancetypes.UnavailableOffering{{OfferingKey: offering,
			Scope: o.Claim.Labels[instancetypes.LabelReservationID], Why: told.Reason}}
	}
	return o.addEvent(told)
}

// StateChanged decides about the new state of an instance. Running is to be brought into service; everything else ends
// the claim, whoever brought it about, and its pods do not wait for a drain that no kubelet can carry out.
func StateChanged(n Notice, claims []cluster.Claim, now time.Time) Response {
	o := outcomeFor(n, claims, now)
	switch {
	case n.Kind == Running && !o.Found:
		o.Provide = !o.Final // a launch whose reply was lost is adopted
		return o
	case !o.Found:
		return o
	case n.ownStop(o.Claim):
		o.Drain, o.Why = n.Kind == Stopped && o.Claim.IsStopping(), "we stop it, and keep it for pods that are yet to come"
		return o
	case n.Kind == Running:
		o.Drain = o.Claim.Deleting.IsZero() && !o.Claim.Is(v1.ConditionInitialized)
		o.Why = "it is in service already, or is leaving it"
		if o.Drain {
			o.Why = "its node is about to join"
		}
		return o
	}
	ends := n.Kind == Ending || n.Kind == Ended
	if ends && o.Claim.Deleting.IsZero() && !o.Claim.Is(v1.ConditionRegistered) && o.Claim.NodeName == "" {
		o.Drain, o.Why = true, "no node joined: lifecycle looks why EC2 ended it"
		return o
	}
	o.DeleteClaim, o.Drain = o.Claim.Deleting.IsZero(), true
	o.Release = n.Kind == Ended
	o.Pods = EndPods
	if n.Kind == Ended || n.Kind == Stopped {
		o.Pods = ForgetPods
	}
	if o.Claim.Is(v1.ConditionInstanceTerminating) || isEnding(o.Claim) {
		o.Drain, o.Why = false, "we ended it"
		if n.Kind != Ended {
			o.Pods = LeaveToDrain // it was drained
		}
		return o
	}
	o.Deadline, o.Provide = earlierDeadline(o.Claim, now, now), true
	o.Why = "nothing can be drained there any more"
	told := NoticeEvent{true, "InstanceTerminating", "instance " + n.Instance + " is being terminated, and not by us"}
	if n.Kind == Stopping || n.Kind == Stopped {
		told.Reason, told.Message = "InstanceStopping", "instance "+n.Instance+" is being stopped"
	}
	return o.addEvent(told)
}

// ownStop reports whether the notice is about an instance of stopped capacity that we stop: now, or before we started
// it again.
func (n Notice) ownStop(c cluster.Claim) bool {
	if n.Kind != Stopping && n.Kind != Stopped || !c.Deleting.IsZero() {
		return false
	}
	started := c.Condition(v1.ConditionStopped)
	return c.IsStopping() || c.Annotations[v1.AnnotationStoppedCapacity] == "true" && started.Status == "False" &&
		n.Time.Before(started.Since.Add(-clocksDiffer))
}

// isEnding reports whether the next thing that lifecycle does, or did without having said so yet, is to end the
// instance.
func isEnding(c cluster.Claim) bool { return !c.Deleting.IsZero() && c.Is(v1.ConditionDrained) }

// Limits of the doubt about an instance that no claim has.
const (
	writtenWithin = 3 * time.Minute // a launch is on its claim by then, or repeated by provision until it is
	clocksDiffer  = 5 * time.Second // between AWS and the API server, at most
)

// outcomeFor is the outcome so far: whose instance it is. One that no claim has may be that of a claim which was there
// before the notice and does not say its instance yet.
func outcomeFor(n Notice, claims []cluster.Claim, now time.Time) Response {
	c, ok := owningClaim(n.Instance, claims)
	if ok {
		return Response{Claim: c, Found: true}
	}
	if n.Instance == "" {
		return Response{Final: true, Why: "it is about no instance"}
	}
	for _, c := range claims {
		switch {
		case !n.maybeLaunching(c, now):
		case now.Before(n.madeAt(now).Add(writtenWithin)):
			return Response{Later: !n.isStateChange(), Why: "it is not ours, unless it is one that is being launched"}
		default:
			return Response{Why: "it is not ours, or its launch could not be written down in " + writtenWithin.String()}
		}
	}
	return Response{Final: true, Why: "it is not ours"}
}

// madeAt returns the time when the notice was made; no notice is from the future.
func (n Notice) madeAt(now time.Time) time.Time {
	if n.Time.IsZero() || n.Time.After(now) {
		return now
	}
	return n.Time
}

// maybeLaunching reports whether the instance of the notice may be the one that is being launched for the claim.
func (n Notice) maybeLaunching(c cluster.Claim, now time.Time) bool {
	return c.ProviderID == "" && c.Deleting.IsZero() && !c.Created.After(n.madeAt(now).Add(clocksDiffer))
}

// IsSufficient reports whether the claim decides about a notice whose instance no claim names: the instance may be the
// one that is being launched for it. That is all there is to know about a new state; a warning needs the very claim, if
// there is one.
func (n Notice) IsSufficient(c cluster.Claim, now time.Time) bool {
	return n.isStateChange() && n.maybeLaunching(c, now)
}

func (o Response) addEvent(t NoticeEvent) Response {
	o.Tell = append(o.Tell, t)
	if o.DeleteClaim {
		o.Tell = append(o.Tell, NoticeEvent{true, "TerminatingOnInterruption", "it is drained and ended because of " +
			t.Reason})
	}
	return o
}

// podDeadline returns the time by which the pods of an instance that is taken back must have ended. A clock that is
// ahead of ours and a notice that comes late change no more than what is left. That is never more than the notice time
// from now, never less than a few seconds.
func podDeadline(n Notice, now time.Time) time.Time {
	end := now
	if !n.Time.IsZero() && n.Time.Before(now) {
		end = n.Time
	}
	end = end.Add(noticeTime)
	if !n.At.IsZero() && n.At.Before(end) {
		end = n.At
	}
	if n.Action == "hibernate" {
		end = now // that begins with the notice
	}
	if soonest := now.Add(least); end.Add(-safety).Before(soonest) {
		return soonest
	}
	return end.Add(-safety)
}

// earlierDeadline is the deadline to write onto a claim: zero when it has one that is as early, and never later than
// what the grace period of its pool allows.
func earlierDeadline(c cluster.Claim, deadline, now time.Time) time.Time {
	deadline = deadline.Truncate(time.Second) // as the annotation has it
	if have := c.Deadline(); !have.IsZero() {
		if !deadline.Before(have) {
			return time.Time{}
		}
		return deadline
	}
	if c.TerminationGrace == nil {
		return deadline
	}
	from := c.Deleting
	if from.IsZero() {
		from = now
	}
	if own := from.Add(*c.TerminationGrace); own.Before(deadline) {
		return time.Time{} // lifecycle writes that one
	}
	return deadline
}

// owningClaim is the claim that has the instance; of several, as after restoring a backup, the first by name that is
// not being deleted.
func owningClaim(instance string, claims []cluster.Claim) (best cluster.Claim, found bool) {
	for _, c := range claims {
		if instance == "" || c.InstanceID() != instance {
			continue
		}
		if !found || deletingLast(c, best) < 0 {
			best, found = c, true
		}
	}
	return best, found
}

func deletingLast(a, b cluster.Claim) int {
	return cmp.Or(lists.TrueFirst(a.Deleting.IsZero(), b.Deleting.IsZero()), strings.Compare(a.Name, b.Name))
}

func reasonText(t time.Time) string { return t.UTC().Format(time.RFC3339) }
