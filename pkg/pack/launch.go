package pack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/overlay"
	"joiner/pkg/plan"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// Defaults of the rules about price.
const (
	defaultNodeCost    = 0.0002
	defaultPriceMargin = 1.2
	defaultSpotTypes   = 15
)

// mostTypes is the number of types that one launch can name.
const mostTypes = 60

// nodeCost is what a node costs beside its price, in USD per hour, where plans are compared.
func (w *world) nodeCost() float64 { return cmp.Or(w.s.Rules.NodeCostUSD, defaultNodeCost) }

// cost is the price of the offer with what any node costs.
func (w *world) cost(o *offer) float64 { return o.Price + w.nodeCost() }

// option is a model that can take the place of the one a node was opened with, by its cheapest offer.
type option struct {
	model  *model
	offers []*offer
	best   *offer
	spot   bool
}

// held is what a node of a pool must meet to hold some loads, and the models that can, cheapest first.
type held struct {
	id      string
	set     require.Set
	options []option
}

// held tells what a node of the pool must meet to hold the loads (the pool's own requirements and, of each load, the
// alternative that was chosen for it) and what can.
func (w *world) held(p *pool, loads []load) held {
	w.asked = w.asked[:0]
	for _, l := range loads {
		w.asked = append(w.asked, int32(l.admit.number)<<8|int32(min(l.alt, 255)))
	}
	slices.Sort(w.asked)
	w.asked = slices.Compact(w.asked)
	id := strconv.AppendInt(nil, int64(p.id), 10)
	for _, x := range w.asked {
		id = strconv.AppendInt(append(id, ' '), int64(x), 36)
	}
	if h, ok := w.holders[string(id)]; ok && !slices.ContainsFunc(loads, func(l load) bool { return l.alt >= 255 }) {
		return h
	}
	set := p.req
	keys := map[string]bool{}
	for _, l := range loads {
		alt := l.admit.alternative[l.alt]
		set = set.AndSet(alt)
		for _, r := range alt.All() {
			keys[r.Key] = true
		}
	}
	h := held{string(id), set, p.holders(set, keys)}
	w.holders[h.id] = h
	return h
}

// options lists the models that can hold the loads as things are sold now, cheapest first. The list may end where the rest
// is so dear that no launch names it, unless all are asked for.
func (a *attempt) options(p *pool, loads []load, all bool) ([]option, require.Set) {
	w := a.w
	h := w.held(p, loads)
	used := make([]int64, len(w.dims))
	var ports []cluster.HostPort
	for _, l := range loads {
		for i, x := range l.view.kind.need {
			used[i] += x * int64(len(l.pods))
		}
		ports = append(ports, l.view.kind.pod.HostPorts...)
	}
	alone := len(p.Limited) == 0 && len(ports) == 0 // then the same node was perhaps asked for just before
	if alone && w.last.id == h.id && w.last.all == all && slices.Equal(w.last.used, used) {
		return w.last.options, h.set
	}
	margin, spotTypes := w.flexibility()
	var out []option
	sorted, kept := true, 0
	for _, h := range h.options {
		if !all && (kept >= mostTypes || kept >= spotTypes && h.best.Price > out[0].best.Price*margin) {
			break
		}
		opt := option{model: h.model}
		for _, o := range h.offers { // cheapest first
			if !atLeast(o.room, used) || conflict(ports, o.ports) {
				continue
			}
			if opt.best == nil {
				opt.best = o
			}
			opt.offers = append(opt.offers, o)
			opt.spot = opt.spot || o.CapacityType == catalog.Spot
		}
		if opt.best == nil || len(p.exceeded(a.usage[p.id], opt.model.typ.Capacity)) > 0 {
			continue
		}
		sorted = sorted && opt.best == h.best
		out = append(out, opt)
		if opt.spot || opt.best.Price <= out[0].best.Price*margin {
			kept++
		}
	}
	if !sorted {
		slices.SortFunc(out, cheaper)
	}
	if alone {
		w.last = asked{h.id, all, used, out}
	}
	return out, h.set
}

// asked is what options answered last.
type asked struct {
	id      string
	all     bool
	used    []int64
	options []option
}

