package filter_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/pkg/testing/scenario"
)

// Joiner decides as the rows of Karpenter's cases about DRA say, and kube-scheduler takes each of its plans.
func TestKarpentersCasesOfDRA(t *testing.T) {
	text, err := os.ReadFile("testdata/karpenter-dra.tsv")
	if err != nil {
		t.Fatal(err)
	}
	a, count, seen := newAsker(t, client.Minor(), gates), map[string]int{}, map[string]bool{}
	for row := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSuffix(row, "\n"), "\t")
		if strings.HasPrefix(row, "#") {
			continue
		}
		if len(f) != 5 || seen[f[0]] || (f[3] != "passes" && f[3] != "differs") || (f[3] == "differs" || f[1] == "-") && f[4] == "" {
			t.Errorf("row %q: want a case of its own, what there is, what comes out, passes or differs, and why", row)
			continue
		}
		seen[f[0]] = true
		count[f[3]]++
		if f[1] == "-" {
			continue
		}
		count["played"]++
		d := newCase(t, f[1])
		p := d.plan()
		places, drivers := map[string]string{}, []string(nil)
		for _, e := range p.Existing {
			places[e.Pod] = e.Node
		}
		for i, l := range p.Launches {
			for _, pod := range l.Pods {
				places[pod] = fmt.Sprintf("new%d:%s", i+1, l.Choice.Type)
			}
			drivers = append(drivers, l.Annotations["karpenter.sh/requested-dra-drivers"])
		}
		var got []string
		for _, pod := range d.q.Pods {
			place := places["default/"+pod.Name]
			if place == "" {
				place = "-"
			}
			got = append(got, pod.Name+"="+place)
		}
		slices.Sort(drivers)
		if want := strings.Join(slices.DeleteFunc(append(got, slices.Compact(drivers)...), func(s string) bool { return s == "" }), " "); want != f[2] {
			t.Errorf("case %s: %s, want %s\n%s", f[0], want, f[2], p.String())
		}
		for _, v := range a.ask(d.seated(p)) {
			if v.Plugin != "" {
				t.Errorf("case %s: %s refuses %s on %s: %s", f[0], v.Plugin, v.Pod, v.Node, v.Why)
			}
		}
	}
	t.Logf("%v", count)
	if count["passes"]+count["differs"] != 61 || count["played"] < 40 {
		t.Errorf("cases %v, want 61", count)
	}
}

