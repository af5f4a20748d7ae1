package interruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

const (
	// a replacement that was not possible by then is given up until there is another reason
	replaceWithin = 15 * time.Minute
	lead          = time.Hour // before EC2's date a node goes whatever budgets say
)

// RebalanceChoice says what a rebalance recommendation does.
type RebalanceChoice string

// The choices.
const (
	Ignore  RebalanceChoice = "ignore"  // nothing
	Tell    RebalanceChoice = "event"   // a Kubernetes event, as Karpenter does
	Replace RebalanceChoice = "replace" // and a replacement from another pool of capacity, and then the drain
)

// RebalancePolicy says what a recommendation does to the nodes of one pool.
type RebalancePolicy struct {
	Choice RebalanceChoice
	MinAge time.Duration // a younger node is not left on a recommendation, or recommendations could chase each other
}

// ChoiceFor is the choice for a pool with these annotations, or else that of the stack. While the word is none, no node
// is replaced by choice, and the condition DisruptionValid of the NodePool says so.
func ChoiceFor(pool map[string]string, stack RebalanceChoice) RebalanceChoice {
	said, problems := annotations.ReadPool(pool)
	wrong := slices.ContainsFunc(problems, func(p annotations.Problem) bool { return p.Key == v1.AnnotationRebalance })
	switch {
	case said.Rebalance != "":
		return RebalanceChoice(said.Rebalance)
	case wrong && stack == Replace:
		return Tell
	}
	return stack
}

// ReplaceRequest says that a node is to be left. The zero value says it is not.
type ReplaceRequest struct {
	Cause Kind      // of the notice; empty for a node that stays
	Since time.Time // of the notice
	Until time.Time // when EC2 acts, or when trying to replace the node ends
}

// String is the value of the annotation.
func (l ReplaceRequest) String() string {
	return fmt.Sprintf("%s %s %s", l.Cause, reasonText(l.Since), reasonText(l.Until))
}

// LeaveOf reads the annotation of a claim. One that nobody can read is none.
func LeaveOf(c cluster.Claim) ReplaceRequest {
	words := strings.Fields(c.Annotations[v1.AnnotationReplaceRequested])
	if len(words) != 3 || Kind(words[0]) != Rebalance && Kind(words[0]) != Scheduled {
		return ReplaceRequest{}
	}
	since, err := time.Parse(time.RFC3339, words[1])
	until, err2 := time.Parse(time.RFC3339, words[2])
	if err != nil || err2 != nil {
		return ReplaceRequest{}
	}
	return ReplaceRequest{Cause: Kind(words[0]), Since: since, Until: until}
}

// HasReplaceRequest reports whether somebody has to look whether the claim's node can go: at each pass for the first
// quarter of an hour, and then every ten minutes, because a budget may stay closed for weeks.
func HasReplaceRequest(c cluster.Claim, now time.Time) bool {
	l := LeaveOf(c)
	if !l.StillHolds(now) || !c.Deleting.IsZero() {
		return false
	}
	return l.isDue(now) || now.Before(l.Since.Add(replaceWithin)) || now.Minute()%10 == 0
}

// StillHolds reports whether the node is to be left still. Where EC2 only recommended it and there was no room in time,
// it stays as any other.
func (l ReplaceRequest) StillHolds(now time.Time) bool { return l.Cause != "" && !l.isOver(now) }

// isOver reports whether there is no reason to leave any more. A date of EC2 does not pass: what was scheduled may be
// done late. It holds until EC2's status knows it no more.
func (l ReplaceRequest) isOver(now time.Time) bool {
	return l.Cause == Rebalance && !now.Before(l.Until)
}

// isDue reports whether the node must go now, budgets or not.
func (l ReplaceRequest) isDue(now time.Time) bool {
	return l.Cause == Scheduled && !now.Before(l.Until.Add(-lead))
}

// DecideRebalance decides about a rebalance recommendation. A node is replaced only once on a recommendation, and only
// when it is in service and not young; otherwise it is told of, as with the choice to tell. The offering that is left
// is not bought for a while.
func DecideRebalance(n Notice, claims []cluster.Claim, pool RebalancePolicy, now time.Time) Response {
	o := outcomeFor(n, claims, now)
	if !o.Found {
		return o
	}
	if pool.Choice == Ignore {
		o.Why = "its NodePool ignores recommendations"
		return o
	}
	o.Tell = []NoticeEvent{{false, "SpotRebalanceRecommendation",
		"EC2 is likelier than usual to take the spot instance " + n.Instance + " back"}}
	if o.Why = notReplaced(o.Claim, pool, now); o.Why != "" {
		o.Provide = o.Why == stillLeaving // whoever began may have died before saying so
		return o
	}
	offering := instancetypes.OfferingKeyOf(o.Claim.Labels)
	if offering.Type != "" && offering.Zone != "" && offering.CapacityType == instancetypes.Spot {
		o.Unavailable = []instancetypes.UnavailableOffering{{OfferingKey: offering, Why: "RebalanceRecommendation"}}
	}
	o.Leave = toSecond(ReplaceRequest{Cause: Rebalance, Since: now, Until: now.Add(replaceWithin)})
	o.Provide, o.Why = true, "it is replaced until "+reasonText(o.Leave.Until)
	return o
}

