package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/kubelet"
)

// Of devices.yaml, and what instances of its types have.
const (
	trainType, inferType = "p5.48xlarge", "g6.xlarge"
	gpuDriver, efaDriver = "gpu.nvidia.com", "dra.net"
	rootsOfTrain         = 8 // PCIe roots of a p5.48xlarge, each with a GPU
	efasOnRoot           = 4
	rootAttribute        = "resource.kubernetes.io/pcieRoot"
)

const (
	late      = 20 * time.Second // after the node is Ready
	quietTime = 40 * time.Second // in which no further node comes for a pod that waits
)

// devicesStory is what the chapters about devices do in a story.
type devicesStory struct {
	*story
	drivers *drivers
}

// devicesSteps are the chapters of joiner-local devices.
func devicesSteps() []step {
	d := &drivers{born: map[string]int{}}
	as := func(title string, chapter func(devicesStory, context.Context) error) step {
		return step{title, func(s *story, ctx context.Context) error { return chapter(devicesStory{s, d}, ctx) }}
	}
	return []step{
		as("a pool of p5.48xlarge and g6.xlarge, DeviceClasses and ResourceClaimTemplates: devices.yaml", devicesStory.prepare),
		as("16 pods claim a GPU and 4 EFA interfaces each, on one PCIe root; the drivers of one node publish them late, those of the other in parts",
			devicesStory.claimRoots),
		as("half of the pods leave", devicesStory.halve),
		as("they come back; of a new node's GPUs its driver publishes one less", devicesStory.comeBack),
		as("a pod asks for nvidia.com/gpu: 1, which a DeviceClass serves", devicesStory.extendedResource),
		as("another one does; the driver of its node never publishes anything", devicesStory.neverPublished),
		as("a pod claims a device of a driver that nobody knows", devicesStory.unknownDriver),
	}
}

// drivers are the DRA drivers of all nodes.
type drivers struct {
	mu   sync.Mutex
	born map[string]int // nodes so far, by type
}

// behave is what the drivers of a new node publish: late on the first of its type, in parts on the second, a GPU less
// on the third. On the second for inference they publish nothing.
func (d *drivers) behave(i kubelet.Instance) kubelet.Behavior {
	d.mu.Lock()
	number := d.born[i.Type]
	d.born[i.Type]++
	d.mu.Unlock()
	out := kubelet.Behavior{DRA: true}
	if i.Type == inferType {
		if number != 1 {
			out.Slices = []kubelet.Slice{slice(gpuDriver, 1, gpu(0))}
		}
		return out
	}
	var gpus, efas []resourcev1.Device
	for root := range rootsOfTrain {
		gpus = append(gpus, gpu(root))
		for n := range efasOnRoot {
			efas = append(efas, onRoot(fmt.Sprintf("efa-%d-%d", root, n), "dra.net/pciDevice", "Elastic Fabric Adapter (EFA)", root))
		}
	}
	out.Slices = []kubelet.Slice{slice(gpuDriver, 1, gpus...), slice(efaDriver, 1, efas...)}
	switch number {
	case 0:
		out.Slices[1].After = late
	case 1:
		second := slice(efaDriver, 2, efas[16:]...)
		second.After = late
		out.Slices = []kubelet.Slice{out.Slices[0], slice(efaDriver, 2, efas[:16]...), second}
	case 2:
		out.Slices[0] = slice(gpuDriver, 1, gpus[1:]...)
	}
	return out
}

// slice is one of so many of a pool.
func slice(driver string, of int64, devices ...resourcev1.Device) kubelet.Slice {
	return kubelet.Slice{Spec: resourcev1.ResourceSliceSpec{Driver: driver, Devices: devices,
		Pool: resourcev1.ResourcePool{Generation: 1, ResourceSliceCount: of}}}
}

func gpu(root int) resourcev1.Device { return onRoot(fmt.Sprint("gpu-", root), "type", "gpu", root) }

func onRoot(name, attribute, is string, root int) resourcev1.Device {
	return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		resourcev1.QualifiedName(attribute): {StringValue: &is},
		rootAttribute:                       {StringValue: new(fmt.Sprintf("pci0000:%02d", root))}}}
}

func (s devicesStory) prepare(ctx context.Context) error {
	s.Kubelets.SetBehavior(s.drivers.behave)
	if err := s.applyManifest(ctx, "devices.yaml"); err != nil {
		return err
	}
	return waitUsable(ctx, s.story)
}

