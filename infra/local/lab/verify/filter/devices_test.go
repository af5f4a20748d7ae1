package filter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclass/translate"
)

const gpuDriver = "gpu.nvidia.com"

// efaDriver publishes interfaces that share PCIe roots with GPUs.
const efaDriver = "dra.net"

// addDeviceClasses adds two classes that select the same devices, one of others, and one of EFA interfaces. In half of
// the draws most claims are of devices on one PCIe root.
func (d *draw) addDeviceClasses() {
	for i, kind := range []string{"gpu", "gpu", "mig"} {
		selects := fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].type == '%s'", gpuDriver, gpuDriver, kind)
		d.q.DeviceClasses = append(d.q.DeviceClasses, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", kind, i), CreationTimestamp: metav1.Time{Time: time.Unix(int64(5-i), 0)}},
			Spec:       resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selects}}}}})
	}
	selects := fmt.Sprintf("device.driver == '%s' && device.attributes['%s'].pciDevice == 'Elastic Fabric Adapter (EFA)'", efaDriver, efaDriver)
	d.q.DeviceClasses = append(d.q.DeviceClasses, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "efa-3"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: selects}}}}})
	d.rooted, d.mixed = d.chance(2), d.chance(4)
	d.bundles = [2][2]int64{{[]int64{0, 1, 1, 2}[d.r.IntN(4)], int64(d.r.IntN(3))}, {1, int64(d.r.IntN(3))}}
	if d.bundles[0] == [2]int64{} {
		d.bundles[0] = [2]int64{1, 2}
	}
}

// device is one with a text as its attribute, on a PCIe root unless that is empty.
func device(name, attribute, is, root string) resourcev1.Device {
	out := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{resourcev1.QualifiedName(attribute): {StringValue: &is}}}
	if root != "" {
		out.Attributes[rootAttribute] = resourcev1.DeviceAttribute{StringValue: &root}
	}
	return out
}

const rootAttribute = "resource.kubernetes.io/pcieRoot"

func gpuOn(i int, root string) resourcev1.Device {
	return device(fmt.Sprintf("gpu-%d", i), "type", "gpu", root)
}

func efaOn(i int, root string) resourcev1.Device {
	return device(fmt.Sprintf("efa-%d", i), "dra.net/pciDevice", "Elastic Fabric Adapter (EFA)", root)
}

// sliceOf publishes devices of the node.
func sliceOf(node, driver string, devices []resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: node + driver}, Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node,
		Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}, Devices: devices}}
}

// slicesOf is what the drivers publish of a new node of the type.
func slicesOf(node string, t instancetypes.Type) []*resourcev1.ResourceSlice {
	var gpus, efas []resourcev1.Device
	for r, has := range instancetypes.PCIeRoots(t.Name) {
		for range has[instancetypes.ResourceNVIDIA] {
			gpus = append(gpus, gpuOn(len(gpus), fmt.Sprint("r", r)))
		}
		for range has[instancetypes.ResourceEFA] {
			efas = append(efas, efaOn(len(efas), fmt.Sprint("r", r)))
		}
	}
	for len(gpus) < int(t.Capacity.Get(instancetypes.ResourceNVIDIA)) {
		gpus = append(gpus, gpuOn(len(gpus), ""))
	}
	out := []*resourcev1.ResourceSlice{sliceOf(node, gpuDriver, gpus), sliceOf(node, efaDriver, efas)}
	if n := t.Capacity.Get(instancetypes.ResourceNeuron); n > 0 {
		neurons := sliceOf(node, "neuron.aws.com", nil)
		for i := range n {
			neurons.Spec.Devices = append(neurons.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("neuron-", i)})
		}
		out = append(out, neurons)
	}
	return out
}

