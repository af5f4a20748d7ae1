package translate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	oneRoot  = ", constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]}"
	gpuEFA   = "{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}, {name: e, exactly: {deviceClassName: efa.networking.k8s.aws, count: 4}}]"
	twoGPUs  = "{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]"
	theTwo   = "pcie-bundle.joiner.sh/4_efa.networking.k8s.aws_1_gpu.nvidia.com"
	onlyGPUs = "pcie-bundle.joiner.sh/2_gpu.nvidia.com"
)

// Devices that are to be on one PCIe root become one unit of a resource that says which. Other constraints are refused
// by the name of their part.
func TestDevicesOnOnePCIeRoot(t *testing.T) {
	anyGPU := read[resourcev1.DeviceClass](t, `{metadata: {name: any}, spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}}`)
	version := read[resourcev1.DeviceClass](t, `{metadata: {name: version}, spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].driverVersion.isGreaterThan(semver('570.0.0'))"}}]}}`)
	same := read[resourcev1.DeviceClass](t, `{metadata: {name: same, creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}}`)
	long := read[resourcev1.DeviceClass](t, `{metadata: {name: `+strings.Repeat("l", 60)+`}, spec: {selectors: [{cel: {expression: "device.driver == 'l'"}}]}}`)
	classes := translate.UsualDeviceClasses()
	for _, c := range []*resourcev1.DeviceClass{&anyGPU, &version, &same, &long} {
		classes = append(classes, translate.NewDeviceClass(c))
	}
	translate.GroupClasses(classes)
	match := func(attribute string) string { return ", constraints: [{matchAttribute: " + attribute + "}]}" }
	for what, c := range map[string]struct{ devices, why, want string }{
		"a GPU with four interfaces":    {gpuEFA + oneRoot, "", theTwo},
		"all requests by name":          {gpuEFA + ", constraints: [{requests: [e, g], matchAttribute: resource.kubernetes.io/pcieRoot}]}", "", theTwo},
		"two GPUs":                      {twoGPUs + oneRoot, "", onlyGPUs},
		"two GPUs in two requests":      {"{requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com}}, {name: b, exactly: {deviceClassName: same}}]" + oneRoot, "", onlyGPUs},
		"another attribute":             {gpuEFA + match("gpu.nvidia.com/numaNode"), "its devices are to have the same gpu.nvidia.com/numaNode; those of the same resource.kubernetes.io/pcieRoot alone can be counted", ""},
		"several constraints":           {gpuEFA + ", constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}, {matchAttribute: resource.kubernetes.io/pcieRoot}]}", "it has several constraints between devices", ""},
		"apart":                         {twoGPUs + ", constraints: [{distinctAttribute: resource.kubernetes.io/pcieRoot}]}", "it has a constraint between devices that is not matchAttribute", ""},
		"some requests":                 {gpuEFA + ", constraints: [{requests: [g], matchAttribute: resource.kubernetes.io/pcieRoot}]}", "its constraint between devices leaves request e out", ""},
		"all of a class":                {"{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}}]" + oneRoot, "request g asks for all devices of a class, and for those of one PCIe root", ""},
		"first":                         {"{requests: [{name: g, firstAvailable: [{name: x, deviceClassName: gpu.nvidia.com}]}]" + oneRoot, "request g is firstAvailable", ""},
		"selectors of its own":          {"{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: 'true'}}]}}]" + oneRoot, "request g has selectors of its own; make them those of a DeviceClass, with equations of device.driver and device.attributes", ""},
		"a part":                        {"{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, capacity: {requests: {memory: 1Gi}}}}]" + oneRoot, "request g asks for a part of a device", ""},
		"admin":                         {"{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, adminAccess: true}}]" + oneRoot, "request g asks for admin access", ""},
		"no class":                      {"{requests: [{name: g, exactly: {deviceClassName: gone}}]" + oneRoot, "DeviceClass gone does not exist", ""},
		"a class by version":            {"{requests: [{name: g, exactly: {deviceClassName: version}}]" + oneRoot, "the devices of DeviceClass version cannot be counted: its selector is more than equations of device.driver and device.attributes joined by &&: " + version.Spec.Selectors[0].CEL.Expression, ""},
		"classes that share devices":    {"{requests: [{name: a, exactly: {deviceClassName: any}}, {name: b, exactly: {deviceClassName: gpu.nvidia.com}}]" + oneRoot, "DeviceClasses any and gpu.nvidia.com, of which devices are to be on one PCIe root, may select the same", ""},
		"a long name":                   {"{requests: [{name: a, exactly: {deviceClassName: " + long.Name + "}}, {name: b, exactly: {deviceClassName: gpu.nvidia.com}}]" + oneRoot, "its devices on one PCIe root have too long a name for a resource: pcie-bundle.joiner.sh/1_gpu.nvidia.com_1_" + long.Name, ""},
		"more devices than a claim has": {"{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, count: 33}}]" + oneRoot, "request g makes it more than 32 devices, which no claim may have", ""},
	} {
		claims := translate.NewDeviceClaims(classes, translate.NewClaimedDevices())
		claims.AddTemplate(claimTemplate(t, "t", c.devices))
		p := cluster.Pod{Namespace: "default", Need: resources.List{CPU: 1000, Pods: 1}, DeviceTemplates: []string{"t", "t"}}
		claims.FillPod(&p)
		want := cluster.Pod{Namespace: "default", Need: resources.List{CPU: 1000, Pods: 1}}
		if c.why != "" {
			want.Unmodelled = []string{"ResourceClaimTemplate t: " + c.why}
		} else {
			want.Need = want.Need.With(c.want, 2)
		}
		if d := cmp.Diff(want, p); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
}

// Bundles of whose devices other pods want some are refused, and of two that share devices the one that was claimed
// later. Who is refused already wants nothing.
func TestBundlesThatOthersWant(t *testing.T) {
	classes := translate.UsualDeviceClasses()
	for _, in := range []string{`{metadata: {name: any}, spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}}`,
		`{metadata: {name: serves}, spec: {extendedResourceName: x.example/gpu, selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}}`,
		`{metadata: {name: unread}, spec: {extendedResourceName: y.example/gpu, selectors: [{cel: {expression: "true"}}]}}`} {
		class := read[resourcev1.DeviceClass](t, in)
		classes = append(classes, translate.NewDeviceClass(&class))
	}
	translate.GroupClasses(classes)
	const neuron, single, whole = "deviceclass.resource.kubernetes.io/neuron.aws.com", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", "all-devices.joiner.sh/gpu.nvidia.com"
	const anyOne = "deviceclass.resource.kubernetes.io/any"
	text := map[string]string{whole: "all devices of DeviceClass gpu.nvidia.com", onlyGPUs: "(2 gpu.nvidia.com on one PCIe root)",
		theTwo: "(4 efa.networking.k8s.aws 1 gpu.nvidia.com on one PCIe root)"}
	for name, c := range map[string]struct {
		// in the order in which the pods were created; after a ! by a pod that is refused, after a + by the next in
		// its stead, and after an @ the pool and zone where it wants to be
		asked []string
		why   []string // what is said to be of the same devices, by pod that is refused
	}{
		"nobody else":           {[]string{theTwo, theTwo, "", neuron, "example.com/fuse"}, []string{"", "", "", "", ""}},
		"one device":            {[]string{theTwo, single}, []string{single, ""}},
		"one of a wider class":  {[]string{theTwo, anyOne}, []string{anyOne, ""}},
		"all devices":           {[]string{whole, theTwo}, []string{"", whole}},
		"a device by plugin":    {[]string{theTwo, "vpc.amazonaws.com/efa"}, []string{"vpc.amazonaws.com/efa", ""}},
		"by extended resource":  {[]string{theTwo, "x.example/gpu"}, []string{"x.example/gpu", ""}},
		"by what nobody counts": {[]string{theTwo, "y.example/gpu"}, []string{"", ""}},
		"another bundle":        {[]string{theTwo, onlyGPUs, theTwo}, []string{"", theTwo, ""}},
		"another one earlier":   {[]string{onlyGPUs, theTwo}, []string{"", onlyGPUs}},
		"one that is refused":   {[]string{single, onlyGPUs, theTwo}, []string{"", single, single}},
		"a pod that is refused": {[]string{theTwo, "!" + single}, []string{"", ""}},
		"the next pod's":        {[]string{theTwo, "+" + single}, []string{single, ""}},
		"in another pool":       {[]string{theTwo + "@a", single + "@b", theTwo + "@c/z"}, []string{"", "", ""}},
		"in the same pool":      {[]string{theTwo + "@a", single + "@a/z"}, []string{single, ""}},
		"in any pool":           {[]string{theTwo + "@a", single}, []string{single, ""}},
		"wherever":              {[]string{theTwo, theTwo + "@a", single + "@b"}, []string{single, "", ""}},
		"in one of two zones":   {[]string{theTwo + "@a/y", single + "@a/z", theTwo + "@a/z"}, []string{"", "", single}},
		"bundles in two pools":  {[]string{theTwo + "@a", onlyGPUs + "@b", onlyGPUs + "@a", onlyGPUs}, []string{"", "", theTwo, theTwo}},
		"a bundle that is not":  {[]string{theTwo, single + "@a", onlyGPUs + "@b"}, []string{single, "", ""}},
	} {
		var pods []cluster.Pod
		for i, name := range c.asked {
			p := cluster.Pod{Namespace: "default", Name: fmt.Sprint(i), Created: time.Unix(int64(i), 0), Need: resources.List{Pods: 1}}
			if asked, place, somewhere := strings.Cut(name, "@"); somewhere {
				pool, zone, _ := strings.Cut(place, "/")
				name, p.NodeSelector = asked, map[string]string{"karpenter.sh/nodepool": pool}
				if zone != "" {
					p.NodeSelector["topology.kubernetes.io/zone"] = zone
				}
			}
			if rest, refused := strings.CutPrefix(name, "!"); refused {
				name, p.Unmodelled = rest, []string{"refused"}
			}
			if rest, later := strings.CutPrefix(name, "+"); later {
				p.NodeName, p.NeedAnew = "n", p.Need.With(rest, 1)
			} else if name != "" {
				p.Need = p.Need.With(name, 1)
			}
			pods = append(pods, p)
		}
		translate.SettleClaims(pods, classes)
		for i, p := range pods {
			var want []string
			if c.why[i] != "" {
				other := c.why[i]
				if words, is := text[other]; is {
					other = words
				}
				want = []string{"its devices on one PCIe root cannot be counted: pods ask for " + other + " too, which may be of the same devices"}
			}
			if got := slices.DeleteFunc(p.Unmodelled, func(why string) bool { return why == "refused" }); !slices.Equal(got, want) {
				t.Errorf("%s: pod %d is refused by %q, want %q", name, i, got, want)
			}
		}
	}
}

// deviceSlice publishes devices of node n1, each as its name, the letter of its PCIe root and more YAML.
func deviceSlice(t *testing.T, driver, attribute, pool string, devices ...string) *resourcev1.ResourceSlice {
	t.Helper()
	out := read[*resourcev1.ResourceSlice](t, "{metadata: {name: s}, spec: {driver: "+driver+", nodeName: n1, pool: "+pool+"}}")
	for _, d := range devices {
		name, more, _ := strings.Cut(d, " ")
		root := ", resource.kubernetes.io/pcieRoot: {string: pci-" + name[:1] + "}"
		if name[:1] == "x" {
			root = ""
		}
		out.Spec.Devices = append(out.Spec.Devices, read[resourcev1.Device](t, "{name: "+name+", attributes: {"+attribute+root+"}"+more+"}"))
	}
	return out
}

// A node has as many bundles as its PCIe roots have devices for, and for more pods those that the free devices make.
func TestBundlesOfANode(t *testing.T) {
	const whole, half = "{name: n1, generation: 1, resourceSliceCount: 1}", "{name: n1, generation: 1, resourceSliceCount: 2}"
	gpus := func(pool string, devices ...string) *resourcev1.ResourceSlice {
		return deviceSlice(t, "gpu.nvidia.com", "type: {string: gpu}", pool, devices...)
	}
	efas := func(pool string, devices ...string) *resourcev1.ResourceSlice {
		return deviceSlice(t, "dra.net", "dra.net/pciDevice: {string: Elastic Fabric Adapter (EFA)}", pool, devices...)
	}
	// two of a GPU and two interfaces on root a, one on b; on c there is one interface, on d no GPU
	someGPUs, someEFAs := []string{"a-g0", "a-g1", "b-g0", "c-g0", "x-g0"}, []string{"a-e0", "a-e1", "a-e2", "a-e3", "b-e0", "b-e1", "c-e0", "d-e0", "d-e1", "x-e0", "x-e1"}
	const name = "pcie-bundle.joiner.sh/2_efa.networking.k8s.aws_1_gpu.nvidia.com"
	bundle := "{requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}, {name: e, exactly: {deviceClassName: efa.networking.k8s.aws, count: 2}}]" + oneRoot
	all := []*resourcev1.ResourceSlice{gpus(whole, someGPUs...), efas(whole, someEFAs...)}
	with := func(gpu, efa *resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
		return []*resourcev1.ResourceSlice{gpu, efa}
	}
	partition := ", consumesCounters: [{counterSet: s, counters: {memory: {value: 1Gi}}}]"
	for what, c := range map[string]struct {
		slices  []*resourcev1.ResourceSlice
		taken   []string // devices, by claims of bundles of pods on the node
		others  []string // devices, by other claims
		pods    []string // their phases: each has a bundle
		has, of int64    // for pods, and in all
		gpus    int64    // for pods that ask for GPUs one by one, where that is said
	}{
		"all free":                       {slices: all, has: 3, of: 3, gpus: 5},
		"one is had":                     {slices: all, taken: []string{"a-g1", "a-e3", "a-e0"}, pods: []string{"Running"}, has: 3, of: 3, gpus: 4},
		"all are had":                    {slices: all, taken: []string{"a-g1", "a-e3", "a-e0", "a-g0", "a-e1", "a-e2", "b-g0", "b-e0", "b-e1"}, pods: []string{"Running", "Running", "Running"}, has: 3, of: 3},
		"one is had by a pod that ended": {slices: all, taken: []string{"a-g1", "a-e3", "a-e0"}, pods: []string{"Succeeded"}, has: 2, of: 3},
		"others have one device":         {slices: all, others: []string{"a-e3"}, has: 2, of: 3},
		"others have one of each":        {slices: all, others: []string{"a-e3", "b-g0"}, has: 1, of: 3, gpus: 4},
		"others have what makes none":    {slices: all, others: []string{"c-g0", "d-e0", "x-e0"}, has: 3, of: 3},
		"others and a bundle":            {slices: all, taken: []string{"a-g0", "a-e0", "a-e1"}, others: []string{"a-e2", "b-e1"}, pods: []string{"Running"}, has: 1, of: 3},
		"a pod without its devices":      {slices: all, pods: []string{"Running"}, has: 3, of: 3},
		"the interfaces are not there":   {slices: all[:1]},
		"half of the interfaces":         {slices: with(all[0], efas(half, someEFAs...))},
		"a newer generation":             {slices: append(with(all[0], efas("{name: n1, generation: 2, resourceSliceCount: 1}", "b-e0", "b-e1")), all[1]), has: 1, of: 1},
		"two interfaces of one name":     {slices: append(with(all[0], efas(half, "b-e0")), efas(half, "b-e0"))},
		"two interfaces in two slices":   {slices: append(with(all[0], efas(half, "b-e0")), efas(half, "b-e1")), has: 1, of: 1},
		"a tainted interface":            {slices: with(all[0], efas(whole, "b-e0", "b-e1 , taints: [{key: ill, effect: NoSchedule}]"))},
		"a tainted one that is had":      {slices: with(all[0], efas(whole, "b-e0", "b-e1 , taints: [{key: ill, effect: NoSchedule}]")), taken: []string{"b-g0", "b-e0", "b-e1"}, pods: []string{"Running"}, has: 1, of: 1},
		"partitions":                     {slices: with(gpus(whole, "a-g0 "+partition, "b-g0 "), all[1]), has: 1, of: 1},
	} {
		claimed := translate.NewClaimedDevices()
		allocate := func(i int, meta string, devices []string) {
			in := read[resourcev1.ResourceClaim](t, "{metadata: {namespace: default, name: c"+fmt.Sprint(i)+meta+"}, spec: {devices: "+bundle+"}}")
			in.Status.Allocation = &resourcev1.AllocationResult{}
			for _, d := range devices {
				request, driver := "g", "gpu.nvidia.com"
				if strings.Contains(d, "e") {
					request, driver = "e", "dra.net"
				}
				in.Status.Allocation.Devices.Results = append(in.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Request: request, Driver: driver, Pool: "n1", Device: d})
			}
			claimed.AddClaim(&in)
		}
		for i := 0; i < len(c.taken); i += 3 {
			allocate(i, ", annotations: {resource.kubernetes.io/pod-claim-name: g}, ownerReferences: [{kind: Pod, apiVersion: v1, name: p, uid: u-"+fmt.Sprint(i/3)+", controller: true}]", c.taken[i:i+3])
		}
		allocate(99, "", c.others)
		classes := translate.UsualDeviceClasses()
		classes[1].Resource = "nvidia.com/gpu"
		translate.GroupClasses(classes)
		s := cluster.Snapshot{Nodes: []cluster.Node{{Name: "n1", Capacity: resources.List{CPU: 1}, Allocatable: resources.List{CPU: 1}}}}
		claims := translate.NewDeviceClaims(classes, claimed)
		claims.AddTemplate(claimTemplate(t, "t", bundle))
		for i, phase := range c.pods {
			p := cluster.Pod{Namespace: "default", Name: fmt.Sprint(i), UID: fmt.Sprint("u-", i), NodeName: "n1", Phase: phase, Need: resources.List{Pods: 1}, DeviceTemplates: []string{"t"}}
			claims.FillPod(&p)
			s.Pods = append(s.Pods, p)
		}
		const single = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
		serving := append(translate.ServingClasses(classes, single), translate.ServingClasses(classes, "nvidia.com/gpu")...)
		serving = append(serving, translate.ServingClasses(classes, name)...)
		for _, class := range serving {
			s.Devices.Classes = append(s.Devices.Classes, class.DeviceClass)
		}
		var published []translate.DeviceSlice
		for _, one := range c.slices {
			published = append(published, translate.NewDeviceSlice(one, serving, nil))
		}
		translate.CountDevices(published, claimed.Taken, classes).AddTo(&s, serving)
		if n := s.Nodes[0]; n.Allocatable.Get(name) != c.has || n.Capacity.Get(name) != c.of || c.gpus > 0 && (n.Allocatable.Get(single) != c.gpus || n.Allocatable.Get("nvidia.com/gpu") != c.gpus) {
			t.Errorf("%s: the node has %s of %s, want %d of %d bundles and %d GPUs", what, n.Allocatable, n.Capacity, c.has, c.of, c.gpus)
		}
	}
}

