package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
)

// NodeOverlay changes what instance types are believed to cost or to hold, for the planning of nodes only.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=nodeoverlays,scope=Cluster,categories=karpenter,shortName={overlays}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status",description=""
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp",description=""
// +kubebuilder:printcolumn:name="Weight",type="integer",JSONPath=".spec.weight",priority=1,description=""
type NodeOverlay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec holds the changes, and selects the instance types that they are for.
	// +kubebuilder:validation:XValidation:message="cannot set both 'price' and 'priceAdjustment'",rule="!has(self.price) || !has(self.priceAdjustment)"
	// +required
	Spec NodeOverlaySpec `json:"spec"`
	// Status tells whether the overlay is in force.
	// +optional
	Status NodeOverlayStatus `json:"status,omitzero"`
}

// NodeOverlayList is a list of NodeOverlays.
//
// +kubebuilder:object:root=true
type NodeOverlayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []NodeOverlay `json:"items"`
}

// NodeOverlaySpec holds the changes of an overlay, and selects the instance types that they are for.
type NodeOverlaySpec struct {
	// Requirements choose instance types and offerings by their labels, by the labels of the pool's template and by
	// karpenter.sh/nodepool. A label that none of these gives is not there.
	// +kubebuilder:validation:XValidation:message="requirements with operator 'NotIn' must have a value defined",rule="self.all(x, x.operator != 'NotIn' || (has(x.values) && x.values.size() > 0))"
	// +kubebuilder:validation:XValidation:message="requirements with operator 'In' must have a value defined",rule="self.all(x, x.operator != 'In' || (has(x.values) && x.values.size() > 0))"
	// +kubebuilder:validation:XValidation:message="requirements operator 'Gt', 'Lt', 'Gte' or 'Lte' must have a single positive integer value",rule="self.all(x, !(x.operator in ['Gt', 'Lt', 'Gte', 'Lte']) || (has(x.values) && x.values.size() == 1 && int(x.values[0]) >= 0))"
	// +kubebuilder:validation:MaxItems=100
	// +listType=atomic
	// +required
	Requirements []Requirement `json:"requirements"`
	// Price replaces the price, in USD per hour.
	// +kubebuilder:validation:Pattern=`^\d+(\.\d+)?$`
	// +optional
	Price *string `json:"price,omitempty"`
	// PriceAdjustment changes the price by so many USD per hour, or by so many per cent: -0.5, +10%, -100%.
	// +kubebuilder:validation:Pattern=`^([+-]\d*\.?\d+|\+\d*\.?\d+%|-(\d{1,2}(\.\d+)?|100)%)$`
	// +optional
	PriceAdjustment *string `json:"priceAdjustment,omitempty"`
	// Capacity gives nodes extended resources that somebody else adds to them once they run.
	// +kubebuilder:validation:XValidation:message="invalid resource restricted: 'cpu', 'memory', 'ephemeral-storage' and 'pods' cannot be overlaid",rule="self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))"
	// +optional
	Capacity corev1.ResourceList `json:"capacity,omitempty"`
	// Weight orders overlays: of two that set the same thing the heavier one is in force. Not given counts as 0.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Weight *int32 `json:"weight,omitempty"`
}

// Requirement says which values of a label an instance type or offering must have.
type Requirement struct {
	// Key is the label.
	// +kubebuilder:validation:MaxLength=316
	// +kubebuilder:validation:XValidation:message="label domain \"karpenter.sh\" is restricted",rule="self in ['karpenter.sh/capacity-type', 'karpenter.sh/nodepool'] || !self.find('^([^/]+)').endsWith('karpenter.sh')"
	// +kubebuilder:validation:XValidation:message="label \"kubernetes.io/hostname\" is restricted",rule="self != 'kubernetes.io/hostname'"
	// +required
	Key string `json:"key"`
	// Operator relates the label's value to values. Gt, Lt, Gte and Lte compare integers.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist;Gt;Lt;Gte;Lte
	// +required
	Operator corev1.NodeSelectorOperator `json:"operator"`
	// Values are the label values: at least one for In and NotIn, exactly one integer for the comparing operators, none
	// for Exists and DoesNotExist.
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// NodeOverlayStatus tells whether the overlay is in force.
type NodeOverlayStatus struct {
	// Conditions: ValidationSucceeded and Ready.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Reasons of ValidationSucceeded=False.
const (
	ReasonRuntimeValidation = "RuntimeValidation"
	ReasonConflict          = "Conflict"
)

// StatusConditions is the view of the overlay's conditions.
func (o *NodeOverlay) StatusConditions() karpv1.Conditions {
	return karpv1.ConditionsOf(&o.Status.Conditions, o.ObjectMeta, karpv1.ConditionValidationSucceeded)
}
