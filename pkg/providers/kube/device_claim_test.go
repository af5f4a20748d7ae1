package kube

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// theTemplate asks for two devices of the class.
const theTemplate = `{metadata: {name: two, namespace: default}, spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}}`

// What pods claim by a template counts against the devices of the nodes where they are, once, whether the scheduler has
// allocated them or not. Without a right to read templates a pod waits, and nothing else is lost.
func TestDevicesThatTemplatesAskFor(t *testing.T) {
	counted := resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	gpus := deviceOf("a", "gpu", "") + "," + deviceOf("b", "gpu", "") + "," + deviceOf("c", "gpu", "")
	made := `{metadata: {name: x, namespace: default, annotations: {resource.kubernetes.io/pod-claim-name: g}, ownerReferences: [{kind: Pod, apiVersion: v1, name: web-1, uid: u-1, controller: true}]},
	  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}},
	  status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: n1, device: a}, {request: r, driver: gpu.nvidia.com, pool: n1, device: b}]}}}}`
	for what, c := range map[string]struct {
		lists map[string]string
		node  string
		want  map[string][2]int64
		needs int64
	}{
		"allocated":          {map[string]string{"resourceclaims": made, "resourceclaimtemplates": theTemplate}, "n1", map[string][2]int64{"n1": {3, 3}}, 2},
		"the template went":  {map[string]string{"resourceclaims": made, "resourceclaimtemplates": ""}, "n1", map[string][2]int64{"n1": {3, 3}}, 2},
		"no claim yet":       {map[string]string{"resourceclaims": "", "resourceclaimtemplates": theTemplate}, "", map[string][2]int64{"n1": {3, 3}}, 2},
		"may not be read":    {map[string]string{"resourceclaims": made}, "n1", map[string][2]int64{}, 0},
		"a claim of its own": {map[string]string{"resourceclaims": strings.Replace(made, "pod-claim-name", "other", 1), "resourceclaimtemplates": theTemplate}, "", map[string][2]int64{"n1": {3, 1}}, 2},
	} {
		c.lists["deviceclasses"], c.lists["resourceslices"] = theClass, sliceOf("n1", gpus)
		_, client := serveDRA(t, c.lists, http.StatusForbidden)
		s := lacking("n1")
		s.Pods = []cluster.Pod{{Namespace: "default", Name: "web-1", UID: "u-1", NodeName: c.node, Unscheduled: c.node == "", Need: resources.List{Pods: 1}, DeviceTemplates: []string{"two"}}}
		if err := client.addDevices(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, offered(s, counted)); d != "" {
			t.Errorf("%s: nodes (-want +got):\n%s", what, d)
		}
		if p := s.Pods[0]; p.Need.Get(counted) != c.needs || (c.needs == 0) != (len(p.DeviceTemplates) == 1) || len(p.Unmodelled) > 0 {
			t.Errorf("%s: the pod needs %s, templates %q, %q", what, p.Need, p.DeviceTemplates, p.Unmodelled)
		}
	}
}