// What serves a bundle are its classes, each with its number. A name that is no bundle's, or of a class that is gone,
// is served by none.
func TestWhatServesABundle(t *testing.T) {
	for name, want := range map[string]string{theTwo: "efa.networking.k8s.aws 4, gpu.nvidia.com 1", onlyGPUs: "gpu.nvidia.com 2", "deviceclass.resource.kubernetes.io/gpu.nvidia.com": "gpu.nvidia.com 0",
		"pcie-bundle.joiner.sh/1_gone": "", "pcie-bundle.joiner.sh/0_gpu.nvidia.com": "", "pcie-bundle.joiner.sh/x_gpu.nvidia.com": "", "pcie-bundle.joiner.sh/": "", "1_gpu.nvidia.com": ""} {
		var got []string
		for _, c := range translate.ServingClasses(translate.UsualDeviceClasses(), name) {
			got = append(got, fmt.Sprint(c.Name, " ", c.PerRoot))
			if c.Resource != name {
				t.Errorf("%s is served as %s", name, c.Resource)
			}
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("%s is served by %q, want %q", name, text, want)
		}
	}
}

// Whoever selects nodes in more ways than are kept may be anywhere.
func TestManyNodeSelectorsThatWantDevices(t *testing.T) {
	const single = "deviceclass.resource.kubernetes.io/gpu.nvidia.com"
	for selectors, refused := range map[int]bool{100: false, 101: true, 300: true} {
		pods := []cluster.Pod{{Name: "a", Need: resources.List{Pods: 1}.With(onlyGPUs, 1), NodeSelector: map[string]string{"team": "a"}}}
		for i := range selectors {
			pods = append(pods, cluster.Pod{Name: fmt.Sprint(i), Need: resources.List{Pods: 1}.With(single, 1), NodeSelector: map[string]string{"team": fmt.Sprint(i)}})
		}
		translate.SettleClaims(pods, translate.UsualDeviceClasses())
		if got := len(pods[0].Unmodelled) > 0; got != refused {
			t.Errorf("%d selectors: refused %t", selectors, got)
		}
	}
}

