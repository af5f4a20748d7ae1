package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

const gpu = "nvidia.com/gpu"

// draServer is an API server that serves nothing but DRA: lists of YAML by the plural of their kind. A kind of which it
// has no list is forbidden or not known, as code says.
type draServer struct {
	t     *testing.T
	lists map[string]string
	code  int
	mu    sync.Mutex
	asked []string
	now   time.Time
	// paths with this answer that the request is bad; empty for none
	breaks string
}

func (s *draServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	plural := strings.TrimPrefix(r.URL.Path, "/apis/resource.k8s.io/v1/")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, strings.TrimSuffix(plural+" "+r.URL.Query().Get("fieldSelector"), " "))
	w.Header().Set("Content-Type", "application/json")
	if s.breaks != "" && strings.Contains(plural, s.breaks) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	items, ok := s.lists[path.Base(plural)+" "+r.URL.Query().Get("fieldSelector")]
	if !ok {
		items, ok = s.lists[path.Base(plural)]
	}
	if !ok {
		w.WriteHeader(s.code)
		reason := map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusNotFound: metav1.StatusReasonNotFound}[s.code]
		body := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: reason, Code: int32(s.code)}
		if err := json.NewEncoder(w).Encode(body); err != nil {
			s.t.Error(err)
		}
		return
	}
	kind := map[string]string{"deviceclasses": "DeviceClass", "resourceslices": "ResourceSlice", "resourceclaims": "ResourceClaim", "resourceclaimtemplates": "ResourceClaimTemplate", "devicetaintrules": "DeviceTaintRule"}[path.Base(plural)]
	body, err := yaml.YAMLToJSON([]byte("{apiVersion: resource.k8s.io/v1, kind: " + kind + "List, items: [" + items + "]}"))
	if err != nil {
		s.t.Error(err)
	}
	if _, err := w.Write(body); err != nil {
		s.t.Error(err)
	}
}

// serveDRA makes a server with a client of it.
func serveDRA(t *testing.T, lists map[string]string, code int) (*draServer, *Client) {
	t.Helper()
	s := &draServer{t: t, lists: lists, code: code, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport, Now: func() time.Time { return s.now }})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// theClass is the DeviceClass that NVIDIA's chart brings.
const theClass = `{metadata: {name: gpu.nvidia.com, resourceVersion: "1"}, spec: {extendedResourceName: nvidia.com/gpu,
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}}`

// sliceOf is a ResourceSlice that is a whole pool, with devices in YAML.
func sliceOf(node, devices string) string {
	return `{metadata: {name: ` + node + `}, spec: {driver: gpu.nvidia.com, nodeName: ` + node + `, pool: {name: ` + node + `, generation: 1, resourceSliceCount: 1}, devices: [` + devices + `]}}`
}

func deviceOf(name, kind, more string) string {
	return `{name: ` + name + `, attributes: {type: {string: ` + kind + `}}` + more + `}`
}

// lacking is a snapshot of nodes that offering cpu alone, with a pod on the first that asks for a GPU.
func lacking(nodes ...string) cluster.Snapshot {
	var s cluster.Snapshot
	for _, name := range nodes {
		s.Nodes = append(s.Nodes, cluster.Node{Name: name, ProviderID: "aws:///" + name, Capacity: resources.List{CPU: 1000}, Allocatable: resources.List{CPU: 1000}})
	}
	s.Pods = []cluster.Pod{{Namespace: "default", Name: "web-1", NodeName: nodes[0], Phase: "Running", Need: resources.List{}.With(gpu, 1)}}
	return s
}

// offered is what the nodes of a snapshot have of a resource, as capacity and what of it pods may have.
func offered(s cluster.Snapshot, name string) map[string][2]int64 {
	out := map[string][2]int64{}
	for _, n := range s.Nodes {
		if all := n.Capacity.Get(name); all != 0 || n.Allocatable.Get(name) != 0 {
			out[n.Name] = [2]int64{all, n.Allocatable.Get(name)}
		}
	}
	return out
}

