// Package buffers turns CapacityBuffers into the pods that they keep room for.
//
// It knows how many pods a buffer stands for and what its status says. It refuses to know where they go: they are
// packed like any other pod. A buffer with a strategy that is not ours is left alone altogether.
package buffers

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

// Buffer is a CapacityBuffer with what it refers to.
type Buffer struct {
	Object     *v1beta1.CapacityBuffer
	Template   *cluster.Pod // a pod as the template or the workload would make it; nil if there is none of that name
	Generation int64        // of the template
	Scale      int32        // pods that the workload has

	Refusals map[string]string // by pod: why no node can be made for it; only for the status

	share  *int64 // of the pods that all buffers may stand for; nil where nobody shared them out
	unread string // why what it names is not looked at
}

// Room holds the places that a plan found for the pods of buffers, by namespace/name.
type Room struct {
	Placed   map[string]bool
	Refusals map[string]string // why no node can be made
	// Stopped says that Placed and Refusals have the pods of buffers of stopped capacity too.
	Stopped bool
}

// RoomOf is the room that a plan found in the snapshot. A node of stopped capacity is room once its instance is
// stopped.
func RoomOf(s cluster.Snapshot, p plan.Plan) Room {
	out := Room{Placed: PlacedPods(p), Refusals: map[string]string{}}
	if p.Stopped == nil || !p.Stopped.Filled {
		return out
	}
	out.Stopped = true
	stopped := map[string]bool{}
	for _, c := range s.Claims {
		stopped[c.Name] = c.Is(api.ConditionStopped)
	}
	for _, e := range p.Stopped.Placed {
		out.Placed[e.Pod] = stopped[e.Node]
	}
	for _, u := range p.Stopped.Unplaced {
		out.Refusals[u.Pod] = u.Message()
	}
	return out
}

// VirtualPods are the pods that the buffers of active capacity stand for, sorted. There are no such pods: they are
// marked as virtual.
func VirtualPods(buffers []Buffer) []cluster.Pod {
	var out []cluster.Pod
	for _, b := range buffers {
		if b.Object.Strategy() == v1beta1.StrategyActive {
			out = append(out, b.virtualPods()...)
		}
	}
	sortPods(out)
	return out
}

