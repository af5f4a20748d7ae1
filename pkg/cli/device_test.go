package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/cli/doctor"
	"joiner.sh/pkg/workload"
)

// deviceSlice publishes two GPUs of node n1.
const deviceSlice = `---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: n1-gpus}
spec: {driver: gpu.nvidia.com, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1},
  devices: [{name: gpu-0, attributes: {type: {string: gpu}}}, {name: gpu-1, attributes: {type: {string: gpu}}}]}
`

// placesOf plans files, of which the first is the workload or the manifests, and says where each pod is: the node or the
// type of a new one, or why it has none.
func placesOf(t *testing.T, wantCode int, files ...string) (places []string, progress string) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".yaml")), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, progress := run("plan", "-o", "json", "-f", filepath.Join(dir, "0.yaml"))
	var p workload.Placement
	if code != wantCode {
		t.Fatalf("exit %d, want %d: %s%s", code, wantCode, out, progress)
	}
	if code == 2 {
		return nil, progress
	}
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		t.Fatal(err)
	}
	for _, n := range p.OnExisting {
		for name := range n.Pods {
			places = append(places, name+" on "+n.Node)
		}
	}
	for _, c := range p.NodeClaims {
		var names []string
		for name := range c.Pods {
			names = append(names, name)
		}
		slices.Sort(names)
		places = append(places, strings.Join(names, ",")+" on a new node")
	}
	for _, u := range p.Unplaced {
		places = append(places, fmt.Sprint(u.Group, ": ", u.Reasons))
	}
	slices.Sort(places)
	return places, progress
}

// Nodes of a workload file have the devices that ResourceSlices beside it publish, but for those that a DeviceTaintRule
// taints.
func TestPlanWithResourceSlices(t *testing.T) {
	const file = `{schema: 1, name: w, nodePools: 1.yaml, nodes: [{name: n1, nodePool: general, instanceType: g5.12xlarge, zone: us-west-2a, capacityType: on-demand}],
  groups: [{name: a, count: 1, pod: {spec: {resourceClaims: [{name: g, resourceClaimTemplateName: two}], containers: [{name: a, image: a, resources: {requests: {cpu: 1}, claims: [{name: g}]}}]}}}]}`
	const template = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: two}\n" +
		"spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}\n"
	const rule = "---\napiVersion: resource.k8s.io/v1beta2\nkind: DeviceTaintRule\nmetadata: {name: ill}\n" +
		"spec: {deviceSelector: {driver: gpu.nvidia.com, pool: n1, device: gpu-1}, taint: {key: ill, effect: NoSchedule}}\n"
	all := strings.Replace(rule, ", pool: n1, device: gpu-1", "", 1)
	ofEach := strings.Replace(rule, ", pool: n1", "", 1)
	old := strings.NewReplacer("resource.k8s.io/v1\nkind: ResourceSlice", "resource.k8s.io/v1beta1\nkind: ResourceSlice", "attributes: {type: {string: gpu}}", "basic: {attributes: {type: {string: gpu}}}")
	for name, c := range map[string]struct{ devices, want string }{
		"both are free":       {deviceSlice, "[a on n1]"},
		"of v1beta1":          {old.Replace(deviceSlice), "[a on n1]"},
		"nobody says so":      {"", "[a on a new node]"},
		"one is tainted":      {deviceSlice + rule, "[a on a new node]"},
		"all are":             {deviceSlice + all, "[a: [ResourceClaimTemplate two: DeviceTaintRule ill taints all devices of driver gpu.nvidia.com with ill:NoSchedule, those of new nodes too, and request r does not tolerate it]]"},
		"one of each node is": {deviceSlice + ofEach, "[a: [ResourceClaimTemplate two: DeviceTaintRule ill taints device gpu-1 of driver gpu.nvidia.com with ill:NoSchedule, those of new nodes too, and request r does not tolerate it]]"},
		"half a pool":         {strings.Replace(deviceSlice, "resourceSliceCount: 1", "resourceSliceCount: 2", 1), "[a on a new node]"},
	} {
		if got, progress := placesOf(t, 0, file, plainPool+template+c.devices); fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s\n%s", name, got, c.want, progress)
		}
	}
	for was, is := range map[[2]string]string{
		{"nodeName: n1", "nodeName: n2"}:                   "1.yaml: ResourceSlice n1-gpus: spec.nodeName: the workload has no node n2;",
		{"nodeName: n1, ", ""}:                             "ResourceSlice n1-gpus: spec: it has 0 of nodeName, nodeSelector, allNodes and perDeviceNodeSelection;",
		{"driver: gpu.nvidia.com, ", ""}:                   "ResourceSlice n1-gpus: spec.driver: it is missing;",
		{"pool: {name: n1, ", "pool: {"}:                   "ResourceSlice n1-gpus: spec.pool.name: it is missing;",
		{"gpu-1", "gpu-0"}:                                 `ResourceSlice n1-gpus: spec.devices[1].name: it is "gpu-0";`,
		{", resourceSliceCount: 1}", "}"}:                  "ResourceSlice n1-gpus: spec.pool.resourceSliceCount: it is 0;",
		{"resourceSliceCount: 1", "resourceSliceCount: x"}: "resourceSliceCount",
	} {
		if _, progress := placesOf(t, 2, file, plainPool+template+strings.Replace(deviceSlice, was[0], was[1], 1)); !strings.Contains(progress, is) ||
			!strings.Contains(progress, "1.yaml") {
			t.Errorf("%v: want %s\n%s", was, is, progress)
		}
	}
}

