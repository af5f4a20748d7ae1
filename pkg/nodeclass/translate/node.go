package translate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// Node translates a node.
func Node(n *corev1.Node) cluster.Node {
	out := cluster.Node{
		Name:        n.Name,
		UID:         string(n.UID),
		ProviderID:  firstBytes(n.Spec.ProviderID),
		Created:     n.CreationTimestamp.UTC(),
		Deleting:    deletionTime(n.ObjectMeta),
		Labels:      boundNodeLabels(n.Labels),
		Annotations: ourAnnotations(n.Annotations),
		Taints:      Taints(n.Spec.Taints[:min(len(n.Spec.Taints), mostNodeTaints)]),
		Capacity:    nodeAmounts(n.Status.Capacity),
		Allocatable: nodeAmounts(n.Status.Allocatable),
		Finalizer:   slices.Contains(n.Finalizers, karpv1.FinalizerTermination),
		Provides:    declaredFeatures(n),
	}
	for _, c := range n.Status.Conditions {
		if len(out.Conditions) < mostConditions {
			out.Conditions = append(out.Conditions, cluster.Condition{Type: string(c.Type), Status: string(c.Status),
				Since: c.LastTransitionTime.UTC()})
		}
		if c.Type == corev1.NodeReady {
			out.Ready, out.ReadySince = c.Status == corev1.ConditionTrue, c.LastTransitionTime.UTC()
		}
	}
	slices.SortFunc(out.Conditions, func(a, b cluster.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

// Claim translates a NodeClaim. Requirements that cannot be understood are left out: the API server refuses them.
func Claim(n *karpv1.NodeClaim) cluster.Claim {
	out := cluster.Claim{
		Name:          n.Name,
		UID:           string(n.UID),
		Version:       n.ResourceVersion,
		Generation:    n.Generation,
		Pool:          n.Labels[karpv1.LabelNodePool],
		Created:       n.CreationTimestamp.UTC(),
		Deleting:      deletionTime(n.ObjectMeta),
		Finalizer:     slices.Contains(n.Finalizers, karpv1.FinalizerTermination),
		Labels:        n.Labels,
		Annotations:   n.Annotations,
		Requests:      Amounts(n.Spec.Resources.Requests),
		Taints:        Taints(n.Spec.Taints),
		StartupTaints: Taints(n.Spec.StartupTaints),
		ProviderID:    n.Status.ProviderID,
		NodeName:      n.Status.NodeName,
		ImageID:       n.Status.ImageID,
		Capacity:      Amounts(n.Status.Capacity),
		Allocatable:   Amounts(n.Status.Allocatable),
		Conditions:    Conditions(n.Status.Conditions),
		ExpireAfter:   ptr.Deref(n.Spec.ExpireAfter.Duration, 0),
	}
	if at := n.Status.LastPodEventTime; !at.IsZero() {
		out.LastPodEvent = at.UTC()
	}
	for _, o := range n.OwnerReferences {
		if o.Kind == karpv1.NodePoolKind {
			out.PoolUID = string(o.UID)
		}
	}
	out.Requirements, _ = requirementsFrom(n.Spec.Requirements)
	if n.Spec.NodeClassRef != nil {
		out.Class = n.Spec.NodeClassRef.Name
	}
	if d := n.Spec.TerminationGracePeriod; d != nil {
		out.TerminationGrace = &d.Duration
	}
	return out
}

// IsOurClass reports whether the reference names an EC2NodeClass; other classes belong to other providers.
func IsOurClass(ref *karpv1.NodeClassReference) bool {
	return ref != nil && ref.Group == awsv1.Group && ref.Kind == awsv1.EC2NodeClassKind
}

// Conditions translates conditions, sorted by type.
func Conditions(in []metav1.Condition) []cluster.Condition {
	out := lists.Of(in, func(c metav1.Condition) cluster.Condition {
		return cluster.Condition{Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime.UTC()}
	})
	slices.SortFunc(out, func(a, b cluster.Condition) int { return strings.Compare(a.Type, b.Type) })
	return out
}

func deletionTime(m metav1.ObjectMeta) time.Time {
	if m.DeletionTimestamp == nil {
		return time.Time{}
	}
	return m.DeletionTimestamp.UTC()
}

// Taints translates taints.
func Taints(in []corev1.Taint) []cluster.Taint {
	return lists.Of(in, func(t corev1.Taint) cluster.Taint {
		return cluster.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)}
	})
}

// CoreTaints is the way back from Taints.
func CoreTaints(in []cluster.Taint) []corev1.Taint {
	return lists.Of(in, func(t cluster.Taint) corev1.Taint {
		return corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect)}
	})
}

// requirementsFrom translates the requirements of a pool or claim. The error names the first that makes no sense; the
// set holds the others.
func requirementsFrom(in []karpv1.Requirement) (requirements.Set, error) {
	var first error
	var rs []requirements.Requirement
	for _, e := range in {
		r, err := requirements.NewRequirement(stableKey(e.Key), requirements.Operator(e.Operator), e.Values...)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		r.MinValues = ptr.Deref(e.MinValues, 0)
		rs = append(rs, r)
	}
	return requirements.NewSet(rs...), first
}

// ClaimRequirements writes requirements as a NodeClaim has them. One can need several entries: bounds and exceptions.
func ClaimRequirements(s requirements.Set) []karpv1.Requirement {
	out := []karpv1.Requirement{}
	for _, r := range s.All() {
		var entries []karpv1.Requirement
		add := func(op requirements.Operator, values ...string) {
			entries = append(entries, karpv1.Requirement{Key: r.Key, Operator: corev1.NodeSelectorOperator(op),
				Values: values})
		}
		if r.Not && r.Min != nil {
			add(requirements.Gte, decimalText(*r.Min))
		}
		if r.Not && r.Max != nil {
			add(requirements.Lte, decimalText(*r.Max))
		}
		switch {
		case len(r.Values) > 0 && r.Not:
			add(requirements.NotIn, r.Values...)
		case len(r.Values) > 0:
			add(requirements.In, r.Values...)
		case len(entries) == 0:
			add(r.Operator())
		}
		if r.MinValues > 0 {
			entries[0].MinValues = &r.MinValues
		}
		out = append(out, entries...)
	}
	return out
}