// In a cluster without nodes the classes are read for a pod with a template: what they select decides what is bought.
func TestTemplatesInAnEmptyCluster(t *testing.T) {
	_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": "", "resourceclaims": "", "resourceclaimtemplates": theTemplate}, http.StatusNotFound)
	s := cluster.Snapshot{Pods: []cluster.Pod{{Namespace: "default", Name: "web-1", Unscheduled: true, Need: resources.List{Pods: 1}, DeviceTemplates: []string{"two"}}}}
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	want := cluster.Devices{Known: true, Classes: []cluster.DeviceClass{{Resource: resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com", Name: "gpu.nvidia.com", Driver: "gpu.nvidia.com", CountedBy: gpu}}}
	if d := cmp.Diff(want, s.Devices); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Of devices on one PCIe root both drivers are asked, each once, and a node has as many bundles as its roots.
func TestTemplatesOfOnePCIeRoot(t *testing.T) {
	const efas = `{metadata: {name: efa.networking.k8s.aws}, spec: {selectors: [{cel: {expression: "device.driver == 'dra.net' && device.attributes['dra.net'].pciDevice == 'Elastic Fabric Adapter (EFA)'"}}]}}`
	const template = `{metadata: {name: two, namespace: default}, spec: {spec: {devices: {constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}], requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}, {name: e, exactly: {deviceClassName: efa.networking.k8s.aws}}]}}}}`
	gpuOn := func(name, root string) string {
		return `{name: ` + name + `, attributes: {type: {string: gpu}, resource.kubernetes.io/pcieRoot: {string: ` + root + `}}}`
	}
	efaOn := func(name, root string) string {
		return strings.Replace(gpuOn(name, root), "type: {string: gpu}", "dra.net/pciDevice: {string: Elastic Fabric Adapter (EFA)}", 1)
	}
	server, client := serveDRA(t, map[string]string{"deviceclasses": theClass + "," + efas, "resourceclaims": "", "resourceclaimtemplates": template,
		"resourceslices spec.driver=gpu.nvidia.com": sliceOf("n1", gpuOn("a", "r1")+","+gpuOn("b", "r2")),
		"resourceslices spec.driver=dra.net":        strings.Replace(sliceOf("n1", efaOn("c", "r2")+","+efaOn("d", "r2")), "driver: gpu.nvidia.com", "driver: dra.net", 1)}, http.StatusNotFound)
	s := lacking("n1")
	s.Pods = []cluster.Pod{{Namespace: "default", Name: "web-1", Unscheduled: true, Need: resources.List{Pods: 1}, DeviceTemplates: []string{"two"}}}
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	const name = "pcie-bundle.joiner.sh/1_efa.networking.k8s.aws_1_gpu.nvidia.com"
	want := cluster.Devices{Known: true, Classes: []cluster.DeviceClass{{Resource: name, Name: "efa.networking.k8s.aws", Driver: "dra.net", CountedBy: "vpc.amazonaws.com/efa", PerRoot: 1},
		{Resource: name, Name: "gpu.nvidia.com", Driver: "gpu.nvidia.com", CountedBy: gpu, PerRoot: 1}}}
	if d := cmp.Diff(want, s.Devices); d != "" {
		t.Errorf("classes (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {1, 1}}, offered(s, name)); d != "" || s.Pods[0].Need.Get(name) != 1 || len(s.Pods[0].Unmodelled) > 0 {
		t.Errorf("the pod needs %s, %q; nodes (-want +got):\n%s", s.Pods[0].Need, s.Pods[0].Unmodelled, d)
	}
	asked := strings.Join(server.asked, "\n")
	for _, driver := range []string{"dra.net", "gpu.nvidia.com"} {
		if strings.Count(asked, "resourceslices spec.driver="+driver) != 1 {
			t.Errorf("driver %s is not asked once:\n%s", driver, asked)
		}
	}
}

// Templates of one namespace that cannot be read leave the pods of that namespace alone without devices.
func TestTemplatesOfOneNamespaceCannotBeRead(t *testing.T) {
	server, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": "", "resourceclaims": "", "resourceclaimtemplates": theTemplate}, http.StatusNotFound)
	server.breaks = "namespaces/ill/"
	waiting := func(namespace string) cluster.Pod {
		return cluster.Pod{Namespace: namespace, Name: "web-1", Unscheduled: true, Need: resources.List{Pods: 1}, DeviceTemplates: []string{"two"}}
	}
	s := cluster.Snapshot{Pods: []cluster.Pod{waiting("default"), waiting("ill")}}
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if n := s.Pods[0].Need.Get(resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"); n != 2 || len(s.Pods[1].DeviceTemplates) != 1 {
		t.Errorf("the pod of the healthy namespace needs %d devices, that of the other one has the templates %q", n, s.Pods[1].DeviceTemplates)
	}
}

// A DeviceTaintRule takes the devices that it selects away, where it forbids that they are allocated.
func TestRulesTaintDevices(t *testing.T) {
	gpus := deviceOf("a", "gpu", "") + "," + deviceOf("b", "gpu", "")
	for rule, want := range map[string]map[string][2]int64{
		`{deviceSelector: {driver: gpu.nvidia.com, pool: n1, device: a}, taint: {key: ill, effect: NoSchedule}}`: {"n1": {1, 1}, "n2": {2, 2}},
		`{deviceSelector: {device: a}, taint: {key: ill, effect: NoExecute}}`:                                    {"n1": {1, 1}, "n2": {1, 1}},
		`{deviceSelector: {driver: gpu.nvidia.com}, taint: {key: ill, effect: NoExecute}}`:                       {},
		`{deviceSelector: {driver: other}, taint: {key: ill, effect: NoExecute}}`:                                {"n1": {2, 2}, "n2": {2, 2}},
		`{deviceSelector: {device: a}, taint: {key: dull, effect: None}}`:                                        {"n1": {2, 2}, "n2": {2, 2}},
		`{taint: {key: ill, effect: NoExecute}}`:                                                                 {"n1": {2, 2}, "n2": {2, 2}},
	} {
		_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", gpus) + "," + sliceOf("n2", gpus), "resourceclaims": "",
			"devicetaintrules": "{metadata: {name: r}, spec: " + rule + "}"}, http.StatusNotFound)
		s := lacking("n1", "n2")
		if err := client.addDevices(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, offered(s, gpu)); d != "" {
			t.Errorf("%s (-want +got):\n%s", rule, d)
		}
	}
}

// Two classes that select the same devices count as one: the older one. A claim of all devices of a node takes what
// others claim of any of them.
func TestClassesOfTheSameDevices(t *testing.T) {
	const first, second = `{metadata: {name: a-new, creationTimestamp: "2026-02-01T00:00:00Z"}, `, `{metadata: {name: b-old, creationTimestamp: "2026-01-01T00:00:00Z"}, `
	spec := `spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}}`
	template := func(name, ask string) string {
		return `{metadata: {name: ` + name + `, namespace: default}, spec: {spec: {devices: {requests: [{name: r, exactly: {` + ask + `}}]}}}}`
	}
	gpus := deviceOf("a", "gpu", "") + "," + deviceOf("b", "gpu", "")
	taken := `{metadata: {name: x, namespace: default, annotations: {resource.kubernetes.io/pod-claim-name: g}, ownerReferences: [{kind: Pod, apiVersion: v1, name: up, uid: u-up, controller: true}]},
	  spec: {devices: {requests: [{name: r, exactly: {deviceClassName: a-new}}]}}, status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: n1, device: a}]}}}}`
	_, client := serveDRA(t, map[string]string{"deviceclasses": first + spec + "," + second + spec, "resourceslices": sliceOf("n1", gpus) + "," + sliceOf("n2", gpus+","+deviceOf("t", "gpu", ", taints: [{key: ill, effect: NoSchedule}]")), "resourceclaims": taken,
		"resourceclaimtemplates": template("new", "deviceClassName: a-new") + "," + template("old", "deviceClassName: b-old") + "," + template("all", "deviceClassName: a-new, allocationMode: All")}, http.StatusNotFound)
	s := lacking("n1", "n2")
	s.Pods = nil
	for _, p := range [][2]string{{"up", "new"}, {"w-old", "old"}, {"w-all", "all"}} {
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: p[0], UID: "u-" + p[0], Unscheduled: p[0] != "up", Need: resources.List{Pods: 1}, DeviceTemplates: []string{p[1]}})
	}
	s.Pods[0].NodeName = "n1"
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	const some, all = "deviceclass.resource.kubernetes.io/b-old", "all-devices.joiner.sh/b-old"
	for i, want := range []string{"pods=1 all-devices.joiner.sh/b-old=1 deviceclass.resource.kubernetes.io/b-old=1", "pods=1 all-devices.joiner.sh/b-old=1 deviceclass.resource.kubernetes.io/b-old=1", "pods=1 all-devices.joiner.sh/b-old=1000"} {
		if got := s.Pods[i].Need.String(); got != want {
			t.Errorf("pod %s needs %s, want %s", s.Pods[i].Name, got, want)
		}
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {2, 2}, "n2": {2, 2}}, offered(s, some)); d != "" {
		t.Errorf("%s (-want +got):\n%s", some, d)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {1000, 1000}, "n2": {1000, 0}}, offered(s, all)); d != "" {
		t.Errorf("%s: n2 has a tainted device (-want +got):\n%s", all, d)
	}
}