// A node has as many of an extended resource as its ResourceSlices have devices that the DeviceClass selects, less
// those that ResourceClaims of users took, or that were got by another name.
func TestDevicesCountAsExtendedResources(t *testing.T) {
	gpus := deviceOf("a", "gpu", "") + "," + deviceOf("b", "gpu", "") + "," + deviceOf("c", "mig", "")
	claimed := func(device, more string) string {
		return `{metadata: {name: x` + more + `}, status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: n1, device: ` + device + `}]}}}}`
	}
	extended := func(class string) string {
		return `, annotations: {resource.kubernetes.io/extended-resource-claim: "true"}}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: ` + class + `}}]}`
	}
	shared := func(set string) string {
		return `, consumesCounters: [{counterSet: ` + set + `, counters: {memory: {value: 1Gi}}}]`
	}
	for _, c := range []struct {
		what, slices, claims string
		want                 map[string][2]int64
	}{
		{"devices of a node", sliceOf("n1", gpus), "", map[string][2]int64{"n1": {2, 2}}},
		{"two nodes", sliceOf("n1", gpus) + "," + sliceOf("n2", deviceOf("a", "gpu", "")), "", map[string][2]int64{"n1": {2, 2}, "n2": {1, 1}}},
		{"a device that a user's claim has", sliceOf("n1", gpus), claimed("a", ""), map[string][2]int64{"n1": {2, 1}}},
		{"devices that users' claims have all", sliceOf("n1", gpus), claimed("a", "") + "," + claimed("b", "2"), map[string][2]int64{"n1": {2, 0}}},
		{"a device that the pod got as an extended resource", sliceOf("n1", gpus), claimed("a", extended("gpu.nvidia.com")), map[string][2]int64{"n1": {2, 2}}},
		{"a device that a pod got through another class", sliceOf("n1", gpus), claimed("a", extended("other")), map[string][2]int64{"n1": {2, 1}}},
		{"a device that is looked after", sliceOf("n1", gpus), strings.Replace(claimed("a", ""), "device: a", "device: a, adminAccess: true", 1), map[string][2]int64{"n1": {2, 2}}},
		{"a claim that has nothing yet", sliceOf("n1", gpus), `{metadata: {name: x}}`, map[string][2]int64{"n1": {2, 2}}},
		{"a tainted device", sliceOf("n1", deviceOf("a", "gpu", ", taints: [{key: ill, effect: NoExecute}]")+","+deviceOf("b", "gpu", ", taints: [{key: dull, effect: None}]")), "",
			map[string][2]int64{"n1": {1, 1}}},
		{"a tainted device that the pod has", sliceOf("n1", deviceOf("a", "gpu", ", taints: [{key: ill, effect: NoSchedule}]")+","+deviceOf("b", "gpu", "")), claimed("a", extended("gpu.nvidia.com")),
			map[string][2]int64{"n1": {2, 2}}},
		{"partitions of one device", sliceOf("n1", deviceOf("a", "gpu", shared("one"))+","+deviceOf("b", "gpu", shared("one"))+","+deviceOf("c", "gpu", shared("two"))), "",
			map[string][2]int64{"n1": {2, 2}}},
		{"a device of which a partition is taken", sliceOf("n1", deviceOf("a", "gpu", shared("one"))+","+deviceOf("p", "mig", shared("one"))), claimed("p", ""), map[string][2]int64{"n1": {1, 0}}},
		{"a partition that the pod got as an extended resource", sliceOf("n1", deviceOf("a", "gpu", shared("one"))+","+deviceOf("b", "gpu", shared("one"))), claimed("b", extended("gpu.nvidia.com")),
			map[string][2]int64{"n1": {1, 1}}},
		{"a device that a user's claim has through the class", sliceOf("n1", gpus), claimed("a", "}, spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com}}]}"), map[string][2]int64{"n1": {2, 1}}},
		{"an older generation", sliceOf("n1", gpus) + "," + strings.Replace(sliceOf("n1", deviceOf("z", "gpu", "")), "generation: 1", "generation: 2", 1), "", map[string][2]int64{"n1": {1, 1}}},
		{"a pool that is not complete", strings.Replace(sliceOf("n1", gpus), "resourceSliceCount: 1", "resourceSliceCount: 2", 1), "", map[string][2]int64{}},
		{"devices that several nodes reach", strings.Replace(sliceOf("n1", gpus), "nodeName: n1", "allNodes: true", 1), "", map[string][2]int64{}},
		{"devices of a node that is not there", sliceOf("n9", gpus), "", map[string][2]int64{}},
	} {
		_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": c.slices, "resourceclaims": c.claims}, http.StatusNotFound)
		s := lacking("n1", "n2")
		if err := client.addDevices(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, offered(s, gpu)); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
		want := cluster.Devices{Known: true, Classes: []cluster.DeviceClass{{Resource: gpu, Name: "gpu.nvidia.com", Driver: "gpu.nvidia.com", CountedBy: gpu}}}
		if d := cmp.Diff(want, s.Devices); d != "" {
			t.Errorf("%s: what is known (-want +got):\n%s", c.what, d)
		}
	}
}

