package binpack

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// existingNodes are the nodes and claims that take pods.
type existingNodes struct {
	s       *cluster.Snapshot
	all     []cluster.StateNode // also those that take none
	dims    resourceDims
	catalog *catalog // what claims may become
	labels  nodeLabelsByName
	hosts   []*bin
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
		if h.MarkedForDeletion() || h.Node == nil && h.Claim.Overdue(en.s.Now, en.s.Rules.RegistrationTimeout) {
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
	b := &bin{name: h.Name(), known: en.labels.labelsOf(h), exact: h.Registered(), taints: h.Taints(),
		disks: attachableOn(h.Node, pods)}
	if isAwaitingPods(h, en.s.Now) {
		b.wanted = NomineesOf(h.Claim)
	}
	b.daemons = en.comingDaemons(h, b)
	var daemons, running, used resources.List
	for _, d := range en.catalog.admissions.daemons {
		if d.admit.alternativeOn(b) >= 0 {
			daemons = daemons.Add(d.pod.Need)
			b.ports = append(b.ports, d.pod.HostPorts...)
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
	b.room = en.dims.vectorOf(left)
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
	if _, ok := known.Get(labelHost); !ok {
		known = known.And(requirements.Of(labelHost, h.Node.Name))
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
	comers := slices.DeleteFunc(slices.Clone(en.catalog.admissions.daemons), func(d daemonOverhead) bool {
		return !slices.ContainsFunc(d.admit.alternative, c.Requirements.Intersects)
	})
	for _, o := range en.catalog.becomes(c) {
		var taken resources.List
		for _, d := range comers {
			if d.admit.firstAlternative(o) < 0 {
				continue
			}
			taken = taken.Add(d.pod.Need)
			for _, x := range d.pod.HostPorts {
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

// becomes are the offers of its pool that a claim may become.
func (cat *catalog) becomes(c cluster.Claim) []*poolOffering {
	var out []*poolOffering
	for _, p := range cat.pools {
		if p.Name != c.Pool {
			continue
		}
		for _, m := range p.models {
			if !c.Requirements.Has(labelType, m.typ.Name) || !c.Requirements.Intersects(m.typ.Requirements) {
				continue
			}
			for _, o := range m.sells {
				if c.Requirements.Has(labelZone, o.Zone) && c.Requirements.Has(labelCapacity, o.CapacityType) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}

// useHosts fills the room that exists, and that of nodes opened before in this pass.
func (pk *packing) useHosts(lots []*podBatch) { pk.a.fillBins(pk.a.bins, pk.sortByScarcity(lots)) }

// fillBins fills the room of the bins in their order.
func (a *solution) fillBins(bins []*bin, lots []*podBatch) {
	for again := true; again; {
		again = false
		for _, b := range bins {
			if b.offer != nil && b.offer.model.pool.minValues() {
				continue // more pods could leave too few types
			}
			for _, l := range lots {
				if l.left == 0 {
					continue
				}
				n := min(l.left, fitCount(l.view.kind.need, b.room))
				if n == 0 {
					continue
				}
				a.w.faults.planted(StagePlace, l.view.kind, nil)
				if n = min(n, a.w.topology.maxPodsByHostRules(l.view, a.siteOf(b))); n == 0 || l.whole && n < l.left {
					continue
				}
				alt := a.alternativeFor(l, b)
				if alt < 0 {
					continue
				}
				a.placePods(l, b, alt, n)
				again = again || len(l.view.host) > 0 // others may want to be near
			}
		}
	}
}

// sortByScarcity sorts lots so that those come first that can be nowhere else, then those that would cost most on new
// nodes for what they take of the room there is. Small differences do not count: then the order of the lots, in which
// large pods are first, packs better.
func (pk *packing) sortByScarcity(lots []*podBatch) []*podBatch {
	if pk.a.strategy.guide == byCostShare {
		return lots // plain first fit, should that be cheaper
	}
	total := make([]int64, len(pk.a.w.dims))
	for _, b := range pk.a.bins {
		if b.offer == nil {
			for i, x := range b.room {
				total[i] += x
			}
		}
	}
	class := make([]float64, len(lots)) // by id
	for _, l := range lots {
		price := pk.a.w.catalog.minPriceShare(l.view, l.pins)
		if price >= noPrice {
			class[l.id] = math.Inf(1)
			continue
		}
		if s := dominantShare(l.view.kind.need, total); s > 0 {
			class[l.id] = math.Floor(math.Log(max(price, 1e-9)/s) / math.Log(notable))
		}
	}
	return slices.SortedStableFunc(slices.Values(lots),
		func(x, y *podBatch) int { return cmp.Compare(class[y.id], class[x.id]) })
}

// notable is the factor between prices that changes who gets room first.
const notable = 1.5

// alternativeFor returns the alternative under which the lot may join the bin, -1 for none.
func (a *solution) alternativeFor(l *podBatch, b *bin) int {
	if b.offer == nil {
		return l.admit.alternativeOn(b)
	}
	for _, p := range l.pins {
		if d := b.domainOf(p.key); d != p.domain {
			return -1
		}
	}
	return l.admit.firstAlternativeOn(b.offer, b.open)
}

// firstAlternativeOn is check for a node whose open labels are limited by its pods already.
func (a *nodeAdmission) firstAlternativeOn(o *poolOffering, open requirements.Set) int {
	first := a.firstAlternative(o)
	if first < 0 || open.Len() == 0 {
		return first
	}
	for i := first; i < len(a.alternative); i++ {
		if a.alternativeHolds(i, o) {
			if _, ok := narrowOpenLabels(open, a.alternative[i]); ok {
				return i
			}
		}
	}
	return -1
}

// noPrice is the price of what nobody sells, in USD per hour.
const noPrice = 1e18

// minPriceShare is the lowest price, in USD per hour, of the part of a node that one pod of the view takes, over all
// offers that are available now.
func (cat *catalog) minPriceShare(v *relaxedPod, pins []domainPin) float64 {
	return cat.sale.minShare(cat.admissions.pinnedAdmission(v.admit, pins), v.kind)
}

// dominantShare is the largest part of any resource of the room that need takes.
func dominantShare(need, room []int64) float64 {
	var most float64
	for i, x := range need {
		if x > 0 {
			if room[i] <= 0 {
				return noPrice
			}
			most = max(most, float64(x)/float64(room[i]))
		}
	}
	return most
}

// pinnedAdmission is the admission with every alternative tied to the domains.
func (as *admissions) pinnedAdmission(a *nodeAdmission, pins []domainPin) *nodeAdmission {
	for _, p := range pins {
		next := a.pinned[p]
		if next == nil {
			var alts []requirements.Set
			at := requirements.Of(p.key, p.domain)
			if p.domain == "" {
				at = requirements.None(p.key) // outside of every domain
			}
			for _, s := range a.alternative {
				if s = s.And(at); len(s.Impossible()) == 0 {
					alts = append(alts, s)
				}
			}
			next = as.admissionBeside(alts, a.tolerations, a.exclusions)
			if next.wider == nil && next != a {
				next.wider, next.pin = a, p
			}
			if a.pinned == nil {
				a.pinned = map[domainPin]*nodeAdmission{}
			}
			a.pinned[p] = next
		}
		a = next
	}
	return a
}
