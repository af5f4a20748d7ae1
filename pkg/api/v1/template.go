package v1

import corev1 "k8s.io/api/core/v1"

// NodeClassReference names the cloud's part of a pool's configuration.
type NodeClassReference struct {
	// Kind of the node class, for example EC2NodeClass.
	// +kubebuilder:validation:XValidation:message="kind may not be empty",rule="self != ''"
	// +required
	Kind string `json:"kind"`
	// Name of the node class.
	// +kubebuilder:validation:XValidation:message="name may not be empty",rule="self != ''"
	// +required
	Name string `json:"name"`
	// Group of the node class, for example karpenter.k8s.aws.
	// +kubebuilder:validation:XValidation:message="group may not be empty",rule="self != ''"
	// +kubebuilder:validation:Pattern=`^[^/]*$`
	// +required
	Group string `json:"group"`
}

// ResourceRequirements are the summed requests of the pods of a claim.
type ResourceRequirements struct {
	// Requests is the least the node must have allocatable.
	// +optional
	Requests corev1.ResourceList `json:"requests,omitempty"`
}
