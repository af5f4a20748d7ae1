package v1

import corev1 "k8s.io/api/core/v1"

// Labels on NodeClaims and Nodes.
const (
	// LabelNodePool names the pool an object belongs to.
	LabelNodePool = "karpenter.sh/nodepool"
	// LabelCapacityType is one of the CapacityType values.
	LabelCapacityType = "karpenter.sh/capacity-type"
	// LabelRegistered is "true" on a Node once its claim was matched and the unregistered taint removed.
	LabelRegistered = "karpenter.sh/registered"
	// LabelInitialized is "true" on a Node once it may take the place of others.
	LabelInitialized = "karpenter.sh/initialized"
	// LabelDoNotSyncTaints is "true" on a Node that brought its taints itself, so registration must not add them again.
	LabelDoNotSyncTaints = "karpenter.sh/do-not-sync-taints"
	// LabelExcludeBalancers keeps load balancers away from a Node that is being terminated; its value is
	// ExcludeBalancersValue.
	LabelExcludeBalancers = corev1.LabelNodeExcludeBalancers
	// ExcludeBalancersValue tells our exclusion from one a user set.
	ExcludeBalancersValue = "karpenter"
	// LabelWindowsBuild is the Windows build number of a node.
	LabelWindowsBuild = corev1.LabelWindowsBuild
)

// KarpenterLeaderLease is the lease by which the controllers of Karpenter elect their leader.
const KarpenterLeaderLease = "karpenter-leader-election"

// Annotations.
const (
	// AnnotationDoNotRepair set to "true" on a Node keeps node repair from it.
	AnnotationDoNotRepair = "karpenter.sh/do-not-repair"
	// AnnotationDisruptionCost on a Pod is what evicting it costs, a 32-bit number. Without it that of
	// controller.kubernetes.io/pod-deletion-cost counts.
	AnnotationDisruptionCost = "karpenter.sh/disruption-cost"
	// AnnotationDoNotDisrupt is "true" or a positive Go duration on a Pod, only "true" on a Node.
	AnnotationDoNotDisrupt = "karpenter.sh/do-not-disrupt"
	// AnnotationNodePoolHash is the static drift hash of the pool's template, see NodePool.Hash.
	AnnotationNodePoolHash = "karpenter.sh/nodepool-hash"
	// AnnotationNodePoolHashVersion is the version of the way that hash was made, see NodePoolHashVersion.
	AnnotationNodePoolHashVersion = "karpenter.sh/nodepool-hash-version"
	// AnnotationTerminationTimestamp is the RFC 3339 time at which draining ends by force.
	AnnotationTerminationTimestamp = "karpenter.sh/nodeclaim-termination-timestamp"
	// AnnotationMinValuesRelaxed is "true" or "false" on claims that the scheduler made.
	AnnotationMinValuesRelaxed = "karpenter.sh/nodeclaim-min-values-relaxed"
	// AnnotationRequestedDRADrivers lists drivers that must publish before a node counts as initialized; sorted, by
	// commas.
	AnnotationRequestedDRADrivers = "karpenter.sh/requested-dra-drivers"
	// AnnotationPriceOverlay is "true" when an overlay changed the price of a candidate type.
	AnnotationPriceOverlay = "karpenter.sh/price-overlay-applied"
	// AnnotationCapacityOverlay is "true" when an overlay changed the capacity of a candidate type.
	AnnotationCapacityOverlay = "karpenter.sh/capacity-overlay-applied"
	// AnnotationKubeletConversion holds the kubelet block of a NodePool v1beta1, from the conversion webhook of
	// Karpenter 1.0. It took precedence over that of the class; from 1.1 on nobody reads it.
	AnnotationKubeletConversion = "compatibility.karpenter.sh/v1beta1-kubelet-conversion"
)

// TaintHold is the key of the taint that keeps a new node for the pods it was planned for; its value stands for those
// pods.
const TaintHold = "joiner.sh/nominated-pods-only"

// HoldAtBoot is the value of TaintHold that a held node registers with. It is the same for all held nodes, so that they
// can share a launch template and a request; registration puts the node's own value in its place.
const HoldAtBoot = "new"

// TaintStoppedCapacity is the key of the taint that nodes of stopped capacity register with, NoSchedule. Registration
// cordons such a node instead, so that DaemonSets come to it, unless it was started for pods.
const TaintStoppedCapacity = "joiner.sh/stopped-capacity"

// TaintFailedRevision is the key of the taint that keeps pods off a node which a NodeRollout rolls back, NoSchedule: a
// pod that leaves another such node would have to move once more.
const TaintFailedRevision = "joiner.sh/failed-revision"

// TaintPreviousRevision is the key of the taint that keeps pods off nodes which a NodeRollout is still to replace, as
// long as it drains another of them, NoSchedule: a pod that comes from there would have to move once more.
const TaintPreviousRevision = "joiner.sh/previous-revision"

// LabelInstance on a NodeClaim is the id of its instance, so that a notice about an instance finds its claim without
// reading all.
const LabelInstance = "joiner.sh/instance"

// Taint keys, neither of which carries a value.
const (
	// TaintDisrupted has effect NoSchedule and stands on a node that is being disrupted or drained.
	TaintDisrupted = "karpenter.sh/disrupted"
	// TaintUnregistered has effect NoExecute and stands on nodes whose user data, by Karpenter or users, starts them
	// with it; registration removes it.
	TaintUnregistered = "karpenter.sh/unregistered"
)

// FinalizerTermination stands on NodeClaims from their first lifecycle step and on Nodes from registration.
const FinalizerTermination = "karpenter.sh/termination"

// LimitNodes is the pseudo-resource in spec.limits and status.resources that counts nodes.
const LimitNodes corev1.ResourceName = "nodes"

// Never is the text of a duration that never ends.
const Never = "Never"

// DisruptedTaint is the taint that keeps new pods off a node marked for deletion.
func DisruptedTaint() corev1.Taint {
	return corev1.Taint{Key: TaintDisrupted, Effect: corev1.TaintEffectNoSchedule}
}
