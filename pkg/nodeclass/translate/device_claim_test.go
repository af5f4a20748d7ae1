package translate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

// read decodes YAML.
func read[T any](t *testing.T, text string) (out T) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// claimTemplate is a ResourceClaimTemplate whose claim asks for these devices.
func claimTemplate(t *testing.T, name, devices string) *resourcev1.ResourceClaimTemplate {
	return read[*resourcev1.ResourceClaimTemplate](t, "{metadata: {name: "+name+", namespace: default}, spec: {spec: {devices: "+devices+"}}}")
}

// Devices that templates ask for by class and number become a resource that is named after the class. All else is
// refused by the name of its part.
func TestTemplatesAreCounted(t *testing.T) {
	const gpus = resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	exactly := func(what string) string {
		return "{requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com" + what + "}}]}"
	}
	odd := read[resourcev1.DeviceClass](t, `{metadata: {name: odd}, spec: {selectors: [{cel: {expression: "device.capacity['x'].y > 1"}}]}}`)
	classes := append(translate.UsualDeviceClasses(), translate.NewDeviceClass(&odd))
	for what, c := range map[string]struct {
		devices, why string
		want         int64
	}{
		"as many as a claim may have": {exactly(", count: 32"), "", 32},
		"more than that":              {exactly(", count: 33"), "request r makes it more than 32 devices, which no claim may have", 0},
		"more in two": {"{requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com, count: 20}}, {name: b, exactly: {deviceClassName: gpu.nvidia.com, count: 13}}]}",
			"request b makes it more than 32 devices, which no claim may have", 0},
		"more than a number can say": {"{requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com}}, {name: b, exactly: {deviceClassName: gpu.nvidia.com, count: 9223372036854775807}}]}",
			"request b makes it more than 32 devices, which no claim may have", 0},
		"another mode":                     {exactly(", allocationMode: Some"), "request r has the allocation mode Some, neither ExactCount nor All", 0},
		"all of a class that is not there": {"{requests: [{name: r, exactly: {deviceClassName: gone, allocationMode: All}}]}", "DeviceClass gone does not exist", 0},
		"one":                              {exactly(""), "", 1},
		"a number":                         {exactly(", allocationMode: ExactCount, count: 4"), "", 4},
		"two":                              {"{requests: [{name: a, exactly: {deviceClassName: gpu.nvidia.com}}, {name: b, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}", "", 3},
		"settings":                         {`{requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}], config: [{opaque: {driver: gpu.nvidia.com, parameters: {kind: GpuConfig}}}]}`, "", 1},
		"tolerated":                        {exactly(", tolerations: [{operator: Exists}]"), "", 1},
		"selectors":                        {exactly(`, selectors: [{cel: {expression: "true"}}]`), "request r has selectors of its own; make them those of a DeviceClass, with equations of device.driver and device.attributes", 0},
		"admin":                            {exactly(", adminAccess: true"), "request r asks for admin access", 0},
		"a part":                           {exactly(", capacity: {requests: {memory: 1Gi}}"), "request r asks for a part of a device", 0},
		"first":                            {"{requests: [{name: r, firstAvailable: [{name: a, deviceClassName: gpu.nvidia.com}]}]}", "request r is firstAvailable", 0},
		"together":                         {`{requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}], constraints: [{matchAttribute: a/b}]}`, "its devices are to have the same a/b; those of the same resource.kubernetes.io/pcieRoot alone can be counted", 0},
		"no class":                         {"{requests: [{name: r, exactly: {deviceClassName: gone}}]}", "DeviceClass gone does not exist", 0},
		"unreadable":                       {"{requests: [{name: r, exactly: {deviceClassName: odd}}]}", "the devices of DeviceClass odd cannot be counted: its selector is more than equations of device.driver and device.attributes joined by &&: device.capacity['x'].y > 1", 0},
	} {
		claims := translate.NewDeviceClaims(classes, translate.NewClaimedDevices())
		claims.AddTemplate(claimTemplate(t, "t", c.devices))
		p := cluster.Pod{Namespace: "default", Need: resources.List{CPU: 1000, Pods: 1}, DeviceTemplates: []string{"t"}}
		claims.FillPod(&p)
		want := cluster.Pod{Namespace: "default", Need: resources.List{CPU: 1000, Pods: 1}}
		if c.why != "" {
			want.Unmodelled = []string{"ResourceClaimTemplate t: " + c.why}
		} else {
			want.Need = want.Need.With(gpus, c.want)
		}
		if d := cmp.Diff(want, p); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
}

// A pod may name a template more than once, and another in its stead asks for the same. A template that is not there
// is told.
func TestPodsNameTemplates(t *testing.T) {
	const gpus = resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	one := claimTemplate(t, "one", "{requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}")
	claims := translate.NewDeviceClaims(translate.UsualDeviceClasses(), translate.NewClaimedDevices())
	claims.AddTemplate(one)
	p := cluster.Pod{Namespace: "default", Need: resources.List{Pods: 1}, NeedAnew: resources.List{Pods: 1, CPU: 5}, DeviceTemplates: []string{"one", "one"}}
	claims.FillPod(&p)
	if p.Need.Get(gpus) != 2 || p.NeedAnew.Get(gpus) != 2 || len(p.Unmodelled) > 0 {
		t.Errorf("named twice: needs %s, anew %s, %q", p.Need, p.NeedAnew, p.Unmodelled)
	}
	for _, q := range []cluster.Pod{{Namespace: "default", DeviceTemplates: []string{"gone"}}, {Namespace: "other", DeviceTemplates: []string{"one"}}} {
		want := []string{"ResourceClaimTemplate " + q.DeviceTemplates[0] + ": it does not exist"}
		if claims.FillPod(&q); !slices.Equal(q.Unmodelled, want) {
			t.Errorf("a template that is not there: %q", q.Unmodelled)
		}
	}
}

// A claim of which a pod's status says that none was made, since it needs none, asks for nothing.
func TestClaimsThatAPodDoesNotNeed(t *testing.T) {
	p := read[corev1.Pod](t, `{spec: {resourceClaims: [{name: g, resourceClaimTemplateName: t}, {name: h, resourceClaimTemplateName: u}, {name: i, resourceClaimTemplateName: v}]}, status: {resourceClaimStatuses: [{name: g}, {name: h, resourceClaimName: made}]}}`)
	if got := translate.Pod(&p).DeviceTemplates; !slices.Equal(got, []string{"u", "v"}) {
		t.Errorf("it names templates %q", got)
	}
}

// Who fills a namespace with templates waits alone, and is told why.
func TestTooManyTemplates(t *testing.T) {
	claims := translate.NewDeviceClaims(translate.UsualDeviceClasses(), translate.NewClaimedDevices())
	for i := range 1000 {
		claims.AddTemplate(claimTemplate(t, fmt.Sprintf("t-%d", i), "{requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}"))
	}
	p := cluster.Pod{Namespace: "default", DeviceTemplates: []string{"t-1000"}}
	claims.FillPod(&p)
	if want := []string{"ResourceClaimTemplate t-1000: its namespace has more than 1000, and it is not among the first"}; !claims.HasMostTemplates() || !slices.Equal(p.Unmodelled, want) {
		t.Errorf("it has most %t, %q", claims.HasMostTemplates(), p.Unmodelled)
	}
}

// What was made of a template for a pod counts, even if the template is gone; claims of others do not.
func TestClaimsMadeOfTemplates(t *testing.T) {
	const gpus = resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	claimed := translate.NewClaimedDevices()
	for _, more := range []string{
		`annotations: {resource.kubernetes.io/pod-claim-name: g}, ownerReferences: [{kind: Pod, apiVersion: v1, name: p, uid: u-1, controller: true}]`,
		`ownerReferences: [{kind: Pod, apiVersion: v1, name: p, uid: u-2, controller: true}]`,
		`annotations: {resource.kubernetes.io/pod-claim-name: g}, ownerReferences: [{kind: Pod, apiVersion: v1, name: p, uid: u-3}]`,
	} {
		c := read[resourcev1.ResourceClaim](t, `{metadata: {name: c, `+more+`}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}`)
		claimed.AddClaim(&c)
	}
	claims := translate.NewDeviceClaims(translate.UsualDeviceClasses(), claimed)
	for uid, want := range map[string]int64{"u-1": 2, "u-2": 0, "u-3": 0} {
		p := cluster.Pod{UID: uid, Need: resources.List{Pods: 1}, DeviceTemplates: []string{"gone"}}
		if claims.FillPod(&p); p.Need.Get(gpus) != want || (want == 0) != (len(p.Unmodelled) == 1) {
			t.Errorf("%s needs %s, %q; want %d devices", uid, p.Need, p.Unmodelled, want)
		}
	}
}

// Claims of a class that shares some devices with one that was claimed before are refused; those of classes apart are
// not, nor those of a class whose other half nobody claims.
func TestClassesThatOverlap(t *testing.T) {
	class := func(name, selects string) translate.DeviceClass {
		in := read[resourcev1.DeviceClass](t, "{metadata: {name: "+name+"}, spec: {selectors: [{cel: {expression: \""+selects+"\"}}]}}")
		return translate.NewDeviceClass(&in)
	}
	classes := []translate.DeviceClass{class("a-all", "device.driver == 'd'"), class("b-gpu", "device.driver == 'd' && device.attributes['d'].type == 'gpu'"),
		class("c-mig", "device.driver == 'd' && device.attributes['d'].type == 'mig'"), class("d-other", "device.driver == 'e'")}
	translate.GroupClasses(classes)
	for name, c := range map[string]struct {
		claimed []string
		refused []string
	}{
		"apart":            {[]string{"b-gpu", "c-mig", "d-other"}, nil},
		"alone":            {[]string{"a-all", "a-all"}, nil},
		"a part":           {[]string{"a-all", "b-gpu", "d-other"}, []string{"b-gpu"}},
		"all of a part":    {[]string{"a-all", "b-gpu/All"}, []string{"b-gpu/All"}},
		"two parts, whole": {[]string{"c-mig", "b-gpu", "a-all"}, []string{"a-all"}},
		"the whole, parts": {[]string{"a-all", "c-mig", "b-gpu"}, []string{"c-mig", "b-gpu"}},
	} {
		claims := translate.NewDeviceClaims(classes, translate.NewClaimedDevices())
		var pods []cluster.Pod
		for i, name := range c.claimed {
			class, mode, all := strings.Cut(name, "/")
			if !all {
				mode = "ExactCount"
			}
			claims.AddTemplate(claimTemplate(t, strings.ToLower(class+mode), "{requests: [{name: r, exactly: {deviceClassName: "+class+", allocationMode: "+mode+"}}]}"))
			p := cluster.Pod{Namespace: "default", Name: name, Created: time.Unix(int64(i), 0), Need: resources.List{Pods: 1}, DeviceTemplates: []string{strings.ToLower(class + mode)}}
			claims.FillPod(&p)
			pods = append(pods, p)
		}
		translate.SettleClaims(pods, classes)
		var refused []string
		for _, p := range pods {
			if len(p.Unmodelled) > 0 {
				refused = append(refused, p.Name)
				if class, _, _ := strings.Cut(p.Name, "/"); !strings.HasPrefix(p.Unmodelled[0], "DeviceClass "+class+" selects some of the devices of DeviceClass ") {
					t.Errorf("%s: %s", name, p.Unmodelled[0])
				}
			}
		}
		if !slices.Equal(refused, c.refused) {
			t.Errorf("%s: %q are refused, want %q", name, refused, c.refused)
		}
	}
}

// The class that the chart of AWS installs for EFA interfaces is counted by what EC2 says of these, however it is written.
func TestEFAIsCounted(t *testing.T) {
	for expression, want := range map[string]string{
		`device.driver == \"dra.net\" &&\n device.attributes[\"dra.net\"].pciDevice == 'Elastic Fabric Adapter (EFA)'`: "vpc.amazonaws.com/efa",
		`device.attributes['dra.net']['pciDevice'] == 'Elastic Fabric Adapter (EFA)' && device.driver == 'dra.net'`:    "vpc.amazonaws.com/efa",
		`device.driver == 'dra.net'`: "",
		`device.driver == 'dra.net' && device.attributes['dra.net'].pciDevice == 'Elastic Network Adapter (ENA)'`: "",
	} {
		in := read[resourcev1.DeviceClass](t, `{metadata: {name: efa.networking.k8s.aws}, spec: {selectors: [{cel: {expression: "`+expression+`"}}]}}`)
		if got := translate.NewDeviceClass(&in); got.CountedBy != want || got.Unread != "" || got.Driver != "dra.net" {
			t.Errorf("%s: counted by %q, %s", expression, got.CountedBy, got.Unread)
		}
	}
}