// claimRoots: nodes whose devices are not there yet are not initialized and say why; all pods run on two of them.
func (s devicesStory) claimRoots(ctx context.Context) error {
	if err := s.scale(ctx, "train", 2*rootsOfTrain); err != nil {
		return err
	}
	if err := s.untilUninitialized(ctx, 2, "no PCIe root has that many devices"); err != nil {
		return err
	}
	if err := s.waitExactly(ctx, 2*rootsOfTrain); err != nil {
		return err
	}
	if err := s.untilUninitialized(ctx, 0, ""); err != nil {
		return err
	}
	return s.checkTrain(ctx, 2)
}

// halve: what is left moves to one node, and the other goes.
func (s devicesStory) halve(ctx context.Context) error {
	if err := s.scale(ctx, "train", rootsOfTrain); err != nil {
		return err
	}
	if err := s.pollUntil(ctx, "one node is left", func(context.Context) (string, bool, error) {
		n := s.typed(trainType)
		return fmt.Sprintf("%d nodes", n), n == 1, nil
	}); err != nil {
		return err
	}
	if err := s.waitExactly(ctx, rootsOfTrain); err != nil {
		return err
	}
	return s.checkTrain(ctx, 1)
}

// comeBack: the pod for which the new node turns out to have no GPU gets another node.
func (s devicesStory) comeBack(ctx context.Context) error {
	if err := s.scale(ctx, "train", 2*rootsOfTrain); err != nil {
		return err
	}
	if err := s.waitExactly(ctx, 2*rootsOfTrain); err != nil {
		return err
	}
	return s.checkTrain(ctx, 3)
}

// extendedResource: the kubelet never offers the resource, and the scheduler makes a claim of it.
func (s devicesStory) extendedResource(ctx context.Context) error {
	if err := s.scale(ctx, "infer", 1); err != nil {
		return err
	}
	if err := s.waitExactly(ctx, 2*rootsOfTrain+1); err != nil {
		return err
	}
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=infer"})
	if err != nil {
		return err
	}
	claimed := pods.Items[0].Status.ExtendedResourceClaimStatus
	if claimed == nil || s.typed(inferType) != 1 {
		return fmt.Errorf("pod %s runs with the claim %v, and there are %d %s: want a claim, and 1", pods.Items[0].Name, claimed,
			s.typed(inferType), inferType)
	}
	fmt.Printf("   kube-scheduler made ResourceClaim %s of it\n", claimed.ResourceClaimName)
	return s.untilUninitialized(ctx, 0, "")
}

// neverPublished: the pod waits for its node, which says what it lacks, and no further node comes.
func (s devicesStory) neverPublished(ctx context.Context) error {
	if err := s.scale(ctx, "infer", 2); err != nil {
		return err
	}
	if err := s.untilUninitialized(ctx, 1, "no ResourceSlice of the node has a device of driver "+gpuDriver); err != nil {
		return err
	}
	end := time.Now().Add(quietTime)
	return s.pollUntil(ctx, "no further node came", func(context.Context) (string, bool, error) {
		if n := s.typed(inferType); n != 2 {
			return "", false, fmt.Errorf("there are %d nodes for two pods, want 2", n)
		}
		return "it has not been long enough", time.Now().After(end), nil
	})
}

// unknownDriver: the pod gets no node and an event that says why.
func (s devicesStory) unknownDriver(ctx context.Context) error {
	before := len(s.liveInstances())
	if err := s.scale(ctx, "odd", 1); err != nil {
		return err
	}
	told := ""
	if err := s.pollUntil(ctx, "the pod is told", func(ctx context.Context) (string, bool, error) {
		events, err := s.Kube.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
		if err != nil {
			return "", false, err
		}
		for _, e := range events.Items {
			if strings.HasPrefix(e.InvolvedObject.Name, "odd-") && strings.Contains(e.Message, "fpga.example.com") {
				told = e.Message
			}
		}
		return "no event", told != "", nil
	}); err != nil {
		return err
	}
	fmt.Println("   event: " + told)
	if n := len(s.liveInstances()); n != before {
		return fmt.Errorf("there are %d nodes, want the %d that were there", n, before)
	}
	return s.printNodes(ctx)
}

