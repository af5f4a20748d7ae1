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
