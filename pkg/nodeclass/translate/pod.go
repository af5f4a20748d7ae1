package translate

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// holdsOf lists the nodes' own values of the hold taint that the tolerations name.
func holdsOf(in []corev1.Toleration) []string {
	var out []string
	for _, t := range in {
		if t.Key == karpv1.TaintHold && t.Value != karpv1.HoldAtBoot {
			out = append(out, t.Value)
		}
	}
	return out
}

// defaultGraceSec is the grace period of a pod that names none. mostGraceSec is ten years: the API server takes more
// seconds than a time can be told in.
const defaultGraceSec, mostGraceSec = 30, 10 * 365 * 24 * 60 * 60

// Pod translates a pod. Its volumes are not looked at: see Storage. Of a pod that asks for too much little is kept, and
// the reason why it is refused.
func Pod(p *corev1.Pod) cluster.Pod {
	kept, why := boundPod(p)
	out := smallPod(kept)
	out.Unmodelled = boundReasons(slices.Concat(why, out.Unmodelled))
	return out
}

// smallPod translates a pod that asks for no more than it may.
func smallPod(p *corev1.Pod) cluster.Pod {
	out := cluster.Pod{
		Namespace:    p.Namespace,
		Name:         p.Name,
		UID:          string(p.UID),
		Labels:       p.Labels,
		Created:      p.CreationTimestamp.UTC(),
		Critical:     isCritical(p.Spec.PriorityClassName),
		Owner:        ownerOf(p.OwnerReferences),
		Controller:   controllerOf(p),
		Phase:        string(p.Status.Phase),
		NodeName:     p.Spec.NodeName,
		Nominated:    p.Status.NominatedNodeName,
		Priority:     ptr.Deref(p.Spec.Priority, 0),
		Deleting:     deletionTime(p.ObjectMeta),
		GraceSec:     min(max(ptr.Deref(p.Spec.TerminationGracePeriodSeconds, defaultGraceSec), 0), mostGraceSec),
		DoNotDisrupt: shortAnnotation(p.Annotations, karpv1.AnnotationDoNotDisrupt),
		NodeSelector: stableKeys(p.Spec.NodeSelector),
		Tolerations:  tolerationsFrom(p.Spec.Tolerations),
		Holds:        holdsOf(p.Spec.Tolerations),
		Spread:       spreadFrom(p),
		HostPorts:    hostPortsOf(p.Spec),
		DeletionCost: deletionCostOf(p),
		Requires:     requiredFeatures(&p.Spec),
	}
	out.Need, out.NeedAnew = needOf(p)
	out.NeedBounds = needBoundsOf(p)
	if p.Status.StartTime != nil {
		out.Started = p.Status.StartTime.UTC()
	}
	out.Trouble = troubleOf(p)
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodScheduled:
			out.Unscheduled = c.Reason == corev1.PodReasonUnschedulable && !OnFargate(p)
			if out.Unscheduled {
				out.Unschedulable = c.Message
			}
			out.Bound = sinceTrue(c)
		case corev1.PodReady:
			out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, sinceTrue(c)
			if !out.Ready {
				out.UnreadySince = c.LastTransitionTime.UTC()
			}
		}
	}
	addAffinity(&out, p)
	addUnmodelled(&out, p)
	return out
}

// deletionCostOf returns what the pod's annotations say that evicting it costs. One that is no 32-bit number costs
// nothing, and that of Karpenter hides the other one even then.
func deletionCostOf(p *corev1.Pod) int32 {
	text, given := p.Annotations[karpv1.AnnotationDisruptionCost]
	if !given {
		text = p.Annotations[corev1.PodDeletionCost]
	}
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(cost)
}

// isUntried reports whether kube-scheduler has said nothing about the pod yet. What other schedulers do is not known.
func isUntried(p *corev1.Pod) bool {
	said := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled
	})
	return !said && p.Spec.NodeName == "" && p.Spec.SchedulerName == corev1.DefaultSchedulerName && !OnFargate(p)
}

// sinceTrue returns the time when the condition became True, the zero time where it is not.
func sinceTrue(c corev1.PodCondition) time.Time {
	if c.Status != corev1.ConditionTrue {
		return time.Time{}
	}
	return c.LastTransitionTime.UTC()
}

// OnFargate reports whether AWS Fargate runs the pod, which makes a node for it alone.
func OnFargate(p *corev1.Pod) bool {
	_, profile := p.Labels["eks.amazonaws.com/fargate-profile"]
	return profile || p.Spec.SchedulerName == "fargate-scheduler"
}

