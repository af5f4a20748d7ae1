package lifecycle

import (
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// impairedFor is the time for which a status check must have failed before it counts.
const impairedFor = 2 * time.Minute

// endImpaired ends a claim whose instance fails a status check of EC2, by force: nothing on it can be relied on any
// more. No event tells of this.
func (st state) endImpaired(c cluster.Claim) (out []plan.Action, doomed bool) {
	reason, why := st.impairmentOf(c)
	if why == "" {
		return nil, false
	}
	out = append(st.recordOnBoth(c, "InstanceUnhealthy", why), st.forceDeadline(c, why)...)
	out = append(out, plan.Action{Do: plan.DeleteClaim, Claim: c.Name, Reason: reason, Why: why})
	return append(out, st.recordOnBoth(c, "TerminatingOnInterruption", "it is drained and ended because "+why)...), true
}

// impairmentOf says which status check of EC2 the claim's instance fails for long, or nothing.
func (x index) impairmentOf(c cluster.Claim) (reason, why string) {
	i, ok := x.instances[c.ProviderID]
	if !ok || c.ProviderID == "" || i.Gone() {
		return "", ""
	}
	for _, k := range x.s.Impaired {
		switch {
		case k.Instance != i.ID || x.s.Now.Before(k.Since.Add(impairedFor)):
		case k.System:
			return "system_status", "the host of its instance " + i.ID + " fails the status check of EC2"
		default:
			return "instance_status", "its instance " + i.ID + " fails the status check of EC2"
		}
	}
	return "", ""
}

// pendingChanges returns the actions that dates of EC2 for the claim's instance ask for and that were not done for them
// yet, whether AWS Health has announced them or not. Of several dates the earliest counts, and replaces one that EC2
// has moved; one that EC2 has called off is taken back. A claim that is being deleted gets an earlier deadline at most.
func (st state) pendingChanges(c cluster.Claim) (out []plan.Action, doomed bool) {
	i, ok := st.instances[c.ProviderID]
	if !ok || c.ProviderID == "" || i.Gone() {
		return nil, false
	}
	at := slices.IndexFunc(st.s.Changes, func(k cluster.ScheduledChange) bool { return k.Instance == i.ID })
	if at < 0 && i.State == "running" && interruption.IsWithdrawn(c, st.s.StatusAt) {
		return []plan.Action{{Do: plan.LeaveNode, Claim: c.Name, Reason: "called off",
			Why: "EC2 plans no change of instance " + i.ID + " any more, and its node stays"}}, false
	}
	if at < 0 {
		return nil, false
	}
	change := st.s.Changes[at]
	notice := interruption.Notice{Kind: interruption.Scheduled, Instance: i.ID, Time: st.s.Now, At: change.At,
		InForce: true}
	o := interruption.ScheduledChange(notice, []cluster.Claim{c}, st.s.Now)
	switch {
	case o.Leave.Cause != "":
		out = []plan.Action{{Do: plan.LeaveNode, Claim: c.Name, Leave: o.Leave.String(), Reason: change.Code,
			Why: o.Why}}
	case !o.Deadline.IsZero():
		out = []plan.Action{{Do: plan.SetDeadline, Claim: c.Name, Deadline: o.Deadline,
			Reason: "TerminationGracePeriodExpiring",
			Why:    "EC2 plans " + change.Code + " of its instance for " + change.At.UTC().Format(time.RFC3339)}}
	case !o.DeleteClaim:
		return nil, false
	}
	if o.DeleteClaim {
		out = append(out, plan.Action{Do: plan.DeleteClaim, Claim: c.Name, Reason: "event_status", Why: "EC2 plans " +
			change.Code + " of its instance " + i.ID})
	}
	for _, told := range o.Tell {
		out = append(out, st.recordOnBoth(c, told.Reason, told.Message)...)
	}
	return out, o.DeleteClaim
}

// recordOnBoth tells of a claim and of its node, if there is one.
func (st state) recordOnBoth(c cluster.Claim, reason, why string) []plan.Action {
	out := []plan.Action{{Do: plan.Tell, Claim: c.Name, Warning: true, Reason: reason, Why: why}}
	for _, n := range st.nodes[c.ProviderID] {
		out = append(out, plan.Action{Do: plan.Tell, Claim: c.Name, Node: n.Name, Warning: true, Reason: reason,
			Why: why})
	}
	return out
}
