package filter_test

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

const gpuDriver = "gpu.nvidia.com"

// addDeviceClasses adds two classes that select the same devices, and one of others.
func (d *draw) addDeviceClasses() {
	for i, kind := range []string{"gpu", "gpu", "mig"} {
		selects := fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == '%s'", gpuDriver, gpuDriver, kind)
		d.q.DeviceClasses = append(d.q.DeviceClasses, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", kind, i), CreationTimestamp: metav1.Time{Time: time.Unix(int64(5-i), 0)}},
			Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selects}}}}})
	}
}

// sliceOf publishes GPUs of the node.
func sliceOf(node string, gpus int) *resourcev1.ResourceSlice {
	out := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: resourcev1.ResourceSliceSpec{Driver: gpuDriver, NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}}
	for i := range gpus {
		kind := "gpu"
		out.Spec.Devices = append(out.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("%s-%d", kind, i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}})
	}
	return out
}

// addSlice publishes GPUs and partitions of the node, some of them tainted.
func (d *draw) addSlice(node string) {
	slice := sliceOf(node, d.r.IntN(5))
	for i := range slice.Spec.Devices {
		if d.chance(4) {
			slice.Spec.Devices[i].Attributes["type"] = resourcev1.DeviceAttribute{StringValue: new("mig")}
		}
		if d.chance(5) {
			slice.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: "ill", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
		}
	}
	if len(slice.Spec.Devices) > 0 {
		d.q.ResourceSlices = append(d.q.ResourceSlices, slice)
	}
}

// claim has the pod claim some devices of a class, or all of a node, as the claim controller makes it of a template. A
// pod on a node has those that nobody else there has.
func (d *draw) claim(p *corev1.Pod) {
	class := d.q.DeviceClasses[d.r.IntN(len(d.q.DeviceClasses))].Name
	ask := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + d.r.IntN(3))}
	if p.Spec.NodeName == "" && d.chance(3) {
		ask.AllocationMode, ask.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "of-" + p.Name, UID: types.UID("c-" + p.Name), Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: "g"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: ask}}}}}
	if p.Spec.NodeName != "" && !d.allocate(claim, p, class[:3], ask.Count) {
		return
	}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "g", ResourceClaimTemplateName: new("t")}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "g", ResourceClaimName: &claim.Name}}
	d.q.ResourceClaims = append(d.q.ResourceClaims, claim)
}

// allocate gives the claim devices of the pod's node that are not tainted. It reports whether there are so many.
func (d *draw) allocate(claim *resourcev1.ResourceClaim, p *corev1.Pod, kind string, count int64) bool {
	taken := map[string]bool{}
	for _, c := range d.q.ResourceClaims {
		for _, r := range c.Status.Allocation.Devices.Results {
			taken[r.Pool+r.Device] = true
		}
	}
	out := &resourcev1.AllocationResult{}
	for _, s := range d.q.ResourceSlices {
		for _, x := range s.Spec.Devices {
			if s.Name == p.Spec.NodeName && *x.Attributes["type"].StringValue == kind && len(x.Taints) == 0 && !taken[s.Name+x.Name] && int64(len(out.Devices.Results)) < count {
				out.Devices.Results = append(out.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: gpuDriver, Pool: s.Name, Device: x.Name})
			}
		}
	}
	claim.Status = resourcev1.ResourceClaimStatus{Allocation: out, ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}}
	return int64(len(out.Devices.Results)) == count
}

// fillDevices adds to the snapshot what Joiner reads of devices.
func (d *draw) fillDevices(s *cluster.Snapshot) {
	var classes, serving []translate.DeviceClass
	for _, c := range d.q.DeviceClasses {
		classes = append(classes, translate.NewDeviceClass(c))
	}
	translate.GroupClasses(classes)
	claimed := translate.NewClaimedDevices()
	for _, c := range d.q.ResourceClaims {
		claimed.AddClaim(c)
	}
	claims := translate.NewDeviceClaims(classes, claimed)
	for i := range s.Pods {
		if len(s.Pods[i].DeviceTemplates) > 0 {
			claims.FillPod(&s.Pods[i])
		}
	}
	translate.SettleClaims(s.Pods, classes)
	s.Devices.Known = true
	for _, name := range translate.UnmetResources(*s) {
		if c, ok := translate.ServingClass(classes, name); ok {
			c.Resource = name
			serving, s.Devices.Classes = append(serving, c), append(s.Devices.Classes, c.DeviceClass)
		}
	}
	var published []translate.DeviceSlice
	for _, one := range d.q.ResourceSlices {
		published = append(published, translate.NewDeviceSlice(one, serving, nil))
	}
	counts := translate.CountDevices(published, claimed.Taken, classes)
	s.Nodes = slices.Clone(s.Nodes)
	counts.AddTo(s, serving)
}
