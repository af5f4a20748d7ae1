package binpack

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// problem is what every solution of a pass starts from. Its parts do not change once they are read, except that they
// remember answers.
type problem struct {
	s          cluster.Snapshot
	all        []cluster.StateNode
	dims       podclass.Dims
	classes    *podclass.Classes
	admissions *podclass.Admissions
	catalog    *capacity.Catalog
	nodes      *capacity.ExistingNodes
	topology   *podtopology.Counts
	options    *capacity.OptionFinder
	committed  map[string]int64 // room of the account's commitments, by their ids
	stages     podclass.StageTeller

	nodeLabels capacity.NodeLabelsByName // kept from one what-if question to the next
	identities *podclass.IdentityCache
}

// newProblem is the problem of the snapshot, with what the pools of each class can launch.
func newProblem(s cluster.Snapshot, sells func(class string) []instancetypes.Type) *problem {
	return newProblemUpTo(s, sells, capacity.ManyPools)
}

// newProblemUpTo is newProblem where up to few pools are all looked at.
func newProblemUpTo(s cluster.Snapshot, sells func(class string) []instancetypes.Type, few int) *problem {
	w := newSharedDemand(s)
	w.resolveOffers(sells, few)
	w.addClusterState()
	return w
}

// newSharedDemand is newDemand without the pods that are too much work for one pass.
func newSharedDemand(s cluster.Snapshot) *problem {
	w := newDemand(s, nil)
	if aside := w.classes.ShareWork(s.Rules); len(aside) > 0 {
		return newDemand(s, aside)
	}
	return w
}

// newDemand is a problem of which only the pods that need a place are known, without those that are set aside.
func newDemand(s cluster.Snapshot, aside podclass.SetAside) *problem {
	w := &problem{s: s, all: s.StateNodes()}
	w.s.Pods = podclass.WithNeedsAnew(s.Pods, w.all)
	w.classes, w.stages = podclass.ReadClasses(w.s, w.all, aside)
	w.options = &capacity.OptionFinder{Rules: &w.s.Rules, Known: map[string]*capacity.LoadRequirements{}}
	return w
}

// resolveOffers adds what pools can launch.
func (w *problem) resolveOffers(sells func(class string) []instancetypes.Type, few int) {
	w.setDims(w.classes.NeededResources())
	w.admissions = podclass.NewAdmissions(w.s)
	b := &capacity.CatalogBuilder{S: &w.s, All: w.all, Classes: w.classes, Stages: w.stages,
		Catalog: capacity.NewCatalog(w.dims, w.admissions, few)}
	b.FindPools(sells)
	w.catalog = b.Catalog
}

// setDims turns needs into vectors of the resources.
func (w *problem) setDims(dims podclass.Dims) {
	w.dims, w.options.Dims = dims, dims
	w.classes.MeasureNeeds(dims)
}

// addClusterState adds what depends on nodes and pods to a problem that knows what pools can launch.
func (w *problem) addClusterState() {
	_, w.committed = w.s.AllotCommitments()
	w.nodes = capacity.NewExistingNodes(&w.s, w.all, w.catalog, w.nodeLabels)
	w.topology = podtopology.NewCounts(w.nodes, w.classes, w.admissions, w.identities)
	w.topology.ReadRules(w.stages)
}

// roomFor reports whether a pod of the view could be on a host or in reserved capacity, were it alone.
func (w *problem) roomFor(v *podclass.RelaxedPod) bool {
	for _, b := range w.nodes.Hosts {
		if capacity.FitCount(v.Class.Need, b.Room) > 0 && b.AlternativeFor(v.Admission) >= 0 {
			return true
		}
	}
	for _, p := range w.catalog.Pools {
		for _, o := range slices.Concat(p.Reserved, p.Paid) {
			if capacity.FitCount(v.Class.Need, o.Room) > 0 && o.FirstAlternative(v.Admission) >= 0 {
				return true
			}
		}
	}
	return false
}