// flexibility is how much dearer than the cheapest type others may be that a launch names, as a factor, and how many types a
// spot launch names at any price.
func (w *world) flexibility() (margin float64, spotTypes int) {
	return cmp.Or(w.s.Rules.PriceMargin, defaultPriceMargin), cmp.Or(w.s.Rules.SpotTypes, defaultSpotTypes)
}

func cheaper(a, b option) int {
	return cmp.Or(cmp.Compare(a.best.Price, b.best.Price), strings.Compare(a.model.typ.Name, b.model.typ.Name))
}

// holders lists the models, cheapest first, that have offers available now whose nodes can meet the set, which differs from
// the pool's own requirements in the keys.
func (p *pool) holders(set require.Set, keys map[string]bool) []option {
	var asked []require.Requirement
	for _, r := range set.All() {
		if keys[r.Key] && !perOffer(r.Key) {
			asked = append(asked, r)
		}
	}
	var out []option
	for _, m := range p.models {
		if !m.meets(asked) {
			continue
		}
		opt := option{model: m}
		for _, o := range m.sells {
			if o.Available && o.Meets(set) {
				opt.offers = append(opt.offers, o)
			}
		}
		if len(opt.offers) > 0 {
			slices.SortStableFunc(opt.offers, func(a, b *offer) int { return cmp.Compare(a.Price, b.Price) })
			opt.best = opt.offers[0]
			out = append(out, opt)
		}
	}
	slices.SortFunc(out, cheaper)
	return out
}

// meets reports whether the model's nodes can have labels that meet the requirements.
func (m *model) meets(list []require.Requirement) bool {
	for _, r := range list {
		mine, ok := m.known.Get(r.Key)
		if !ok && !r.AllowsAbsent() || ok && !mine.Overlaps(r) {
			return false
		}
	}
	return true
}

// flexible makes the takes smaller until enough types can hold them for the pool's minValues; nil when none is small
// enough. The capacity is what the node may take of the pool's limits: that of the largest type it must be able to become.
func (a *attempt) flexible(o *offer, takes []take) ([]take, resource.List) {
	p := o.model.pool
	if !p.minValues() {
		return takes, o.model.typ.Capacity
	}
	for {
		var loads []load
		for _, t := range takes {
			k := t.lot.view.kind
			loads = append(loads, load{view: t.lot.view, admit: t.lot.admit, alt: t.alt, pods: a.rest[k.id][:t.n]})
		}
		opts, set := a.options(p, loads, true)
		missing := lacking(set, opts)
		if len(missing) == 0 {
			most := o.model.typ.Capacity
			for i, is := range needed(opts, set) {
				if is {
					most = most.Max(opts[i].model.typ.Capacity)
				}
			}
			return takes, most
		}
		if len(takes) == 1 && takes[0].n == 1 {
			k := takes[0].lot.view.kind
			a.blocked[k.id][fmt.Sprintf("pool %s: too few instance types can hold the pod for minValues: %s", p.Name, strings.Join(missing, ", "))] = true
			return nil, resource.List{}
		}
		takes = halved(takes)
	}
}

func (p *pool) minValues() bool {
	return slices.ContainsFunc(p.req.All(), func(r require.Requirement) bool { return r.MinValues > 0 })
}

// halved keeps about half of the pods, whole lots first.
func halved(takes []take) []take {
	if len(takes) > 1 {
		return slices.Clone(takes[:(len(takes)+1)/2])
	}
	t := takes[0]
	t.n /= 2
	return []take{t}
}

// lacking names the keys for which the options have fewer distinct values than the set asks for.
func lacking(set require.Set, opts []option) []string {
	var out []string
	for _, r := range set.All() {
		seen := map[string]bool{}
		for _, o := range opts {
			for _, v := range o.values(r.Key) {
				seen[v] = true
			}
		}
		if len(seen) < r.MinValues {
			out = append(out, fmt.Sprintf("%s has %d of %d values", r.Key, len(seen), r.MinValues))
		}
	}
	return out
}

func (o option) values(key string) []string {
	if key == labelType {
		return []string{o.model.typ.Name}
	}
	r, _ := o.model.typ.Requirements.Get(key)
	if r.Not {
		return nil
	}
	return r.Values
}