// newCase reads what there is in a case: types with devices, DeviceClasses, nodes that publish GPUs, ResourceClaims,
// those of them that are made for a pod or held by somebody, devices of no single node, and pods with their claims.
func newCase(t *testing.T, text string) *draw {
	t.Helper()
	d := &draw{kubelets: map[string]int{"c": 36}}
	script := []string{"class c kubelet=36", "pool p class=c"}
	drivers, made := map[string]string{"gpu": gpuDriver, "nic": "neuron.aws.com", "part": "parts.example.com"}, map[string]*resourcev1.ResourceClaim{}
	for line := range strings.SplitSeq(text, ";") {
		f := strings.Fields(line)
		name, with := f[1], f[2:]
		value := func(key string) string {
			for _, w := range with {
				if v, is := strings.CutPrefix(w, key+"="); is {
					return v
				}
			}
			return ""
		}
		switch f[0] {
		case "type":
			script = append(script, fmt.Sprintf("type %s cpu=4000 mem=8192 milliusd=100", name))
			at := len(script) - 1
			if arch := value("arch"); arch != "" {
				script[at] += " arch=" + arch
			}
			for key, of := range map[string]string{"gpu": "nvidia.com/gpu", "neuron": "aws.amazon.com/neuron"} {
				if n := value(key); n != "" {
					script[at] += "\nresource " + of + " " + n
				}
			}
		case "class":
			d.q.DeviceClasses = append(d.q.DeviceClasses, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", drivers[name])}}}}})
		case "node", "slice":
			var gpus []resourcev1.Device
			n, _ := strconv.Atoi(value("gpu"))
			for i := range n {
				gpus = append(gpus, gpuOn(i, ""))
			}
			d.q.ResourceSlices = append(d.q.ResourceSlices, sliceOf(name, gpuDriver, gpus))
			if room := (corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("10")}); f[0] == "node" {
				d.q.Nodes = append(d.q.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"}},
					Status: corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}})
			}
		case "zoned":
			slice := sliceOf(name, name, nil)
			slice.Spec.NodeName = nil
			if zone := with[0]; zone == "all" {
				slice.Spec.AllNodes = new(true)
			} else {
				slice.Spec.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}}}}}
			}
			for device := range strings.SplitSeq(with[1], ",") {
				slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: device})
			}
			d.q.ResourceSlices = append(d.q.ResourceSlices, slice)
		case "claim", "made", "held":
			c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("c-" + name)}}
			if f[0] == "held" {
				with = []string{"gpu=1", with[0], with[1]}
				c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r0", Driver: gpuDriver, Pool: with[1], Device: with[2]}}}}
				if with[1] != gpuDriver {
					c.Status.Allocation.NodeSelector = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{with[1]}}}}}}
				}
				c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "gone", UID: "u-gone"}}
				with = with[:1]
			}
			c.Spec.Devices = claimOf(with)
			if f[0] == "made" {
				made[name] = c
				c.Annotations = map[string]string{resourcev1.PodResourceClaimAnnotation: name}
			}
			d.q.ResourceClaims = append(d.q.ResourceClaims, c)
		case "pod":
			d.q.Pods = append(d.q.Pods, podOf(name, with, made))
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	d.world = scenario.Scripted(t, script...)
	return d
}

// claimOf reads what a claim asks for.
func claimOf(with []string) (out resourcev1.DeviceClaim) {
	for i, w := range with {
		key, v, _ := strings.Cut(w, "=")
		request := resourcev1.DeviceRequest{Name: fmt.Sprint("r", i)}
		exact := func(class, count string) {
			n, err := strconv.ParseInt(count, 10, 64)
			request.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}
			if err != nil {
				request.Exactly.AllocationMode = resourcev1.DeviceAllocationModeAll
			}
		}
		switch {
		case key == "match":
			out.Constraints = []resourcev1.DeviceConstraint{{MatchAttribute: new(resourcev1.FullyQualifiedName(v))}}
			continue
		case key == "part" && strings.HasSuffix(v, "Gi"):
			out.Requests[0].Exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": resource.MustParse(v)}}
			continue
		case key == "first":
			for k, part := range strings.Split(v, ",") {
				class, count, _ := strings.Cut(part, ":")
				n, _ := strconv.ParseInt(count, 10, 64)
				request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{Name: fmt.Sprint("s", k), DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n})
			}
		default:
			exact(key, v)
		}
		out.Requests = append(out.Requests, request)
	}
	return out
}

// podOf is a pod that waits, with its claims and the architecture that it wants.
func podOf(name string, with []string, made map[string]*resourcev1.ResourceClaim) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("u-" + name)}, Spec: corev1.PodSpec{SchedulerName: corev1.DefaultSchedulerName,
		Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}}}}}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	for _, w := range with {
		if arch, is := strings.CutPrefix(w, "on="); is {
			p.Spec.NodeSelector = map[string]string{corev1.LabelArchStable: arch}
			continue
		}
		if template, is := strings.CutPrefix(w, "none="); is {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "g", ResourceClaimTemplateName: &template})
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "g"}}
			continue
		}
		c := corev1.PodResourceClaim{Name: w, ResourceClaimName: &w}
		if claim := made[w]; claim != nil {
			c = corev1.PodResourceClaim{Name: w, ResourceClaimTemplateName: &w}
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: p.UID, Controller: new(true)}}
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: w, ResourceClaimName: &claim.Name}}
		}
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, c)
	}
	return p
}
