package pack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"joiner/pkg/catalog"
)

// lot is the unit that is packed: pods of one view that may go to the same places.
type lot struct {
	id    int
	view  *view
	pins  []pin
	admit *admission
	left  int
	whole bool    // all must stand on one node
	value float64 // what one pod is worth, USD per hour
	least float64 // the price of its share of a node, of the node where that is lowest
}

// divide turns the waiting pods of the kinds into lots and ties those to a domain that take part in a topology rule. Each
// pod goes where the rules allow one more, counting everything divided so far, so that what comes out keeps every rule
// when all of it is placed.
func (a *attempt) divide(now []*kind) []*lot {
	sorted := slices.Clone(now)
	slices.SortStableFunc(sorted, func(x, y *kind) int {
		return cmp.Or(cmp.Compare(a.turn(x), a.turn(y)), cmp.Compare(x.id, y.id))
	})
	clear(a.stuck)
	for _, k := range now {
		clear(a.blocked[k.id])
	}
	t := a.tally.clone()
	given := map[place]int{}
	var out []*lot
	for again := true; again; {
		again = false
		var waiting []*kind
		for _, k := range sorted {
			lots, placed := a.divideKind(k, t, given)
			if placed == 0 && a.view(k).rank() == rankFollow {
				waiting = append(waiting, k) // what it follows may still come
				continue
			}
			out = append(out, lots...)
			again = true
		}
		again = again && len(waiting) > 0
		sorted = waiting
	}
	slices.SortStableFunc(out, func(x, y *lot) int {
		return cmp.Or(cmp.Compare(x.view.kind.id, y.view.kind.id), slices.CompareFunc(x.pins, y.pins, comparePins))
	})
	for i, l := range out {
		l.id = i
		l.admit = a.w.pinned(l.view.admit, l.pins)
		l.whole = slices.ContainsFunc(l.view.host, func(r rule) bool { return r.what == follow && r.self && a.total[r.counter] == 0 })
	}
	return out
}

// turn is when the kind is divided, by its rank. Pods without a choice come before those that spread among them, which have one.
func (a *attempt) turn(k *kind) int {
	v := a.view(k)
	if len(v.other) == 0 && slices.ContainsFunc(k.matched, func(c int) bool { return a.w.counters[c].spread && v.admit.fixed(a.w.counters[c].key) }) {
		return 2*rankSpread - 1
	}
	return 2 * v.rank()
}

func comparePins(x, y pin) int {
	return cmp.Or(strings.Compare(x.key, y.key), strings.Compare(x.domain, y.domain))
}

func (a *attempt) view(k *kind) *view { return k.views[a.level[k.id]] }

func (a *attempt) divideKind(k *kind, t tally, given map[place]int) (out []*lot, placed int) {
	v := a.view(k)
	left := len(a.rest[k.id])
	if most, ok := a.caps[place{kind: k.id}]; ok {
		left = min(left, max(0, most-len(k.pods)+left))
	}
	out = []*lot{{view: v, left: left}}
	for _, key := range a.w.keysOf(v) {
		var next []*lot
		for _, l := range out {
			next = append(next, a.split(l, key, t, given)...)
		}
		out = next
	}
	for _, l := range out {
		placed += l.left
	}
	return out, placed
}

