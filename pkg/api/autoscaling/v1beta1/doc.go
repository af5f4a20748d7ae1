// Package v1beta1 holds the autoscaling.x-k8s.io/v1beta1 object CapacityBuffer, which belongs to the Kubernetes
// autoscaling project.
//
// It knows as much of the object as is needed to read it and to write its status. It refuses to know which pods a
// buffer stands for: that is pkg/model/buffers.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.x-k8s.io
package v1beta1
