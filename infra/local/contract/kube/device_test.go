package kube_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/install"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// kube-scheduler and a snapshot, as each function reads it, agree on what pods find of an extended resource that a DRA
// driver serves.
func TestExtendedResourcesOfDRADrivers(t *testing.T) {
	c := newEnv(t)
	admin, _ := c.client(t)
	wanted := "example.com/" + c.name
	c.addNode(t, c.name)
	c.readyNode(t, admin, c.name)
	c.addDeviceClass(t, wanted)
	ask := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(wanted)] = resource.MustParse("1")
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(wanted): resource.MustParse("1")}
	}
	c.serveFirstPod(t, admin, wanted, ask)
	c.claimDevice(t, "gpu-2")
	c.addPod(t, "two", "", ask)
	c.awaitNode(t, "two")
	c.addPod(t, "three", "", ask)
	c.awaitPending(t, admin, 1)
	for _, group := range []string{install.GroupProvision, install.GroupLifecycle, install.GroupDisrupt} {
		n, s := c.devicesSeen(t, c.as(t, group), wanted)
		want := cluster.Devices{Known: true, Classes: []cluster.DeviceClass{{Resource: wanted, Name: c.name, Driver: c.name + ".example.com"}}}
		if diff := cmp.Diff(want, s); diff != "" || n != [2]int64{3, 2} {
			t.Errorf("%s sees %v of the node, want 3 of which pods may have 2; classes (-want +got):\n%s", group, n, diff)
		}
	}
	drivers, _, err := admin.DeviceDrivers(t.Context())
	want := cluster.DeviceDriver{Name: c.name + ".example.com", Nodes: 1, Devices: 4}
	if err != nil || !slices.ContainsFunc(drivers, func(d cluster.DeviceDriver) bool { return cmp.Equal(d, want) }) {
		t.Errorf("drivers %v, error %v", drivers, err)
	}
}

// serveFirstPod adds pod one, for which the node has nothing of the resource until its devices are published: three of
// type gpu and one of another.
func (c env) serveFirstPod(t *testing.T, admin *kube.Client, wanted string, ask func(*corev1.Pod)) {
	t.Helper()
	c.addPod(t, "one", "", ask)
	c.awaitPending(t, admin, 1)
	if n, s := c.devicesSeen(t, admin, wanted); n != [2]int64{} || !s.Known {
		t.Errorf("without a device the node has %v, known %+v", n, s)
	}
	c.addDevices(t, "gpu-0", "gpu-1", "mig-0", "gpu-2")
	c.awaitNode(t, "one")
}

// devicesSeen is what a snapshot says of the resource on the test's node, as capacity and allocatable, and of who
// serves it.
func (c env) devicesSeen(t *testing.T, k *kube.Client, name string) ([2]int64, cluster.Devices) {
	t.Helper()
	s, err := k.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := s.Nodes[slices.IndexFunc(s.Nodes, func(n cluster.Node) bool { return n.Name == c.name })]
	s.Devices.Classes = slices.DeleteFunc(s.Devices.Classes, func(k cluster.DeviceClass) bool { return k.Resource != name })
	return [2]int64{n.Capacity.Get(name), n.Allocatable.Get(name)}, s.Devices
}

// addDeviceClass makes a DeviceClass as NVIDIA's chart has one, for a driver of the test's own.
func (c env) addDeviceClass(t *testing.T, serves string) {
	t.Helper()
	driver := c.name + ".example.com"
	selects := fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == 'gpu'", driver, driver)
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: c.name}, Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: &serves,
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selects}}}}}
	if _, err := c.ResourceV1().DeviceClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.ResourceV1().DeviceClasses().Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
}

// addDevices publishes devices of the test's node, each of the type that its name begins with.
func (c env) addDevices(t *testing.T, names ...string) {
	t.Helper()
	n, err := c.CoreV1().Nodes().Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: c.name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}},
		Spec: resourcev1.ResourceSliceSpec{Driver: c.name + ".example.com", NodeName: &c.name, Pool: resourcev1.ResourcePool{Name: c.name, Generation: 1, ResourceSliceCount: 1}}}
	for _, name := range names {
		kind := name[:3]
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}})
	}
	if _, err := c.ResourceV1().ResourceSlices().Create(t.Context(), slice, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.ResourceV1().ResourceSlices().Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
}

// claimDevice allocates a device to a ResourceClaim of a user, as a scheduler does.
func (c env) claimDevice(t *testing.T, device string) {
	t.Helper()
	request := resourcev1.DeviceRequest{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: c.name}}
	claims := c.ResourceV1().ResourceClaims(c.name)
	claim, err := claims.Create(t.Context(), &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "own"},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{request}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status = resourcev1.ResourceClaimStatus{
		Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "r", Driver: c.name + ".example.com", Pool: c.name, Device: device}}}},
		ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "somebody", UID: types.UID("u-1")}},
	}
	if _, err := claims.UpdateStatus(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// kube-scheduler and a snapshot agree on what pods find that claim devices by a ResourceClaimTemplate.
func TestDevicesThatTemplatesAskFor(t *testing.T) {
	c := newEnv(t)
	admin, _ := c.client(t)
	c.addNode(t, c.name)
	c.readyNode(t, admin, c.name)
	c.addDeviceClass(t, "example.com/"+c.name)
	counted := resourcev1.ResourceDeviceClassPrefix + c.name
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
		Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "r", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: c.name, Count: 2}}}}}}}
	if _, err := c.ResourceV1().ResourceClaimTemplates(c.name).Create(t.Context(), template, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ask := func(p *corev1.Pod) {
		name := "two"
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "g", ResourceClaimTemplateName: &name}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "g"}}
	}
	c.serveFirstPod(t, admin, counted, ask)
	c.addPod(t, "two", "", ask)
	c.awaitPending(t, admin, 1)
	for _, group := range []string{install.GroupProvision, install.GroupLifecycle, install.GroupDisrupt} {
		k := c.as(t, group)
		n, s := c.devicesSeen(t, k, counted)
		want := cluster.Devices{Known: true, Classes: []cluster.DeviceClass{{Resource: counted, Name: c.name, Driver: c.name + ".example.com"}}}
		if diff := cmp.Diff(want, s); diff != "" || n != [2]int64{3, 3} {
			t.Errorf("%s sees %v of the node, want 3; classes (-want +got):\n%s", group, n, diff)
		}
		snapshot, err := k.ReadSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range snapshot.Pods {
			if p.Namespace == c.name && (p.Need.Get(counted) != 2 || len(p.DeviceTemplates)+len(p.Unmodelled) > 0) {
				t.Errorf("%s sees that pod %s needs %s, %q", group, p.Name, p.Need, p.Unmodelled)
			}
		}
	}
}
