package disruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
)

const theP5 = "type p5.48xlarge cpu=192000 mem=2097152 milliusd=55040\nresource nvidia.com/gpu 8\nresource vpc.amazonaws.com/efa 32"

// p5Claim is a claim of a GPU and four EFA interfaces on one PCIe root.
func p5Claim() resourcev1.ResourceClaimSpec {
	root := resourcev1.FullyQualifiedName("resource.kubernetes.io/pcieRoot")
	return resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Constraints: []resourcev1.DeviceConstraint{{MatchAttribute: &root}}, Requests: []resourcev1.DeviceRequest{
		{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu.nvidia.com", Count: 1}},
		{Name: "efa", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "efa.networking.k8s.aws", Count: 4}}}}}
}

// p5Slices is what the drivers publish of a p5.48xlarge.
func p5Slices(node string) []*resourcev1.ResourceSlice {
	var gpus, efas []resourcev1.Device
	for root := range 8 {
		on := func(name, key, value string) resourcev1.Device {
			return resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{resourcev1.QualifiedName(key): {StringValue: &value}, "resource.kubernetes.io/pcieRoot": {StringValue: new(fmt.Sprint("pci-", root))}}}
		}
		gpus = append(gpus, on(fmt.Sprint("gpu-", root), "type", "gpu"))
		for i := range 4 {
			efas = append(efas, on(fmt.Sprint("efa-", root, "-", i), "dra.net/pciDevice", "Elastic Fabric Adapter (EFA)"))
		}
	}
	slice := func(driver string, devices []resourcev1.Device) *resourcev1.ResourceSlice {
		return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Driver: driver, NodeName: &node, Devices: devices, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}}
	}
	return []*resourcev1.ResourceSlice{slice("gpu.nvidia.com", gpus), slice("dra.net", efas)}
}

// p5Devices are the devices of a PCIe root.
func p5Devices(node string, root int) *resourcev1.AllocationResult {
	out := []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: node, Device: fmt.Sprint("gpu-", root)}}
	for i := range 4 {
		out = append(out, resourcev1.DeviceRequestAllocationResult{Request: "efa", Driver: "dra.net", Pool: node, Device: fmt.Sprint("efa-", root, "-", i)})
	}
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: out}}
}

// p5World has the pods of the script claim a GPU and four interfaces on one PCIe root each, and on the nodes the devices
// of the roots on which it is allocated from root 7 downwards; others have claims of their own of so many roots. Pods of
// a group whose name begins with s share one claim.
func p5World(t *testing.T, others int, script ...string) *world {
	t.Helper()
	w := newWorld()
	w.World = scenario.Scripted(t, slices.Concat([]string{theP5}, script)...)
	classes, claimed := translate.UsualDeviceClasses(), translate.NewClaimedDevices()
	translate.GroupClasses(classes)
	var published []*resourcev1.ResourceSlice
	had := map[string]int{}
	for _, n := range w.Snapshot.Nodes {
		published = append(published, p5Slices(n.Name)...)
		for range others {
			claimed.AddClaim(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: fmt.Sprint(n.Name, had[n.Name])}, Spec: p5Claim(), Status: resourcev1.ResourceClaimStatus{Allocation: p5Devices(n.Name, 7-had[n.Name])}})
			had[n.Name]++
		}
	}
	shared := map[string]*resourcev1.ResourceClaim{}
	for i := range w.Snapshot.Pods {
		p := &w.Snapshot.Pods[i]
		if group, _, _ := strings.Cut(p.Name, "-"); strings.HasPrefix(group, "s") {
			p.UID, p.DeviceClaims = "u-"+p.Name, []string{group}
			if shared[group] == nil {
				shared[group] = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: group}, Spec: p5Claim()}
				if p.NodeName != "" {
					shared[group].Status.Allocation = p5Devices(p.NodeName, 7-had[p.NodeName])
					had[p.NodeName]++
				}
			}
			if p.NodeName != "" {
				in := &shared[group].Status
				in.ReservedFor = append(in.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p.Name, UID: types.UID(p.UID)})
			}
			continue
		}
		p.UID, p.DeviceTemplates = "u-"+p.Name, []string{"t"}
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Annotations: map[string]string{resourcev1.PodResourceClaimAnnotation: "g"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: p.Name, UID: types.UID(p.UID), Controller: new(true)}}}, Spec: p5Claim()}
		if p.NodeName != "" {
			claim.Status.Allocation = p5Devices(p.NodeName, 7-had[p.NodeName])
			had[p.NodeName]++
		}
		claimed.AddClaim(claim)
	}
	for _, c := range shared {
		claimed.AddClaim(c)
	}
	claims := translate.NewDeviceClaims(classes, claimed)
	var asking []*cluster.Pod
	for i := range w.Snapshot.Pods {
		asking = append(asking, &w.Snapshot.Pods[i])
	}
	claims.NoteSharing(asking)
	for _, p := range asking {
		claims.FillPod(p)
	}
	translate.SettleClaims(w.Snapshot.Pods, classes)
	w.Snapshot.Devices.Known = true
	var serving []translate.DeviceClass
	for _, name := range translate.UnmetResources(w.Snapshot) {
		for _, c := range translate.ServingClasses(classes, name) {
			serving, w.Snapshot.Devices.Classes = append(serving, c), append(w.Snapshot.Devices.Classes, c.DeviceClass)
		}
	}
	var read []translate.DeviceSlice
	for _, one := range published {
		read = append(read, translate.NewDeviceSlice(one, serving, nil))
	}
	translate.CountDevices(read, claimed.Taken, classes).AddTo(&w.Snapshot, serving)
	return w
}

