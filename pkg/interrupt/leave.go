package interrupt

import (
	"fmt"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
)

// AnnotationLeave on a NodeClaim says that its node is to be left, replacement first: why, since when and until when, as
// "rebalance_recommendation 2026-09-14T17:31:55Z 2026-09-14T17:46:55Z".
const AnnotationLeave = "joiner.sh/leave"

// AnnotationRebalance on a NodePool says what a rebalance recommendation does to its nodes: a Choice, over the stack's setting.
const AnnotationRebalance = "joiner.sh/rebalance"

const (
	replaceWithin = 15 * time.Minute // a replacement that was not possible by then is given up until there is another reason
	lead          = time.Hour        // before EC2's date a node goes whatever budgets say
)

// Choice is what a rebalance recommendation does.
type Choice string

// The choices.
const (
	Ignore  Choice = "ignore"  // nothing
	Tell    Choice = "event"   // a Kubernetes event, as Karpenter does
	Replace Choice = "replace" // and a replacement from another pool of capacity, and then the drain
)

// Policy is what a recommendation does to the nodes of one pool.
type Policy struct {
	Choice Choice
	MinAge time.Duration // a younger node is not left on a recommendation, or recommendations could chase each other
}

// Chosen is the choice for a pool with these annotations. A word that is none counts for what the stack says.
func Chosen(annotations map[string]string, stack Choice) Choice {
	switch c := Choice(annotations[AnnotationRebalance]); c {
	case Ignore, Tell, Replace:
		return c
	}
	return stack
}

// Leave says that a node is to be left. The zero value says it is not.
type Leave struct {
	Cause Kind
	Since time.Time // of the notice
	Until time.Time // when EC2 acts, or when trying to replace the node ends
}

// String is the value of the annotation.
func (l Leave) String() string { return fmt.Sprintf("%s %s %s", l.Cause, text(l.Since), text(l.Until)) }

// LeaveOf reads the annotation of a claim. One that nobody can read is none.
func LeaveOf(c cluster.Claim) Leave {
	words := strings.Fields(c.Annotations[AnnotationLeave])
	if len(words) != 3 || Kind(words[0]) != Rebalance && Kind(words[0]) != Scheduled {
		return Leave{}
	}
	since, err := time.Parse(time.RFC3339, words[1])
	if err != nil {
		return Leave{}
	}
	until, err := time.Parse(time.RFC3339, words[2])
	if err != nil {
		return Leave{}
	}
	return Leave{Cause: Kind(words[0]), Since: since, Until: until}
}

// Leaving reports whether somebody has to look whether the claim's node can go: at each pass for the first quarter of an hour, and
// then every ten minutes, because a budget may stay closed for weeks.
func Leaving(c cluster.Claim, now time.Time) bool {
	l := LeaveOf(c)
	if !l.Stands(now) || !c.Deleting.IsZero() {
		return false
	}
	return l.due(now) || now.Before(l.Since.Add(replaceWithin)) || now.Minute()%10 == 0
}

// Stands reports whether the node is to be left still. Where EC2 only recommended it and there was no room in time, it stays as any other.
func (l Leave) Stands(now time.Time) bool { return l.Cause != "" && !l.over(now) }

// over reports whether there is no reason to leave any more. A date of EC2 does not pass: what was scheduled may be done late.
func (l Leave) over(now time.Time) bool { return l.Cause == Rebalance && !now.Before(l.Until) }

// due reports whether the node must go now, budgets or not.
func (l Leave) due(now time.Time) bool {
	return l.Cause == Scheduled && !now.Before(l.Until.Add(-lead))
}

// Recommended decides about a rebalance recommendation. A node is replaced only once on a recommendation, and only when it is in
// service and not young; otherwise it is told of, as with the choice to tell. The offer that is left is not bought for a while.
func Recommended(n Notice, claims []cluster.Claim, pool Policy, now time.Time) Outcome {
	o := found(n, claims, now)
	if !o.Found {
		return o
	}
	if pool.Choice == Ignore {
		o.Why = "its NodePool ignores recommendations"
		return o
	}
	o.Tell = []Told{{false, "SpotRebalanceRecommendation", "EC2 is likelier than usual to take the spot instance " + n.Instance + " back"}}
	if o.Why = notReplaced(o.Claim, pool, now); o.Why != "" {
		o.Provide = o.Why == stillLeaving // whoever began may have died before saying so
		return o
	}
	offer := offerOf(o.Claim)
	if offer.Type != "" && offer.Zone != "" && offer.CapacityType == catalog.Spot {
		o.SoldOut = []catalog.Mark{{Offer: offer, Why: "RebalanceRecommendation"}}
	}
	o.Leave = truncated(Leave{Cause: Rebalance, Since: now, Until: now.Add(replaceWithin)})
	o.Provide, o.Why = true, "it is replaced until "+text(o.Leave.Until)
	return o
}

// TooMany is the outcome when as many nodes were replaced lately as may be: the recommendation is told and nothing more.
func (o Outcome) TooMany() Outcome {
	o.Leave, o.SoldOut, o.Provide, o.Why = Leave{}, nil, false, "enough nodes were replaced on recommendations lately"
	return o
}

const stillLeaving = "it is being replaced already"

func notReplaced(c cluster.Claim, pool Policy, now time.Time) string {
	l := LeaveOf(c)
	switch {
	case pool.Choice != Replace:
		return "its NodePool wants to know only"
	case !c.Deleting.IsZero():
		return "it is being deleted already"
	case l.Cause != "" && l.over(now):
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

// ScheduledChange decides about a date on which EC2 disturbs the instance. A near date, one that has passed and an unknown one
// condemn the claim at once; a far one has its node left, replacement first and within budgets, and an hour before it at the
// latest. Of several dates the earliest counts, in whatever order they come.
func ScheduledChange(n Notice, claims []cluster.Claim, now time.Time) Outcome {
	o := found(n, claims, now)
	if !o.Found {
		return o
	}
	told := Told{true, "InstanceUnhealthy", "EC2 plans a change of instance " + n.Instance}
	if !n.At.IsZero() {
		told.Message += " for " + text(n.At)
	}
	next := Leave{Cause: Scheduled, Since: now, Until: n.At}
	if have := LeaveOf(o.Claim); have.Cause == Scheduled {
		next.Since = have.Since
		if have.Until.Before(next.Until) {
			next.Until = have.Until
		}
	}
	switch {
	case !o.Claim.Deleting.IsZero():
		o.Why = "it is being deleted already"
		if n.At.After(now) {
			o.Deadline, o.Drain = earlier(o.Claim, n.At.Add(-safety), now), true
		}
	case n.At.IsZero() || next.due(now):
		o.Condemn, o.Drain, o.Provide = true, true, true
		o.Why = "there is no time for budgets"
		if n.At.After(now) {
			o.Deadline = earlier(o.Claim, n.At.Add(-safety), now)
		}
	case LeaveOf(o.Claim) == truncated(next):
		o.Why, o.Provide = "it is being replaced already", true
		o.Tell = []Told{told}
		return o
	default:
		o.Leave, o.Provide = truncated(next), true
		o.Why = "it is replaced before " + text(next.Until.Add(-lead))
		o.Tell = []Told{told}
		return o
	}
	return o.tell(told)
}

func truncated(l Leave) Leave {
	l.Since, l.Until = l.Since.UTC().Truncate(time.Second), l.Until.UTC().Truncate(time.Second)
	return l
}
