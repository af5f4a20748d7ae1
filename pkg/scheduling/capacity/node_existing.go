package capacity

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// ExistingNodes are the nodes and claims that take pods.
type ExistingNodes struct {
	S       *cluster.Snapshot
	All     []cluster.StateNode // also those that take none
	dims    podclass.Dims
	Catalog *Catalog // what claims may become
	labels  NodeLabelsByName
	Hosts   []*Bin
}

// NewExistingNodes are the nodes and claims of the snapshot. Call FindHosts before anything else.
func NewExistingNodes(s *cluster.Snapshot, all []cluster.StateNode, cat *Catalog,
	labels NodeLabelsByName) *ExistingNodes {
	return &ExistingNodes{S: s, All: all, dims: cat.dims, Catalog: cat, labels: labels}
}

// FindHosts makes bins of the nodes and claims that take pods: initialized nodes first, then by name. Nobody waits for
// a node that should have come long ago.
func (en *ExistingNodes) FindHosts(waiting map[*cluster.Pod]bool) {
	onNode := make(map[string][]*cluster.Pod, len(en.All))
	for i := range en.S.Pods {
		p := &en.S.Pods[i]
		on := p.NodeName
		if on == "" && p.Active() {
			on = p.Nominated // kube-scheduler keeps the room of a pod for which others make way there
		}
		if on != "" && !p.Terminal() && !waiting[p] {
			onNode[on] = append(onNode[on], p)
		}
	}
	var young []*Bin
	for _, h := range en.All {
		_, unused := slices.BinarySearch(en.S.Unused, h.Name())
		if h.MarkedForDeletion() || h.Standby() || h.LostNode(en.S.Now) || unused ||
			h.Node == nil && (h.Claim.Overdue(en.S.Now, en.S.Rules.RegistrationTimeout) ||
				h.Claim.NeverLaunched(en.S.Now, en.S.Rules)) {
			continue
		}
		var pods []*cluster.Pod
		if h.Node != nil {
			pods = onNode[h.Node.Name]
		}
		b := en.HostBin(h, pods)
		if h.Initialized() {
			en.Hosts = append(en.Hosts, b)
		} else {
			young = append(young, b)
		}
	}
	en.Hosts = append(en.Hosts, young...)
}

// HostBin is the host with the room that its pods and its daemons leave.
func (en *ExistingNodes) HostBin(h cluster.StateNode, pods []*cluster.Pod) *Bin {
	b := &Bin{Name: h.Name(), Known: en.labels.labelsOf(h), Exact: h.Registered(),
		typed: h.Claim != nil && h.Claim.Labels[instancetypes.LabelType] != "", Taints: h.Taints(),
		provides: func(part string) bool { return en.S.Provides(h, part) },
		Disks:    podclass.AttachableOn(en.volumeLimitsOf(h), pods)}
	if h.IsAwaitingPods(en.S.Now) {
		b.Wanted = slices.DeleteFunc(h.Claim.NominatedPods(), func(name string) bool {
			return slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return p.Key() == name })
		})
	}
	b.daemons = en.comingDaemons(h, b)
	var daemons, running, used resources.List
	never := en.Catalog.oversizedOn(h.Pool())
	for i, d := range en.Catalog.Admissions.Daemons {
		if b.AlternativeFor(d.Admission) >= 0 && d.Pod.Need.FitsIn(h.Allocatable()) && !slices.Contains(never, i) {
			daemons = daemons.Add(d.Pod.Need)
			b.Ports = append(b.Ports, d.Pod.HostPorts...)
		}
	}
	for _, p := range pods {
		used = used.Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			running = running.Add(p.Need)
		} else {
			b.Ports = append(b.Ports, p.HostPorts...)
		}
	}
	left := h.Allocatable().Sub(used).Sub(daemons.Sub(running).Max(resources.List{}))
	if h.Claim != nil && h.Allocatable().IsZero() {
		left, b.Ports = en.leastRoom(*h.Claim)
	}
	b.Room = en.dims.VectorOf(left)
	en.dims.SetVolumes(b.Room, b.Disks.Free)
	b.answers = &hostAnswers{}
	if left.Negative() { // an overcommitted node takes nothing
		b.Room = make([]int64, len(en.dims))
	}
	return b
}