// launches writes down the new nodes, each with every type that may stand in for the cheapest one. What the pools use is
// counted anew meanwhile, node by node, with the types that each may become.
func (a *attempt) launches() []plan.Launch {
	var out []plan.Launch
	defer func(before []usage) { a.usage = before }(slices.Clone(a.usage))
	for _, b := range a.bins {
		if b.offer == nil {
			continue
		}
		p := b.offer.model.pool
		u := &a.usage[p.id]
		u.list = u.list.Sub(b.takes)
		u.nodes--
		opts, set := a.options(p, b.load, p.minValues())
		opts = a.w.choose(opts, set)
		var most resource.List
		for _, o := range opts {
			most = most.Max(o.model.typ.Capacity)
		}
		u.list = u.list.Add(most)
		u.nodes++
		out = append(out, p.launch(b, opts, set))
	}
	slices.SortStableFunc(out, func(x, y plan.Launch) int {
		return cmp.Or(strings.Compare(x.Pool, y.Pool), natural(x.Pods[0], y.Pods[0]), slices.Compare(x.Pods, y.Pods))
	})
	return out
}

// choose keeps the cheapest options: those within the price margin, more where spot needs them, and those that the
// pool's minValues need.
func (w *world) choose(opts []option, set require.Set) []option {
	margin, spotTypes := w.flexibility()
	keep := needed(opts, set)
	n := 0
	for _, is := range keep {
		if is {
			n++
		}
	}
	for i, o := range opts {
		if !keep[i] && n < mostTypes && (o.best.Price <= opts[0].best.Price*margin || o.spot && n < spotTypes) {
			keep[i] = true
			n++
		}
	}
	var out []option
	for i, o := range opts {
		if keep[i] {
			out = append(out, o)
		}
	}
	return out
}

// needed marks the cheapest options that together have the values which the set's minValues ask for.
func needed(opts []option, set require.Set) []bool {
	out := make([]bool, len(opts))
	for _, r := range set.All() {
		if r.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for i, o := range opts {
			for _, v := range o.values(r.Key) {
				if !seen[v] && len(seen) < r.MinValues {
					seen[v], out[i] = true, true
				}
			}
		}
	}
	return out
}

// launch is the bin as a node to make.
func (p *pool) launch(b *bin, opts []option, set require.Set) plan.Launch {
	l := plan.Launch{
		Pool: p.Name, Class: p.Class, Taints: p.Taints, Startup: p.StartupTaints, Choice: opts[0].best.Offering,
		Labels: maps.Clone(p.Labels), Annotations: maps.Clone(p.Annotations), Requests: opts[0].best.list,
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	var zones, capacities []string
	for _, o := range opts {
		l.Types = append(l.Types, o.model.typ.Name)
		overlay.Mark(l.Annotations, o.model.typ)
		for _, x := range o.offers {
			zones, capacities = append(zones, x.Zone), append(capacities, x.CapacityType)
		}
	}
	set = set.And(require.Of(labelType, l.Types...), require.Of(labelZone, zones...), require.Of(labelCapacity, capacities...))
	for _, r := range b.open.All() {
		set = set.And(require.Of(r.Key, anyValue(r)))
	}
	for _, r := range set.All() {
		if v, ok := r.Single(); ok && !wellKnown(r.Key) {
			l.Labels[r.Key] = v
		}
	}
	l.Labels[labelPool], l.Labels[labelClass] = p.Name, p.Class
	for _, x := range b.load {
		l.Pods = append(l.Pods, x.pods...)
		l.Requests = l.Requests.Add(x.view.kind.pod.Need.Times(int64(len(x.pods))))
	}
	slices.SortFunc(l.Pods, natural)
	l.Annotations[AnnotationNominated] = strings.Join(l.Pods, ",")
	l.Requirements = set
	return l
}

// anyValue is a value for a custom label that no pod has chosen.
func anyValue(r require.Requirement) string {
	if !r.Not && len(r.Values) > 0 {
		return r.Values[0]
	}
	n := int64(1)
	if r.Min != nil {
		n = *r.Min
	} else if r.Max != nil {
		n = min(n, *r.Max)
	}
	for step := int64(1); !r.Has(strconv.FormatInt(n, 10)); n += step {
		if r.Max != nil && n >= *r.Max {
			step = -1
		}
	}
	return strconv.FormatInt(n, 10)
}
