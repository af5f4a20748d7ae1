package lifecycle

import (
	"errors"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// launchFailed is the reason of a claim whose instance EC2 ended before its node joined.
const launchFailed = "launch_failed"

// endedEarly returns the instance of a launched claim, and whether it ended before its node joined, for a reason of EC2
// that is neither a person's doing nor the spot market's.
func (st state) endedEarly(c cluster.Claim) (cluster.Instance, bool) {
	i, listed := st.instances[c.ProviderID]
	early := c.ProviderID != "" && listed && i.Gone() && !c.Is(v1.ConditionRegistered) &&
		len(st.nodes[c.ProviderID]) == 0 && i.StateReason != "" && !endedOnPurpose(i.StateReason)
	return i, early
}

// endedOnPurpose reports whether a person or the market ended the instance, which says nothing about its class.
func endedOnPurpose(reason string) bool {
	return slices.Contains([]string{"Client.UserInitiatedShutdown", "Client.UserInitiatedHibernate",
		"Server.SpotInstanceTermination", "Server.SpotInstanceShutdown", "Server.ScheduledStop"}, stateCode(reason))
}

func stateCode(reason string) string {
	code, _, _ := strings.Cut(reason, ":")
	return code
}

// failLaunch tells of a claim whose instance ended before its node joined, and lets it go. Where the account or the
// class is to blame every other instance of the class would end as well, so that it is left alone for a while.
func (st state) failLaunch(c cluster.Claim, i cluster.Instance) []plan.Action {
	reason, message := explainEnd(i.StateReason)
	out := st.writeCondition(c, cluster.Condition{Type: v1.ConditionRegistered, Status: "False", Reason: reason,
		Message: message})
	out = append(out, plan.Action{Do: plan.Tell, Claim: c.Name, Warning: true, Reason: reason, Why: message})
	if strings.HasPrefix(i.StateReason, "Client.") {
		out = append(out, plan.Action{Do: plan.NoteFailedLaunch, Claim: c.Name, Instance: i.ID, Reason: reason,
			Why: i.StateReason})
	}
	return append(out, plan.Action{Do: plan.DeleteClaim, Claim: c.Name, Reason: launchFailed, Why: message})
}

// explainEnd says why EC2 ended an instance, in Karpenter's word where it has one, and what to look at.
func explainEnd(stateReason string) (reason, message string) {
	reason, _ = awserrors.LaunchFailureReason(errors.New(stateReason))
	message = "EC2 ended its instance before the node joined: " + stateReason
	look := map[string]string{
		"Client.InternalError": "as a rule a volume is encrypted with a KMS key that the role of provision may not use: " +
			"see the key policy in infra/README.md, or provisionStatements",
		"Client.InvalidSnapshot.NotFound":     "the snapshot of a volume does not exist: see blockDeviceMappings of the EC2NodeClass",
		"Client.VolumeLimitExceeded":          "the account's quota of volumes is used up",
		"Client.InstanceInitiatedShutdown":    "the instance shut itself down: see userData of the EC2NodeClass and its console output",
		"Server.InsufficientInstanceCapacity": "EC2 had no capacity left",
	}[stateCode(stateReason)]
	if look != "" {
		message += "; " + look
	}
	return reason, message
}
