package cluster

import (
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// StoppedBuffer is a CapacityBuffer of stopped capacity with the pods that it keeps room for.
type StoppedBuffer struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Pods      []Pod  `json:"pods,omitempty"` // virtual
}

// Standby reports whether the claim is stopped capacity that nobody has started for pods: its node is launched, warmed,
// stopped, or waits. No pod is planned for such a node, and it counts for limits.
func (c Claim) Standby() bool {
	return c.Annotations[api.AnnotationStoppedCapacity] == "true" && c.Condition(api.ConditionStopped).Status != "False"
}

// IsStopping reports whether Joiner stops the claim's instance, or has stopped it: whoever sees it stop has nothing to
// do about it.
func (c Claim) IsStopping() bool {
	k := c.Condition(api.ConditionStopped)
	return c.Standby() && (k.Status == "True" || k.Reason == api.ReasonStopping)
}

// StartRequested returns the time when the stopped instance of the claim was asked to start; zero for never.
func (c Claim) StartRequested() time.Time {
	t, err := time.Parse(time.RFC3339, c.Annotations[api.AnnotationStartRequested])
	if err != nil {
		return time.Time{}
	}
	return t
}

// startSettles is the time for which what EC2 says about an instance may be from before its start.
const startSettles = 2 * time.Minute

// JustStarted reports whether the claim's stopped instance was started so recently that what EC2 lists may be from
// before.
func (c Claim) JustStarted(now time.Time) bool {
	k := c.Condition(api.ConditionStopped)
	return c.Annotations[api.AnnotationStoppedCapacity] == "true" && k.Status == "False" &&
		now.Before(k.Since.Add(startSettles))
}

// Standby reports whether the host is stopped capacity that nobody has started for pods.
func (node StateNode) Standby() bool { return node.Claim != nil && node.Claim.Standby() }

// WithoutTaint is the list without the taints of that key. The list given is not changed.
func WithoutTaint(taints []Taint, key string) []Taint {
	return lists.Where(taints, func(t Taint) bool { return t.Key != key })
}
