package v1

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "joiner.sh/pkg/api/v1"
)

// Labels that claims and nodes carry, beside those of the instance type.
const (
	LabelEC2NodeClass = "karpenter.k8s.aws/ec2nodeclass"
	LabelEBSZone      = "topology.ebs.csi.aws.com/zone"
)

// WellKnownLabels are the labels of the domain karpenter.k8s.aws that a NodePool or NodeClaim may name, sorted. Every
// other key of the domain is refused.
func WellKnownLabels() []string {
	return []string{
		"karpenter.k8s.aws/capacity-reservation-id", "karpenter.k8s.aws/capacity-reservation-interruptible",
		"karpenter.k8s.aws/capacity-reservation-type", LabelEC2NodeClass,
		"karpenter.k8s.aws/instance-accelerator-count", "karpenter.k8s.aws/instance-accelerator-manufacturer",
		"karpenter.k8s.aws/instance-accelerator-name", "karpenter.k8s.aws/instance-capability-flex",
		"karpenter.k8s.aws/instance-category", "karpenter.k8s.aws/instance-cpu",
		"karpenter.k8s.aws/instance-cpu-manufacturer", "karpenter.k8s.aws/instance-cpu-sustained-clock-speed-mhz",
		"karpenter.k8s.aws/instance-ebs-bandwidth", "karpenter.k8s.aws/instance-encryption-in-transit-supported",
		"karpenter.k8s.aws/instance-family", "karpenter.k8s.aws/instance-generation",
		"karpenter.k8s.aws/instance-gpu-count", "karpenter.k8s.aws/instance-gpu-manufacturer",
		"karpenter.k8s.aws/instance-gpu-memory", "karpenter.k8s.aws/instance-gpu-name",
		"karpenter.k8s.aws/instance-hypervisor", "karpenter.k8s.aws/instance-local-nvme",
		"karpenter.k8s.aws/instance-memory", "karpenter.k8s.aws/instance-network-bandwidth",
		"karpenter.k8s.aws/instance-size", "karpenter.k8s.aws/instance-tenancy",
		"karpenter.k8s.aws/placement-group-id", "karpenter.k8s.aws/placement-group-partition",
	}
}

// RestrictedLabel reports whether the API server refuses a NodePool or NodeClaim with a requirement on the label. As in
// the schema, domains that only end like Karpenter's count as its own.
func RestrictedLabel(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case strings.HasSuffix(domain, karpv1.Group):
		return key != karpv1.LabelCapacityType && key != karpv1.LabelNodePool
	case strings.HasSuffix(domain, Group):
		return !slices.Contains(WellKnownLabels(), key)
	}
	return key == corev1.LabelHostname
}

// Annotations of EC2NodeClasses and NodeClaims.
const (
	// AnnotationHash is the static drift hash, see EC2NodeClass.Hash.
	AnnotationHash = "karpenter.k8s.aws/ec2nodeclass-hash"
	// AnnotationHashVersion is the version of the way that hash was made, see HashVersion.
	AnnotationHashVersion = "karpenter.k8s.aws/ec2nodeclass-hash-version"
	// AnnotationInstanceProfile is the instance profile that the claim's instance was launched with.
	AnnotationInstanceProfile = "karpenter.k8s.aws/instance-profile-name"
	// AnnotationInstanceTagged is "true" on claims whose instance got its late tags.
	AnnotationInstanceTagged = "karpenter.k8s.aws/tagged"
	// AnnotationClusterNameTagged is "true" on claims whose instance got the tag of the cluster's name afterwards.
	AnnotationClusterNameTagged = "compatibility.karpenter.k8s.aws/cluster-name-tagged"
)

// FinalizerTermination stands on an EC2NodeClass while it has instance profiles and launch templates of its own in AWS.
const FinalizerTermination = "karpenter.k8s.aws/termination"

// Tags on what is made in AWS. User tags may not use these keys but Name, see RestrictedTag.
const (
	TagNodePool  = "karpenter.sh/nodepool"
	TagNodeClaim = "karpenter.sh/nodeclaim"
	// from the launch on, so that an instance whose launch reply was lost is found
	TagNodeClaimUID = "joiner.sh/nodeclaim-uid"
	// instead of the two before it while the instances of one request are shared out
	TagLaunchBatch   = "joiner.sh/launch-batch"
	TagEC2NodeClass  = "karpenter.k8s.aws/ec2nodeclass"
	TagClusterName   = "eks:eks-cluster-name"
	TagClusterPrefix = "kubernetes.io/cluster/"
	TagName          = "Name"
)

// DriverDRANET is the DRA driver that publishes EFA interfaces.
const DriverDRANET = "dra.net"

// Conditions of an EC2NodeClass; Ready is the root.
const (
	ConditionReady                     = "Ready"
	ConditionAMIsReady                 = "AMIsReady"
	ConditionSubnetsReady              = "SubnetsReady"
	ConditionSecurityGroupsReady       = "SecurityGroupsReady"
	ConditionInstanceProfileReady      = "InstanceProfileReady"
	ConditionValidationSucceeded       = "ValidationSucceeded"
	ConditionPlacementGroupReady       = "PlacementGroupReady"
	ConditionCapacityReservationsReady = "CapacityReservationsReady"
)

// Reasons of those conditions.
const (
	ReasonAMINotFound                    = "AMINotFound"
	ReasonUnsupportedAlias               = "UnsupportedAlias"
	ReasonSubnetsNotFound                = "SubnetsNotFound"
	ReasonSecurityGroupsNotFound         = "SecurityGroupsNotFound"
	ReasonPlacementGroupResolutionFailed = "PlacementGroupResolutionFailed"
	ReasonPlacementGroupNotFound         = "PlacementGroupNotFound"
	ReasonClusterCIDRResolutionFailed    = "ClusterCIDRResolutionFailed"
	ReasonDependenciesNotReady           = "DependenciesNotReady"
	ReasonInvalidKubelet                 = "InvalidKubeletConfiguration"
	ReasonUnsupportedKubelet             = "UnsupportedKubeletConfiguration"
	ReasonKubeletExpression              = "KubeletExpressionInvalid"
	ReasonTagValidationFailed            = "TagValidationFailed"
	ReasonUserDataSizeLimitExceeded      = "UserDataSizeLimitExceeded"
)
