// Package manifests is a cluster as the objects of its API server, beside what AWS sells in it and the settings of the
// autoscaler.
//
// It serves them to Joiner's own reader over HTTP without a network, and writes them as manifests and reads them back.
// It refuses to know who decides about them and how.
package manifests

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// Cluster is everything a pass may see.
type Cluster struct {
	Settings Settings

	Namespaces     []corev1.Namespace
	Nodes          []corev1.Node
	Pods           []corev1.Pod // that wait and that have a node
	DaemonSets     []appsv1.DaemonSet
	Volumes        []corev1.PersistentVolume
	VolumeClaims   []corev1.PersistentVolumeClaim
	StorageClasses []storagev1.StorageClass
	CSINodes       []storagev1.CSINode
	NodePools      []api.NodePool
	NodeClaims     []api.NodeClaim
	NodeClasses    []awsv1.EC2NodeClass
	NodeOverlays   []v1alpha1.NodeOverlay
}

// Settings are what no object says.
type Settings struct {
	Types       []string                    `json:"types"`             // that AWS sells
	Unavailable []instancetypes.OfferingKey `json:"soldOut,omitempty"` // that AWS refused lately
	// instances that reservations have left, by id
	Reserved          map[string]int64 `json:"reserved,omitempty"`
	Partitions        map[string]int64 `json:"partitions,omitempty"`        // of placement groups, by id
	RelaxMinValues    bool             `json:"relaxMinValues,omitempty"`    // minValuesPolicy BestEffort
	IgnorePreferences bool             `json:"ignorePreferences,omitempty"` // preferencePolicy Ignore
}

// ClusterTime is the time at which every cluster is looked at.
func ClusterTime() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// memoryOverhead is the part of an instance's memory that the VM keeps, as it is by default.
const memoryOverhead = 0.075

// SoldCatalog is what AWS sells of all.
func (c *Cluster) SoldCatalog(all instancetypes.Catalog) (instancetypes.Catalog, error) {
	out := all
	out.Types = make([]instancetypes.Facts, 0, len(c.Settings.Types))
	for _, name := range c.Settings.Types {
		f, ok := all.Find(name)
		if !ok {
			return out, fmt.Errorf("settings: the catalog has no type %s", name)
		}
		out.Types = append(out.Types, f)
	}
	slices.SortFunc(out.Types, func(a, b instancetypes.Facts) int { return compareNames(a.Name, b.Name) })
	return out, nil
}

func compareNames(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// UnavailableOfferings are what AWS refused lately.
func (c *Cluster) UnavailableOfferings() []instancetypes.UnavailableOffering {
	var out []instancetypes.UnavailableOffering
	for _, o := range c.Settings.Unavailable {
		out = append(out, instancetypes.UnavailableOffering{OfferingKey: o, Until: ClusterTime().Add(time.Minute),
			Why: "InsufficientInstanceCapacity", Times: 1})
	}
	return out
}

// FindClass returns the EC2NodeClass of that name with what AWS says about it.
func (c *Cluster) FindClass(name string) (instancetypes.Class, bool) {
	for i := range c.NodeClasses {
		if c.NodeClasses[i].Name == name {
			class := nodeclass.DescribeClass(&c.NodeClasses[i])
			c.completeClass(&class)
			return class, true
		}
	}
	return instancetypes.Class{}, false
}

// completeClass fills in what the object does not say.
func (c *Cluster) completeClass(class *instancetypes.Class) {
	class.MemoryOverhead = memoryOverhead
	for i := range class.Reservations {
		class.Reservations[i].Remaining = c.Settings.Reserved[class.Reservations[i].ID]
	}
	if g := class.Placement; g != nil {
		class.Placement = &instancetypes.Placement{ID: g.ID, Name: "group-" + g.ID, Strategy: "partition",
			Partitions: c.Settings.Partitions[g.ID]}
	}
}

// ResolveTypes lists the types that the class can have, of those that are sold.
func (c *Cluster) ResolveTypes(sold instancetypes.Catalog, class string) []instancetypes.Type {
	k, _ := c.FindClass(class)
	return instancetypes.ResolveTypes(sold, k, c.UnavailableOfferings(), ClusterTime())
}