// Why pods with devices get no node is told in names that people know, with what to do.
func TestReasonsOfDevices(t *testing.T) {
	const objects = `---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: %[1]s}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: %[2]s}}]%[3]s}}}
`
	template := func(name, exactly, more string) string { return fmt.Sprintf(objects, name, exactly, more) }
	pod := func(name, cpu string, templates ...string) string {
		claims := ""
		for i, n := range templates {
			claims += fmt.Sprintf("{name: c%d, resourceClaimTemplateName: %s}, ", i, n)
		}
		return fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec: {resourceClaims: [%s], containers: [{name: a, image: a, resources: {requests: {cpu: %s}}}]}\n", name, claims, cpu)
	}
	const class = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: %s}\nspec: {extendedResourceName: %s, selectors: [{cel: {expression: device.driver == '%s'}}]}\n"
	const asks = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a, resources: {requests: {cpu: 1}, limits: {%s: 1}}}]}\n"
	const rule = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: ill}\nspec: {deviceSelector: {%s}, taint: {key: ill, effect: NoSchedule}}\n"
	all := template("all", "gpu.nvidia.com, allocationMode: All", "")
	one := template("one", "gpu.nvidia.com", "")
	odd := fmt.Sprintf(class, "odd", "odd.example.com/thing", "odd.example.com")
	for name, c := range map[string]struct{ in, want string }{
		"all and one more": {all + one + pod("a", "1", "all", "one"), "default/a: [it claims all devices of DeviceClass gpu.nvidia.com of a node, and more of them]"},
		"all twice":        {all + pod("a", "1", "all", "all"), "default/a: [it claims all devices of DeviceClass gpu.nvidia.com of a node, and more of them]"},
		"all, and too big": {all + pod("a", "1000", "all"), "no instance type is big enough for cpu=1000 all devices of DeviceClass gpu.nvidia.com; the largest has cpu="},
		"one beside all":   {all + one + pod("a", "1", "all") + pod("b", "1000", "one"), "no instance type is big enough for cpu=1000 deviceclass.resource.kubernetes.io/gpu.nvidia.com=1; the largest has cpu="},
		"all that nobody counts": {odd + template("odd", "odd, allocationMode: All", "") + pod("a", "1", "odd"), "no instance type is big enough for cpu=1 all devices of DeviceClass odd; the largest has no device of DeviceClass odd, or more than the 32 that a claim may have, less " +
			"what its daemons take: kube-system/aws-node (cpu=50m), kube-system/kube-proxy (cpu=100m); how many devices of DeviceClass odd (driver odd.example.com) an instance type has is not known: " +
			"claim a number of them, and a NodeOverlay says it with capacity deviceclass.resource.kubernetes.io/odd]"},
		"on one PCIe root": {template("t", "gpu.nvidia.com, count: 9", ", constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]") + pod("a", "1", "t"),
			"no instance type is big enough for cpu=1 (9 gpu.nvidia.com on one PCIe root)=1; the largest has (9 gpu.nvidia.com on one PCIe root)=0"},
		"selectors": {template("t", "gpu.nvidia.com, selectors: [{cel: {expression: 'true'}}]", "") + pod("a", "1", "t"),
			"request r has selectors of its own; make them those of a DeviceClass, with equations of device.driver and device.attributes"},
		"nobody's extended resource": {odd + fmt.Sprintf(asks, "odd.example.com/thing"), "; how many devices of DeviceClass odd (driver odd.example.com) an instance type has is not known: a NodeOverlay says it with capacity odd.example.com/thing"},
		"an extended resource":       {fmt.Sprintf(class, "nv", "x.example.com/gpu", "gpu.nvidia.com") + fmt.Sprintf(asks, "x.example.com/gpu"), "[default/a on a new node]"},
		"a tainted device of each node": {fmt.Sprintf(rule, "device: gpu-0") + all + one + pod("a", "1", "all") + pod("b", "1", "one"),
			"[default/a: [ResourceClaimTemplate all: DeviceTaintRule ill taints device gpu-0 of driver gpu.nvidia.com with ill:NoSchedule, those of new nodes too, and request r does not tolerate it] " +
				"default/b: [ResourceClaimTemplate one: DeviceTaintRule ill taints device gpu-0 of driver gpu.nvidia.com with ill:NoSchedule, those of new nodes too, and request r does not tolerate it]]"},
		"a tainted device of another driver": {fmt.Sprintf(rule, "driver: odd.example.com, device: gpu-0") + all + pod("a", "1", "all"), "[default/a on a new node]"},
		"a tainted device of one node":       {fmt.Sprintf(rule, "pool: n1, device: gpu-0") + all + pod("a", "1", "all"), "[default/a on a new node]"},
		"that it tolerates":                  {fmt.Sprintf(rule, "device: gpu-0") + template("t", "gpu.nvidia.com, tolerations: [{key: ill, operator: Exists}]", "") + pod("a", "1", "t"), "[default/a on a new node]"},
	} {
		got, progress := placesOf(t, 0, plainPool+c.in)
		if text := fmt.Sprint(got); !strings.Contains(text, c.want) || strings.Contains(text, "joiner.sh/") {
			t.Errorf("%s: %s\n want %s\n%s", name, text, c.want, progress)
		}
	}
}