// Devices have a second name, made of that of their class. What pods got by one is not there for the other.
func TestDevicesHaveTwoNames(t *testing.T) {
	second := resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")+","+deviceOf("b", "gpu", "")+","+deviceOf("c", "gpu", "")),
		"resourceclaims": ""}, http.StatusNotFound)
	s := lacking("n1")
	s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: "web-2", NodeName: "n1", Need: resources.List{}.With(second, 2)})
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {3, 1}}, offered(s, gpu)); d != "" {
		t.Errorf("%s (-want +got):\n%s", gpu, d)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {3, 2}}, offered(s, second)); d != "" {
		t.Errorf("%s (-want +got):\n%s", second, d)
	}
}

// Pods that got devices by the second name a moment ago may seem to have more than there are: then nothing is left.
func TestNothingIsLeftOfDevicesThatAreGone(t *testing.T) {
	second := resourcev1.ResourceDeviceClassPrefix + "gpu.nvidia.com"
	_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")), "resourceclaims": ""}, http.StatusNotFound)
	s := lacking("n1")
	s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: "web-2", NodeName: "n1", Need: resources.List{}.With(second, 2)})
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {1, 0}}, offered(s, gpu)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Resources of different classes do not take from each other.
func TestClassesHaveDevicesOfTheirOwn(t *testing.T) {
	other := strings.NewReplacer("name: gpu.nvidia.com", "name: mig.nvidia.com", gpu, "nvidia.com/mig", "type == 'gpu'", "type == 'mig'").Replace(theClass)
	_, client := serveDRA(t, map[string]string{"deviceclasses": theClass + "," + other, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")+","+deviceOf("b", "mig", "")+","+deviceOf("c", "mig", "")),
		"resourceclaims": ""}, http.StatusNotFound)
	s := lacking("n1")
	s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: "web-2", NodeName: "n1", Need: resources.List{}.With("nvidia.com/mig", 2)})
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {1, 1}}, offered(s, gpu)); d != "" {
		t.Errorf("%s (-want +got):\n%s", gpu, d)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {2, 2}}, offered(s, "nvidia.com/mig")); d != "" {
		t.Errorf("nvidia.com/mig (-want +got):\n%s", d)
	}
}

// A node whose kubelet offers the resource keeps to that, as kube-scheduler does.
func TestTheKubeletsWordGoesBeforeDevices(t *testing.T) {
	_, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")) + "," + sliceOf("n2", deviceOf("a", "gpu", "")),
		"resourceclaims": ""}, http.StatusNotFound)
	s := lacking("n1", "n2")
	s.Nodes[1].Capacity, s.Nodes[1].Allocatable = resources.List{}.With(gpu, 8), resources.List{}.With(gpu, 7)
	if err := client.addDevices(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][2]int64{"n1": {1, 1}, "n2": {8, 7}}, offered(s, gpu)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// Nothing is read unless somebody asks for an extended resource that a node lacks, and no more than the classes unless
