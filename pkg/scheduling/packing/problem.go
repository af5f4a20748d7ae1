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
	S          cluster.Snapshot
	All        []cluster.StateNode
	Dims       podclass.Dims
	Classes    *podclass.Classes
	Admissions *podclass.Admissions
	Catalog    *capacity.Catalog
	Nodes      *capacity.ExistingNodes
	Topology   *podtopology.Counts
	Options    *capacity.OptionFinder
	Committed  map[string]int64 // room of the account's commitments, by their ids
	Stages     podclass.StageTeller

	NodeLabels capacity.NodeLabelsByName // kept from one what-if question to the next
	Identities *podclass.IdentityCache
}

// NewProblem is the problem of the snapshot, with what the pools of each class can launch.
func NewProblem(s cluster.Snapshot, sells func(class string) []instancetypes.Type) *Problem {
	w := NewSharedDemand(s)
	w.ResolveOfferings(sells, capacity.ManyPools)
	w.AddClusterState()
	return w
}

// NewSharedDemand is NewDemand without the pods that are too much work for one pass.
func NewSharedDemand(s cluster.Snapshot) *Problem {
	w := NewDemand(s, nil)
	if aside := w.Classes.ShareWork(s.Rules, w.S.Minute()); len(aside) > 0 {
		return NewDemand(s, aside)
	}
	return w
}

// NewDemand is a problem of which only the pods that need a place are known, without those that are set aside.
func NewDemand(s cluster.Snapshot, aside podclass.SetAside) *Problem {
	w := &Problem{S: s, All: s.StateNodes()}
	w.S.Pods = podclass.WithNeedsAnew(s.Pods, w.All)
	w.Classes, w.Stages = podclass.ReadClasses(w.S, w.All, aside)
	w.Options = &capacity.OptionFinder{Rules: &w.S.Rules}
	return w
}

// ResolveOfferings adds what pools can launch. Up to few pools are all looked at.
func (w *Problem) ResolveOfferings(sells func(class string) []instancetypes.Type, few int) {
	w.SetDims(w.Classes.NeededResources())
	w.Admissions = podclass.NewAdmissions(w.S, w.Classes.List)
	b := &capacity.CatalogBuilder{S: &w.S, All: w.All, Classes: w.Classes, Stages: w.Stages}
	w.Catalog = b.FindPools(w.Dims, w.Admissions, few, sells)
}

// SetDims turns needs into vectors of the resources.
func (w *Problem) SetDims(dims podclass.Dims) {
	w.Dims, w.Options.Dims = dims, dims
	w.Classes.MeasureNeeds(dims)
}

// AddClusterState adds what depends on nodes and pods to a problem that knows what pools can launch.
func (w *Problem) AddClusterState() {
	_, w.Committed = w.S.AllotCommitments()
	w.Nodes = capacity.NewExistingNodes(&w.S, w.All, w.Catalog, w.NodeLabels)
	w.Topology = podtopology.NewCounts(w.Nodes, w.Classes, w.Admissions, w.Identities)
	w.Topology.ReadRules(w.Stages)
}

// RoomFor reports whether a pod of the view could be on a host or in reserved capacity, were it alone.
func (w *Problem) RoomFor(v *podclass.RelaxedPod) bool {
	for _, b := range w.Nodes.Hosts {
		if capacity.FitCount(v.Class.Need, b.Room) > 0 && b.AlternativeFor(v.Admission) >= 0 {
			return true
		}
	}
	for _, p := range w.Catalog.Pools {
		for _, o := range slices.Concat(p.Reserved, p.Paid) {
			if capacity.FitCount(v.Class.Need, o.Room) > 0 && o.FirstAlternative(v.Admission) >= 0 {
				return true
			}
		}
	}
	return false
}