// TooMany is the outcome when as many nodes were replaced lately as may be: the recommendation is told and nothing
// more.
func (o Response) TooMany() Response {
	o.Leave, o.Unavailable, o.Provide, o.Why = ReplaceRequest{}, nil, false,
		"enough nodes were replaced on recommendations lately"
	return o
}

const stillLeaving = "it is being replaced already"

func notReplaced(c cluster.Claim, pool RebalancePolicy, now time.Time) string {
	l := LeaveOf(c)
	switch {
	case pool.Choice != Replace:
		return "its NodePool wants to know only"
	case !c.Deleting.IsZero():
		return "it is being deleted already"
	case l.Cause != "" && l.isOver(now):
		return "replacing it was tried already"
	case l.Cause != "":
		return stillLeaving
	case !c.Is(v1.ConditionInitialized):
		return "it is not in service yet"
	case now.Before(c.Created.Add(pool.MinAge)):
		return "it is younger than " + pool.MinAge.String()
	}
	return ""
}

// ScheduledChange decides about a date on which EC2 disturbs the instance. A near date, one that has passed and an
// unknown one delete the claim at once; a far one never does: it has its node left, replacement first and within
// budgets, and an hour before it at the latest. Of the dates of several events the earliest counts that is still to
// come, in whatever order they come; the date in force replaces them all.
func ScheduledChange(n Notice, claims []cluster.Claim, now time.Time) Response {
	o := outcomeFor(n, claims, now)
	if !o.Found {
		return o
	}
	told := NoticeEvent{true, "InstanceUnhealthy", "EC2 plans a change of instance " + n.Instance}
	if !n.At.IsZero() {
		told.Message += " for " + reasonText(n.At)
	}
	next := ReplaceRequest{Cause: Scheduled, Since: now, Until: n.At}
	urgent := n.At.IsZero() || next.isDue(now)
	if have := LeaveOf(o.Claim); have.Cause == Scheduled {
		next.Since = have.Since
		if !n.InForce && have.Until.Before(next.Until) && !have.isDue(now) {
			next.Until = have.Until
		}
	}
	switch {
	case !o.Claim.Deleting.IsZero():
		o.Why = "it is being deleted already"
		if n.At.After(now) {
			o.Deadline, o.Drain = earlierDeadline(o.Claim, n.At.Add(-safety), now), true
		}
	case o.Claim.Standby():
		o.DeleteClaim, o.Drain, o.Provide = true, true, true
		o.Why = "nothing runs there yet, and another is made"
	case urgent:
		o.DeleteClaim, o.Drain, o.Provide = true, true, true
		o.Why = "there is no time for budgets"
		if n.At.After(now) {
			o.Deadline = earlierDeadline(o.Claim, n.At.Add(-safety), now)
		}
	case LeaveOf(o.Claim) == toSecond(next):
		o.Why, o.Provide = "it is being replaced already", true
		o.Tell = []NoticeEvent{told}
		return o
	default:
		o.Leave, o.Provide = toSecond(next), true
		o.Why = "it is replaced before " + reasonText(next.Until.Add(-lead))
		o.Tell = []NoticeEvent{told}
		return o
	}
	return o.addEvent(told)
}

func toSecond(l ReplaceRequest) ReplaceRequest {
	l.Since, l.Until = l.Since.UTC().Truncate(time.Second), l.Until.UTC().Truncate(time.Second)
	return l
}

// statusLag is the delay with which EC2's status may tell of a date that AWS Health has announced.
const statusLag = 5 * time.Minute

// IsWithdrawn reports whether EC2 has called the date off that the claim's node is to be left for, or moved it to none:
// asked at that time, its status told of no date for the instance.
func IsWithdrawn(c cluster.Claim, statusAt time.Time) bool {
	l := LeaveOf(c)
	return l.Cause == Scheduled && c.Deleting.IsZero() && !statusAt.Before(l.Since.Add(statusLag))
}
