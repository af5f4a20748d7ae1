package translate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"joiner.sh/pkg/model/cluster"
)

// devicePool is a pool of devices.
type devicePool struct{ driver, name string }

// DeviceID is one of the devices of a pool.
type DeviceID struct {
	pool devicePool
	name string
}

// DeviceSlice holds what matters of a ResourceSlice.
type DeviceSlice struct {
	pool           devicePool
	generation, of int64 // of the pool: its generation, and how many slices it has
	node           string
	size           int                 // devices
	selected       map[string][]string // devices, by DeviceClass
	tainted        map[string]bool     // devices that are not allocated any more
	roots          map[string]string   // PCIe root, by device that is selected and says so
	counters       map[string][]string // sets of counters that a device takes from, by device; most take from none
}

// NewDeviceSlice translates a slice. Devices that no single node has are left out: that they are near a node does not
// make them its own.
func NewDeviceSlice(in *resourcev1.ResourceSlice, classes []DeviceClass, rules []DeviceTaintRule) DeviceSlice {
	out := DeviceSlice{pool: devicePool{in.Spec.Driver, in.Spec.Pool.Name}, generation: in.Spec.Pool.Generation,
		of: in.Spec.Pool.ResourceSliceCount, node: ptr.Deref(in.Spec.NodeName, ""),
		size: len(in.Spec.Devices), selected: map[string][]string{}, counters: map[string][]string{},
		tainted: map[string]bool{}, roots: map[string]string{}}
	for i := range in.Spec.Devices {
		d := &in.Spec.Devices[i]
		for _, k := range d.ConsumesCounters {
			out.counters[d.Name] = append(out.counters[d.Name], k.CounterSet)
		}
		if out.node == "" {
			continue
		}
		if slices.ContainsFunc(d.Taints, repelsPods) || slices.ContainsFunc(rules, func(r DeviceTaintRule) bool {
			return r.taints(out.pool, d.Name)
		}) {
			out.tainted[d.Name] = true
		}
		for _, class := range classes {
			if class.selector.selectsDevice(in.Spec.Driver, d) && !slices.Contains(out.selected[class.Name], d.Name) {
				out.selected[class.Name] = append(out.selected[class.Name], d.Name)
				if root, is := attributeOf(in.Spec.Driver, d, pcieRootDomain, pcieRoot).(string); is {
					out.roots[d.Name] = root
				}
			}
		}
	}
	return out
}

// newestSlices returns the slices of the newest generation of each pool; older ones do not count.
func newestSlices(all []DeviceSlice) []DeviceSlice {
	newest := map[devicePool]int64{}
	for _, s := range all {
		newest[s.pool] = max(newest[s.pool], s.generation)
	}
	return slices.DeleteFunc(slices.Clone(all), func(s DeviceSlice) bool { return s.generation < newest[s.pool] })
}

// deviceCount counts the devices of a DeviceClass on a node that are allocated or may be, those not allocated through
// that class, those that nobody has, and tainted ones beside. By PCIe root it has those that are no partitions.
type deviceCount struct {
	all, others, free, tainted int64
	roots                      map[string]rootCount
}

// DeviceCounts are counts by node and DeviceClass.
type DeviceCounts map[string]map[string]deviceCount

// CountDevices counts the devices of complete pools. What is taken through a class is taken through those of its group.
func CountDevices(published []DeviceSlice, taken map[DeviceID]string, classes []DeviceClass) DeviceCounts {
	group := map[string]string{"": ""}
	for _, c := range classes {
		group[c.Name] = c.inGroup()
	}
	pools := map[devicePool][]DeviceSlice{}
	for _, s := range newestSlices(published) {
		pools[s.pool] = append(pools[s.pool], s)
	}
	out := DeviceCounts{}
	for pool, parts := range pools {
		if int64(len(parts)) == parts[0].of { // else the driver has not published the rest yet
			out.addPool(pool, parts, taken, group)
		}
	}
	return out
}

// addPool counts the devices of a pool. Of devices that take from the same counters, as partitions of one GPU do, one
// is counted.
func (counts DeviceCounts) addPool(pool devicePool, parts []DeviceSlice, taken map[DeviceID]string,
	group map[string]string) {
	type device struct {
		class, name, node, root string
		tainted                 bool
	}
	var all []device
	sets := map[string][]string{} // counters by device
	for _, s := range parts {
		maps.Copy(sets, s.counters)
		for class, names := range s.selected {
			for _, name := range names {
				all = append(all, device{class, name, s.node, s.roots[name], s.tainted[name]})
			}
		}
	}
	drained := drainedCounters(pool, sets, taken)
	slices.SortFunc(all, func(a, b device) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.name, b.name), cmp.Compare(a.node, b.node))
	})
	for i := range all {
		if i > 0 && all[i].class == all[i-1].class && all[i].name == all[i-1].name {
			return // kube-scheduler allocates nothing of a pool with two devices of one name
		}
	}
	counted := map[[2]string]bool{} // class and counters
	for _, d := range all {
		if slices.ContainsFunc(sets[d.name], func(set string) bool { return counted[[2]string{d.class, set}] }) {
			continue
		}
		if counts[d.node] == nil {
			counts[d.node] = map[string]deviceCount{}
		}
		n := counts[d.node][d.class]
		through, gone := taken[DeviceID{pool, d.name}]
		if d.tainted && !gone {
			n.tainted++
			counts[d.node][d.class] = n
			continue
		}
		if d.root != "" && len(sets[d.name]) == 0 {
			n.addOnRoot(d.root, gone)
		}
		if !gone && !slices.ContainsFunc(sets[d.name], func(set string) bool { return len(drained[set]) > 0 }) {
			n.free++
		}
		byOthers := func(through string) bool { return through == "" || group[through] != group[d.class] }
		gone = gone && byOthers(through)
		for _, set := range sets[d.name] {
			counted[[2]string{d.class, set}] = true
			gone = gone || slices.ContainsFunc(drained[set], byOthers)
		}
		n.all++
		if gone {
			n.others++
		}
		counts[d.node][d.class] = n
	}
}