// Stopped are the buffers of stopped capacity with their pods, sorted; one that stands for nothing is left out.
func Stopped(buffers []Buffer) []cluster.StoppedBuffer {
	var out []cluster.StoppedBuffer
	for _, b := range buffers {
		if b.Object.Strategy() != v1beta1.StrategyStopped {
			continue
		}
		if pods := b.virtualPods(); len(pods) > 0 {
			sortPods(pods)
			out = append(out, cluster.StoppedBuffer{Namespace: b.Object.Namespace, Name: b.Object.Name, Pods: pods})
		}
	}
	slices.SortFunc(out, func(a, b cluster.StoppedBuffer) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func sortPods(pods []cluster.Pod) {
	slices.SortFunc(pods, func(a, b cluster.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

// virtualPods are the pods that the buffer stands for.
func (b Buffer) virtualPods() (out []cluster.Pod) {
	n, why := b.replicaCount()
	if why.reason != v1beta1.ReasonResolved {
		return nil
	}
	for i := range n {
		out = append(out, b.virtualPod(i+1))
	}
	return out
}

func (b Buffer) virtualPod(i int32) cluster.Pod {
	p := *b.Template
	p.Namespace, p.Name, p.UID = b.Object.Namespace, b.podName(i), fmt.Sprintf("%s-%d", b.Object.UID, i)
	p.Created, p.Started, p.Deleting = b.Object.CreationTimestamp.UTC(), time.Time{}, time.Time{}
	p.Priority, p.Critical, p.Owner = math.MinInt32, false, cluster.OwnerNone
	p.Phase, p.NodeName, p.Nominated, p.DoNotDisrupt, p.Ready = "", "", "", "", false
	p.VolumeZones, p.Volumes, p.UnreadClaims = nil, nil, nil
	p.Unscheduled, p.Virtual = true, true
	return p
}

func (b Buffer) podName(i int32) string {
	return fmt.Sprintf("capacity-buffer-%s-%d", b.Object.Name, i)
}

// conditionReason is the reason and message of a condition.
type conditionReason struct{ reason, message string }

// replicaCount returns the number of pods for which the buffer stands: the larger of replicas and percentage, bounded
// by the limits; with limits alone as many as they hold.
func (b Buffer) replicaCount() (int32, conditionReason) {
	spec := &b.Object.Spec
	if problem := b.findProblem(); problem.reason != "" {
		return 0, problem
	}
	resolved := conditionReason{reason: v1beta1.ReasonResolved}
	wants := int64(-1) // nothing said
	if spec.Replicas != nil {
		wants = int64(*spec.Replicas)
	}
	if spec.Percentage != nil {
		wants = max(wants, (int64(b.Scale)*int64(*spec.Percentage)+99)/100)
	}
	holds, limited := b.limitReplicas()
	switch {
	case wants < 0 && !limited:
		wants = 0
	case wants < 0 || limited && holds < wants:
		wants = holds
	}
	if most := b.mostPods(); wants > most {
		resolved.message = fmt.Sprintf("it stands for %d pods, of which %d are kept room for: all buffers together may stand for %d, shared out by namespace",
			wants, most, mostPods)
		wants = most
	}
	return int32(wants), resolved
}

// Refusal says why the buffer stands for nothing, empty if it does not.
func (b Buffer) Refusal() string { return b.findProblem().message }

// findProblem says why the buffer stands for nothing, with an empty reason if it does not.
func (b Buffer) findProblem() conditionReason {
	spec := &b.Object.Spec
	switch {
	case !b.Object.Mine():
		return conditionReason{v1beta1.ReasonResolutionFailed,
			fmt.Sprintf("its provisioning strategy %.80q belongs to another controller", b.Object.Strategy())}
	case b.Object.Strategy() != v1beta1.StrategyActive && b.Object.Strategy() != v1beta1.StrategyStopped:
		return conditionReason{v1beta1.ReasonUnknownStrategy, fmt.Sprintf("spec.provisioningStrategy %.80q is none of %s and %s",
			b.Object.Strategy(), v1beta1.StrategyActive, v1beta1.StrategyStopped)}
	case b.Object.DeletionTimestamp != nil:
		return conditionReason{v1beta1.ReasonResolutionFailed, "it is being deleted"}
	case b.unread != "":
		return conditionReason{v1beta1.ReasonResolutionFailed, b.unread}
	case spec.PodTemplateRef == nil && spec.ScalableRef == nil:
		return conditionReason{v1beta1.ReasonResolutionFailed, "it names neither a podTemplateRef nor a scalableRef"}
	case spec.PodTemplateRef != nil && b.Template == nil:
		return conditionReason{v1beta1.ReasonPodTemplateNotFound, b.missing("PodTemplate", spec.PodTemplateRef.Name)}
	case spec.ScalableRef != nil && !IsScalable(spec.ScalableRef):
		return conditionReason{v1beta1.ReasonResolutionFailed,
			fmt.Sprintf("scalableRef names a %.80s of group %.80q: only Deployment, StatefulSet and ReplicaSet of group apps are supported",
				spec.ScalableRef.Kind, spec.ScalableRef.APIGroup)}
	case spec.ScalableRef != nil && b.Template == nil:
		return conditionReason{v1beta1.ReasonScalableRefNotFound,
			b.missing(spec.ScalableRef.Kind, spec.ScalableRef.Name)}
	}
	return conditionReason{}
}

// missing says that there is no such object, whose name nobody checked.
func (b Buffer) missing(kind, name string) string {
	return fmt.Sprintf("there is no %s %s/%.253s", kind, b.Object.Namespace, name)
}

// IsScalable reports whether the workload is of a kind that a buffer may name.
func IsScalable(r *v1beta1.ScalableRef) bool {
	return (r.APIGroup == "" || r.APIGroup == "apps") &&
		slices.Contains([]string{"Deployment", "StatefulSet", "ReplicaSet"}, r.Kind)
}

// limitReplicas returns the number of the pods that the limits hold, judged by the resources that both name.
func (b Buffer) limitReplicas() (pods int64, limited bool) {
	pods = math.MaxInt64
	for name, q := range b.Object.Spec.Limits { // the smallest quotient, so the order does not matter
		need, have := b.Template.Need.Get(string(name)), q.Value()
		if string(name) == resources.CPU {
			have = q.MilliValue()
		}
		if need > 0 {
			pods, limited = min(pods, max(0, have/need)), true
		}
	}
	if !limited {
		return 0, len(b.Object.Spec.Limits) > 0 && b.Object.Spec.Replicas == nil && b.Object.Spec.Percentage == nil
	}
	return pods, true
}

// PlacedPods are the pods that a plan gives room that is there already.
func PlacedPods(p plan.Plan) map[string]bool {
	return lists.Set(p.Existing, func(e plan.Placement) string { return e.Pod })
}

// UpdateStatus brings the buffer's status up to date and reports whether anything changed. placed are the pods for
// which there is room already, as the last plan has it; nil if nobody packed, which leaves the word of whoever did.
func UpdateStatus(b Buffer, placed map[string]bool, now time.Time) bool {
	if !b.Object.Mine() || b.Object.DeletionTimestamp != nil {
		return false
	}
	before := b.Object.Status.DeepCopy()
	s := &b.Object.Status
	n, why := b.replicaCount()
	ready := why.reason == v1beta1.ReasonResolved
	strategy := b.Object.Strategy()
	s.ProvisioningStrategy, s.PodTemplateRef, s.PodTemplateGeneration, s.Replicas = &strategy, nil, nil, nil
	if ready {
		s.Replicas = &n
		if b.Object.Spec.PodTemplateRef != nil {
			s.PodTemplateRef, s.PodTemplateGeneration = b.Object.Spec.PodTemplateRef.DeepCopy(), &b.Generation
		}
	}
	set := func(condition string, is bool, f conditionReason) {
		c := metav1.Condition{Type: condition, Status: metav1.ConditionFalse, Reason: f.reason, Message: f.message,
			ObservedGeneration: b.Object.Generation, LastTransitionTime: metav1.NewTime(now)}
		if is {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, c)
	}
	set(v1beta1.ConditionReadyForProvisioning, ready, why)
	switch {
	case !ready:
		set(v1beta1.ConditionProvisioning, false, conditionReason{v1beta1.ReasonNotReadyForProvisioning, why.message})
	case n == 0:
		set(v1beta1.ConditionProvisioning, false, conditionReason{reason: v1beta1.ReasonBufferEmpty})
	case placed != nil:
		is, f := b.fitsLimits(n, placed)
		set(v1beta1.ConditionProvisioning, is, f)
	}
	return !equality.Semantic.DeepEqual(before, s)
}

func (b Buffer) fitsLimits(n int32, placed map[string]bool) (bool, conditionReason) {
	var missing []string
	for i := range n {
		if name := b.podName(i + 1); !placed[b.Object.Namespace+"/"+name] {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return true, conditionReason{reason: v1beta1.ReasonFitsExistingCapacity}
	}
	text := "no room yet for "
	if b.Object.Strategy() == v1beta1.StrategyStopped {
		text = "no stopped node yet for "
	}
	text += lists.Name(missing, ", ")
	for _, name := range missing {
		if why := b.Refusals[b.Object.Namespace+"/"+name]; why != "" {
			text += "; " + name + ": " + why
			break
		}
	}
	return false, conditionReason{v1beta1.ReasonRequiresNewCapacity, text}
}
