package v1

import (
	"encoding/json"

	karpv1 "joiner.sh/pkg/api/v1"
)

// KubeletTaints is the field of the kubelet's configuration that holds the taints of a new node. Joiner sets it.
const KubeletTaints = "registerWithTaints"

// KubeletMaxPods is the field that holds how many pods a node takes. As a text it is an expression and among Extra.
const KubeletMaxPods = "maxPods"

// KubeletConfiguration is the part of the kubelet's configuration that a class may set. Families that cannot express a
// field drop it. As JSON it is one object of the fields and Extra.
type KubeletConfiguration struct {
	// ClusterDNS are the DNS servers of pods.
	// +optional
	ClusterDNS []string `json:"clusterDNS,omitempty"`
	// MaxPods limits the pods of a node: a number, or a CEL expression over vcpus, memory_mib, default_enis,
	// ips_per_eni, max_pods and instance_type.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:XValidation:message="maxPods is a number from 0 to 2147483647 or an expression",rule="type(self) == string || self >= 0 && self <= 2147483647"
	// +optional
	MaxPods *int32 `json:"maxPods,omitempty"`
	// PodsPerCore bounds the pods by vCPU as well.
	// +kubebuilder:validation:Minimum:=0
	// +optional
	PodsPerCore *int32 `json:"podsPerCore,omitempty"`
	// SystemReserved is kept for the operating system.
	// +kubebuilder:validation:XValidation:message="valid keys for systemReserved are ['cpu','memory','ephemeral-storage','pid']",rule="self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')"
	// +kubebuilder:validation:XValidation:message="systemReserved value cannot be a negative resource quantity",rule="self.all(x, !self[x].startsWith('-'))"
	// +optional
	SystemReserved map[string]string `json:"systemReserved,omitempty"`
	// KubeReserved is kept for the kubelet and the container runtime.
	// +kubebuilder:validation:XValidation:message="valid keys for kubeReserved are ['cpu','memory','ephemeral-storage','pid']",rule="self.all(x, x=='cpu' || x=='memory' || x=='ephemeral-storage' || x=='pid')"
	// +kubebuilder:validation:XValidation:message="kubeReserved value cannot be a negative resource quantity",rule="self.all(x, !self[x].startsWith('-'))"
	// +optional
	KubeReserved map[string]string `json:"kubeReserved,omitempty"`
	// EvictionHard are signals at which pods are evicted at once.
	// +kubebuilder:validation:XValidation:message="valid keys for evictionHard are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",rule="self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])"
	// +optional
	EvictionHard map[string]string `json:"evictionHard,omitempty"`
	// EvictionSoft are signals at which pods are evicted after a grace period.
	// +kubebuilder:validation:XValidation:message="valid keys for evictionSoft are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",rule="self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])"
	// +optional
	EvictionSoft map[string]string `json:"evictionSoft,omitempty"`
	// EvictionSoftGracePeriod are the grace periods of evictionSoft, one for each of its keys.
	// +kubebuilder:validation:XValidation:message="valid keys for evictionSoftGracePeriod are ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available']",rule="self.all(x, x in ['memory.available','nodefs.available','nodefs.inodesFree','imagefs.available','imagefs.inodesFree','pid.available'])"
	// +optional
	EvictionSoftGracePeriod map[string]karpv1.Duration `json:"evictionSoftGracePeriod,omitempty"`
	// EvictionMaxPodGracePeriod bounds, in seconds, the grace a pod gets on a soft eviction.
	// +optional
	EvictionMaxPodGracePeriod *int32 `json:"evictionMaxPodGracePeriod,omitempty"`
	// ImageGCHighThresholdPercent is the disk use at which images are collected.
	// +kubebuilder:validation:Minimum:=0
	// +kubebuilder:validation:Maximum:=100
	// +optional
	ImageGCHighThresholdPercent *int32 `json:"imageGCHighThresholdPercent,omitempty"`
	// ImageGCLowThresholdPercent is the disk use at which collecting stops.
	// +kubebuilder:validation:Minimum:=0
	// +kubebuilder:validation:Maximum:=100
	// +optional
	ImageGCLowThresholdPercent *int32 `json:"imageGCLowThresholdPercent,omitempty"`
	// CPUCFSQuota turns the enforcement of CPU limits on or off.
	// +optional
	CPUCFSQuota *bool `json:"cpuCFSQuota,omitempty"`
	// Extra are the other fields by name, each a JSON text without spaces and with sorted keys. Nodes of AL2023 get
	// them as they are.
	Extra map[string]string `json:"-"`
	// Written holds the settings as the user wrote them, and is hashed for drift. A value that was not read has none.
	Written string `json:"-" hash:"ignore"`
}

// MaxPodsExpression is the CEL expression in the place of maxPods, empty for none.
func (k *KubeletConfiguration) MaxPodsExpression() string {
	text := ""
	_ = json.Unmarshal([]byte(k.Extra[KubeletMaxPods]), &text) // other fields than texts are no expressions
	return text
}