// addSlices publishes GPUs, partitions and interfaces of the node, some of them tainted, on one of three PCIe roots or
// none. Somebody has some of them.
func (d *draw) addSlices(node string) {
	root := func() string { return []string{"r0", "r0", "r1", "r1", "r2", ""}[d.r.IntN(6)] }
	var gpus, efas []resourcev1.Device
	more := map[bool]int{true: 3}[d.rooted]
	for i := range more + d.r.IntN(5) {
		gpus = append(gpus, gpuOn(i, root()))
		if d.chance(4) {
			gpus[i].Attributes["type"] = resourcev1.DeviceAttribute{StringValue: new("mig")}
		}
	}
	for i := range more + d.r.IntN(8) {
		efas = append(efas, efaOn(i, root()))
	}
	for _, slice := range []*resourcev1.ResourceSlice{sliceOf(node, gpuDriver, gpus), sliceOf(node, efaDriver, efas)} {
		for i := range slice.Spec.Devices {
			if d.chance(8) {
				slice.Spec.Devices[i].Taints = []resourcev1.DeviceTaint{{Key: "ill", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
			} else if d.rooted && d.chance(8) {
				taken := []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: slice.Spec.Driver, Pool: node, Device: slice.Spec.Devices[i].Name}}
				d.q.ResourceClaims = append(d.q.ResourceClaims, &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: taken[0].Device + node},
					Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: taken}}}})
			}
		}
		if len(slice.Spec.Devices) > 0 {
			d.q.ResourceSlices = append(d.q.ResourceSlices, slice)
		}
	}
}

// claim has the pod claim some devices of a class, all of a node, or some on one PCIe root, as the claim controller
// makes it of a template. A pod on a node has those that nobody else there has.
func (d *draw) claim(p *corev1.Pod) {
	if zone := []string{"a", "b"}[d.r.IntN(2)]; d.mixed && d.chance(2) && (p.Spec.NodeName == "" || zone == "a") {
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
	}
	var asked resourcev1.DeviceClaim
	ask := func(name, class string, count int64) {
		e := &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count, Tolerations: d.rules.toleration()}
		if count == 0 {
			e.AllocationMode = resourcev1.DeviceAllocationModeAll
		}
		asked.Requests = append(asked.Requests, resourcev1.DeviceRequest{Name: name, Exactly: e})
	}
	switch {
	case d.rooted && !(d.mixed && d.chance(3)):
		bundle := d.bundles[0]
		if d.mixed && d.chance(3) {
			bundle = d.bundles[1]
		}
		for i, class := range []string{d.q.DeviceClasses[d.r.IntN(2)].Name, "efa-3"} {
			if bundle[i] > 0 {
				ask("r"+fmt.Sprint(i), class, bundle[i])
			}
		}
		asked.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(rootAttribute))}}
	case p.Spec.NodeName == "" && d.chance(3):
		ask("r", d.q.DeviceClasses[d.r.IntN(3)].Name, 0)
	default:
		ask("r", d.q.DeviceClasses[d.r.IntN(3)].Name, int64(1+d.r.IntN(3)))
	}
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: "of-" + p.Name, UID: types.UID("c-" + p.Name), Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: "g"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)}}},
		Spec: resourcev1.ResourceClaimSpec{Devices: asked}}
	if p.Spec.NodeName != "" && !d.allocate(claim, p) {
		return
	}
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "g", ResourceClaimTemplateName: new("t")}}
	p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "g", ResourceClaimName: &claim.Name}}
	d.q.ResourceClaims = append(d.q.ResourceClaims, claim)
}

// allocate gives the claim devices of the pod's node that are not tainted, on any PCIe root that has them if they are to
// be on one. It reports whether there are so many.
func (d *draw) allocate(claim *resourcev1.ResourceClaim, p *corev1.Pod) bool {
	taken := map[string]bool{}
	for _, c := range d.q.ResourceClaims {
		for _, r := range c.Status.Allocation.Devices.Results {
			taken[r.Pool+r.Device] = true
		}
	}
	roots := []string{""}
	if len(claim.Spec.Devices.Constraints) > 0 {
		roots = []string{"r0", "r1", "r2"}
		d.r.Shuffle(len(roots), func(i, j int) { roots[i], roots[j] = roots[j], roots[i] })
	}
	for _, root := range roots {
		out, missing := &resourcev1.AllocationResult{}, int64(0)
		for _, r := range claim.Spec.Devices.Requests {
			left := r.Exactly.Count
			for _, s := range d.q.ResourceSlices {
				for _, x := range s.Spec.Devices {
					on := root == "" || x.Attributes[rootAttribute].StringValue != nil && *x.Attributes[rootAttribute].StringValue == root
					if *s.Spec.NodeName == p.Spec.NodeName && kindOf(x) == r.Exactly.DeviceClassName[:3] && on && len(x.Taints) == 0 && !taken[p.Spec.NodeName+x.Name] && left > 0 {
						out.Devices.Results = append(out.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: r.Name, Driver: s.Spec.Driver, Pool: p.Spec.NodeName, Device: x.Name})
						left--
					}
				}
			}
			missing += left
		}
		if missing == 0 {
			claim.Status = resourcev1.ResourceClaimStatus{Allocation: out, ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}}}
			return true
		}
	}
	return false
}

