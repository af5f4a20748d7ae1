package cluster

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// Devices holds the DeviceClasses of dynamic resource allocation (DRA). Since Kubernetes 1.36 pods that request an
// extended resource may get it from a DRA driver, on nodes whose status.allocatable has none of it. What of this a node
// holds is in its Capacity and Allocatable.
type Devices struct {
	// Classes were read; they are read only while a node lacks an extended resource that somebody asks for
	Known   bool          `json:"known,omitempty"`
	Classes []DeviceClass `json:"classes,omitempty"` // those that serve such a resource, sorted by resource
}

// DeviceClass is the DeviceClass that serves an extended resource, or that pods claim devices of: these count as the
// extended resource that Kubernetes names after the class.
type DeviceClass struct {
	Resource string `json:"resource"`
	Name     string `json:"name"`
	Driver   string `json:"driver,omitempty"` // whose devices it selects
	Unread   string `json:"unread,omitempty"` // why its devices cannot be counted; empty where they are
	// the extended resource of which an instance type has as many as its nodes have devices; empty where nobody knows
	CountedBy string `json:"countedBy,omitempty"`
	// how many devices of the class one unit of Resource is, all on one PCIe root together with those of the other
	// classes of Resource; 0 for one device anywhere
	PerRoot int64 `json:"perRoot,omitempty"`
}

// Claimed is the prefix of the extended resource that Kubernetes names after a DeviceClass.
const Claimed = "deviceclass.resource.kubernetes.io/"

// Bundle is the prefix of a resource that stands for devices of certain DeviceClasses on one PCIe root.
const Bundle = "pcie-bundle.joiner.sh/"

// SharedClaim begins a label that no cluster has, and ends with the name of a ResourceClaim that several pods name and
// nobody has: of the pod that gets its devices first. The others are tied to that by a term of pod affinity.
const SharedClaim = "resourceclaim.joiner.sh/"

// SharedClaim is the name of the ResourceClaim that ties the pod to another, empty for a term of its own.
func (t AffinityTerm) SharedClaim() string {
	if t.Selector == nil || len(t.Selector.Requirements) != 1 {
		return ""
	}
	if name, is := strings.CutPrefix(t.Selector.Requirements[0].Key, SharedClaim); is {
		return name
	}
	return ""
}

// sharedClaims are the ResourceClaims that tie the pod to others, or others to it.
func (p *Pod) sharedClaims() (out []string) {
	for _, t := range p.Affinity {
		if name := t.SharedClaim(); name != "" {
			out = append(out, name)
		}
	}
	for label := range p.Labels {
		if name, is := strings.CutPrefix(label, SharedClaim); is {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// budgetOfSharers says which PodDisruptionBudget lets fewer pods go at once than share a ResourceClaim, or nothing.
// Those in their stead get devices when the last of them is gone, and are not ready before.
func (o Obstacles) budgetOfSharers(pods []*Pod) string {
	byClaim := map[string][]*Pod{}
	for _, p := range pods {
		for _, claim := range p.sharedClaims() {
			byClaim[claim] = append(byClaim[claim], p)
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(byClaim)) {
		if b := o.BudgetBelow(byClaim[claim], 2); b != nil {
			return fmt.Sprintf("PodDisruptionBudget %s lets %d pods go now, and more of its pods share ResourceClaim %s, "+
				"which go together", b, b.DisruptionsAllowed, claim)
		}
	}
	return ""
}

// IsClaimed reports whether the resource stands for devices that pods claim by their class. No kubelet reports it.
func IsClaimed(name string) bool {
	return strings.HasPrefix(name, Claimed) || strings.HasPrefix(name, Whole) || strings.HasPrefix(name, Bundle)
}

// Bundles are the classes that serve each resource of devices on one PCIe root, sorted by resource.
func (d Devices) Bundles() (out [][]DeviceClass) {
	for _, c := range d.Classes {
		switch last := len(out) - 1; {
		case c.PerRoot == 0:
		case last >= 0 && out[last][0].Resource == c.Resource:
			out[last] = append(out[last], c)
		default:
			out = append(out, []DeviceClass{c})
		}
	}
	return out
}

// Whole is the prefix of a resource of which a node has WholeUnits for each DeviceClass that it has devices of: a claim
// of all of them takes all units, any other pod with devices of the class one, so that the two share no node.
const (
	Whole      = "all-devices.joiner.sh/"
	WholeUnits = 1000 // more than pods fit on a node
)

// ResourceText is a resource in words that people know: those that stand for devices are Joiner's own.
func ResourceText(name string) string {
	if class, is := strings.CutPrefix(name, Whole); is {
		return "all devices of DeviceClass " + class
	}
	if parts, is := strings.CutPrefix(name, Bundle); is {
		return "(" + strings.ReplaceAll(parts, "_", " ") + " on one PCIe root)"
	}
	return name
}

// BundlesOnRoot returns how many times a PCIe root has the devices of all parts, of each of which it has so many. A
// claim that is allocated makes it one less at most, whichever of the devices it gets.
func BundlesOnRoot(parts []DeviceClass, has func(DeviceClass) int64) int64 {
	least := int64(math.MaxInt64)
	for _, c := range parts {
		least = min(least, has(c)/c.PerRoot)
	}
	return least
}

// WholeOf returns the units of a node with so many devices: none if no claim may have that many.
func WholeOf(devices int64) int64 {
	if devices < 1 || devices > MostDevicesOfClaim {
		return 0
	}
	return WholeUnits
}

// MostDevicesOfClaim is the largest number of devices that Kubernetes allocates to one ResourceClaim.
const MostDevicesOfClaim = 32

// Server is the DeviceClass that serves the extended resource, if one does.
func (d Devices) Server(name string) (DeviceClass, bool) {
	return lists.Find(d.Classes, func(c DeviceClass) bool { return c.Resource == name })
}

// DriversOf are the DRA drivers that serve what is requested, sorted, each once.
func (d Devices) DriversOf(requests resources.List) (out []string) {
	for _, c := range d.Classes {
		if c.Driver != "" && requests.Get(c.Resource) > 0 {
			out = append(out, c.Driver)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// MayServe reports whether a DRA driver serves the resource, or nobody has looked whether one does. Resources of
// Kubernetes itself, such as cpu and hugepages, never come from one.
func (d Devices) MayServe(name string) bool {
	_, served := d.Server(name)
	return served || !d.Known && strings.Contains(name, "/")
}

// DeviceDriver is a DRA driver of the cluster, with what it publishes.
type DeviceDriver struct {
	Name    string
	Nodes   int // that it publishes devices of
	Devices int
	// the nodes of which a pool lacks slices, sorted
	Incomplete []string
}