// nodeLabels holds the labels of a node, and the requirements that they were read into.
type nodeLabels struct {
	labels map[string]string
	known  requirements.Set
}

// NodeLabelsByName holds the labels of nodes, by name; nil remembers none.
type NodeLabelsByName map[string]nodeLabels

// labelsOf returns the known labels of the host, with its name.
func (f NodeLabelsByName) labelsOf(h cluster.StateNode) requirements.Set {
	if h.Node == nil {
		return h.KnownLabels()
	}
	have, ok := f[h.Node.Name]
	if same := reflect.ValueOf(have.labels).Pointer() == reflect.ValueOf(h.Node.Labels).Pointer(); ok && same &&
		h.Registered() {
		return have.known
	}
	known := h.KnownLabels()
	if _, ok := known.Get(podclass.LabelHost); !ok {
		known = known.And(requirements.Of(podclass.LabelHost, h.Node.Name))
	}
	if f != nil && h.Registered() {
		f[h.Node.Name] = nodeLabels{h.Node.Labels, known}
	}
	return known
}

// leastRoom returns the least room for pods of a claim that is not launched yet. It is the smallest amount among the
// offerings it may become, less their daemons, and never less than what it was made for. The ports are those that
// daemons may take.
func (en *ExistingNodes) leastRoom(c cluster.Claim) (room resources.List, ports []cluster.HostPort) {
	var most resources.List // of what daemons take
	found := false
	all := en.Catalog.Admissions.Daemons
	comes := make([]bool, len(all))
	for i, d := range all {
		comes[i] = slices.ContainsFunc(d.Admission.Alternatives, c.Requirements.Intersects)
	}
	for _, o := range en.Catalog.becomes(c) {
		var taken resources.List
		for _, i := range o.Daemons {
			d := all[i]
			if !comes[i] || !d.Pod.Need.FitsIn(o.InstanceType.Type.Allocatable) {
				continue
			}
			taken = taken.Add(d.Pod.Need)
			for _, x := range d.Pod.HostPorts {
				if !slices.Contains(ports, x) {
					ports = append(ports, x)
				}
			}
		}
		if left := o.InstanceType.Type.Allocatable.Sub(taken); found {
			room = room.Min(left)
		} else {
			room, found = left, true
		}
		most = most.Max(taken)
	}
	return room.Max(c.Requests.Sub(most)), ports
}

// StandingSpot is the spot capacity of the nodes that stay.
func (en *ExistingNodes) StandingSpot() SpotUsage {
	u := SpotUsage{ByPool: map[instancetypes.OfferingKey]int64{},
		share: cmp.Or(en.S.Rules.MaxSpotPoolFraction, defaultSpotPoolShare)}
	for _, h := range en.All {
		if h.MarkedForDeletion() {
			continue
		}
		u.Add(h.OfferingKey(), h.Capacity().CPU, 1)
	}
	return u
}

// volumeLimitsOf returns the number of volumes that the drivers of a host attach. Of one that is not initialized yet
// its instance type tells as long as a driver does not. A node that reports no limit has none.
func (en *ExistingNodes) volumeLimitsOf(h cluster.StateNode) map[string]int64 {
	if h.Node != nil && h.Initialized() {
		return h.Node.VolumeLimits
	}
	out := map[string]int64{}
	if m := en.Catalog.byType[h.OfferingKey().Type]; m != nil {
		maps.Copy(out, m.Volumes)
	}
	if h.Node != nil {
		maps.Copy(out, h.Node.VolumeLimits)
	}
	return out
}
