package v1

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Conditions is one object's conditions with their rules: a condition carries the generation it speaks of, its
// transition time moves only when its status does, and Ready follows from the conditions it depends on. It writes
// through to the object it was taken from.
type Conditions struct {
	list       *[]metav1.Condition
	dependents []string
	generation int64
	created    metav1.Time
}

// ConditionsOf is the view of a list of conditions that belongs to the object with this metadata. Ready follows from
// dependents.
func ConditionsOf(list *[]metav1.Condition, meta metav1.ObjectMeta, dependents ...string) Conditions {
	return Conditions{list: list, dependents: dependents, generation: meta.Generation, created: meta.CreationTimestamp}
}

// StatusConditions is the view of the pool's conditions. NodeRegistrationHealthy takes no part in Ready.
func (p *NodePool) StatusConditions() Conditions {
	return ConditionsOf(&p.Status.Conditions, p.ObjectMeta, ConditionValidationSucceeded, ConditionNodeClassReady)
}

// StatusConditions is the view of the claim's conditions.
func (c *NodeClaim) StatusConditions() Conditions {
	return ConditionsOf(&c.Status.Conditions, c.ObjectMeta, ConditionLaunched, ConditionRegistered,
		ConditionInitialized)
}

// Get is the condition of that type, if there is one.
func (c Conditions) Get(conditionType string) (metav1.Condition, bool) {
	if i := c.index(conditionType); i >= 0 {
		return (*c.list)[i], true
	}
	return metav1.Condition{}, false
}

// IsTrue says that every one of the conditions is there, True, and not of an older generation of the spec. An observed
// generation of 0 counts as current: not everybody who writes conditions sets it.
func (c Conditions) IsTrue(conditionTypes ...string) bool {
	for _, t := range conditionTypes {
		cond, ok := c.Get(t)
		if !ok || cond.Status != metav1.ConditionTrue || c.stale(cond) {
			return false
		}
	}
	return true
}

// Initialize adds what Ready depends on, and Ready, as Unknown since the object was made. The launch and registration
// time-outs count from there. It says whether anything changed.
func (c Conditions) Initialize() bool {
	changed := false
	for _, t := range append(slices.Clone(c.dependents), ConditionReady) {
		if c.index(t) >= 0 {
			continue
		}
		changed = true
		*c.list = append(*c.list, metav1.Condition{
			Type: t, Status: metav1.ConditionUnknown, ObservedGeneration: c.generation, LastTransitionTime: c.created,
			Reason: ReasonAwaitingReconciliation, Message: MessageAwaitingReconciliation,
		})
	}
	return changed
}

// SetTrue sets a condition True, with its type as the reason. It says whether anything changed.
func (c Conditions) SetTrue(conditionType string, now time.Time) bool {
	return c.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: conditionType}, now)
}

// SetFalse sets a condition False. It says whether anything changed.
func (c Conditions) SetFalse(conditionType, reason, message string, now time.Time) bool {
	return c.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message},
		now)
}

// SetUnknown sets a condition Unknown. It says whether anything changed.
func (c Conditions) SetUnknown(conditionType, reason, message string, now time.Time) bool {
	return c.Set(metav1.Condition{Type: conditionType, Status: metav1.ConditionUnknown, Reason: reason,
		Message: message}, now)
}

// Set stores a condition and brings Ready up to date. The generation is the object's; the transition time is now if the
// status differs from the stored one, else what it was. An empty reason becomes the type. It says whether anything
// changed.
func (c Conditions) Set(cond metav1.Condition, now time.Time) bool {
	changed := c.put(cond, now)
	if cond.Type != ConditionReady {
		changed = c.updateReady(now) || changed
	}
	return changed
}

// Clear removes a condition that Ready does not depend on. It says whether it was there; dependents and Ready stay.
func (c Conditions) Clear(conditionType string) bool {
	i := c.index(conditionType)
	if i < 0 || conditionType == ConditionReady || slices.Contains(c.dependents, conditionType) {
		return false
	}
	*c.list = slices.Delete(*c.list, i, i+1)
	return true
}

func (c Conditions) index(conditionType string) int {
	return slices.IndexFunc(*c.list, func(cond metav1.Condition) bool { return cond.Type == conditionType })
}

func (c Conditions) stale(cond metav1.Condition) bool {
	return cond.ObservedGeneration != 0 && cond.ObservedGeneration != c.generation
}

func (c Conditions) put(cond metav1.Condition, now time.Time) bool {
	if cond.Reason == "" {
		cond.Reason = cond.Type
	}
	cond.ObservedGeneration = c.generation
	cond.LastTransitionTime = metav1.NewTime(now)
	i := c.index(cond.Type)
	if i < 0 {
		*c.list = append(*c.list, cond)
		return true
	}
	old := (*c.list)[i]
	if old.Status == cond.Status {
		cond.LastTransitionTime = old.LastTransitionTime
	}
	(*c.list)[i] = cond
	return old != cond
}

// updateReady makes Ready what its dependents say: False beats Unknown beats True, and an old generation is Unknown.
func (c Conditions) updateReady(now time.Time) bool {
	var unhealthy, unsettled []string
	for _, t := range c.dependents {
		cond, ok := c.Get(t)
		switch {
		case !ok:
			unsettled = append(unsettled, t+"=Unknown")
		case cond.Status == metav1.ConditionFalse && !c.stale(cond):
			unhealthy = append(unhealthy, fmt.Sprintf("%s=False", t))
		case cond.Status != metav1.ConditionTrue || c.stale(cond):
			unsettled = append(unsettled, fmt.Sprintf("%s=Unknown", t))
		}
	}
	ready := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: ConditionReady}
	if len(unsettled) > 0 {
		ready.Status, ready.Reason = metav1.ConditionUnknown, ReasonReconcilingDependents
	}
	if len(unhealthy) > 0 {
		ready.Status, ready.Reason = metav1.ConditionFalse, ReasonUnhealthyDependents
	}
	ready.Message = strings.Join(append(unhealthy, unsettled...), ", ")
	return c.put(ready, now)
}
