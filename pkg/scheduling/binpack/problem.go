package binpack

import (
	"slices"
	"strconv"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/resources"
	"joiner/pkg/model/topology"
)

// problem is what every attempt of a pass starts from. It is not changed after survey, except that it remembers
// answers.
type problem struct {
	s          cluster.Snapshot
	all        []cluster.StateNode
	dims       []string // names of the resources that anybody asks for
	kinds      []*podClass
	waiting    map[*cluster.Pod]bool // pods of the kinds
	pools      []*pool
	named      map[string][]string // see namedValues
	offers     []*poolOffering
	bookable   []*instancetypes.Reservation // that offers come from
	hosts      []*bin
	few        int // up to how many pools are all looked at
	daemons    []daemonOverhead
	skipped    []plan.Skip
	unmodelled []plan.Unplaced

	counters   []podCounter
	counterIDs map[string]int
	domains    map[string][]string // by topology key, without hostname
	domainIDs  map[string]map[string]int
	tally      domainCounts
	total      []int

	admissions map[string]*nodeAdmission
	eligibles  map[filteredKey][]bool
	lets       map[filteredKey][]string // see sells
	models     int
	faces      nodeLabelsByName
	seen       *identityCache
	shapes     map[string]int   // of needs, by their text
	room       map[string]int64 // of the account's commitments, by their ids
	sale       *shareRanking    // all that is available now
	sold       offeredDomains
	holders    map[string]*loadRequirements
	asked      []int32
	last       lastOptions
	reasons    map[string]string
	worth      *shadowPrices // once a node was wanted
	weights    *poolTiers    // once a node was wanted
	// of a pass: the most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	ceiling int64
	lone    []*podClass         // by counter: see alone
	turns   map[int]int         // by kind: see takeTurns
	bare    bool                // pods ask for no preference
	spreads []topologyRule      // by counter: see strictestSpread
	homes   map[classDomain]int // domains that groups are to keep out of, see settledWell
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

// newProblemUpTo is survey where up to few pools are all looked at.
func newProblemUpTo(s cluster.Snapshot, sells Offerings, few int) *problem {
	w := newWorld(s, few)
	sig := w.findDemand()
	w.measureNeeds(w.neededResources())
	w.addDaemons()
	w.findPools(sells)
	w.addClusterState(sig)
	return w
}

func newWorld(s cluster.Snapshot, few int) *problem {
	return &problem{
		few: few,
		s:   s, all: s.StateNodes(), counterIDs: map[string]int{}, domains: map[string][]string{},
		domainIDs:  map[string]map[string]int{},
		admissions: map[string]*nodeAdmission{}, eligibles: map[filteredKey][]bool{}, lets: map[filteredKey][]string{},
		holders: map[string]*loadRequirements{}, reasons: map[string]string{}, sold: offeredDomains{},
		shapes: map[string]int{},
	}
}

// findDemand finds who needs a place.
func (w *problem) findDemand() signatureWriter {
	list, out := takeUnmodelled(findPendingPods(w.s, w.all))
	w.unmodelled = out
	w.planted(StageWhole, nil, nil)
	sig := signatureWriter{labels: selectedLabelKeys(w.s), shared: sharedVolumes(w.s.Pods),
		moving: nodesBeingReplaced(w.all)}
	w.kinds = groupPodClasses(list, sig)
	for _, k := range w.kinds {
		w.planted(StageDemand, k, nil)
	}
	w.waiting = make(map[*cluster.Pod]bool, len(list))
	for _, p := range list {
		w.waiting[p] = true
	}
	return sig
}

// addClusterState adds what depends on nodes and pods to a world that knows what pools can launch.
func (w *problem) addClusterState(sig signatureWriter) {
	_, w.room = w.s.AllotCommitments()
	w.findKeys()
	softTaint := w.softTaints()
	for _, k := range w.kinds {
		w.planted(StageRelax, k, nil)
		for _, x := range relaxationSteps(k.pod, w.s.Rules.IgnorePreferences, softTaint) {
			k.views = append(k.views, w.relaxedPodFor(k, x))
		}
	}
	w.findHosts()
	w.countRunningPods(sig)
	w.dropCircles()
}

// softTaints reports whether any node or pool has a taint that pods may have to put up with.
func (w *problem) softTaints() bool {
	return slices.ContainsFunc(w.s.Pools, func(p cluster.Pool) bool {
		return slices.ContainsFunc(p.Taints,
			softTaints)
	}) ||
		slices.ContainsFunc(w.s.Nodes, func(n cluster.Node) bool { return slices.ContainsFunc(n.Taints, softTaints) })
}

func softTaints(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" }

// neededResources lists, sorted, the resources that matter.
func (w *problem) neededResources() []string {
	dims := []string{resources.CPU, resources.Memory, resources.Pods}
	for _, k := range w.kinds {
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
func (w *problem) measureNeeds(dims []string) {
	w.dims = dims
	var text []byte
	for _, k := range w.kinds {
		k.need = w.resourceVector(k.pod.Need)
		text = text[:0]
		for _, x := range k.need {
			text = strconv.AppendInt(append(text, ' '), x, 36)
		}
		if _, ok := w.shapes[string(text)]; !ok {
			w.shapes[string(text)] = len(w.shapes)
		}
		k.shape = w.shapes[string(text)]
	}
}

func (w *problem) resourceVector(l resources.List) []int64 {
	out := make([]int64, len(w.dims))
	for i, d := range w.dims {
		out[i] = l.Get(d)
	}
	return out
}

// findKeys lists the domains of every topology key that anything in the snapshot may ask for.
func (w *problem) findKeys() {
	keys := map[string]bool{}
	for i := range w.s.Pods {
		topologyKeys(&w.s.Pods[i], keys)
	}
	delete(keys, labelHost)
	for key := range keys { // each key on its own, so the order does not matter
		sold := w.sold.domainsOf(key, w.offers)
		all := slices.Clone(sold)
		for _, h := range w.all {
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
		w.domains[key] = all
		w.domainIDs[key] = map[string]int{}
		for i, d := range w.domains[key] {
			w.domainIDs[key][d] = i
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
func (w *problem) counterIndex(key string, g topology.Group, filter *nodeAdmission) int {
	id := key + "|" + g.ID()
	if filter != nil {
		id += "|" + filter.id
	}
	i, ok := w.counterIDs[id]
	if !ok {
		i = len(w.counters)
		w.counterIDs[id] = i
		w.counters = append(w.counters, podCounter{key: key, group: g, filter: filter})
	}
	return i
}

// countRunningPods counts the pods that stand where they are, and notes which counters will count the pods that are to
// be placed.
func (w *problem) countRunningPods(sig signatureWriter) {
	byName := map[string]*bin{}
	for _, h := range w.hosts {
		byName[h.name] = h
	}
	for _, h := range w.all {
		if h.Node != nil && byName[h.Node.Name] == nil {
			byName[h.Node.Name] = w.hostBin(h, nil)
		}
	}
	type standing struct {
		pod  *cluster.Pod
		on   *bin
		anti []int // by term of its anti-affinity: the counter
	}
	all := make([]standing, 0, len(w.s.Pods))
	for i := range w.s.Pods {
		p := &w.s.Pods[i]
		on := byName[p.NodeName]
		if p.NodeName == "" || on == nil || !p.Active() || w.waiting[p] {
			continue
		}
		x := standing{pod: p, on: on}
		for _, t := range p.AntiAffinity {
			i := w.counterIndex(canonicalKey(t.Key), topology.OfTerm(t, p.Namespace, w.s.Namespaces), nil)
			w.counters[i].strict = true
			x.anti = append(x.anti, i)
		}
		all = append(all, x)
	}
	w.tally = w.newTally()
	w.total = make([]int, len(w.counters))
	for _, h := range w.hosts {
		h.count, h.anti = make([]int, len(w.counters)), make([]int, len(w.counters))
	}
	known := map[string][]int{}
	matched := func(p *cluster.Pod) []int {
		id := w.seen.identityOf(&sig, p)
		list, ok := known[id]
		if !ok {
			for i, c := range w.counters {
				if c.group.Selects(p.Namespace, p.Labels) {
					list = append(list, i)
				}
			}
			known[id] = list
		}
		return list
	}
	for _, x := range all {
		w.countPod(x.on, matched(x.pod), x.anti)
	}
	for _, k := range w.kinds {
		k.matched = slices.DeleteFunc(slices.Clone(matched(&k.pod)), func(c int) bool { return !w.mayCount(k, c) })
	}
	for _, k := range w.kinds {
		w.addUnbound(k)
	}
}

// addUnbound adds a last step to the relaxation of a kind that only preferences, its own or others', or rules about
// nobody else tie to a domain: it is tied no more. A node for it is flexible then, as minValues may want it.
func (w *problem) addUnbound(k *podClass) {
	v := *k.lastRelaxation()
	v.unbound = true
	if len(w.keysOf(&v)) < len(w.keysOf(k.lastRelaxation())) {
		k.views = append(k.views, &v)
	}
}

// mayCount reports whether some node that passes the counter's filter may have pods of the kind.
func (w *problem) mayCount(k *podClass, counter int) bool {
	filter, admit := w.counters[counter].filter, k.lastRelaxation().admit
	return filter == nil || filter == admit ||
		slices.ContainsFunc(w.offers, func(o *poolOffering) bool {
			return filter.firstAlternative(o) >= 0 && admit.firstAlternative(o) >= 0
		}) ||
		slices.ContainsFunc(w.hosts, func(b *bin) bool { return w.onHost(filter, b) >= 0 && w.onHost(admit, b) >= 0 })
}

// countsOn reports whether the counter counts pods on the bin, as far as its offer tells of a new one.
func (w *problem) countsOn(counter int, b *bin) bool {
	filter := w.counters[counter].filter
	switch {
	case filter == nil:
		return true
	case b.offer != nil:
		return filter.firstAlternative(b.offer) >= 0
	}
	return w.onHost(filter, b) >= 0
}

// countPod counts one pod that stays on the host: for the counters that select it, and for those of whom it keeps away.
func (w *problem) countPod(on *bin, matched, anti []int) {
	for _, i := range matched {
		c := w.counters[i]
		if !w.countsOn(i, on) {
			continue
		}
		if c.key == labelHost {
			w.total[i]++
			if on.count != nil {
				on.count[i]++
			}
		} else if d, ok := w.domainIDs[c.key][on.domainOf(c.key)]; ok {
			w.tally.count[i][d]++
		}
	}
	for _, i := range anti {
		key := w.counters[i].key
		if key == labelHost && on.count != nil {
			on.anti[i]++
		} else if d, ok := w.domainIDs[key][on.domainOf(key)]; ok {
			w.tally.anti[i][d]++
		}
	}
}

// domainCounts counts pods by counter and domain: those that are selected, those that may come to be there, those with
// a required anti-affinity against the group, wherever they may come to be, and those that are placed in this pass with
// a required spread of the group.
type domainCounts struct{ count, may, anti, even [][]int }

func (w *problem) newTally() domainCounts {
	each := func() [][]int {
		out := make([][]int, len(w.counters))
		for i, c := range w.counters {
			out[i] = make([]int, len(w.domains[c.key]))
		}
		return out
	}
	return domainCounts{each(), each(), each(), each()}
}

// become takes over the counts of another.
func (t domainCounts) become(o domainCounts) {
	for i := range t.count {
		copy(t.count[i], o.count[i])
		copy(t.may[i], o.may[i])
		copy(t.anti[i], o.anti[i])
		copy(t.even[i], o.even[i])
	}
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
