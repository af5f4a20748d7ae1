package lifecycle

import (
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

const (
	// lastLaunch is the time before the launch time-out from which no launch begins any more. One that has begun is
	// over by then, and EC2 lists its instance.
	lastLaunch = 30 * time.Second
)

// MayResumeLaunch reports whether a launch of the claim may begin now. Shortly before the launch time-out none does:
// its instance would start for a claim that goes. A claim whose instance runs already gets it by the same request.
func MayResumeLaunch(c cluster.Claim, rules cluster.Settings, now time.Time) bool {
	k := c.Condition(v1.ConditionLaunched)
	return rules.LaunchTimeout <= lastLaunch || k.Reason == v1.ReasonInstanceStarted ||
		now.Before(k.Since.Add(rules.LaunchTimeout-lastLaunch))
}

// startedInstance returns the instance that was started for the claim without its knowing, because whoever launched it
// died or the reply was lost.
func (r registrar) startedInstance(c cluster.Claim) (cluster.Instance, bool) {
	i := slices.IndexFunc(r.started[c.UID], func(i cluster.Instance) bool { return !i.Gone() })
	if c.ProviderID != "" || i < 0 {
		return cluster.Instance{}, false
	}
	return r.started[c.UID][i], true
}

// startedHasJoined reports whether the node of startedInstance has joined. The claim is then not ended for a late
// launch: provision asks for that instance as soon as its passes end well.
func (r registrar) startedHasJoined(c cluster.Claim) bool {
	i, ok := r.startedInstance(c)
	return ok && len(r.nodes[i.ProviderID()]) == 1
}

// launchLimit returns the time that the claim may stay without its instance: one that runs already has the time of a
// registration, in which provision asks for it again.
func (r registrar) launchLimit(c cluster.Claim) time.Duration {
	if _, ok := r.startedInstance(c); ok {
		return max(r.s.Rules.LaunchTimeout, r.s.Rules.RegistrationTimeout)
	}
	return r.s.Rules.LaunchTimeout
}

// noteStartedInstance says on a claim that its instance runs, when provision would not ask for it any more else.
func (r registrar) noteStartedInstance(c cluster.Claim) []plan.Action {
	i, ok := r.startedInstance(c)
	if !ok || MayResumeLaunch(c, r.s.Rules, r.s.Now) {
		return nil
	}
	return r.writeCondition(c, cluster.Condition{Type: v1.ConditionLaunched, Status: "Unknown",
		Reason: v1.ReasonInstanceStarted, Message: "instance " + i.ID + " was started for it",
		Since: c.Condition(v1.ConditionLaunched).Since})
}
