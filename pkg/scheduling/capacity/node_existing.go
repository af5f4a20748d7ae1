package capacity

import (
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
	S       *cluster.Snapshot   // has the pods, rules and time that the nodes are read with
	All     []cluster.StateNode // also those that take none
	dims    podclass.Dims
	Catalog *Catalog // what claims may become
	labels  NodeLabelsByName
	Hosts   []*Bin // those that take pods, initialized nodes first; nil before FindHosts
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
	for _, node := range en.All {
		_, unused := slices.BinarySearch(en.S.Unused, node.Name())
		if node.MarkedForDeletion() || node.Standby() || node.LostNode(en.S.Now) || unused ||
			node.Node == nil && (node.Claim.Overdue(en.S.Now, en.S.Rules.RegistrationTimeout) ||
				node.Claim.NeverLaunched(en.S.Now, en.S.Rules)) {
			continue
		}
		var pods []*cluster.Pod
		if node.Node != nil {
			pods = onNode[node.Node.Name]
		}
		b := en.HostBin(node, pods)
		if node.Initialized() {
			en.Hosts = append(en.Hosts, b)
		} else {
			young = append(young, b)
		}
	}
	en.Hosts = append(en.Hosts, young...)
}

// HostBin is the host with the room that its pods and its daemons leave.
func (en *ExistingNodes) HostBin(node cluster.StateNode, pods []*cluster.Pod) *Bin {
	b := &Bin{Name: node.Name(), Known: en.labels.labelsOf(node), Exact: node.Registered(),
		typed: node.Claim != nil && node.Claim.Labels[instancetypes.LabelType] != "", Taints: node.Taints(),
		provides: func(part string) bool { return en.S.Provides(node, part) },
		Disks:    podclass.AttachableOn(en.volumeLimitsOf(node), pods)}
	if node.IsAwaitingPods(en.S.Now) {
		b.Wanted = slices.DeleteFunc(node.Claim.NominatedPods(), func(name string) bool {
			return slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return p.Key() == name })
		})
	}
	b.daemons = en.comingDaemons(node, b)
	var daemons, running, used resources.List
	never := en.Catalog.oversizedOn(node.Pool())
	for i, d := range en.Catalog.Admissions.Daemons {
		if b.AlternativeFor(d.Admission) >= 0 && d.Pod.Need.FitsIn(node.Allocatable()) && !slices.Contains(never, i) {
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
	left := node.Allocatable().Sub(used).Sub(daemons.Sub(running).Max(resources.List{}))
	if node.Claim != nil && node.Allocatable().IsZero() {
		left, b.Ports = en.leastRoom(*node.Claim)
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
func (l NodeLabelsByName) labelsOf(node cluster.StateNode) requirements.Set {
	if node.Node == nil {
		return node.KnownLabels()
	}
	have, ok := l[node.Node.Name]
	if same := reflect.ValueOf(have.labels).Pointer() == reflect.ValueOf(node.Node.Labels).Pointer(); ok && same &&
		node.Registered() {
		return have.known
	}
	known := node.KnownLabels()
	if _, ok := known.Get(podclass.LabelHost); !ok {
		known = known.And(requirements.Of(podclass.LabelHost, node.Node.Name))
	}
	if l != nil && node.Registered() {
		l[node.Node.Name] = nodeLabels{node.Node.Labels, known}
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
		share: en.S.Rules.SpotPoolFraction()}
	for _, node := range en.All {
		if node.MarkedForDeletion() {
			continue
		}
		u.Add(node.OfferingKey(), node.Capacity().CPU, 1)
	}
	return u
}

// volumeLimitsOf returns the number of volumes that the drivers of a host attach. Of one that is not initialized yet
// its instance type tells as long as a driver does not. A node that reports no limit has none.
func (en *ExistingNodes) volumeLimitsOf(node cluster.StateNode) map[string]int64 {
	if node.Node != nil && node.Initialized() {
		return node.Node.VolumeLimits
	}
	out := map[string]int64{}
	if t := en.Catalog.byType[node.OfferingKey().Type]; t != nil {
		maps.Copy(out, t.Volumes)
	}
	if node.Node != nil {
		maps.Copy(out, node.Node.VolumeLimits)
	}
	return out
}

// comingDaemons are the DaemonSets whose pods the host gets once it is in service: of a claim that is not launched yet,
// those of any offering that it may become.
func (en *ExistingNodes) comingDaemons(node cluster.StateNode, b *Bin) []int {
	if node.Initialized() {
		return nil
	}
	var out []int
	if node.Claim != nil && node.Allocatable().IsZero() {
		for _, o := range en.Catalog.becomes(*node.Claim) {
			out = append(out, o.Daemons...)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for i, d := range en.Catalog.Admissions.Daemons {
		if b.AlternativeFor(d.Admission) >= 0 {
			out = append(out, i)
		}
	}
	return out
}
