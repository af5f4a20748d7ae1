package binpack

import (
	"math"
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// bin is a node that pods can go to: one that exists, one on its way, or a new one.
type bin struct {
	name  string
	known requirements.Set // of a host
	exact bool             // known are all labels there are
	offer *poolOffering    // of a new node
	takes resources.List   // what a new node takes of its pool's limits
	low   loweredMinValues // minValues of a new node
	open  requirements.Set // of a new node: the labels that its pods decide, with the values that they left so far

	taints []cluster.Taint
	room   []int64
	count  []int // by counter of hostnames: pods it has
	anti   []int // by counter of hostnames: pods that keep the group away
	ports  []cluster.HostPort
	wanted []string // pods a claim was made for

	// of a host that is not in service yet: the DaemonSets whose pods will come, by place among the world's
	daemons []int
	disks   attachableVolumes // volumes of a host
	load    []podLoad
	paid    float64 // what priceOf found, 0 when it has to look again
}

// podLoad is what an attempt put into a bin: some pods of one view.
type podLoad struct {
	view    *relaxedPod
	pins    []domainPin
	admit   *nodeAdmission
	alt     int  // the alternative of admit that holds here
	settled bool // an earlier pass put them here
	pods    []string
}

// domainPin ties pods to one domain of a topology key.
type domainPin struct{ key, domain string }

func (b *bin) clone() *bin {
	c := *b
	c.room, c.count, c.anti = slices.Clone(b.room), slices.Clone(b.count), slices.Clone(b.anti)
	c.ports = slices.Clone(b.ports)
	c.disks = b.disks.clone()
	return &c
}

// domainOf is the bin's value for the topology key, empty while it is open.
func (b *bin) domainOf(key string) string {
	if b.offer == nil {
		if r, ok := b.known.Get(key); ok {
			v, _ := r.Single()
			return v
		}
		return ""
	}
	for _, l := range b.load {
		for _, p := range l.pins {
			if p.key == key {
				return p.domain
			}
		}
	}
	if r, ok := b.open.Get(key); ok {
		v, _ := r.Single()
		return v
	}
	if d := b.offer.domainsFor(key); len(d) == 1 {
		return d[0]
	}
	return ""
}

// onHost returns the first alternative that lets the pod run on an existing host or claim, -1 for none.
func (w *problem) onHost(a *nodeAdmission, b *bin) int {
	if len(cluster.Untolerated(b.taints, a.tolerations)) > 0 || slices.ContainsFunc(a.exclusions, b.awaits) {
		return -1
	}
	for i, alt := range a.alternative {
		if b.known.Within(alt, func(key string) bool { return b.exact || !wellKnown(key) }) {
			return i
		}
	}
	return -1
}

// fitCount is how many of need fit into room.
func fitCount(need, room []int64) int {
	n := int64(math.MaxInt32)
	for i, x := range need {
		switch {
		case room[i] < x:
			return 0
		case x > 0:
			n = min(n, room[i]/x)
		}
	}
	return int(n)
}

// hostSite is what the host rules of a view need to know of a bin.
type hostSite struct {
	trusted     bool // whom to be near to was settled before
	count, anti func(counter int) int
	limit       func(counter int) int // most pods of the counter that pods there bear; nil for no pods there
	total       []int
	ports       []cluster.HostPort
	disks       attachableVolumes
}

// maxPodsByHostRules is how many pods of the view the host rules allow in addition on the site, whichever of its pods
// comes last: the scheduler takes them in an order of its own.
func (w *problem) maxPodsByHostRules(v *relaxedPod, s hostSite) int {
	n := math.MaxInt32
	for _, c := range v.kind.matched {
		if w.counters[c].key != labelHost {
			continue
		}
		if s.anti(c) > 0 {
			return 0
		}
		if w.counters[c].limited && s.limit != nil {
			n = min(n, max(0, s.limit(c)-s.count(c)))
		}
	}
	for _, r := range v.host {
		have := s.count(r.counter)
		switch {
		case r.what == spread && r.self:
			n = min(n, max(0, r.maxSkew-have))
		case r.what == spread && have > r.maxSkew, r.what == avoid && have > 0:
			return 0
		case r.what == avoid && r.self:
			n = min(n, 1)
		case r.what == follow && !s.trusted && have == 0 && (!r.self || s.total[r.counter] > 0):
			return 0
		}
	}
	if len(v.kind.pod.HostPorts) > 0 {
		n = min(n, 1)
		if portsConflict(v.kind.pod.HostPorts, s.ports) {
			return 0
		}
	}
	return min(n, s.disks.maxPods(v.kind.disks))
}

func portsConflict(a, b []cluster.HostPort) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Port == y.Port && x.Protocol == y.Protocol && (x.IP == y.IP || anyIP(x.IP) || anyIP(y.IP)) {
				return true
			}
		}
	}
	return false
}

