package kube

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner/pkg/model/cluster"
)

// devicesFor is how long it is taken for true what DRA drivers publish and what is allocated of it: passes follow each
// other within a second, and a cluster with a thousand nodes publishes megabytes.
const devicesFor = 5 * time.Second

func deviceClasses() apiPath {
	return apiPath{"deviceclass", "/apis/resource.k8s.io/v1", "deviceclasses", false}
}

func resourceSlices() apiPath {
	return apiPath{"resourceslice", "/apis/resource.k8s.io/v1", "resourceslices", false}
}

func resourceClaims() apiPath {
	return apiPath{"resourceclaim", "/apis/resource.k8s.io/v1", "resourceclaims", false}
}

// deviceClass is what matters of a DeviceClass.
type deviceClass struct {
	cluster.DeviceClass
	version  string
	created  time.Time
	selector deviceSelector
}

// deviceCache is what was read last of the devices of some classes.
type deviceCache struct {
	mu     sync.Mutex
	of     string // the classes, in their versions
	at     time.Time
	counts deviceCounts
}

// addDevices gives nodes the extended resources that DRA drivers serve, as kube-scheduler sees them: those of which
// status.allocatable has none. Nothing is read unless somebody asks for an extended resource that a node lacks, and no
// more than the DeviceClasses unless one of these serves it. A cluster that does not know DeviceClasses has none;
// whoever may not read them does not know.
func (c *Client) addDevices(ctx context.Context, s *cluster.Snapshot) error {
	wanted := unmetResources(*s)
	if len(wanted) == 0 {
		return nil
	}
	all, err := c.deviceClasses(ctx)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var serving []deviceClass
	out := cluster.Devices{Known: true}
	for _, name := range wanted {
		if class, ok := serverOf(all, name); ok {
			class.Resource = name
			serving, out.Classes = append(serving, class), append(out.Classes, class.DeviceClass)
		}
	}
	counts, err := c.countDevices(ctx, serving)
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	s.Devices = out
	counts.addTo(s, serving)
	return nil
}

// unmetResources are the extended resources, sorted, that somebody asks for and a node lacks: a claim on its own node,
// a pod on the one where it is, and a pod without a node on any.
func unmetResources(s cluster.Snapshot) []string {
	byID, byName := map[string]*cluster.Node{}, map[string]*cluster.Node{}
	for i := range s.Nodes {
		byID[s.Nodes[i].ProviderID], byName[s.Nodes[i].Name] = &s.Nodes[i], &s.Nodes[i]
	}
	delete(byID, "")
	unmet, waitedFor := map[string]bool{}, map[string]bool{}
	for _, c := range s.Claims {
		for _, e := range c.Requests.Extended {
			if n := byID[c.ProviderID]; n != nil && n.Allocatable.Get(e.Name) == 0 {
				unmet[e.Name] = true
			}
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
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
		if slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return n.Allocatable.Get(name) == 0 }) {
			unmet[name] = true
		}
	}
	// hugepages have no domain
	maps.DeleteFunc(unmet, func(name string, _ bool) bool { return !strings.Contains(name, "/") })
	return slices.Sorted(maps.Keys(unmet))
}

