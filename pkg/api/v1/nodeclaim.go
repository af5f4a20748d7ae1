package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeClaim is the wish for one node, and then its record: it is stored before anything is launched and lives until all
// is gone.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodeclaims,scope=Cluster,categories=karpenter
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".metadata.labels.node\\.kubernetes\\.io/instance-type",description=""
// +kubebuilder:printcolumn:name="Capacity",type="string",JSONPath=".metadata.labels.karpenter\\.sh/capacity-type",description=""
// +kubebuilder:printcolumn:name="Zone",type="string",JSONPath=".metadata.labels.topology\\.kubernetes\\.io/zone",description=""
// +kubebuilder:printcolumn:name="Node",type="string",JSONPath=".status.nodeName",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="ImageID",type="string",JSONPath=".status.imageID",priority=1,description=""
// +kubebuilder:printcolumn:name="ID",type="string",JSONPath=".status.providerID",priority=1,description=""
// +kubebuilder:printcolumn:name="NodePool",type="string",JSONPath=".metadata.labels.karpenter\\.sh/nodepool",priority=1,description=""
// +kubebuilder:printcolumn:name="NodeClass",type="string",JSONPath=".spec.nodeClassRef.name",priority=1,description=""
// +kubebuilder:printcolumn:name="Drifted",type="string",JSONPath=".status.conditions[?(@.type==\"Drifted\")].status",priority=1,description=""
// +kubebuilder:printcolumn:name="Disruption",type="string",JSONPath=".status.conditions[?(@.type==\"DisruptionReason\")].reason",priority=1,description=""
// +kubebuilder:printcolumn:name="Why",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message",priority=1,description=""
type NodeClaim struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec never changes.
	// +kubebuilder:validation:XValidation:message="spec is immutable",rule="self == oldSelf"
	// +required
	Spec NodeClaimSpec `json:"spec"`
	// Status holds the observed state of the instance and its node.
	// +optional
	Status NodeClaimStatus `json:"status,omitzero"`
}

// NodeClaimList is a list of NodeClaims.
//
// +kubebuilder:object:root=true
type NodeClaimList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeClaim `json:"items"`
}

// NodeClaimSpec is the node that is wanted.
type NodeClaimSpec struct {
	// Taints keep pods that do not tolerate them off the node.
	// +listType=atomic
	// +optional
	Taints []corev1.Taint `json:"taints,omitempty"`
	// StartupTaints are taken off by somebody else (a daemon) soon after boot.
	// +listType=atomic
	// +optional
	StartupTaints []corev1.Taint `json:"startupTaints,omitempty"`
	// Requirements limit which instance types, zones and capacity types may be chosen.
	// +kubebuilder:validation:XValidation:message="requirements with operator 'In' must have a value defined",rule="self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() > 0))"
	// +kubebuilder:validation:XValidation:message="requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))"
	// +kubebuilder:validation:XValidation:message="requirements with 'minValues' must have at least that many values specified in the 'values' field",rule="self.all(x, x.operator != 'In' || !has(x.minValues) || (has(x.values) && x.values.size() >= x.minValues))"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []Requirement `json:"requirements"`
	// Resources are the sum of the requests of the claim's pods, daemons included.
	// +optional
	Resources ResourceRequirements `json:"resources,omitzero"`
	// NodeClassRef names the node class.
	// +required
	NodeClassRef *NodeClassReference `json:"nodeClassRef"`
	// TerminationGracePeriod limits a drain; after it, remaining pods are removed by force. Not given: no limit.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]+(s|m|h))+$`
	// +optional
	TerminationGracePeriod *Duration `json:"terminationGracePeriod,omitempty"`
	// ExpireAfter is the age at which the node is replaced, or Never.
	// +kubebuilder:default:="720h"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^(([0-9]+(s|m|h))+|Never)$`
	// +optional
	ExpireAfter NillableDuration `json:"expireAfter,omitzero"`
}

// NodeClaimStatus holds the observed state of the instance and its node.
type NodeClaimStatus struct {
	// NodeName is the Node that registered for the claim.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ProviderID is the instance, as in the Node's spec.providerID.
	// +optional
	ProviderID string `json:"providerID,omitempty"`
	// ImageID is the machine image the instance booted from.
	// +optional
	ImageID string `json:"imageID,omitempty"`
	// Capacity is the whole of the instance, estimated until the Node reports its own.
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Allocatable is the part of the capacity that pods can use.
	// +optional
	Allocatable corev1.ResourceList `json:"allocatable,omitempty"`
	// Conditions: Launched, Registered, Initialized, Ready and those that come and go.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastPodEventTime is the last time when a pod was bound to, removed from or finished on the node; consolidateAfter
	// counts from it.
	// +optional
	LastPodEventTime metav1.Time `json:"lastPodEventTime,omitzero"`
}