// keysOf lists the topology keys whose rules, own or others', concern the view.
func (w *world) keysOf(v *view) []string {
	var keys []string
	for _, r := range v.other {
		keys = append(keys, r.key)
	}
	for _, c := range v.kind.matched {
		if key := w.counters[c].key; key != labelHost {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// everywhere reports whether every node has the label.
func everywhere(key string) bool {
	switch key {
	case labelZone, labelCapacity, labelArch, labelOS, labelType, labelRegion:
		return true
	}
	return false
}

// split divides a lot over the domains of the key. Pods that have no rule of their own for it may also go where no node has the label.
func (a *attempt) split(l *lot, key string, t tally, given map[place]int) []*lot {
	names := a.w.domains[key]
	rules := l.view.on(key)
	parts := make([]int, len(names))
	k := l.view.kind
	c := a.choiceOf(l, key, rules)
	c.tally, c.given = t, given
	away, outside := noPrice, 0
	if len(rules) == 0 && !everywhere(key) {
		away = a.reach(l.view, append(slices.Clone(l.pins), pin{key, ""}))
	}
	for i := range l.left {
		c.left = l.left - i
		d := a.choose(l.view, c)
		if away < noPrice && (d < 0 || away < c.open[d]) {
			outside++
			continue
		}
		if d < 0 {
			a.blocked[k.id][a.w.whyDivided(l.view, c)] = true
			for _, p := range l.pins {
				a.stuck[place{k.id, p.key, p.domain}] += l.left - i
			}
			break
		}
		parts[d]++
		c.room[d]--
		c.most[d]--
		given[place{k.id, key, names[d]}]++
		for _, c := range k.matched {
			if a.w.counters[c].key == key {
				t.count[c][d]++
			}
		}
		for _, r := range rules {
			if r.what == avoid && r.required {
				t.anti[r.counter][d]++
			}
		}
	}
	var out []*lot
	if outside > 0 {
		out = append(out, &lot{view: l.view, pins: append(slices.Clone(l.pins), pin{key, ""}), left: outside})
	}
	for d, n := range parts {
		if n > 0 {
			out = append(out, &lot{view: l.view, pins: append(slices.Clone(l.pins), pin{key, names[d]}), left: n})
		}
	}
	return out
}

type choice struct {
	key   string
	rules []rule
	open  []float64 // the price in each domain, noPrice where the pods cannot go
	home  []int     // the weights whose pools sell nodes there, 0 for the heaviest
	room  []int     // how many pods the hosts of each domain could take
	most  []int     // how many pods can go there, no limit where new nodes are for sale in any number
	tally tally
	given map[place]int
	left  int // how many pods have no domain yet
}

// dedicatedUSD is what EC2 asks for an hour in which a region has instances of dedicated tenancy. It is in no list of prices.
const dedicatedUSD = 2

// choiceOf is what the domains of the key have for the lot.
func (a *attempt) choiceOf(l *lot, key string, rules []rule) choice {
	names := a.w.domains[key]
	c := choice{key: key, rules: rules, open: make([]float64, len(names)), home: make([]int, len(names)), room: a.roomIn(l, key), most: make([]int, len(names))}
	for d, name := range names {
		pins := append(slices.Clone(l.pins), pin{key, name})
		c.most[d] = math.MaxInt
		if c.open[d] = a.reach(l.view, pins); c.open[d] >= noPrice {
			continue
		}
		c.home[d] = a.w.homeIn(l.view, pins)
		if key == catalog.LabelTenancy && name == catalog.TenancyDedicated {
			c.open[d] += dedicatedUSD
		}
		if a.w.cheapest(l.view, pins) < noPrice {
			continue
		}
		if slots := a.slotsFor(l.view, pins); slots > 0 {
			c.most[d] = c.room[d] + slots
		}
	}
	return c
}

// choose returns the domain for one more pod of the view, -1 for none: the least crowded that the rules allow, among
// equals that of the heaviest pool, among those the cheapest. Pods that must be near each other stay where they are. For pods without
// rules of their own the pool's weight comes first.
func (a *attempt) choose(v *view, c choice) int {
	best := -1
	var least merit
	gather := slices.ContainsFunc(c.rules, func(r rule) bool { return r.what == follow })
	for d, price := range c.open {
		p := place{v.kind.id, c.key, a.w.domains[c.key][d]}
		if limit, ok := a.caps[p]; price >= noPrice || c.most[d] <= 0 || ok && a.landed[p]+c.given[p] >= limit || !a.allows(v, c, d) {
			continue
		}
		s := merit{home: c.home[d], crowd: a.crowd(v, c, d), price: price}
		if gather {
			s.crowd, s.short, s.room = -s.crowd, max(0, c.left-c.most[d]), -c.room[d]
		}
		if c.room[d] > 0 {
			s.home, s.price = -1, 0
		}
		if len(c.rules) == 0 {
			s.first = s.home
		}
		if best < 0 || s.before(least) {
			best, least = d, s
		}
	}
	return best
}

// merit is what speaks for a domain, the less the better.
type merit struct {
	first, crowd, short, room, home int
	price                           float64
}

func (s merit) before(o merit) bool {
	return cmp.Or(cmp.Compare(s.first, o.first), cmp.Compare(s.crowd, o.crowd), cmp.Compare(s.short, o.short),
		cmp.Compare(s.room, o.room), cmp.Compare(s.home, o.home), cmp.Compare(s.price, o.price)) < 0
}

// crowd is how many pods that matter to the view are in the domain: those its spreads and affinities count, or without
// any those that others' spreads count with it.
func (a *attempt) crowd(v *view, c choice, d int) int {
	n := 0
	for _, r := range c.rules {
		if r.what != avoid {
			n += c.tally.count[r.counter][d]
		}
	}
	if n > 0 || len(c.rules) > 0 {
		return n
	}
	for _, i := range v.kind.matched {
		if x := a.w.counters[i]; x.key == c.key && x.spread {
			n += c.tally.count[i][d]
		}
	}
	return n
}

// allows reports whether every topology rule, own or others', allows one more pod in domain d.
func (a *attempt) allows(v *view, c choice, d int) bool {
	for _, i := range v.kind.matched {
		if a.w.counters[i].key == c.key && c.tally.anti[i][d] > 0 {
			return false
		}
	}
	for _, r := range c.rules {
		count := c.tally.count[r.counter]
		switch {
		case r.what == spread && !a.w.spread(r).Admits(count, d),
			r.what == avoid && count[d]+c.tally.may[r.counter][d] > 0,
			r.what == follow && count[d] == 0 && !(r.self && sum(count) == 0):
			return false
		}
	}
	return !slices.ContainsFunc(v.host, func(r rule) bool { return r.what == follow && !r.self && !a.beside(r, c, d) })
}

// beside reports whether pods that the rule wants on the same node are in domain d, as far as it is known where they go.
func (a *attempt) beside(r rule, c choice, d int) bool {
	name := a.w.domains[c.key][d]
	tied := false
	for _, k := range a.w.kinds {
		if !slices.Contains(k.matched, r.counter) {
			continue
		}
		p := place{k.id, c.key, name}
		if a.landed[p]+c.given[p] > 0 {
			return true
		}
		tied = tied || slices.Contains(a.w.keysOf(a.view(k)), c.key)
	}
	for _, b := range a.bins {
		if b.count[r.counter] > 0 && b.domain(c.key) == name {
			return true
		}
	}
	return !tied
}

func sum(list []int) int {
	n := 0
	for _, x := range list {
		n += x
	}
	return n
}

// reach is the lowest price at which a pod of the view gets to where the pins tie it, 0 where a host or reserved capacity has room.
func (a *attempt) reach(v *view, pins []pin) float64 {
	adm := a.w.pinned(v.admit, pins)
	if len(adm.alternative) == 0 {
		return noPrice
	}
	if price := a.w.cheapest(v, pins); price < noPrice && !a.roomOnly {
		return price
	}
	for _, b := range a.bins {
		if b.offer == nil && fits(v.kind.need, b.room) > 0 && a.w.onHost(adm, b) >= 0 && a.w.most(v, a.site(b)) > 0 {
			return 0
		}
	}
	if a.slotsFor(v, pins) > 0 {
		return 0
	}
	return noPrice
}

// roomIn is how many pods of the lot the hosts of each domain of the key could take, were they alone; more than there are do not
// count.
func (a *attempt) roomIn(l *lot, key string) []int {
	out := make([]int, len(a.w.domains[key]))
	for _, b := range a.bins {
		if b.offer != nil {
			continue
		}
		d, ok := a.w.domainIDs[key][b.domain(key)]
		if !ok || out[d] >= l.left {
			continue
		}
		n := fits(l.view.kind.need, b.room)
		if n == 0 || slices.ContainsFunc(l.pins, func(p pin) bool { return b.domain(p.key) != p.domain }) || a.w.onHost(l.view.admit, b) < 0 {
			continue
		}
		out[d] = min(out[d]+min(n, a.w.most(l.view, a.site(b))), l.left)
	}
	return out
}

func (w *world) whyDivided(v *view, c choice) string {
	var can []string
	for d, name := range w.domains[c.key] {
		if c.open[d] < noPrice {
			can = append(can, name)
		}
	}
	var words []string
	for _, r := range c.rules {
		switch r.what {
		case spread:
			words = append(words, fmt.Sprintf("spread with maxSkew %d", r.maxSkew))
		case avoid:
			words = append(words, "pod anti-affinity")
		case follow:
			words = append(words, "pod affinity")
			if sum(c.tally.count[r.counter]) == 0 && !r.self {
				return "pod affinity over " + c.key + ": none of the pods that it has to be near runs or has found a place"
			}
		}
	}
	if len(words) == 0 {
		words = append(words, "anti-affinity of other pods")
	}
	where := "no value of it has room for the pod"
	if len(can) > 0 {
		where = "nodes for it could be made or found only in " + strings.Join(can, ", ")
	}
	return fmt.Sprintf("%s over %s allows no more pods: %s", strings.Join(words, " and "), c.key, where)
}