// drainedCounters are, by counters, the classes through which somebody took from them; sets are counters by device.
func drainedCounters(pool devicePool, sets map[string][]string, taken map[DeviceID]string) map[string][]string {
	out := map[string][]string{}
	for name, of := range sets {
		if through, ok := taken[DeviceID{pool, name}]; ok {
			for _, set := range of {
				out[set] = append(out[set], through)
			}
		}
	}
	return out
}

// addOnRoot counts one more device on a PCIe root.
func (n *deviceCount) addOnRoot(root string, taken bool) {
	if n.roots == nil {
		n.roots = map[string]rootCount{}
	}
	r := n.roots[root]
	r.all++
	if !taken {
		r.free++
	}
	n.roots[root] = r
}

// AddTo gives the nodes of a snapshot the resources that classes serve, and the bundles of which the snapshot knows the
// parts. What pods on a node got through the same class by another name of the resource is not there for this one.
func (counts DeviceCounts) AddTo(s *cluster.Snapshot, classes []DeviceClass) {
	if len(counts) == 0 {
		return
	}
	counts.addBundles(s)
	asked := counts.askedOnNodes(s.Pods)
	for i := range s.Nodes {
		n := &s.Nodes[i]
		offered := n.Allocatable
		for _, c := range classes {
			has := counts[n.Name][c.Name]
			if slices.ContainsFunc(c.taints, DeviceTaintRule.anyDevice) && !cluster.IsClaimed(c.Resource) {
				has.all -= has.free // no pod that requests it as an extended resource gets one more
			}
			if has.all == 0 || offered.Get(c.Resource) > 0 || c.PerRoot > 0 {
				continue
			}
			left := has.all - has.others - askedBeside(c, classes, asked[n.Name])
			if strings.HasPrefix(c.Resource, cluster.Whole) {
				intact := left == has.all && has.tainted == 0
				has.all, left = cluster.WholeOf(has.all), 0
				if intact {
					left = has.all
				}
			}
			n.Capacity, n.Allocatable = n.Capacity.With(c.Resource, has.all),
				n.Allocatable.With(c.Resource, max(0, left))
		}
	}
}

// askedBeside returns how many of the devices of a class pods ask for by other resources than its own.
func askedBeside(c DeviceClass, classes []DeviceClass, asked map[string]int64) (n int64) {
	for _, other := range classes {
		units := other.PerRoot > 0 || other.Name == c.Name && cluster.IsClaimed(other.Resource) &&
			cluster.IsClaimed(c.Resource)
		if other.inGroup() == c.inGroup() && other.Resource != c.Resource && !units {
			n += asked[other.Resource]
		}
	}
	return n
}

// askedOnNodes returns what pods on the counted nodes ask for of extended resources, by node and resource.
func (counts DeviceCounts) askedOnNodes(pods []cluster.Pod) map[string]map[string]int64 {
	asked := map[string]map[string]int64{}
	for _, p := range pods {
		for _, e := range p.Need.Extended {
			if p.NodeName != "" && counts[p.NodeName] != nil {
				if asked[p.NodeName] == nil {
					asked[p.NodeName] = map[string]int64{}
				}
				asked[p.NodeName][e.Name] += e.Count
			}
		}
	}
	return asked
}

// CountDrivers counts the devices and nodes of each driver that published slices, sorted by name.
func CountDrivers(published []DeviceSlice) []cluster.DeviceDriver {
	byDriver, onNodes := map[string]*cluster.DeviceDriver{}, map[[2]string]bool{}
	newest, have := newestSlices(published), map[devicePool]int64{}
	for _, s := range newest {
		have[s.pool]++
	}
	incomplete := map[[2]string]bool{}
	for _, s := range newest {
		d := byDriver[s.pool.driver]
		if d == nil {
			d = &cluster.DeviceDriver{Name: s.pool.driver}
			byDriver[s.pool.driver] = d
		}
		d.Devices += s.size
		at := [2]string{s.pool.driver, s.node}
		if s.node != "" && !onNodes[at] {
			onNodes[at] = true
			d.Nodes++
		}
		if s.node != "" && have[s.pool] != s.of {
			incomplete[at] = true
		}
	}
	byNode := func(a, b [2]string) int { return cmp.Compare(a[1], b[1]) }
	for _, at := range slices.SortedFunc(maps.Keys(incomplete), byNode) {
		d := byDriver[at[0]]
		d.Incomplete = append(d.Incomplete, at[1])
	}
	drivers := make([]cluster.DeviceDriver, 0, len(byDriver))
	for _, d := range byDriver {
		drivers = append(drivers, *d)
	}
	slices.SortFunc(drivers, func(a, b cluster.DeviceDriver) int { return cmp.Compare(a.Name, b.Name) })
	return drivers
}
