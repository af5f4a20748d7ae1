package interrupt

import (
	"slices"
	"strings"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// AnnotationReplaceFirst on a NodeClaim whose instance EC2 takes back is until when its pods stay, so that their replacement is asked
// for before they go. Provision empties it when EC2 has accepted that, and the drain begins. A pod whose grace period would not fit
// any more goes before.
const AnnotationReplaceFirst = "joiner.sh/replace-first"

// firstFor bounds how long pods stay for that: a launch takes seconds, and the notice leaves less than two minutes.
const firstFor = 20 * time.Second

// FirstUntil is until when the pods of the claim stay where they are for their replacement; zero if they need not.
func FirstUntil(c cluster.Claim) time.Time {
	t, err := time.Parse(time.RFC3339, c.Annotations[AnnotationReplaceFirst])
	if err != nil || c.Deleting.IsZero() {
		return time.Time{}
	}
	return t
}

// Awaited reports whether a drain waits for a replacement to be asked for.
func Awaited(claims []cluster.Claim, now time.Time) bool {
	return slices.ContainsFunc(claims, func(c cluster.Claim) bool { return now.Before(FirstUntil(c)) })
}

// Provided are the claims, sorted, whose drain need not wait any more: each of their pods has a place on a node that there is or that EC2
// has accepted to make. Launched are the launches of the plan that were accepted.
func Provided(s cluster.Snapshot, p plan.Plan, launched []plan.Launch) []cluster.Claim {
	accepted := map[string]bool{}
	for _, h := range s.Hosts() {
		accepted[h.Name()] = h.Node != nil || h.Claim != nil && h.Claim.ProviderID != ""
	}
	placed := map[string]bool{}
	for _, e := range p.Existing {
		placed[e.Pod] = accepted[e.Node]
	}
	for _, l := range launched {
		for _, pod := range l.Pods {
			placed[pod] = true
		}
	}
	homeless := func(p cluster.Pod) bool { return !placed[p.Key()] }
	var out []cluster.Claim
	for _, h := range s.Hosts() {
		if h.Claim != nil && s.Now.Before(FirstUntil(*h.Claim)) && (h.Node == nil || !slices.ContainsFunc(podsOn(s, h.Node.Name), homeless)) {
			out = append(out, *h.Claim)
		}
	}
	slices.SortFunc(out, func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// first is until when the pods of a claim that is condemned now stay, in whole seconds and for firstFor at least, because the annotation knows
// no parts of a second; zero when there is no time for it. The deadline on the claim may be that
// of a handler that died before it condemned it.
func first(c cluster.Claim, deadline, now time.Time) time.Time {
	until := now.Add(firstFor + time.Second - 1).Truncate(time.Second)
	if have := c.Deadline(); !have.IsZero() && have.Before(deadline) {
		deadline = have
	}
	if !c.Deleting.IsZero() || !until.Before(deadline) {
		return time.Time{}
	}
	return until
}