// needOf returns what a node must have free for the pod, and what another in its stead would ask for. They differ while
// the pod is resized, which its kubelet reports: what a node says makes no other node larger, and names no resource.
func needOf(p *corev1.Pod) (need, anew resources.List) {
	asked := resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{})
	need = Amounts(asked).With(resources.Pods, 1)
	if !isResized(p) {
		return need, resources.List{}
	}
	has := Amounts(resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true}))
	if has.CPU == need.CPU && has.Memory == need.Memory {
		return need, resources.List{}
	}
	anew = need
	need.CPU, need.Memory = has.CPU, has.Memory
	return need, anew
}

// needBoundsOf is nil where neither a RuntimeClass nor the pod as a whole asks for anything.
func needBoundsOf(p *corev1.Pod) *cluster.NeedBounds {
	if len(p.Spec.Overhead) == 0 && p.Spec.Resources == nil {
		return nil
	}
	out := &cluster.NeedBounds{Overhead: Amounts(p.Spec.Overhead)}
	if whole := p.Spec.Resources; whole != nil {
		of := resourcehelper.AggregateContainerRequests(p, resourcehelper.PodResourcesOptions{})
		maps.DeleteFunc(of, func(name corev1.ResourceName, _ resource.Quantity) bool {
			_, asked := whole.Requests[name]
			return !asked
		})
		out.Containers = Amounts(of)
	}
	return out
}

// isResized reports whether a container, or the pod as a whole, has other CPU or memory than it asks for.
func isResized(p *corev1.Pod) bool {
	differs := func(asked, has corev1.ResourceList) bool {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			a, b := asked[name], has[name]
			if a.Cmp(b) != 0 {
				return true
			}
		}
		return false
	}
	of := func(containers []corev1.Container, statuses []corev1.ContainerStatus) bool {
		return slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool {
			i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
			return i >= 0 && (s.Resources != nil && differs(containers[i].Resources.Requests, s.Resources.Requests) ||
				s.AllocatedResources != nil && differs(containers[i].Resources.Requests, s.AllocatedResources))
		})
	}
	if whole := p.Spec.Resources; whole != nil && p.Status.Resources != nil &&
		(differs(whole.Requests, p.Status.Resources.Requests) || differs(whole.Requests, p.Status.AllocatedResources)) {
		return true
	}
	return of(p.Spec.Containers, p.Status.ContainerStatuses) ||
		of(p.Spec.InitContainers, p.Status.InitContainerStatuses)
}

func isCritical(class string) bool {
	return class == "system-cluster-critical" || class == "system-node-critical"
}

func controllerOf(p *corev1.Pod) string {
	if r := metav1.GetControllerOf(p); r != nil && len(r.UID) <= mostWord {
		return string(r.UID)
	}
	return ""
}

// ownerOf looks at every owner, controller or not.
func ownerOf(refs []metav1.OwnerReference) cluster.Owner {
	out := cluster.OwnerNone
	for _, r := range refs {
		switch {
		case r.APIVersion == "apps/v1" && r.Kind == "DaemonSet":
			return cluster.OwnerDaemonSet
		case r.APIVersion == "v1" && r.Kind == "Node":
			return cluster.OwnerNode
		case r.APIVersion == "apps/v1" && r.Kind == "StatefulSet":
			out = cluster.OwnerStatefulSet
		case out == cluster.OwnerNone:
			out = cluster.OwnerOther
		}
	}
	return out
}

// tolerationsFrom leaves out tolerations that compare numbers: a taint they are meant for counts as not tolerated.
// Those of holds are no property of the pod: see holdsOf.
func tolerationsFrom(in []corev1.Toleration) []cluster.Toleration {
	var out []cluster.Toleration
	for _, t := range in {
		if t.Operator != "" && t.Operator != corev1.TolerationOpEqual && t.Operator != corev1.TolerationOpExists ||
			t.Key == karpv1.TaintHold {
			continue
		}
		out = append(out, cluster.Toleration{
			Key: t.Key, Operator: string(t.Operator), Value: t.Value, Effect: string(t.Effect),
		})
	}
	return out
}

// hostPortsOf lists the host ports of containers and of sidecars.
func hostPortsOf(s corev1.PodSpec) []cluster.HostPort {
	var out []cluster.HostPort
	add := func(c corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort != 0 {
				out = append(out, cluster.HostPort{
					Protocol: cmp.Or(string(p.Protocol), string(corev1.ProtocolTCP)), IP: cmp.Or(p.HostIP, "0.0.0.0"),
					Port: p.HostPort,
				})
			}
		}
	}
	for _, c := range s.Containers {
		add(c)
	}
	for _, c := range s.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	return out
}

// claimNames lists the PersistentVolumeClaims that the pod's volumes use, those made for it alone included.
func claimNames(p *corev1.Pod) []string {
	var out []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			out = append(out, p.Name+"-"+v.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// ComparePods orders pods by namespace and name.
func ComparePods(a, b cluster.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