func (s devicesStory) scale(ctx context.Context, name string, replicas int) error {
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := s.Kube.AppsV1().Deployments("default").Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{})
	return err
}

// typed counts the instances of the type.
func (s devicesStory) typed(name string) (n int) {
	for _, i := range s.liveInstances() {
		if i.Type == name {
			n++
		}
	}
	return n
}

// untilUninitialized waits until so many nodes are not initialized for a reason that says these words.
func (s devicesStory) untilUninitialized(ctx context.Context, want int, words string) error {
	what := fmt.Sprintf("%d nodes wait for their devices", want)
	if want == 0 {
		what = "all nodes are initialized"
	}
	said := map[string]bool{}
	err := s.pollUntil(ctx, what, func(ctx context.Context) (string, bool, error) {
		claims, err := s.Kube.Dynamic.Resource(env.NodeClaims()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", false, err
		}
		waiting := 0
		var saw []string
		for _, c := range claims.Items {
			text, is, err := conditionOf(&c, "Initialized")
			if is || err != nil {
				continue
			}
			saw = append(saw, c.GetName()+": "+text)
			if strings.Contains(text, words) {
				waiting++
				said[text] = want > 0
			}
		}
		return strings.Join(saw, "; "), waiting == want, nil
	})
	for text, told := range said {
		if told {
			fmt.Println("   condition " + text)
		}
	}
	return err
}

// checkTrain fails unless so many nodes have the pods, and each pod a GPU and four interfaces on one PCIe root of its
// own.
func (s devicesStory) checkTrain(ctx context.Context, nodes int) error {
	pods, err := s.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=train"})
	if err != nil {
		return err
	}
	rootOf, err := s.publishedRoots(ctx)
	if err != nil {
		return err
	}
	on, roots := map[string]bool{}, map[string]bool{}
	for _, p := range pods.Items {
		root, err := s.rootOfPod(ctx, p, rootOf)
		if err != nil {
			return err
		}
		on[p.Spec.NodeName], roots[p.Spec.NodeName+" "+root] = true, true
	}
	if len(on) != nodes || s.typed(trainType) != nodes || len(roots) != len(pods.Items) {
		return fmt.Errorf("%d pods are on %d of %d nodes and on %d PCIe roots, want %d nodes, and a root for each pod",
			len(pods.Items), len(on), s.typed(trainType), len(roots), nodes)
	}
	fmt.Printf("   each of %d pods has a GPU and %d EFA interfaces on a PCIe root of its own\n", len(pods.Items), efasOnRoot)
	return s.printNodes(ctx)
}

// rootOfPod is the PCIe root on which all devices are that the pod has. It fails unless they are those that it claims.
func (s devicesStory) rootOfPod(ctx context.Context, p corev1.Pod, rootOf map[string]string) (root string, err error) {
	if len(p.Status.ResourceClaimStatuses) != 1 {
		return "", fmt.Errorf("pod %s has %d ResourceClaims, want 1", p.Name, len(p.Status.ResourceClaimStatuses))
	}
	name := *p.Status.ResourceClaimStatuses[0].ResourceClaimName
	claim, err := s.Kube.ResourceV1().ResourceClaims(p.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if claim.Status.Allocation == nil {
		return "", fmt.Errorf("ResourceClaim %s of pod %s is not allocated", name, p.Name)
	}
	byDriver, roots := map[string]int{}, map[string]bool{}
	for _, r := range claim.Status.Allocation.Devices.Results {
		byDriver[r.Driver]++
		root = rootOf[r.Pool+" "+r.Device]
		roots[root] = true
	}
	if byDriver[gpuDriver] != 1 || byDriver[efaDriver] != efasOnRoot || len(roots) != 1 {
		return "", fmt.Errorf("pod %s has devices %v on %d PCIe roots, want 1 GPU and %d interfaces on one", p.Name, byDriver,
			len(roots), efasOnRoot)
	}
	return root, nil
}

// publishedRoots are the PCIe roots of devices, by pool and device.
func (s devicesStory) publishedRoots(ctx context.Context) (map[string]string, error) {
	all, err := s.Kube.ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, slice := range all.Items {
		for _, d := range slice.Spec.Devices {
			out[slice.Spec.Pool.Name+" "+d.Name] = *d.Attributes[rootAttribute].StringValue
		}
	}
	return out, nil
}
