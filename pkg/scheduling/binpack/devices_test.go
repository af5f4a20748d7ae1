package binpack_test

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
)

// A claim for a new node names the DRA drivers whose devices its pods claim, and no others.
func TestLaunchesNameDRADrivers(t *testing.T) {
	w := scenario.Scripted(t, "type p cpu=8000 mem=16384 milliusd=900\nresource nvidia.com/gpu 2\nresource vpc.amazonaws.com/efa 4", "pool default",
		"pods train cpu=7000 mem=100\nresource deviceclass.resource.kubernetes.io/gpu 2\nresource deviceclass.resource.kubernetes.io/efa 4", "pods plain cpu=7000 mem=100",
		"pods all cpu=7000 mem=100\nresource all-devices.joiner.sh/gpu 1000", "pods many cpu=100 mem=100\nresource deviceclass.resource.kubernetes.io/gpu 3")
	w.Snapshot.Devices = cluster.Devices{Known: true, Classes: []cluster.DeviceClass{
		{Resource: "deviceclass.resource.kubernetes.io/gpu", Name: "gpu", Driver: "gpu.nvidia.com", CountedBy: "nvidia.com/gpu"},
		{Resource: "all-devices.joiner.sh/gpu", Name: "gpu", Driver: "gpu.nvidia.com", CountedBy: "nvidia.com/gpu"},
		{Resource: "deviceclass.resource.kubernetes.io/efa", Name: "efa", Driver: "dra.net", CountedBy: "vpc.amazonaws.com/efa"}}}
	p := binpack.PodsFrom(w.Snapshot, w.Market)
	got := map[string]string{}
	for _, l := range p.Launches {
		got[l.Pods[0]] = l.Annotations["karpenter.sh/requested-dra-drivers"]
	}
	if len(got) != 3 || got["default/train-1"] != "dra.net,gpu.nvidia.com" || got["default/plain-1"] != "" || got["default/all-1"] != "gpu.nvidia.com" {
		t.Errorf("drivers by pod %q", got)
	}
	if len(p.Unplaced) != 1 || p.Unplaced[0].Pod != "default/many-1" {
		t.Errorf("unplaced %+v, want the pod that claims more devices than a type has", p.Unplaced)
	}
}