// Changed DeviceClasses, claims, slices and rules are compared as if they were applied, without a NodePool beside them.
// Against a cluster they are refused, which is planned with what it has.
func TestCompareDevices(t *testing.T) {
	const head = "apiVersion: resource.k8s.io/v1\nkind: "
	template := func(exactly string) string {
		return head + "ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: {devices: {requests: [{name: r, exactly: {" + exactly + "}}]}}}\n"
	}
	claim := func(exactly string) string {
		return head + "ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, exactly: {" + exactly + "}}]}}\n"
	}
	class := func(driver string) string {
		return head + "DeviceClass\nmetadata: {name: mine}\nspec: {selectors: [{cel: {expression: \"device.driver == '" + driver + "'\"}}]}\n"
	}
	const rule = head + "DeviceTaintRule\nmetadata: {name: ill}\nspec: {deviceSelector: {driver: gpu.nvidia.com%s}, taint: {key: ill, effect: NoSchedule}}\n"
	const file = `{schema: 1, name: w, nodePools: 1.yaml, nodes: [{name: n1, nodePool: general, instanceType: g5.12xlarge, zone: us-west-2a, capacityType: on-demand}],
  groups: [{name: a, count: 1, pod: {spec: {resourceClaims: [{name: g, %s}], containers: [{name: a, image: a, resources: {requests: {cpu: 1}}}]}}}]}`
	const byTemplate, byClaim = "resourceClaimTemplateName: t", "resourceClaimName: c"
	places := func(p workload.Placement) (out string) {
		for _, n := range p.OnExisting {
			out += "on " + n.Node
		}
		for _, c := range p.NodeClaims {
			out += "new " + c.InstanceType
		}
		for _, u := range p.Unplaced {
			out += strings.Join(u.Reasons, " ")
		}
		return out
	}
	pool := strings.Replace(plainPool, "requirements: []", "requirements: [{key: karpenter.k8s.aws/instance-gpu-count, operator: Exists}]", 1)
	base := pool + "---\n" + template("deviceClassName: mine, count: 2") + "---\n" + claim("deviceClassName: mine, count: 2") + "---\n" + class("gpu.nvidia.com") + deviceSlice
	for name, c := range map[string]struct{ asks, change, want string }{
		"a template that asks for more": {byTemplate, template("deviceClassName: mine, count: 3"), "new "},
		"a claim that asks for more":    {byClaim, claim("deviceClassName: mine, count: 3"), "new "},
		"a claim that asks as before":   {byClaim, claim("deviceClassName: mine, count: 2"), "on n1"},
		"a class of another driver":     {byTemplate, class("odd.example.com"), "a NodeOverlay says it with capacity deviceclass.resource.kubernetes.io/mine"},
		"a rule for one device":         {byTemplate, fmt.Sprintf(rule, ", pool: n1, device: gpu-0"), "new "},
		"a rule for all devices":        {byTemplate, fmt.Sprintf(rule, ""), "DeviceTaintRule ill taints all devices of driver gpu.nvidia.com"},
		"a slice with fewer devices":    {byTemplate, strings.Replace(strings.TrimPrefix(deviceSlice, "---\n"), ", {name: gpu-1, attributes: {type: {string: gpu}}}", "", 1), "new "},
	} {
		dir := t.TempDir()
		for i, text := range []string{fmt.Sprintf(file, c.asks), base, c.change} {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".yaml")), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		changed := filepath.Join(dir, "2.yaml")
		code, out, progress := run("plan", "-o", "json", "-f", filepath.Join(dir, "0.yaml"), "--compare", changed)
		var got comparison
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Errorf("%s: exit %d, %v, %s%s", name, code, err, out, progress)
			continue
		}
		if before, after := places(got.Before), places(got.After); before != "on n1" || !strings.Contains(after, c.want) {
			t.Errorf("%s: %s before, %s after, want %s", name, before, after, c.want)
		}
		if code, _, progress := run("plan", "--compare", changed); code != 2 || !strings.Contains(progress, "2.yaml: a cluster is compared with NodePools, EC2NodeClasses and NodeOverlays; "+
			"leave CapacityBuffers and objects about devices out, or plan files with -f") {
			t.Errorf("%s: against a cluster: exit %d, %s", name, code, progress)
		}
	}
}

