// Package filter is what its program is asked and answers, which runs kube-scheduler's Filter plugins without an API
// server.
package filter

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Question is a cluster and pods that are asked about.
type Question struct {
	Nodes      []*corev1.Node      `json:"nodes"`
	Namespaces []*corev1.Namespace `json:"namespaces,omitempty"` // those of pods that are not among them have no labels
	// Pods of phase Running are on their node. The others are asked about one after the other: those with a node about
	// it, and they are there from then on unless something refuses them; those without one about every node.
	Pods           []*corev1.Pod                   `json:"pods"`
	CSINodes       []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	CSIDrivers     []*storagev1.CSIDriver          `json:"csiDrivers,omitempty"`
	Claims         []*corev1.PersistentVolumeClaim `json:"persistentVolumeClaims,omitempty"`
	Volumes        []*corev1.PersistentVolume      `json:"persistentVolumes,omitempty"`
	StorageClasses []*storagev1.StorageClass       `json:"storageClasses,omitempty"`
	DeviceClasses  []*resourcev1.DeviceClass       `json:"deviceClasses,omitempty"`
	ResourceSlices []*resourcev1.ResourceSlice     `json:"resourceSlices,omitempty"`
	ResourceClaims []*resourcev1.ResourceClaim     `json:"resourceClaims,omitempty"`
}

// Verdict is what the first plugin with an objection says of a pod on a node; Plugin is empty where none has one.
type Verdict struct {
	Pod    string `json:"pod"`
	Node   string `json:"node"`
	Plugin string `json:"plugin,omitempty"`
	Why    string `json:"why,omitempty"`
}