// A tenant that asks for hundreds of different bundles, each pod on nodes of its own, costs itself alone: those that
// were asked for first count, and the others are refused.
func TestManyDifferentBundles(t *testing.T) {
	classes := translate.UsualDeviceClasses()
	translate.GroupClasses(classes)
	var pods []cluster.Pod
	for i := range 5000 {
		p := cluster.Pod{Name: fmt.Sprint(i), Created: time.Unix(int64(i), 0), NodeSelector: map[string]string{"a": fmt.Sprint(i)}, Need: resources.List{CPU: 1}}
		p.Need = p.Need.With(fmt.Sprintf("%s%d_efa.networking.k8s.aws_%d_gpu.nvidia.com", cluster.Bundle, 1+i%16, 1+i/16%16), 1)
		pods = append(pods, p)
	}
	translate.SettleClaims(pods, classes)
	counted, last := 0, ""
	for _, p := range pods {
		if len(p.Unmodelled) == 0 {
			counted++
		} else {
			last = p.Unmodelled[0]
		}
	}
	// of 5,000 / 256 pods each that ask for the first twenty
	if want := "its devices on one PCIe root cannot be counted: pods ask for more than 20 different numbers of such devices, and these were asked for last"; counted != 400 || last != want {
		t.Errorf("%d count, want 400; the last one: %s", counted, last)
	}
}
