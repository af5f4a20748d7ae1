package pack

import (
	"cmp"
	"math"
	"reflect"
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// findHosts makes bins of the nodes and claims that take pods: initialized nodes first, then by name. Nobody waits for a node that should have
// come long ago.
func (w *world) findHosts() {
	onNode := make(map[string][]*cluster.Pod, len(w.all))
	for i := range w.s.Pods {
		p := &w.s.Pods[i]
		if p.NodeName != "" && !p.Terminal() && !w.waiting[p] {
			onNode[p.NodeName] = append(onNode[p.NodeName], p)
		}
	}
	var young []*bin
	for _, h := range w.all {
		if h.Condemned() || h.Node == nil && h.Claim.Overdue(w.s.Now, w.s.Rules.RegistrationTimeout) {
			continue
		}
		var pods []*cluster.Pod
		if h.Node != nil {
			pods = onNode[h.Node.Name]
		}
		b := w.hostBin(h, pods)
		if h.Initialized() {
			w.hosts = append(w.hosts, b)
		} else {
			young = append(young, b)
		}
	}
	w.hosts = append(w.hosts, young...)
}

// hostBin is the host with the room that its pods and its daemons leave.
func (w *world) hostBin(h cluster.Host, pods []*cluster.Pod) *bin {
	b := &bin{name: h.Name(), known: w.faces.of(h), exact: h.Registered(), taints: h.Taints(), disks: attach(h.Node, pods)}
	if awaited(h, w.s.Now) {
		b.wanted = Nominees(h.Claim)
	}
	b.daemons = w.comingDaemons(h, b)
	var daemons, running, used resource.List
	for _, d := range w.daemons {
		if w.onHost(d.admit, b) >= 0 {
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
	left := h.Allocatable().Sub(used).Sub(daemons.Sub(running).Max(resource.List{}))
	if h.Claim != nil && h.Allocatable().IsZero() {
		left, b.ports = w.leastRoom(*h.Claim)
	}
	b.room = w.vector(left)
	if left.Negative() { // an overcommitted node takes nothing
		b.room = make([]int64, len(w.dims))
	}
	return b
}

// face is what is known about the labels of a node.
type face struct {
	labels map[string]string
	known  require.Set
}

// faces are those of nodes, by name; nil remembers none.
type faces map[string]face

// of is what is known about the host's labels, with its name.
func (f faces) of(h cluster.Host) require.Set {
	if h.Node == nil {
		return h.Known()
	}
	have, ok := f[h.Node.Name]
	if same := reflect.ValueOf(have.labels).Pointer() == reflect.ValueOf(h.Node.Labels).Pointer(); ok && same && h.Registered() {
		return have.known
	}
	known := h.Known()
	if _, ok := known.Get(labelHost); !ok {
		known = known.And(require.Of(labelHost, h.Node.Name))
	}
	if f != nil && h.Registered() {
		f[h.Node.Name] = face{h.Node.Labels, known}
	}
	return known
}

// leastRoom is what a claim that is not launched yet will have for pods at least: the smallest amount among the offers it may become,
// less their daemons, and never less than what it was made for. The ports are those that daemons may take.
func (w *world) leastRoom(c cluster.Claim) (room resource.List, ports []cluster.HostPort) {
	var most resource.List // of what daemons take
	found := false
	comers := slices.DeleteFunc(slices.Clone(w.daemons), func(d daemon) bool { return !slices.ContainsFunc(d.admit.alternative, c.Requirements.Intersects) })
	for _, o := range w.becomes(c) {
		var taken resource.List
		for _, d := range comers {
			if d.admit.check(o) < 0 {
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
func (w *world) becomes(c cluster.Claim) []*offer {
	var out []*offer
	for _, p := range w.pools {
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
func (a *attempt) useHosts(lots []*lot) { a.fillBins(a.bins, a.dearest(lots)) }

// fillBins fills the room of the bins in their order.
func (a *attempt) fillBins(bins []*bin, lots []*lot) {
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
				n := min(l.left, fits(l.view.kind.need, b.room))
				if n == 0 {
					continue
				}
				a.w.planted(StagePlace, l.view.kind, nil)
				if n = min(n, a.w.most(l.view, a.site(b))); n == 0 || l.whole && n < l.left {
					continue
				}
				alt := a.into(l, b)
				if alt < 0 {
					continue
				}
				a.put(l, b, alt, n)
				again = again || len(l.view.host) > 0 // others may want to be near
			}
		}
	}
}

// dearest sorts lots so that those come first that can be nowhere else, then those that would cost most on new nodes for what they
// take of the room there is. Small differences do not count: then the order of the lots, in which large pods are first, packs better.
func (a *attempt) dearest(lots []*lot) []*lot {
	if a.by == byShares {
		return lots // plain first fit, should that be cheaper
	}
	total := make([]int64, len(a.w.dims))
	for _, b := range a.bins {
		if b.offer == nil {
			for i, x := range b.room {
				total[i] += x
			}
		}
	}
	class := make([]float64, len(lots)) // by id
	for _, l := range lots {
		price := a.w.cheapest(l.view, l.pins)
		if price >= noPrice {
			class[l.id] = math.Inf(1)
			continue
		}
		if s := share(l.view.kind.need, total); s > 0 {
			class[l.id] = math.Floor(math.Log(max(price, 1e-9)/s) / math.Log(notable))
		}
	}
	return slices.SortedStableFunc(slices.Values(lots), func(x, y *lot) int { return cmp.Compare(class[y.id], class[x.id]) })
}

// notable is the factor between prices that changes who gets room first.
const notable = 1.5

// into returns the alternative under which the lot may join the bin, -1 for none.
func (a *attempt) into(l *lot, b *bin) int {
	if b.offer == nil {
		return a.w.onHost(l.admit, b)
	}
	for _, p := range l.pins {
		if d := b.domain(p.key); d != p.domain {
			return -1
		}
	}
	return l.admit.into(b.offer, b.open)
}

// into is check for a node whose open labels are limited by its pods already.
func (a *admission) into(o *offer, open require.Set) int {
	first := a.check(o)
	if first < 0 || open.Len() == 0 {
		return first
	}
	for i := first; i < len(a.alternative); i++ {
		if a.holds(i, o) {
			if _, ok := narrow(open, a.alternative[i]); ok {
				return i
			}
		}
	}
	return -1
}

// noPrice is the price of what nobody sells, in USD per hour.
const noPrice = 1e18

// cheapest is the lowest price, in USD per hour, of the part of a node that one pod of the view takes, over all offers
// that are available now.
func (w *world) cheapest(v *view, pins []pin) float64 {
	return w.sale.least(w.pinned(v.admit, pins), v.kind)
}

// share is the largest part of any resource of the room that need takes.
func share(need, room []int64) float64 {
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

// pinned is the admission with every alternative tied to the domains.
func (w *world) pinned(a *admission, pins []pin) *admission {
	for _, p := range pins {
		next := a.pinned[p]
		if next == nil {
			var alts []require.Set
			at := require.Of(p.key, p.domain)
			if p.domain == "" {
				at = require.None(p.key) // outside of every domain
			}
			for _, s := range a.alternative {
				if s = s.And(at); len(s.Impossible()) == 0 {
					alts = append(alts, s)
				}
			}
			next = w.admissionBeside(alts, a.tolerations, a.exclusions)
			if next.wider == nil && next != a {
				next.wider, next.pin = a, p
			}
			if a.pinned == nil {
				a.pinned = map[pin]*admission{}
			}
			a.pinned[p] = next
		}
		a = next
	}
	return a
}