// Slices among manifests are read, with what is wrong with them, and it is told that a plan of manifests has no nodes.
// Nor has it the nodes where claims have their devices.
func TestSlicesAmongManifests(t *testing.T) {
	const pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {resourceClaims: [{name: g, resourceClaimName: c}], containers: [{name: a, image: a, resources: {requests: {cpu: 1}, claims: [{name: g}]}}]}\n"
	const claim = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}}\n" +
		"status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: n1, device: gpu-0}]}, nodeSelector: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}\n"
	got, progress := placesOf(t, 0, plainPool+pod+claim+deviceSlice)
	if fmt.Sprint(got) != "[default/a on a new node]" || strings.Contains(progress, "not read: ") ||
		!strings.Contains(progress, "1 ResourceSlices (n1-gpus): nobody gets their devices, unless a workload file has the nodes") ||
		!strings.Contains(progress, "1 allocated ResourceClaims (default/c): they count as if they were not, unless a workload file has the nodes") {
		t.Errorf("%v\n%s", got, progress)
	}
	if _, progress := placesOf(t, 3, plainPool+pod+claim+strings.Replace(deviceSlice, "driver: gpu.nvidia.com, ", "", 1)); !strings.Contains(progress, "0.yaml:") ||
		!strings.Contains(progress, "ResourceSlice n1-gpus: spec.driver: it is missing;") {
		t.Error(progress)
	}
}

// Pods that share a ResourceClaim get one node, which has room for all of them and the devices once.
func TestPlanOfASharedClaim(t *testing.T) {
	const claim = "---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: c}\nspec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}}\n"
	const pods = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec: {replicas: %d, template: {spec: {resourceClaims: [{name: g, resourceClaimName: c}], containers: [{name: a, image: a, resources: {requests: {cpu: 3}, claims: [{name: g}]}}]}}}\n"
	if got, progress := placesOf(t, 0, plainPool+claim+fmt.Sprintf(pods, "a", 1)+fmt.Sprintf(pods, "b", 2)); fmt.Sprint(got) != "[a,b on a new node]" {
		t.Errorf("%v\n%s", got, progress)
	}
	// That the others go where the first goes is no term of theirs that could be removed.
	_, out, _ := run("plan", "-o", "json", "-f", written(t, plainPool+claim+fmt.Sprintf(strings.ReplaceAll(pods, "cpu: 3", "cpu: 500"), "a", 2), ""))
	if !strings.Contains(out, "ResourceClaim c: no node has room for all pods that share it") || strings.Contains(out, "podAffinity") {
		t.Error(out)
	}
}

// A node whose devices its driver has not published ten minutes after it registered is late, until it is initialized.
func TestNodesThatWaitForDevices(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		drivers, registered, initialized string
		since                            time.Duration
		want                             []doctor.LateNode
	}{
		"late":          {"dra.net,gpu.nvidia.com", "True", "False", 42 * time.Minute, []doctor.LateNode{{Name: "n1", Drivers: []string{"dra.net", "gpu.nvidia.com"}, Minutes: 42, Why: "no ResourceSlice"}}},
		"not yet":       {"gpu.nvidia.com", "True", "False", 9 * time.Minute, nil},
		"initialized":   {"gpu.nvidia.com", "True", "True", 42 * time.Minute, nil},
		"no node":       {"gpu.nvidia.com", "False", "False", 42 * time.Minute, nil},
		"asks for none": {"", "True", "False", 42 * time.Minute, nil},
	} {
		o := v1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c1", Annotations: map[string]string{v1.AnnotationRequestedDRADrivers: c.drivers}},
			Status: v1.NodeClaimStatus{NodeName: "n1", Conditions: []metav1.Condition{
				{Type: v1.ConditionRegistered, Status: metav1.ConditionStatus(c.registered), LastTransitionTime: metav1.NewTime(now.Add(-c.since))},
				{Type: v1.ConditionInitialized, Status: metav1.ConditionStatus(c.initialized), Message: "no ResourceSlice"}}}}
		if d := cmp.Diff(c.want, lateNodes(now, &o)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}
