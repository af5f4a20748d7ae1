package binpack

import (
	"slices"
	"strconv"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/resources"
	"joiner/pkg/model/topology"
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
	faults     plantedFault
	worth      *shadowPrices // once a node was wanted

	nodeLabels nodeLabelsByName // kept from one what-if question to the next
	identities *identityCache
}

// resourceDims names the resources that anybody asks for, in the order of all vectors.
type resourceDims []string

// podClasses are the pods that need a place, by equivalence class.
type podClasses struct {
	list       []*podClass
	waiting    map[*cluster.Pod]bool // pods of the classes
	shapes     map[string]int        // of needs, by their text
	unmodelled []plan.Unplaced       // who is in no class, and why
	sig        signatureWriter
}

// topologyCounts is how many pods stand in which domain of topology keys, as rules of pods count them.
type topologyCounts struct {
	s          *cluster.Snapshot
	all        []cluster.StateNode
	classes    *podClasses
	admissions *admissions
	catalog    *catalog
	nodes      *existingNodes

	counters   []podCounter
	counterIDs map[string]int
	domains    map[string][]string // by topology key, without hostname
	domainIDs  map[string]map[string]int
	tally      domainCounts
	total      []int // by counter of hostnames: pods anywhere

	identities *identityCache
	eligible   map[filteredKey][]bool // see eligibleDomains
	lone       []*podClass            // by counter: see onlyCountedClass
	spreads    []topologyRule         // by counter: see strictestSpread
}

// podCounter counts the pods of a group by domain of a key, on nodes that pass the filter.
type podCounter struct {
	key    string
	group  topology.Group
	filter *nodeAdmission // nil for all nodes

	limited bool // a required spread over hostnames counts it
	strict  bool // a required rule counts it
	spread  bool // some spread counts it
	avoided bool // some required anti-affinity over domains keeps away from it
}

func newProblem(s cluster.Snapshot, sells Offerings) *problem {
	return newProblemUpTo(s, sells, manyPools)
}

// newProblemUpTo is newProblem where up to few pools are all looked at.
func newProblemUpTo(s cluster.Snapshot, sells Offerings, few int) *problem {
	w := newDemand(s)
	w.resolveOffers(sells, few)
	w.addClusterState()
	return w
}

