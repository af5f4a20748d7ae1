package packing

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// Problem holds what every solution of a pass starts from. Its parts do not change once they are read, except that they
// remember answers.
type Problem struct {
	S          cluster.Snapshot        // pods on nodes marked for deletion need what their successors request
	All        []cluster.StateNode     // nodes and claims of S, also those that take no pods
	Dims       podclass.Dims           // of every vector of needs and room
	Classes    *podclass.Classes       // the pods that need a place
	Admissions *podclass.Admissions    // of Classes and DaemonSets
	Catalog    *capacity.Catalog       // what the NodePools can launch
	Nodes      *capacity.ExistingNodes // nodes and claims that take pods
	Topology   *podtopology.Counts     // pods that stay, as the rules of Classes count them
	Options    *capacity.OptionFinder  // answers which instance types a launch names
	Committed  map[string]int64        // room of the account's commitments, by their ids
	Stages     podclass.StageTeller    // told of each step of the pass; tells nobody where nobody follows

	NodeLabels capacity.NodeLabelsByName // kept from one what-if question to the next
	Identities *podclass.IdentityCache   // of pods, kept like NodeLabels; nil keeps none
}

// NewProblem is the problem of the snapshot, with what the pools of each class can launch.
func NewProblem(s cluster.Snapshot, sells func(class string) []instancetypes.Type) *Problem {
	p := NewSharedDemand(s)
	p.ResolveOfferings(sells, capacity.ManyPools)
	p.AddClusterState()
	return p
}

// NewSharedDemand is NewDemand without the pods that are too much work for one pass.
func NewSharedDemand(s cluster.Snapshot) *Problem {
	p := NewDemand(s, nil)
	if aside := p.Classes.ShareWork(s.Rules, p.S.Minute()); len(aside) > 0 {
		return NewDemand(s, aside)
	}
	return p
}

// NewDemand is a problem of which only the pods that need a place are known, without those that are set aside.
func NewDemand(s cluster.Snapshot, aside podclass.SetAside) *Problem {
	p := &Problem{S: s, All: s.StateNodes()}
	p.S.Pods = podclass.WithNeedsAnew(s.Pods, p.All)
	p.Classes, p.Stages = podclass.ReadClasses(p.S, p.All, aside)
	p.Options = &capacity.OptionFinder{Rules: &p.S.Rules}
	return p
}

// ResolveOfferings adds what pools can launch. Up to few pools are all looked at.
func (p *Problem) ResolveOfferings(sells func(class string) []instancetypes.Type, few int) {
	p.SetDims(p.Classes.NeededResources())
	p.Admissions = podclass.NewAdmissions(p.S, p.Classes.List)
	b := &capacity.CatalogBuilder{S: &p.S, All: p.All, Classes: p.Classes, Stages: p.Stages}
	p.Catalog = b.FindPools(p.Dims, p.Admissions, few, sells)
}

// SetDims turns needs into vectors of the resources.
func (p *Problem) SetDims(dims podclass.Dims) {
	p.Dims, p.Options.Dims = dims, dims
	p.Classes.MeasureNeeds(dims)
}

// AddClusterState adds what depends on nodes and pods to a problem that knows what pools can launch.
func (p *Problem) AddClusterState() {
	_, p.Committed = p.S.AllotCommitments()
	p.Nodes = capacity.NewExistingNodes(&p.S, p.All, p.Catalog, p.NodeLabels)
	p.Topology = podtopology.NewCounts(p.Nodes, p.Classes, p.Admissions, p.Identities)
	p.Topology.ReadRules(p.Stages)
}

// RoomFor reports whether a pod of the view could be on a host or in reserved capacity, were it alone.
func (p *Problem) RoomFor(pod *podclass.RelaxedPod) bool {
	for _, b := range p.Nodes.Hosts {
		if capacity.FitCount(pod.Class.Need, b.Room) > 0 && b.AlternativeFor(pod.Admission) >= 0 {
			return true
		}
	}
	for _, pool := range p.Catalog.Pools {
		for _, o := range slices.Concat(pool.Reserved, pool.Paid) {
			if capacity.FitCount(pod.Class.Need, o.Room) > 0 && o.FirstAlternative(pod.Admission) >= 0 {
				return true
			}
		}
	}
	return false
}
