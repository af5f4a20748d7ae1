package lifecycle_test

import (
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// A claim whose node lacks an extended resource says who serves it, and what is in the way.
func TestWhoServesWhatANodeLacks(t *testing.T) {
	class := cluster.DeviceClass{Resource: "nvidia.com/gpu", Name: "gpu.nvidia.com", Driver: "nvidia"}
	unread := cluster.DeviceClass{Resource: "nvidia.com/gpu", Name: "odd", Unread: "it has no selector"}
	for _, c := range []struct {
		devices cluster.Devices
		want    string
	}{
		{cluster.Devices{}, "the node does not offer nvidia.com/gpu yet"},
		{cluster.Devices{Known: true}, "the node does not offer nvidia.com/gpu yet"},
		{cluster.Devices{Known: true, Classes: []cluster.DeviceClass{class}}, "the node does not offer nvidia.com/gpu yet; DeviceClass gpu.nvidia.com serves it, " +
			"and no ResourceSlice of the node has a device of driver nvidia that it selects"},
		{cluster.Devices{Known: true, Classes: []cluster.DeviceClass{unread}}, "the node does not offer nvidia.com/gpu yet; DeviceClass odd serves it, " +
			"whose devices cannot be counted: it has no selector"},
		{cluster.Devices{Known: true, Classes: []cluster.DeviceClass{{Resource: "nvidia.com/gpu", Name: "gpu.nvidia.com", PerRoot: 2}}}, "the node does not offer nvidia.com/gpu yet; " +
			"no PCIe root has that many devices by the node's ResourceSlices"},
	} {
		since := start().Add(-time.Hour)
		s := cluster.Snapshot{Now: start(), Rules: cluster.Settings{}, Devices: c.devices}
		s.Nodes = []cluster.Node{{Name: "n", ProviderID: providerID("i"), Ready: true, Finalizer: true, Allocatable: resources.List{CPU: 1000}}}
		s.Claims = []cluster.Claim{{Name: "c", UID: "u", ProviderID: providerID("i"), Finalizer: true, NodeName: "n", Requests: resources.List{}.With("nvidia.com/gpu", 1),
			Conditions: []cluster.Condition{{Type: v1.ConditionLaunched, Status: "True", Since: since}, {Type: v1.ConditionRegistered, Status: "True", Since: since}}}}
		s.Instances = []cluster.Instance{{ID: "i", State: "running", Zone: "a", Claim: "c", ClaimUID: "u"}}
		got := ""
		for _, a := range lifecycle.Next(s).Actions {
			for _, k := range a.Conditions {
				if k.Type == v1.ConditionInitialized {
					got = k.Message
				}
			}
		}
		if got != c.want {
			t.Errorf("with %+v the claim says %q, want %q", c.devices, got, c.want)
		}
	}
}