// newDemand is a problem of which only the pods that need a place are known.
func newDemand(s cluster.Snapshot) *problem {
	w := &problem{s: s, all: s.StateNodes(), classes: &podClasses{shapes: map[string]int{}}}
	w.faults = plantedFault{s.Rules.Plant, w.classes}
	w.options = &optionFinder{rules: &w.s.Rules, known: map[string]*loadRequirements{}}
	list, out := takeUnmodelled(findPendingPods(w.s, w.all))
	w.classes.unmodelled = out
	w.faults.planted(StageWhole, nil, nil)
	w.classes.sig = signatureWriter{labels: selectedLabelKeys(w.s), shared: sharedVolumes(w.s.Pods),
		moving: nodesBeingReplaced(w.all)}
	w.classes.list = groupPodClasses(list, w.classes.sig)
	for _, k := range w.classes.list {
		w.faults.planted(StageDemand, k, nil)
	}
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
	b := &catalogBuilder{s: &w.s, all: w.all, classes: w.classes, faults: w.faults, catalog: &catalog{dims: w.dims,
		few: few, admissions: w.admissions, sold: offeredDomains{}, domains: map[filteredKey][]string{}}}
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
	w.topology = &topologyCounts{s: &w.s, all: w.all, classes: w.classes, admissions: w.admissions, catalog: w.catalog,
		nodes: w.nodes, identities: w.identities, counterIDs: map[string]int{}, domains: map[string][]string{},
		domainIDs: map[string]map[string]int{}, eligible: map[filteredKey][]bool{}}
	w.topology.findKeys()
	softTaint := hasSoftTaints(w.s)
	for _, k := range w.classes.list {
		w.faults.planted(StageRelax, k, nil)
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

// distinctPriorities counts the distinct priorities of the pods.
func (cs *podClasses) distinctPriorities() int {
	seen := map[int32]bool{}
	for _, k := range cs.list {
		seen[k.pod.Priority] = true
	}
	return len(seen)
}

// neededResources lists, sorted, the resources that matter.
func (cs *podClasses) neededResources() resourceDims {
	dims := []string{resources.CPU, resources.Memory, resources.Pods}
	for _, k := range cs.list {
		for _, n := range k.pod.Need.Names() {
			if !slices.Contains(dims, n) {
				dims = append(dims, n)
			}
		}
	}
	slices.Sort(dims)
	return dims
}

// measureNeeds turns needs into vectors of the resources.
func (cs *podClasses) measureNeeds(dims resourceDims) {
	var text []byte
	for _, k := range cs.list {
		k.need = dims.vectorOf(k.pod.Need)
		text = text[:0]
		for _, x := range k.need {
			text = strconv.AppendInt(append(text, ' '), x, 36)
		}
		if _, ok := cs.shapes[string(text)]; !ok {
			cs.shapes[string(text)] = len(cs.shapes)
		}
		k.shape = cs.shapes[string(text)]
	}
}

// vectorOf is the amounts as a vector.
func (d resourceDims) vectorOf(l resources.List) []int64 {
	out := make([]int64, len(d))
	for i, name := range d {
		out[i] = l.Get(name)
	}
	return out
}

// findKeys lists the domains of every topology key that anything in the snapshot may ask for.
func (top *topologyCounts) findKeys() {
	keys := map[string]bool{}
	for i := range top.s.Pods {
		topologyKeys(&top.s.Pods[i], keys)
	}
	delete(keys, labelHost)
	for key := range keys { // each key on its own, so the order does not matter
		sold := top.catalog.sold.domainsOf(key, top.catalog.offers)
		all := slices.Clone(sold)
		for _, h := range top.nodes.all {
			if v, ok := h.Labels()[key]; ok {
				if _, known := slices.BinarySearch(sold, v); !known {
					all = append(all, v)
				}
			}
		}
		if len(all) > len(sold) {
			slices.Sort(all)
			all = slices.Compact(all)
		}
		top.domains[key] = all
		top.domainIDs[key] = map[string]int{}
		for i, d := range top.domains[key] {
			top.domainIDs[key][d] = i
		}
	}
}

// topologyKeys adds the keys over which the pod spreads, or is near to or apart from others.
func topologyKeys(p *cluster.Pod, keys map[string]bool) {
	for _, c := range p.Spread {
		keys[canonicalKey(c.Key)] = true
	}
	for _, list := range [][]cluster.AffinityTerm{p.Affinity, p.AntiAffinity} {
		for _, t := range list {
			keys[canonicalKey(t.Key)] = true
		}
	}
	for _, list := range [][]cluster.WeightedAffinityTerm{p.Prefers, p.Avoids} {
		for _, t := range list {
			keys[canonicalKey(t.Term.Key)] = true
		}
	}
}

// counterIndex returns the index of the counter for the group.
func (top *topologyCounts) counterIndex(key string, g topology.Group, filter *nodeAdmission) int {
	id := key + "|" + g.ID()
	if filter != nil {
		id += "|" + filter.id
	}
	i, ok := top.counterIDs[id]
	if !ok {
		i = len(top.counters)
		top.counterIDs[id] = i
		top.counters = append(top.counters, podCounter{key: key, group: g, filter: filter})
	}
	return i
}

// countRunningPods counts the pods that stand where they are, and notes which counters will count the pods that are to
// be placed.
func (top *topologyCounts) countRunningPods() {
	byName := map[string]*bin{}
	for _, h := range top.nodes.hosts {
		byName[h.name] = h
	}
	for _, h := range top.nodes.all {
		if h.Node != nil && byName[h.Node.Name] == nil {
			byName[h.Node.Name] = top.nodes.hostBin(h, nil)
		}
	}
	type standing struct {
		pod  *cluster.Pod
		on   *bin
		anti []int // by term of its anti-affinity: the counter
	}
	all := make([]standing, 0, len(top.s.Pods))
	for i := range top.s.Pods {
		p := &top.s.Pods[i]
		on := byName[p.NodeName]
		if p.NodeName == "" || on == nil || !p.Active() || top.classes.waiting[p] {
			continue
		}
		x := standing{pod: p, on: on}
		for _, t := range p.AntiAffinity {
			i := top.counterIndex(canonicalKey(t.Key), topology.OfTerm(t, p.Namespace, top.s.Namespaces), nil)
			top.counters[i].strict = true
			x.anti = append(x.anti, i)
		}
		all = append(all, x)
	}
	top.tally = top.newTally()
	top.total = make([]int, len(top.counters))
	for _, h := range top.nodes.hosts {
		h.count, h.anti = make([]int, len(top.counters)), make([]int, len(top.counters))
	}
	known := map[string][]int{}
	matched := func(p *cluster.Pod) []int {
		id := top.identities.identityOf(&top.classes.sig, p)
		list, ok := known[id]
		if !ok {
			for i, c := range top.counters {
				if c.group.Selects(p.Namespace, p.Labels) {
					list = append(list, i)
				}
			}
			known[id] = list
		}
		return list
	}
	for _, x := range all {
		top.countPod(x.on, matched(x.pod), x.anti)
	}
	for _, k := range top.classes.list {
		k.matched = matched(&k.pod)
	}
	for _, k := range top.classes.list {
		top.addUnbound(k)
	}
}

// addUnbound adds a last step to the relaxation of a kind that only preferences, its own or others', or rules about
// nobody else tie to a domain: it is tied no more. A node for it is flexible then, as minValues may want it.
func (top *topologyCounts) addUnbound(k *podClass) {
	v := *k.lastRelaxation()
	v.unbound = true
	if len(top.keysOf(&v)) < len(top.keysOf(k.lastRelaxation())) {
		k.views = append(k.views, &v)
	}
}

// countPod counts one pod that stays on the host: for the counters that select it, and for those of whom it keeps away.
func (top *topologyCounts) countPod(on *bin, matched, anti []int) {
	for _, i := range matched {
		c := top.counters[i]
		if c.filter != nil && c.filter.alternativeOn(on) < 0 {
			continue
		}
		if c.key == labelHost {
			top.total[i]++
			if on.count != nil {
				on.count[i]++
			}
		} else if d, ok := top.domainIDs[c.key][on.domainOf(c.key)]; ok {
			top.tally.count[i][d]++
		}
	}
	for _, i := range anti {
		key := top.counters[i].key
		if key == labelHost && on.count != nil {
			on.anti[i]++
		} else if d, ok := top.domainIDs[key][on.domainOf(key)]; ok {
			top.tally.anti[i][d]++
		}
	}
}

// domainCounts counts pods by counter and domain: those that are selected, those that may come to be there, those with
// a required anti-affinity against the group, wherever they may come to be, and those that are placed in this pass with
// a required spread of the group.
type domainCounts struct{ count, may, anti, even [][]int }

func (top *topologyCounts) newTally() domainCounts {
	each := func() [][]int {
		out := make([][]int, len(top.counters))
		for i, c := range top.counters {
			out[i] = make([]int, len(top.domains[c.key]))
		}
		return out
	}
	return domainCounts{each(), each(), each(), each()}
}

func (t domainCounts) clone() domainCounts {
	each := func(list [][]int) [][]int {
		out := make([][]int, len(list))
		for i, x := range list {
			out[i] = slices.Clone(x)
		}
		return out
	}
	return domainCounts{each(t.count), each(t.may), each(t.anti), each(t.even)}
}
