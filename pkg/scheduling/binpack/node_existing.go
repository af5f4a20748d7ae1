package binpack

import (
	"cmp"
	"reflect"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// existingNodes are the nodes and claims that take pods.
type existingNodes struct {
	s       *cluster.Snapshot
	all     []cluster.StateNode // also those that take none
	dims    podclass.Dims
	catalog *catalog // what claims may become
	labels  nodeLabelsByName
	hosts   []*bin
}

// newExistingNodes are the nodes and claims of the snapshot. Call findHosts before anything else.
func newExistingNodes(s *cluster.Snapshot, all []cluster.StateNode, cat *catalog,
	labels nodeLabelsByName) *existingNodes {
	return &existingNodes{s: s, all: all, dims: cat.dims, catalog: cat, labels: labels}
}

// findHosts makes bins of the nodes and claims that take pods: initialized nodes first, then by name. Nobody waits for
// a node that should have come long ago.
func (en *existingNodes) findHosts(waiting map[*cluster.Pod]bool) {
	onNode := make(map[string][]*cluster.Pod, len(en.all))
	for i := range en.s.Pods {
		p := &en.s.Pods[i]
		if p.NodeName != "" && !p.Terminal() && !waiting[p] {
			onNode[p.NodeName] = append(onNode[p.NodeName], p)
		}
	}
	var young []*bin
	for _, h := range en.all {
		_, unused := slices.BinarySearch(en.s.Unused, h.Name())
		if h.MarkedForDeletion() || h.Standby() || h.LostNode(en.s.Now) || unused ||
			h.Node == nil && (h.Claim.Overdue(en.s.Now, en.s.Rules.RegistrationTimeout) ||
				h.Claim.NeverLaunched(en.s.Now, en.s.Rules)) {
			continue
		}
		var pods []*cluster.Pod
		if h.Node != nil {
			pods = onNode[h.Node.Name]
		}
		b := en.hostBin(h, pods)
		if h.Initialized() {
			en.hosts = append(en.hosts, b)
		} else {
			young = append(young, b)
		}
	}
	en.hosts = append(en.hosts, young...)
}

// hostBin is the host with the room that its pods and its daemons leave.
func (en *existingNodes) hostBin(h cluster.StateNode, pods []*cluster.Pod) *bin {
	b := &bin{name: h.Name(), known: en.labels.labelsOf(h), exact: h.Registered(),
		typed: h.Claim != nil && h.Claim.Labels[instancetypes.LabelType] != "", taints: h.Taints(),
		disks: podclass.AttachableOn(en.volumeLimitsOf(h), pods)}
	if isAwaitingPods(h, en.s.Now) {
		b.wanted = slices.DeleteFunc(h.Claim.NominatedPods(), func(name string) bool {
			return slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return p.Key() == name })
		})
	}
	b.daemons = en.comingDaemons(h, b)
	var daemons, running, used resources.List
	never := en.catalog.oversizedOn(h.Pool())
	for i, d := range en.catalog.admissions.Daemons {
		if b.alternativeFor(d.Admission) >= 0 && d.Pod.Need.FitsIn(h.Allocatable()) && !slices.Contains(never, i) {
			daemons = daemons.Add(d.Pod.Need)
			b.ports = append(b.ports, d.Pod.HostPorts...)
		}
	}
	for _, p := range pods {
		used = used.Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			running = running.Add(p.Need)
		} else {
			b.ports = append(b.ports, p.HostPorts...)
		}
	}
	left := h.Allocatable().Sub(used).Sub(daemons.Sub(running).Max(resources.List{}))
	if h.Claim != nil && h.Allocatable().IsZero() {
		left, b.ports = en.leastRoom(*h.Claim)
	}
	b.room = en.dims.VectorOf(left)
	en.dims.SetVolumes(b.room, b.disks.Free)
	b.answers = &hostAnswers{}
	if left.Negative() { // an overcommitted node takes nothing
		b.room = make([]int64, len(en.dims))
	}
	return b
}

// nodeLabels is what is known about the labels of a node.
type nodeLabels struct {
	labels map[string]string
	known  requirements.Set
}

// nodeLabelsByName are those of nodes, by name; nil remembers none.
type nodeLabelsByName map[string]nodeLabels

// labelsOf is what is known about the host's labels, with its name.
func (f nodeLabelsByName) labelsOf(h cluster.StateNode) requirements.Set {
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

// leastRoom is what a claim that is not launched yet will have for pods at least: the smallest amount among the offers
// it may become, less their daemons, and never less than what it was made for. The ports are those that daemons may
// take.
func (en *existingNodes) leastRoom(c cluster.Claim) (room resources.List, ports []cluster.HostPort) {
	var most resources.List // of what daemons take
	found := false
	all := en.catalog.admissions.Daemons
	comes := make([]bool, len(all))
	for i, d := range all {
		comes[i] = slices.ContainsFunc(d.Admission.Alternatives, c.Requirements.Intersects)
	}
	for _, o := range en.catalog.becomes(c) {
		var taken resources.List
		for _, i := range o.daemons {
			d := all[i]
			if !comes[i] || !d.Pod.Need.FitsIn(o.model.typ.Allocatable) {
				continue
			}
			taken = taken.Add(d.Pod.Need)
			for _, x := range d.Pod.HostPorts {
				if !slices.Contains(ports, x) {
					ports = append(ports, x)
				}
			}
		}
		if left := o.model.typ.Allocatable.Sub(taken); found {
			room = room.Min(left)
		} else {
			room, found = left, true
		}
		most = most.Max(taken)
	}
	return room.Max(c.Requests.Sub(most)), ports
}

// standingSpot is the spot capacity of the nodes that stay.
func (en *existingNodes) standingSpot() spotUsage {
	u := spotUsage{byPool: map[instancetypes.Offer]int64{},
		share: cmp.Or(en.s.Rules.MaxSpotPoolFraction, defaultSpotPoolShare)}
	for _, h := range en.all {
		if h.MarkedForDeletion() {
			continue
		}
		u.add(h.Offer(), h.Capacity().CPU, 1)
	}
	return u
}

// volumeLimitsOf is how many volumes the drivers of a host attach. Of one that is not initialized yet its instance type
// tells as long as the drivers do not. A node that reports no limit has none.
func (en *existingNodes) volumeLimitsOf(h cluster.StateNode) map[string]int64 {
	if h.Node != nil && (len(h.Node.VolumeLimits) > 0 || h.Initialized()) {
		return h.Node.VolumeLimits
	}
	if m := en.catalog.byType[h.Offer().Type]; m != nil {
		return m.volumes
	}
	return nil
}