// one serves it.
func TestWhatIsReadOfDevices(t *testing.T) {
	has := func(s cluster.Snapshot) cluster.Snapshot {
		s.Nodes[0].Allocatable = s.Nodes[0].Allocatable.With(gpu, 1)
		return s
	}
	waiting := func(s cluster.Snapshot, name string) cluster.Snapshot {
		s.Pods = []cluster.Pod{{Namespace: "default", Name: "new-1", Unscheduled: true, Need: resources.List{}.With(name, 1)}}
		return s
	}
	claimed := func(s cluster.Snapshot, id string) cluster.Snapshot {
		s.Pods, s.Claims = nil, []cluster.Claim{{Name: "c", ProviderID: id, Requests: resources.List{CPU: 1}.With(gpu, 1)}}
		return s
	}
	all := []string{"deviceclasses", "devicetaintrules", "resourceslices spec.driver=gpu.nvidia.com", "resourceclaims"}
	for _, c := range []struct {
		what    string
		s       cluster.Snapshot
		classes string
		want    []string
	}{
		{"a pod on a node that lacks it", lacking("n1"), theClass, all},
		{"a pod on a node that has it", has(lacking("n1")), theClass, nil},
		{"a pod on a node that has it, and one that lacks it", has(lacking("n1", "n2")), theClass, nil},
		{"a pod without a node", waiting(lacking("n1"), gpu), theClass, all},
		{"a pod without a node that every node could have", waiting(has(lacking("n1")), gpu), theClass, nil},
		{"a pod that asks for huge pages", waiting(lacking("n1"), "hugepages-2Mi"), theClass, nil},
		{"a claim whose node lacks it", claimed(lacking("n1"), "aws:///n1"), theClass, all},
		{"a claim whose node has it", claimed(has(lacking("n1")), "aws:///n1"), theClass, nil},
		{"a claim without a node", claimed(lacking("n1"), "aws:///n2"), theClass, nil},
		{"a claim without an instance", claimed(lacking("n1"), ""), theClass, nil},
		{"no class", lacking("n1"), "", all[:1]},
		{"a class that serves something else", lacking("n1"), strings.Replace(theClass, gpu, "example.com/nic", 1), all[:1]},
		{"a class that cannot be read", lacking("n1"), strings.Replace(theClass, "&&", "||", 1), all[:1]},
	} {
		server, client := serveDRA(t, map[string]string{"deviceclasses": c.classes, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")), "resourceclaims": ""}, http.StatusNotFound)
		if err := client.addDevices(t.Context(), &c.s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.want, server.asked); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
		if known := len(c.want) > 0; c.s.Devices.Known != known {
			t.Errorf("%s: known is %t", c.what, c.s.Devices.Known)
		}
	}
}

// What was read is used again for five seconds. If the class was changed, slices are read anew.
func TestDevicesAreReadAnewInTime(t *testing.T) {
	server, client := serveDRA(t, map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")), "resourceclaims": ""}, http.StatusNotFound)
	for _, c := range []struct {
		after time.Duration
		class string
		want  int
	}{
		{0, theClass, 4}, {4 * time.Second, theClass, 1}, {time.Second, theClass, 4}, {time.Second, strings.Replace(theClass, `"1"`, `"2"`, 1), 2},
		{-time.Minute, strings.Replace(theClass, `"1"`, `"2"`, 1), 4},
	} {
		server.asked, server.now, server.lists["deviceclasses"] = nil, server.now.Add(c.after), c.class
		s := lacking("n1")
		if err := client.addDevices(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(map[string][2]int64{"n1": {1, 1}}, offered(s, gpu)); d != "" || len(server.asked) != c.want {
			t.Errorf("%s later %d requests, want %d; offered (-want +got):\n%s", c.after, len(server.asked), c.want, d)
		}
	}
}

// A cluster that knows no DeviceClasses has none; where they may not be read, or what they select, nobody knows. Other
// failures are errors.
func TestDevicesThatCannotBeRead(t *testing.T) {
	for _, c := range []struct {
		lists map[string]string
		code  int
		known bool
		fails bool
	}{
		{nil, http.StatusNotFound, true, false},
		{nil, http.StatusForbidden, false, false},
		{nil, http.StatusBadRequest, false, true},
		{map[string]string{"deviceclasses": theClass}, http.StatusForbidden, false, false},
		{map[string]string{"deviceclasses": theClass}, http.StatusBadRequest, false, true},
		{map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", ""))}, http.StatusForbidden, false, false},
		{map[string]string{"deviceclasses": theClass, "resourceslices": sliceOf("n1", deviceOf("a", "gpu", ""))}, http.StatusBadRequest, false, true},
	} {
		_, client := serveDRA(t, c.lists, c.code)
		s := lacking("n1")
		err := client.addDevices(t.Context(), &s)
		if s.Devices.Known != c.known || len(s.Devices.Classes) > 0 || (err != nil) != c.fails || len(offered(s, gpu)) > 0 {
			t.Errorf("with %v and code %d: error %v, known %+v", c.lists, c.code, err, s.Devices)
		}
	}
}

// Of several classes with one extended resource the newest serves it, of equally old ones the first by name.
func TestTheClassThatServesAResource(t *testing.T) {
	at := func(name, resource string, minute int) translate.DeviceClass {
		return translate.DeviceClass{DeviceClass: cluster.DeviceClass{Name: name, Resource: resource}, Created: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)}
	}
	all := []translate.DeviceClass{at("a", "x/gpu", 1), at("b", "x/gpu", 2), at("c", "x/gpu", 2), at("d", "x/nic", 3), at("e", "", 4)}
	for name, want := range map[string]string{"x/gpu": "b", "x/nic": "d", "x/none": "", resourcev1.ResourceDeviceClassPrefix + "e": "e", resourcev1.ResourceDeviceClassPrefix + "z": ""} {
		if got, ok := translate.ServingClass(all, name); got.Name != want || ok != (want != "") {
			t.Errorf("%s is served by %q, want %q", name, got.Name, want)
		}
	}
}

// The doctor is told of every driver, of none where the cluster does not know DRA.
func TestDeviceDrivers(t *testing.T) {
	other := `{metadata: {name: o}, spec: {driver: dra.example.com, allNodes: true, pool: {name: net, generation: 1, resourceSliceCount: 1}, devices: [{name: x}]}}`
	half := `{metadata: {name: h}, spec: {driver: gpu.nvidia.com, nodeName: n3, pool: {name: n3, generation: 1, resourceSliceCount: 2}, devices: [{name: x}]}}`
	plain := `{metadata: {name: plain}, spec: {selectors: [{cel: {expression: "device.driver == 'dra.example.com'"}}]}}`
	_, client := serveDRA(t, map[string]string{"deviceclasses": theClass + "," + plain,
		"resourceslices": sliceOf("n1", deviceOf("a", "gpu", "")+","+deviceOf("b", "mig", "")) + "," + sliceOf("n2", deviceOf("a", "gpu", "")) + "," + half + "," + other}, http.StatusNotFound)
	drivers, classes, err := client.DeviceDrivers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]cluster.DeviceDriver{{Name: "dra.example.com", Devices: 1}, {Name: "gpu.nvidia.com", Nodes: 3, Devices: 4, Incomplete: []string{"n3"}}}, drivers); d != "" {
		t.Errorf("drivers (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]cluster.DeviceClass{{Resource: gpu, Name: "gpu.nvidia.com", Driver: "gpu.nvidia.com", CountedBy: gpu},
		{Resource: resourcev1.ResourceDeviceClassPrefix + "plain", Name: "plain", Driver: "dra.example.com"}}, classes); d != "" {
		t.Errorf("classes (-want +got):\n%s", d)
	}
	_, client = serveDRA(t, nil, http.StatusNotFound)
	if drivers, classes, err := client.DeviceDrivers(t.Context()); len(drivers)+len(classes) > 0 || err != nil {
		t.Errorf("drivers %v, classes %v, error %v of a cluster that has none", drivers, classes, err)
	}
	_, client = serveDRA(t, nil, http.StatusForbidden)
	if _, _, err := client.DeviceDrivers(t.Context()); err == nil {
		t.Error("drivers that may not be read are none")
	}
}
