package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

// DeviceClass holds what matters of a DeviceClass.
type DeviceClass struct {
	cluster.DeviceClass
	Version  string    // resourceVersion
	Created  time.Time // creationTimestamp, UTC
	selector deviceSelector
	group    string            // the oldest class that selects the same devices, which may be itself: see GroupClasses
	taints   []DeviceTaintRule // that taint devices of new nodes: see TaintClasses
}

// inGroup is the class that stands for those that select the same devices.
func (c DeviceClass) inGroup() string { return cmp.Or(c.group, c.Name) }

// UnmetResources are the extended resources, sorted, that somebody asks for and a node lacks: a claim on its own node,
// a pod on the one where it is, and a pod without a node on any. Those that are named after a DeviceClass no kubelet
// reports. In a cluster without nodes any may be a driver's.
func UnmetResources(s cluster.Snapshot) []string {
	byName := lists.Pointers(s.Nodes, func(n *cluster.Node) string { return n.Name })
	unmet, waitedFor := unmetByClaims(s), map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		for _, e := range p.NeedAnew.Extended {
			unmet[e.Name] = unmet[e.Name] || cluster.IsClaimed(e.Name)
		}
		for _, e := range p.Need.Extended {
			if n := byName[p.NodeName]; n != nil && n.Allocatable.Get(e.Name) == 0 {
				unmet[e.Name] = true
			}
			if p.Provisionable() {
				waitedFor[e.Name] = true
			}
		}
	}
	for name := range waitedFor {
		if cluster.IsClaimed(name) || len(s.Nodes) == 0 ||
			slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return n.Allocatable.Get(name) == 0 }) {
			unmet[name] = true
		}
	}
	// hugepages have no domain
	maps.DeleteFunc(unmet, func(name string, is bool) bool { return !is || !strings.Contains(name, "/") })
	return slices.Sorted(maps.Keys(unmet))
}

// unmetByClaims are the extended resources that claims ask for and their own nodes lack.
func unmetByClaims(s cluster.Snapshot) map[string]bool {
	byID := lists.Pointers(s.Nodes, func(n *cluster.Node) string { return n.ProviderID })
	delete(byID, "")
	unmet := map[string]bool{}
	for _, c := range s.Claims {
		for _, e := range c.Requests.Extended {
			if n := byID[c.ProviderID]; n != nil && n.Allocatable.Get(e.Name) == 0 {
				unmet[e.Name] = true
			}
		}
	}
	return unmet
}

// NewDeviceClass translates a DeviceClass. Its Resource is the one that it names itself; Unread says why its selector
// cannot be used.
func NewDeviceClass(in *resourcev1.DeviceClass) DeviceClass {
	out := DeviceClass{Version: in.ResourceVersion, Created: in.CreationTimestamp.UTC()}
	out.Name = in.Name
	out.Resource = ptr.Deref(in.Spec.ExtendedResourceName, "")
	var err error
	if out.selector, err = deviceSelectorFrom(in.Spec.Selectors); err != nil {
		out.Unread = err.Error()
	}
	out.Driver = out.selector.driver
	out.CountedBy = out.selector.countedBy()
	return out
}

// countedBy is the extended resource of which an instance type has as many as its nodes have devices that are selected;
// empty where nobody knows. NVIDIA's driver publishes a device of type gpu for each GPU, that of AWS one for each
// Neuron device, and DRANET one for each EFA interface.
func (s deviceSelector) countedBy() string {
	switch {
	case s.driver == nvidiaDriver && !slices.ContainsFunc(s.attributes, func(a deviceAttribute) bool {
		return a != deviceAttribute{nvidiaDriver, "type", "gpu"}
	}):
		return instancetypes.ResourceNVIDIA
	case s.driver == neuronDriver && len(s.attributes) == 0:
		return instancetypes.ResourceNeuron
	case s.sameAs(efaSelector()):
		return instancetypes.ResourceEFA
	}
	return ""
}

// efaSelector selects the EFA interfaces among the devices of DRANET, as the chart of AWS does.
func efaSelector() deviceSelector {
	return deviceSelector{awsv1.DriverDRANET, []deviceAttribute{{awsv1.DriverDRANET, "pciDevice",
		"Elastic Fabric Adapter (EFA)"}}}
}

// The drivers whose devices EC2 counts.
const (
	nvidiaDriver = "gpu.nvidia.com"
	neuronDriver = "neuron.aws.com"
)

// GroupClasses finds the classes that select the same devices: what is claimed of them counts as claimed of the oldest.
func GroupClasses(all []DeviceClass) {
	byAge := make([]*DeviceClass, len(all))
	for i := range all {
		byAge[i] = &all[i]
	}
	slices.SortFunc(byAge, func(a, b *DeviceClass) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
	for i, c := range byAge {
		c.group = c.Name
		for _, older := range byAge[:i] {
			if c.Unread == "" && older.Unread == "" && c.selector.sameAs(older.selector) {
				c.group = older.group
				break
			}
		}
	}
}

// UsualDeviceClasses are the DeviceClasses that the charts of known drivers install, sorted by name.
func UsualDeviceClasses() []DeviceClass {
	out := []DeviceClass{
		{selector: efaSelector()},
		{selector: deviceSelector{nvidiaDriver, []deviceAttribute{{nvidiaDriver, "type", "gpu"}}}},
		{selector: deviceSelector{driver: neuronDriver}},
	}
	for i := range out {
		c := &out[i]
		c.Name, c.Driver, c.CountedBy = c.selector.driver, c.selector.driver, c.selector.countedBy()
	}
	out[0].Name = "efa.networking.k8s.aws"
	return out
}

// ServingClasses are the classes that serve an extended resource, each with it as its Resource: one, or those of the
// devices on one PCIe root that it stands for.
func ServingClasses(all []DeviceClass, name string) []DeviceClass {
	if c, ok := ServingClass(all, name); ok {
		c.Resource = name
		return []DeviceClass{c}
	}
	return bundleParts(all, name)
}

// ServingClass is the class that serves an extended resource: the one of whose name it is made, else the newest of
// those that name it, the first by name among equals.
func ServingClass(all []DeviceClass, name string) (best DeviceClass, found bool) {
	own, implicit := strings.CutPrefix(name, resourcev1.ResourceDeviceClassPrefix)
	if !implicit {
		own, implicit = strings.CutPrefix(name, cluster.Whole)
	}
	for _, c := range all {
		switch {
		case implicit && c.Name == own:
			return c, true
		case !implicit && c.Resource == name && (!found || c.Created.After(best.Created)):
			best, found = c, true
		}
	}
	return best, found
}