// kindOf is what the names of DeviceClasses that select the device begin with.
func kindOf(x resourcev1.Device) string {
	if kind, is := x.Attributes["type"]; is {
		return *kind.StringValue
	}
	return "efa"
}

// fillDevices adds to the snapshot what Joiner reads of devices.
func (d *draw) fillDevices(s *cluster.Snapshot) {
	var classes, serving []translate.DeviceClass
	for _, c := range d.q.DeviceClasses {
		classes = append(classes, translate.NewDeviceClass(c))
	}
	translate.GroupClasses(classes)
	rules := translate.NewDeviceTaintRules(d.rules.all)
	translate.TaintClasses(classes, rules)
	translate.RefuseTainted(s, classes)
	claimed := translate.NewClaimedDevices()
	for _, c := range d.q.ResourceClaims {
		claimed.AddClaim(c)
	}
	claims := translate.NewDeviceClaims(classes, claimed)
	var asking []*cluster.Pod
	for i := range s.Pods {
		if p := &s.Pods[i]; len(p.DeviceTemplates)+len(p.DeviceClaims) > 0 {
			asking = append(asking, p)
		}
	}
	claims.NoteSharing(asking)
	for _, p := range asking {
		claims.FillPod(p)
	}
	translate.SettleClaims(s.Pods, classes)
	s.Devices.Known = true
	for _, name := range translate.UnmetResources(*s) {
		for _, c := range translate.ServingClasses(classes, name) {
			serving, s.Devices.Classes = append(serving, c), append(s.Devices.Classes, c.DeviceClass)
		}
	}
	var published []translate.DeviceSlice
	for _, one := range d.q.ResourceSlices {
		published = append(published, translate.NewDeviceSlice(one, serving, rules))
	}
	counts := translate.CountDevices(published, claimed.Taken, classes)
	s.Nodes = slices.Clone(s.Nodes)
	counts.AddTo(s, serving)
	for i := range s.Nodes {
		for _, name := range s.Nodes[i].Allocatable.Names() {
			if n := &s.Nodes[i]; strings.HasPrefix(name, cluster.Bundle) {
				n.Allocatable = n.Allocatable.With(name, n.Allocatable.Get(name)+d.planted)
			}
		}
	}
}

// notCounted is what a refusal says of devices on one PCIe root of which others want some too: a new node might have
// them.
const notCounted = "its devices on one PCIe root cannot be counted"

// A bundle too much on a node that is there is found: kube-scheduler refuses the pod that gets it.
func TestOverCountIsFound(t *testing.T) {
	a := newAsker(t, client.Minor(), gates)
	for i := range *draws {
		d := newDraw(t, *first+uint64(i))
		d.planted = 1
		for _, v := range a.ask(d.seated(d.plan())) {
			if v.Plugin == "DynamicResources" {
				t.Logf("seed %d: %s", *first+uint64(i), v.Why)
				return
			}
		}
	}
	t.Errorf("in %d clusters nobody noticed", *draws)
}

// countRooted counts where the plan has pods that claim devices on one PCIe root.
func (d *draw) countRooted(p plan.Plan, into map[string]int) {
	where := map[string]string{}
	for _, e := range p.Existing {
		where[e.Pod] = "on a node"
	}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			where[pod] = "on a new node"
		}
	}
	for _, u := range p.Unplaced {
		where[u.Pod] = "without a place"
		if strings.Contains(strings.Join(u.Why, ""), notCounted) {
			where[u.Pod] = "not counted"
		}
	}
	for _, c := range d.q.ResourceClaims {
		if pod := where[c.Namespace+"/"+strings.TrimPrefix(c.Name, "of-")]; len(c.Spec.Devices.Constraints) > 0 && pod != "" {
			into[pod]++
		}
	}
}
