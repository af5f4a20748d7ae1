package binpack

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// problem is what every solution of a pass starts from. Its parts do not change once they are read, except that they
// remember answers.
type problem struct {
	s          cluster.Snapshot
	all        []cluster.StateNode
	dims       resourceDims
	classes    *podClasses
	admissions *admissions
	catalog    *catalog
	nodes      *existingNodes
	topology   *topologyCounts
	options    *optionFinder
	committed  map[string]int64 // room of the account's commitments, by their ids
	stages     stageTeller
	worth      *shadowPrices                 // once a node was wanted
	guide      *shadowPrices                 // the same of pods as far as a solution keeps what they prefer, once asked
	alone      *shadowPrices                 // the same without the nodes that are there, once worth reckons with these
	raised     *shadowPrices                 // the same with whole pods on nodes that are there, once asked
	proven     map[*shadowPrices]provenBound // see boundProof.provenUSD
	filters    map[[2]*nodeAdmission]bool    // see admitsAll

	nodeLabels nodeLabelsByName // kept from one what-if question to the next
	identities *identityCache
}

// resourceDims names the resources that anybody asks for, in the order of all vectors.
type resourceDims []string

func newProblem(s cluster.Snapshot, sells Offerings) *problem {
	return newProblemUpTo(s, sells, manyPools)
}

// newProblemUpTo is newProblem where up to few pools are all looked at.
func newProblemUpTo(s cluster.Snapshot, sells Offerings, few int) *problem {
	w := newSharedDemand(s)
	w.resolveOffers(sells, few)
	w.addClusterState()
	return w
}

// newSharedDemand is newDemand without the pods that are too much work for one pass.
func newSharedDemand(s cluster.Snapshot) *problem {
	w := newDemand(s, nil)
	if aside := w.classes.shareWork(s.Rules); len(aside) > 0 {
		return newDemand(s, aside)
	}
	return w
}

// newDemand is a problem of which only the pods that need a place are known, without those that are set aside.
func newDemand(s cluster.Snapshot, aside setAside) *problem {
	w := &problem{s: s, all: s.StateNodes(), classes: &podClasses{shapes: map[string]int{}}}
	w.s.Pods = withNeedsAnew(s.Pods, w.all)
	w.classes.limits = cluster.ReadVolumeLimits(w.all)
	w.stages = stageTeller{s.Follower, w.classes}
	w.options = &optionFinder{rules: &w.s.Rules, known: map[string]*loadRequirements{}}
	list, out := takeUnmodelled(findPendingPods(w.s, w.all))
	list, left := aside.leaveOut(list)
	w.classes.unmodelled, w.classes.aside = slices.Concat(out, left), aside
	w.stages.tellStage(StageWhole, nil, nil)
	w.classes.sig = signatureWriter{labels: selectedLabelKeys(w.s), shared: sharedVolumes(w.s.Pods),
		moving: nodesBeingReplaced(w.all)}
	w.classes.list = groupPodClasses(list, w.classes.sig)
	for _, k := range w.classes.list {
		w.stages.tellStage(StageDemand, k, nil)
	}
	w.classes.sharing = slices.ContainsFunc(w.classes.list, func(k *podClass) bool { return len(k.disks.shared) > 0 })
	w.classes.waiting = make(map[*cluster.Pod]bool, len(list))
	for _, p := range list {
		w.classes.waiting[p] = true
	}
	return w
}

// resolveOffers adds what pools can launch.
func (w *problem) resolveOffers(sells Offerings, few int) {
	w.setDims(w.classes.neededResources())
	w.admissions = &admissions{byID: map[string]*nodeAdmission{}, namespaces: w.s.Namespaces}
	w.admissions.addDaemons(w.s.Daemons)
	b := &catalogBuilder{s: &w.s, all: w.all, classes: w.classes, stages: w.stages, catalog: &catalog{dims: w.dims,
		few: few, admissions: w.admissions, sold: offeredDomains{}, domains: map[filteredKey][]string{},
		byType: map[string]*poolInstanceType{}}}
	b.findPools(sells)
	w.catalog = b.catalog
}

// setDims turns needs into vectors of the resources.
func (w *problem) setDims(dims resourceDims) {
	w.dims, w.options.dims = dims, dims
	w.classes.measureNeeds(dims)
}

// addClusterState adds what depends on nodes and pods to a problem that knows what pools can launch.
func (w *problem) addClusterState() {
	_, w.committed = w.s.AllotCommitments()
	w.nodes = &existingNodes{s: &w.s, all: w.all, dims: w.dims, catalog: w.catalog, labels: w.nodeLabels}
	w.topology = &topologyCounts{s: &w.s, classes: w.classes, admissions: w.admissions, catalog: w.catalog,
		nodes: w.nodes, identities: w.identities, counterIDs: map[string]int{}, domains: map[string][]string{},
		domainIDs: map[string]map[string]int{}, eligible: map[filteredKey][]bool{}}
	w.topology.findKeys()
	softTaint := hasSoftTaints(w.s)
	for _, k := range w.classes.list {
		w.stages.tellStage(StageRelax, k, nil)
		for _, x := range relaxationSteps(k.pod, w.s.Rules.IgnorePreferences, softTaint) {
			k.views = append(k.views, w.topology.relaxedPodFor(k, x))
		}
	}
	w.nodes.findHosts(w.classes.waiting)
	w.topology.countRunningPods()
	w.topology.dropCircles()
}

// hasSoftTaints reports whether any node or pool has a taint that pods may have to put up with.
func hasSoftTaints(s cluster.Snapshot) bool {
	return slices.ContainsFunc(s.Pools, func(p cluster.Pool) bool { return slices.ContainsFunc(p.Taints, isSoft) }) ||
		slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return slices.ContainsFunc(n.Taints, isSoft) })
}

func isSoft(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" }

// vectorOf is the amounts as a vector.
func (d resourceDims) vectorOf(l resources.List) []int64 {
	out := make([]int64, len(d))
	for i, name := range d {
		out[i] = l.Get(name)
	}
	return out
}

// units are the amounts by which resources are counted in prices, so that all numbers are of about the same
// size.
func (d resourceDims) units() []float64 {
	out := make([]float64, len(d))
	for i, name := range d {
		switch name {
		case resources.CPU:
			out[i] = 1000
		case resources.Memory, resources.Ephemeral:
			out[i] = 1 << 30
		default:
			out[i] = 1
		}
	}
	return out
}
