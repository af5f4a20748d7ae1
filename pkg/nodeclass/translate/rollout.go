package translate

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"joiner.sh/pkg/api/joiner/v1alpha1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// What counts where a NodeRollout does not say it.
const (
	defaultReadyWithin = 10 * time.Minute
	defaultMinPods     = 5
)

// Rollout returns a NodeRollout without its revisions, with those of the NodePools that it selects.
func Rollout(o *v1alpha1.NodeRollout, pools []karpv1.NodePool) cluster.Rollout {
	out := cluster.Rollout{Name: o.Name, UID: string(o.UID), ReadyWithin: defaultReadyWithin, MinPods: defaultMinPods,
		Rollback: o.Spec.OnFailure == v1alpha1.Rollback, Pinned: o.Spec.PinnedRevision,
		Resume: o.Annotations[v1alpha1.AnnotationResume], Abort: o.Annotations[v1alpha1.AnnotationAbort],
		Status: rolloutStatus(&o.Status)}
	for i := range pools {
		if selectsPool(o.Spec.NodePoolSelector, &pools[i]) {
			out.Pools = append(out.Pools, pools[i].Name)
		}
	}
	slices.Sort(out.Pools)
	for _, s := range o.Spec.Steps {
		step := cluster.RolloutStep{Pause: s.Pause != nil}
		switch {
		case s.Nodes != nil:
			step.Nodes = int(*s.Nodes)
		case s.Percent != nil:
			step.Percent = int(*s.Percent)
		case s.Pause != nil && s.Pause.Duration != nil:
			step.For = s.Pause.Duration.Duration
		}
		out.Steps = append(out.Steps, step)
	}
	if a := o.Spec.Analysis; a != nil {
		if a.ReadyWithin != nil {
			out.ReadyWithin = a.ReadyWithin.Duration
		}
		out.MinPods = int(ptr.Deref(a.MinPods, defaultMinPods))
		out.Alarms = lists.Of(a.Alarms, func(name string) cluster.Alarm { return cluster.Alarm{Name: name} })
		out.NodeConditions = lists.Of(a.NodeConditions, func(k v1alpha1.NodeCondition) cluster.Condition {
			return cluster.Condition{Type: k.Type, Status: cmp.Or(k.Status, "True")}
		})
	}
	return out
}

func selectsPool(s v1alpha1.NodePoolSelector, p *karpv1.NodePool) bool {
	if len(s.MatchLabels) == 0 {
		return slices.Contains(s.Names, p.Name)
	}
	for k, v := range s.MatchLabels {
		if have, ok := p.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}

func rolloutStatus(s *v1alpha1.NodeRolloutStatus) cluster.RolloutStatus {
	out := cluster.RolloutStatus{Phase: s.Phase, Revision: s.Revision, LastGood: s.LastGoodRevision,
		PreviousGood: s.PreviousGoodRevision, Step: int(s.Step), NewNodes: int(s.NewNodes), OldNodes: int(s.OldNodes),
		Allowed: int(s.AllowedNodes), Failed: s.FailedRevisions, Evidence: s.Evidence, Message: s.Message,
		ResumeToken: s.ResumeToken}
	if s.StepStarted != nil {
		out.StepStarted = s.StepStarted.UTC()
	}
	out.Tried = lists.Of(s.Tried, func(t v1alpha1.TriedNode) cluster.TriedNode { return cluster.TriedNode(t) })
	for _, p := range s.OldPods {
		old := cluster.OldPods{Controller: p.Controller, Pods: int(p.Pods), Bad: int(p.Bad)}
		if p.Left != nil {
			old.Left = p.Left.UTC()
		}
		out.OldPods = append(out.OldPods, old)
	}
	accepted := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAccepted)
	if accepted != nil && accepted.Status != metav1.ConditionTrue {
		out.Refused = accepted.Message
	}
	if k := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionLastGoodAvailable); k != nil &&
		k.Status != metav1.ConditionTrue {
		out.Unavailable = k.Message
	}
	if k := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAlarmsFound); k != nil &&
		k.Status != metav1.ConditionTrue {
		out.NoAlarm = k.Message
	}
	return out
}

// SetRolloutStatus makes the status of the object what the decision says.
func SetRolloutStatus(o *v1alpha1.NodeRollout, s cluster.RolloutStatus, now time.Time) {
	out := &o.Status
	out.Phase, out.Revision = s.Phase, s.Revision
	out.LastGoodRevision, out.PreviousGoodRevision = s.LastGood, s.PreviousGood
	out.Step, out.NewNodes, out.OldNodes = int32(s.Step), int32(s.NewNodes), int32(s.OldNodes)
	out.AllowedNodes, out.FailedRevisions, out.Evidence = int32(s.Allowed), s.Failed, s.Evidence
	out.Message, out.ResumeToken, out.StepStarted, out.OldPods = s.Message, s.ResumeToken, nil, nil
	if !s.StepStarted.IsZero() {
		out.StepStarted = &metav1.Time{Time: s.StepStarted}
	}
	out.Tried = lists.Of(s.Tried, func(t cluster.TriedNode) v1alpha1.TriedNode { return v1alpha1.TriedNode(t) })
	for _, p := range s.OldPods {
		old := v1alpha1.OldPods{Controller: p.Controller, Pods: int32(p.Pods), Bad: int32(p.Bad)}
		if !p.Left.IsZero() {
			old.Left = &metav1.Time{Time: p.Left}
		}
		out.OldPods = append(out.OldPods, old)
	}
	setRolloutCondition(o, v1alpha1.ConditionAccepted, "SelectorRefused", s.Refused, now)
	setRolloutCondition(o, v1alpha1.ConditionLastGoodAvailable, "RevisionUnavailable", s.Unavailable, now)
	setRolloutCondition(o, v1alpha1.ConditionAlarmsFound, "AlarmsNotFound", s.NoAlarm, now)
}

func setRolloutCondition(o *v1alpha1.NodeRollout, name, reason, problem string, now time.Time) {
	k := metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: name, ObservedGeneration: o.Generation,
		LastTransitionTime: metav1.NewTime(now)}
	if problem != "" {
		k.Status, k.Reason, k.Message = metav1.ConditionFalse, reason, problem
	}
	meta.SetStatusCondition(&o.Status.Conditions, k)
}