// deviceClasses lists the DeviceClasses, sorted by name. Their resource is the one that they name themselves.
func (c *Client) deviceClasses(ctx context.Context) ([]deviceClass, error) {
	out, _, err := listAll(ctx, c, listQuery{place: deviceClasses()},
		func() *resourcev1.DeviceClassList { return &resourcev1.DeviceClassList{} },
		func(l *resourcev1.DeviceClassList) []deviceClass { return translatePage(l.Items, deviceClassFrom) })
	if isNotFound(err) {
		return nil, nil
	}
	slices.SortFunc(out, func(a, b deviceClass) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func deviceClassFrom(in *resourcev1.DeviceClass) deviceClass {
	out := deviceClass{version: in.ResourceVersion, created: in.CreationTimestamp.UTC()}
	out.Name = in.Name
	if in.Spec.ExtendedResourceName != nil {
		out.Resource = *in.Spec.ExtendedResourceName
	}
	var err error
	if out.selector, err = deviceSelectorFrom(in.Spec.Selectors); err != nil {
		out.Unread = err.Error()
	}
	out.Driver = out.selector.driver
	return out
}

// serverOf is the class that serves an extended resource: the one of whose name it is made, else the newest of those
// that name it, the first by name among equals.
func serverOf(all []deviceClass, name string) (best deviceClass, found bool) {
	own, implicit := strings.CutPrefix(name, resourcev1.ResourceDeviceClassPrefix)
	for _, c := range all {
		switch {
		case implicit && c.Name == own:
			return c, true
		case !implicit && c.Resource == name && (!found || c.created.After(best.created)):
			best, found = c, true
		}
	}
	return best, found
}

// countDevices counts the devices of those classes that can be read.
func (c *Client) countDevices(ctx context.Context, classes []deviceClass) (deviceCounts, error) {
	var of strings.Builder
	var drivers []string
	classes = slices.DeleteFunc(slices.Clone(classes), func(k deviceClass) bool { return k.Unread != "" })
	for _, k := range classes {
		of.WriteString(k.Name + "@" + k.version + " ")
		drivers = append(drivers, k.Driver)
	}
	if len(classes) == 0 {
		return deviceCounts{}, nil
	}
	c.devices.mu.Lock()
	defer c.devices.mu.Unlock()
	if age := c.now().Sub(c.devices.at); c.devices.of == of.String() && age >= 0 && age < devicesFor {
		return c.devices.counts, nil
	}
	slices.Sort(drivers)
	var published []deviceSlice
	for _, driver := range slices.Compact(drivers) {
		some, err := c.resourceSlices(ctx, resourcev1.ResourceSliceSelectorDriver+"="+driver, classes)
		if err != nil {
			return nil, err
		}
		published = append(published, some...)
	}
	var taken map[deviceID]string
	if len(published) > 0 {
		var err error
		if taken, err = c.takenDevices(ctx); err != nil {
			return nil, err
		}
	}
	counts := countDevices(published, taken)
	c.devices.of, c.devices.at, c.devices.counts = of.String(), c.now(), counts
	return counts, nil
}

// resourceSlices lists ResourceSlices with the devices of the classes.
func (c *Client) resourceSlices(ctx context.Context, fields string, classes []deviceClass) ([]deviceSlice, error) {
	out, _, err := listAll(ctx, c, listQuery{place: resourceSlices(), fields: fields},
		func() *resourcev1.ResourceSliceList { return &resourcev1.ResourceSliceList{} },
		func(l *resourcev1.ResourceSliceList) []deviceSlice {
			return translatePage(l.Items, func(in *resourcev1.ResourceSlice) deviceSlice {
				return deviceSliceFrom(in,
					classes)
			})
		})
	return out, err
}

// takenDevices are the devices that are allocated, each with the DeviceClass through which a pod got it by an extended
// resource; empty for one that a ResourceClaim of a user has.
func (c *Client) takenDevices(ctx context.Context) (map[deviceID]string, error) {
	out := map[deviceID]string{}
	_, _, err := listAll(ctx, c, listQuery{place: resourceClaims()},
		func() *resourcev1.ResourceClaimList { return &resourcev1.ResourceClaimList{} },
		func(l *resourcev1.ResourceClaimList) []struct{} {
			for i := range l.Items {
				maps.Copy(out, takenBy(&l.Items[i]))
			}
			return nil
		})
	return out, err
}

func takenBy(in *resourcev1.ResourceClaim) map[deviceID]string {
	if in.Status.Allocation == nil {
		return nil
	}
	through := map[string]string{} // by request
	if in.Annotations[resourcev1.ExtendedResourceClaimAnnotation] == "true" {
		for _, r := range in.Spec.Devices.Requests {
			if r.Exactly != nil {
				through[r.Name] = r.Exactly.DeviceClassName
			}
		}
	}
	out := map[deviceID]string{}
	for _, r := range in.Status.Allocation.Devices.Results {
		if r.AdminAccess == nil || !*r.AdminAccess { // who administers a device does not take it
			out[deviceID{devicePool{r.Driver, r.Pool}, r.Device}] = through[r.Request]
		}
	}
	return out
}

// DeviceDrivers lists the DRA drivers that publish devices, and the DeviceClasses that name an extended resource, both
// sorted by name. A cluster that does not know them has none.
func (c *Client) DeviceDrivers(ctx context.Context) ([]cluster.DeviceDriver, []cluster.DeviceClass, error) {
	all, err := c.deviceClasses(ctx)
	if err != nil {
		return nil, nil, err
	}
	published, err := c.resourceSlices(ctx, "", nil)
	if isNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	classes := translatePage(all, func(k *deviceClass) cluster.DeviceClass { return k.DeviceClass })
	classes = slices.DeleteFunc(classes, func(k cluster.DeviceClass) bool { return k.Resource == "" })
	byDriver, onNodes := map[string]*cluster.DeviceDriver{}, map[[2]string]bool{}
	for _, s := range newestSlices(published) {
		d := byDriver[s.pool.driver]
		if d == nil {
			d = &cluster.DeviceDriver{Name: s.pool.driver}
			byDriver[s.pool.driver] = d
		}
		d.Devices += s.size
		if at := [2]string{s.pool.driver, s.node}; s.node != "" && !onNodes[at] {
			onNodes[at] = true
			d.Nodes++
		}
	}
	drivers := make([]cluster.DeviceDriver, 0, len(byDriver))
	for _, d := range byDriver {
		drivers = append(drivers, *d)
	}
	slices.SortFunc(drivers, func(a, b cluster.DeviceDriver) int { return cmp.Compare(a.Name, b.Name) })
	return drivers, classes, nil
}
