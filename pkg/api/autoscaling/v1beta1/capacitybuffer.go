package v1beta1

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CapacityBuffer keeps room free for pods that do not exist yet.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=capacitybuffers,scope=Namespaced,categories=autoscaling,shortName={cb}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Strategy",type="string",JSONPath=".status.provisioningStrategy",description=""
// +kubebuilder:printcolumn:name="PodTemplate",type="string",JSONPath=".status.podTemplateRef.name",description=""
// +kubebuilder:printcolumn:name="Replicas",type="integer",JSONPath=".status.replicas",description=""
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"ReadyForProvisioning\")].status",description=""
// +kubebuilder:printcolumn:name="Provisioned",type="string",JSONPath=".status.conditions[?(@.type==\"Provisioning\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
type CapacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says how much room for which pods.
	// +kubebuilder:validation:XValidation:message="You must define either PodTemplateRef or ScalableRef, but not both",rule="!has(self.podTemplateRef) || !has(self.scalableRef)"
	// +kubebuilder:validation:XValidation:message="If podTemplateRef is set, replicas or limits must also be set",rule="!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)"
	// +required
	Spec CapacityBufferSpec `json:"spec"`
	// Status says what the buffer comes to.
	// +optional
	Status CapacityBufferStatus `json:"status,omitzero"`
}

// CapacityBufferList is a list of CapacityBuffers.
//
// +kubebuilder:object:root=true
type CapacityBufferList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []CapacityBuffer `json:"items"`
}

// CapacityBufferSpec says how much room for which pods.
type CapacityBufferSpec struct {
	// ProvisioningStrategy names how the room is kept. Joiner keeps nodes with room running
	// (buffer.x-k8s.io/active-capacity), or boots nodes and stops them (joiner.sh/stopped-capacity).
	// +kubebuilder:default="buffer.x-k8s.io/active-capacity"
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// PodTemplateRef names the PodTemplate of the buffer's namespace whose pods there shall be room for.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// ScalableRef names the workload of the buffer's namespace whose pods there shall be room for.
	// +optional
	ScalableRef *ScalableRef `json:"scalableRef,omitempty"`
	// Replicas is for how many pods.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// Percentage is for how many pods in per cent of those that the workload has; the larger of it and replicas counts.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Percentage *int32 `json:"percentage,omitempty"`
	// Limits bound what the buffer's pods ask for in sum.
	// +optional
	Limits corev1.ResourceList `json:"limits,omitempty"`
}

// LocalObjectRef names an object of the buffer's namespace.
type LocalObjectRef struct {
	// Name of the object.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// ScalableRef names a workload of the buffer's namespace.
type ScalableRef struct {
	// APIGroup of the workload; apps if empty.
	// +optional
	APIGroup string `json:"apiGroup,omitempty"`
	// Kind of the workload: Deployment, StatefulSet or ReplicaSet.
	// +kubebuilder:validation:MinLength=1
	// +required
	Kind string `json:"kind"`
	// Name of the workload.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name"`
}

// CapacityBufferStatus says what the buffer comes to.
type CapacityBufferStatus struct {
	// PodTemplateRef is the template that was found.
	// +optional
	PodTemplateRef *LocalObjectRef `json:"podTemplateRef,omitempty"`
	// PodTemplateGeneration is the generation of that template.
	// +optional
	PodTemplateGeneration *int64 `json:"podTemplateGeneration,omitempty"`
	// Replicas is for how many pods room is kept.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// ProvisioningStrategy is the strategy that was followed.
	// +optional
	ProvisioningStrategy *string `json:"provisioningStrategy,omitempty"`
	// Conditions: ReadyForProvisioning and Provisioning.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Strategies that Joiner follows.
const (
	// StrategyActive keeps nodes running that have the room.
	StrategyActive = "buffer.x-k8s.io/active-capacity"
	// StrategyStopped keeps nodes stopped that have the room.
	StrategyStopped = "joiner.sh/stopped-capacity"

	ourStrategies = "joiner.sh/" // is what all begin with that are Joiner's own
)

// Conditions of a CapacityBuffer and their reasons.
const (
	ConditionReadyForProvisioning = "ReadyForProvisioning"
	ConditionProvisioning         = "Provisioning"

	ReasonResolved            = "Resolved"
	ReasonScalableRefNotFound = "ScalableRefNotFound"
	ReasonPodTemplateNotFound = "PodTemplateNotFound"
	ReasonResolutionFailed    = "ResolutionFailed"
	ReasonUnknownStrategy     = "UnknownStrategy" // of Joiner

	ReasonFitsExistingCapacity    = "FitsExistingCapacity"
	ReasonRequiresNewCapacity     = "RequiresNewCapacity"
	ReasonNotReadyForProvisioning = "NotReadyForProvisioning"
	ReasonBufferEmpty             = "BufferEmpty"
)

// Mine reports whether the buffer asks for a strategy that Joiner answers for: one that it follows, or one that is
// named as its own and that it does not know.
func (b *CapacityBuffer) Mine() bool {
	return b.Strategy() == StrategyActive || strings.HasPrefix(b.Strategy(), ourStrategies)
}

// Strategy is the strategy that the buffer asks for, by default StrategyActive.
func (b *CapacityBuffer) Strategy() string {
	if s := b.Spec.ProvisioningStrategy; s != nil && *s != "" {
		return *s
	}
	return StrategyActive
}