// A DeviceTaintRule that names neither pool nor device taints the devices of new nodes too: pods that do not tolerate it
// get no node, and those that do get devices as if there were no rule. Extended resources tolerate none, unless they
// come from a device plugin.
func TestRulesThatTaintAllDevices(t *testing.T) {
	const counted = resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	asking := func(tolerations string) string {
		return strings.Replace(theTemplate, "count: 2", "count: 2, tolerations: ["+tolerations+"]", 1)
	}
	const why = "DeviceTaintRule r taints all devices of driver gpu.nvidia.com with ill=x:NoSchedule, those of new nodes too"
	const claims = "ResourceClaimTemplate two: " + why + ", and request r does not tolerate it"
	whole := `{driver: gpu.nvidia.com}`
	for _, c := range []struct {
		selector, effect, template string
		extended                   string // what the pod requests instead
		node                       string
		plugin                     bool // a node has a device plugin
		want                       string
		offers                     int64
	}{
		{whole, "NoSchedule", theTemplate, "", "", false, claims, 2},
		{whole, "NoSchedule", theTemplate, "", "n1", false, claims, 2},
		{`{}`, "NoSchedule", theTemplate, "", "", false, claims, 2},
		{whole, "NoSchedule", asking("{key: other, operator: Exists}"), "", "", false, claims, 2},
		{whole, "NoSchedule", asking("{key: ill, value: z}"), "", "", false, claims, 2},
		{whole, "NoSchedule", asking("{operator: Exists, effect: NoExecute}"), "", "", false, claims, 2},
		{whole, "NoSchedule", asking("{key: ill, value: x}"), "", "", false, "", 2},
		{whole, "NoSchedule", asking("{operator: Exists}"), "", "", false, "", 2},
		{whole, "NoExecute", theTemplate, "", "", false, strings.Replace(claims, "NoSchedule", "NoExecute", 1), 2},
		{whole, "None", theTemplate, "", "", false, "", 2},
		{`{driver: other}`, "NoSchedule", theTemplate, "", "", false, "", 2},
		{`{driver: gpu.nvidia.com, pool: n1}`, "NoSchedule", theTemplate, "", "", false, "", 0},
		{whole, "NoSchedule", "", gpu, "", false, why + ", and what requests nvidia.com/gpu tolerates none", 0},
		{whole, "NoSchedule", "", counted, "", false, why + ", and what requests " + counted + " tolerates none", 2},
		{whole, "NoSchedule", "", gpu, "", true, "", 0},
		{`{driver: other}`, "NoSchedule", "", gpu, "", false, "", 2},
		{`{device: a}`, "NoSchedule", theTemplate, "", "", false, strings.Replace(claims, "all devices", "device a", 1), 1},
		{`{device: a}`, "NoSchedule", "", gpu, "", false, strings.Replace(why, "all devices", "device a", 1) + ", and what requests nvidia.com/gpu tolerates none", 1},
		{`{device: a}`, "NoSchedule", asking("{operator: Exists}"), "", "", false, "", 1},
	} {
		rule := "{metadata: {name: r}, spec: {deviceSelector: " + c.selector + ", taint: {key: ill, value: x, effect: " + c.effect + "}}}"
		_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")+","+deviceOf("b", "gpu", "")), "resourceclaims": "", "resourceclaimtemplates": c.template, "devicetaintrules": rule}, http.StatusNotFound)
		s := lacking("n1", "n2")
		if c.plugin {
			s.Nodes[1].Allocatable = s.Nodes[1].Allocatable.With(gpu, 1)
		}
		p := cluster.Pod{Namespace: "default", Name: "web-1", NodeName: c.node, Unscheduled: c.node == "", Need: resources.List{Pods: 1}}
		name := c.extended
		if name == "" {
			name, p.DeviceTemplates = counted, []string{"two"}
		} else {
			p.Need = p.Need.With(name, 1)
		}
		s.Pods = []cluster.Pod{p}
		if err := client.addDevices(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(s.Pods[0].Unmodelled, "; "); got != c.want || len(s.Pods[0].Unmodelled) == 0 && s.Nodes[0].Allocatable.Get(name) != c.offers {
			t.Errorf("%+v: %q, n1 offers %d", c, got, s.Nodes[0].Allocatable.Get(name))
		}
		if has := s.Pods[0].Need.Get(name); c.node != "" && has != 2 {
			t.Errorf("%+v: the pod on n1 counts for %d of its devices, which others take for free", c, has)
		}
	}
}