func anyIP(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

func (a *solution) siteOf(b *bin) hostSite {
	return hostSite{
		count: func(c int) int { return b.count[c] }, anti: func(c int) int { return b.anti[c] },
		limit: func(c int) int {
			n := math.MaxInt32
			for _, l := range b.load {
				n = min(n, l.view.hostLimit(c))
			}
			return n
		},
		total: a.total, ports: b.ports, disks: b.disks,
	}
}

// hostLimit is how many pods of the counter a node may have for the scheduler to add one of the view.
func (v *relaxedPod) hostLimit(counter int) int {
	n := math.MaxInt32
	for _, r := range v.host {
		if r.what == spread && r.required && r.counter == counter {
			n = min(n, r.maxSkew)
		}
	}
	return n
}

// placePods places the first n waiting pods of the lot in the bin.
func (a *solution) placePods(l *podBatch, b *bin, alt, n int) {
	k := l.view.kind
	pods := a.rest[k.id][:n:n]
	a.rest[k.id] = a.rest[k.id][n:]
	l.left -= n
	a.recordLoad(podLoad{view: l.view, pins: l.pins, admit: l.admit, alt: alt, pods: pods}, b)
}

// recordLoad counts what goes into the bin, there and everywhere.
func (a *solution) recordLoad(l podLoad, b *bin) {
	k, n := l.view.kind, len(l.pods)
	a.addToBin(l, b)
	for _, c := range k.matched {
		key := a.w.counters[c].key
		if !a.w.countsOn(c, b) {
			continue
		}
		if key == labelHost {
			a.total[c] += n
			continue
		}
		if d, ok := a.w.domainIDs[key][b.domainOf(key)]; ok {
			a.tally.count[c][d] += n
			continue
		}
		for _, d := range a.w.mayLand(b, key) {
			a.tally.may[c][d] += n
		}
	}
	for _, r := range l.view.other {
		if d, ok := a.w.domainIDs[r.key][b.domainOf(r.key)]; ok && r.what == spread && r.required {
			a.tally.even[r.counter][d] += n
		}
		if r.what != avoid || !r.required {
			continue
		}
		if d, ok := a.w.domainIDs[r.key][b.domainOf(r.key)]; ok {
			a.tally.anti[r.counter][d] += n
			continue
		}
		for _, d := range a.w.mayLand(b, r.key) {
			a.tally.anti[r.counter][d] += n
		}
	}
	for _, p := range l.pins {
		a.landed[classDomain{k.id, p.key, p.domain}] += n
	}
}

// mayLand are the domains in which a claim may end that has none yet.
func (w *problem) mayLand(b *bin, key string) []int {
	if b.offer != nil || b.exact {
		return nil
	}
	var out []int
	for d, name := range w.domains[key] {
		if b.known.Has(key, name) {
			out = append(out, d)
		}
	}
	return out
}

// addToBin counts what goes into the bin in the bin alone.
func (a *solution) addToBin(l podLoad, b *bin) {
	k, n := l.view.kind, len(l.pods)
	b.paid = 0
	for i, x := range k.need {
		b.room[i] -= x * int64(n)
	}
	b.ports = append(b.ports, k.pod.HostPorts...)
	b.disks.attachPods(k.disks, n)
	if b.offer != nil {
		b.open, _ = narrowOpenLabels(b.open, l.admit.alternative[l.alt])
	}
	b.load = append(b.load, l)
	for _, c := range k.matched {
		if a.w.counters[c].key == labelHost {
			b.count[c] += n
		}
	}
	for _, r := range l.view.host {
		if r.what == avoid && r.required {
			b.anti[r.counter] += n
		}
	}
}

// narrowOpenLabels limits the open labels to what the alternative allows; false when that leaves no value of one.
func narrowOpenLabels(open, alt requirements.Set) (requirements.Set, bool) {
	if open.Len() == 0 {
		return open, true
	}
	for _, r := range alt.All() {
		if mine, ok := open.Get(r.Key); ok {
			if !mine.Overlaps(r) {
				return open, false
			}
			open = open.And(r)
		}
	}
	return open, true
}