// Sixteen pods with a GPU and four EFA interfaces on one PCIe root each get two p5.48xlarge.
func TestPodsWithDevicesOnOnePCIeRoot(t *testing.T) {
	w := p5World(t, 0, "pool default", "pods train n=16 cpu=1000 mem=1024")
	p := binpack.PodsFrom(w.Snapshot, w.Market)
	var got []string
	for _, l := range p.Launches {
		got = append(got, fmt.Sprint(l.Choice.Type, " ", len(l.Pods), " ", l.Annotations["karpenter.sh/requested-dra-drivers"]))
	}
	if d := cmp.Diff(slices.Repeat([]string{"p5.48xlarge 8 dra.net,gpu.nvidia.com"}, 2), got); d != "" || len(p.Unplaced) > 0 {
		t.Errorf("unplaced %v, launches (-want +got):\n%s", p.Unplaced, d)
	}
}

// When half of such pods are gone, one of two nodes takes what is left, as far as its PCIe roots have devices: in all of
// it, and where others have some.
func TestDevicesOnOnePCIeRootAreConsolidated(t *testing.T) {
	for _, c := range []struct {
		first, second, others int
		want                  string
	}{
		{4, 4, 0, "propose Underutilized: claim-n1 without replacement"},
		{5, 3, 0, "propose Underutilized: claim-n2 without replacement"},
		{5, 4, 0, ""},
		{8, 8, 0, ""},
		{4, 3, 1, "propose Underutilized: claim-n2 without replacement"},
		{4, 4, 1, ""},
	} {
		w := p5World(t, c.others, "pool default", "node n1 type=p5.48xlarge zone=a pool=default", "node n2 type=p5.48xlarge zone=a pool=default",
			fmt.Sprint("pods a on=n1 cpu=1000 mem=1024 n=", c.first), fmt.Sprint("pods b on=n2 cpu=1000 mem=1024 n=", c.second))
		for _, n := range w.Snapshot.Nodes {
			const name = "pcie-bundle.joiner.sh/4_efa.networking.k8s.aws_1_gpu.nvidia.com"
			if has := n.Allocatable.Get(name); has != int64(8-c.others) || n.Capacity.Get(name) != 8 {
				t.Errorf("%+v: node %s has %d of %d", c, n.Name, has, n.Capacity.Get(name))
			}
		}
		got := ""
		for _, line := range w.next().Lines() {
			if strings.HasPrefix(line, "propose") {
				got, _, _ = strings.Cut(line, ", saves")
			}
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// Pods that share an allocated claim move together, to a node with room for all of them and for the devices once. Where
// somebody else has the devices and stays, the node stays too. Those of a pod that has its claim alone are needed anew.
func TestPodsThatShareAClaimMoveTogether(t *testing.T) {
	const p5 = "pool default\nnode n1 type=p5.48xlarge zone=a pool=default\nnode n2 type=p5.48xlarge zone=a pool=default\npods %s on=n2 protected mem=1024 %s"
	share := func(n2, more string, n1 ...string) []string {
		out := strings.Split(fmt.Sprintf(p5, n2, more), "\n")
		for _, group := range n1 {
			out = append(out, "pods "+group+" on=n1 mem=1024")
		}
		return out
	}
	const goes, drifts = "propose Underutilized: claim-n1 without replacement", "propose Drifted: claim-n1 without replacement"
	for _, c := range []struct {
		script  []string
		drifted bool
		want    string
	}{
		{share("b", "cpu=1000 n=7", "s1 cpu=1000 n=4"), false, goes},
		{share("b", "cpu=1000 n=8", "s1 cpu=1000 n=4"), false, "not disrupting claim-n1: it would be replaced by its like"},
		{share("b", "cpu=1000 n=8", "s1 cpu=1000 n=1"), false, "not disrupting claim-n1: it would be replaced by its like"},
		{share("b", "cpu=1000 n=7", "s1 cpu=1000 n=1"), false, goes},
		{share("b", "cpu=1000 n=6", "s1 cpu=1000 n=2", "s2 cpu=1000 n=2"), false, goes},
		{share("b", "cpu=1000 n=6", "s1 cpu=1000 n=2", "c cpu=1000 n=1"), false, goes},
		{share("b", "cpu=1000 n=7", "s1 cpu=1000 n=2", "c cpu=1000 n=1"), false, "not disrupting claim-n1: it would be replaced by its like"},
		{share("b", "cpu=1000 n=7", "s1 cpu=1000 n=2", "s2 cpu=1000 n=2"), false, "not disrupting claim-n1: it would be replaced by its like"},
		{share("b", "cpu=120000 n=1", "s1 cpu=30000 n=2"), false, goes},
		{share("b", "cpu=120000 n=1", "s1 cpu=40000 n=2"), false, "not disrupting claim-n1: it would be replaced by its like"}, // each alone has room
		{share("b", "cpu=1000 n=7", "s1 cpu=1000 n=4"), true, drifts},
		{share("b", "cpu=1000 n=8", "s1 cpu=1000 n=4"), true, "propose Drifted: claim-n1 for on-demand p5.48xlarge in a"},
		{share("s1-y", "cpu=1000 n=1", "s1-x cpu=1000 n=2"), false, "pod s1-y-1 on node n2 has its devices too and stays"},
		{share("b", "cpu=1000 n=1", "s1-x cpu=1000 n=2", "s1-d cpu=100 n=1 owner=DaemonSet"), false, "pod s1-d-1 has its devices too and stays"},
	} {
		w := p5World(t, 0, c.script...)
		if c.drifted {
			if err := w.change("claim-n1", []string{"drifted 1m"}); err != nil {
				t.Fatal(err)
			}
		}
		if text := strings.Join(w.next().Lines(), "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%q: want %q\n%s", c.script[3:], c.want, text)
		}
	}
}

// Pods of a node that goes for other reasons, which share claims, get one node for each claim.
func TestPodsThatShareAClaimOnANodeThatGoes(t *testing.T) {
	for _, how := range []string{"deleting", "interrupted"} {
		w := p5World(t, 0, "type m7i.large cpu=2000 mem=8192 milliusd=100", "pool default", "node n1 type=p5.48xlarge zone=a pool=default "+how,
			"pods s1 on=n1 cpu=90000 mem=1024 n=2", "pods s2 on=n1 cpu=40000 mem=1024 n=2")
		p := binpack.PodsFrom(w.Snapshot, w.Market)
		byClaim := map[string]map[int]bool{}
		for i, l := range p.Launches {
			for _, pod := range l.Pods {
				claim, _, _ := strings.Cut(strings.TrimPrefix(pod, "default/"), "-")
				if byClaim[claim] == nil {
					byClaim[claim] = map[int]bool{}
				}
				byClaim[claim][i] = true
			}
		}
		if len(byClaim["s1"]) != 1 || len(byClaim["s2"]) != 1 || len(p.Launches) != 2 || len(p.Unplaced) != 0 {
			t.Errorf("%s: claims on launches %v, unplaced %v", how, byClaim, p.Unplaced)
		}
	}
}
