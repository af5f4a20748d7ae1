package pack

import (
	"cmp"
	"fmt"
	"slices"

	"joiner/pkg/catalog"
	"joiner/pkg/cover"
	"joiner/pkg/resource"
)

const (
	// suited is how many offers of best score a step looks at for each of its lots.
	suited = 10
	// single is how many offers that are the cheapest for a pod of the lot alone it looks at beside them.
	single = 3
)

// redo is a new node that a step would make of another.
type redo struct {
	offer *offer
	takes []take
}

// try packs the pods of the nodes anew and returns what that saves, 0 when it saves nothing.
func (s *search) try(group []*node) float64 {
	a, t := s.a, group[0].tier
	budget := 0.0
	s.current = s.current[:0]
	for _, n := range group {
		budget += n.cost
		s.count(n.bin.offer, n.bin.takes, -1)
		for _, p := range n.parts {
			if p.lot.left == 0 {
				s.current = append(s.current, p.lot)
				t.supply[p.lot.id] = t.supply[p.lot.id][:0]
			}
			p.lot.left += len(p.pods)
			t.supply[p.lot.id] = append(t.supply[p.lot.id], p.pods...)
		}
	}
	slices.SortFunc(s.current, func(x, y *lot) int { return cmp.Compare(x.id, y.id) })
	s.free = slices.ContainsFunc(group, func(n *node) bool { return !slices.ContainsFunc(n.parts, func(p part) bool { return t.own[p.lot.id] }) })
	plan, cost := s.recreate(t, budget*(1-1e-6)-1e-9)
	for _, l := range s.current {
		l.left = 0
	}
	for _, n := range group {
		s.count(n.bin.offer, n.bin.takes, 1)
	}
	if most := a.w.s.Rules.MaxClaims; plan == nil || most > 0 && a.opened+len(plan)-len(group) > most {
		return 0
	}
	s.accept(group, plan, t)
	return budget - cost
}

// recreate finds new nodes for what is left of the current lots that cost less than the budget together, nil when it finds none.
func (s *search) recreate(t *tier, budget float64) (best []redo, cost float64) {
	a := s.a
	g := &guide{a: a}
	g.prepare(s.offersFor(t), s.current)
	shake := 0.0
	if mix(s.step)%4 != 0 {
		shake = 0.2
	}
	for i := range g.items {
		it := &g.items[i]
		base := it.lots[0].value
		if mix(s.step)%3 == 1 {
			base = it.lots[0].least
		}
		it.value = base * (1 + shake*(float64(mix(s.step*7919+it.lots[0].id)%1000)/1000-0.5))
		g.filler.Value[i] = it.value
	}
	cost = budget
	var now []redo
	spent := 0.0
	for sift := true; g.count(); sift = false {
		if last := s.finish(t, cost-spent); last != nil {
			best = append(slices.Clone(now), *last)
			cost = spent + a.w.cost(last.offer)
		}
		c, takes := g.best(sift)
		if c == nil || !s.anchored(t, takes) {
			break
		}
		if spent += a.w.cost(c.offer); spent >= cost {
			break
		}
		if !s.allowed(c.offer) {
			break
		}
		s.count(c.offer, c.offer.model.typ.Capacity, 1)
		now = append(now, redo{c.offer, takes})
		for _, x := range takes {
			x.lot.left -= x.n
		}
	}
	for _, x := range now {
		s.count(x.offer, x.offer.model.typ.Capacity, -1)
	}
	return best, cost
}

// count adds nodes of the offer to what its pool and its pool of capacity have, or takes them off.
func (s *search) count(o *offer, capacity resource.List, nodes int) {
	u := &s.a.usage[o.model.pool.id]
	u.nodes += int64(nodes)
	if nodes > 0 {
		u.list = u.list.Add(capacity)
	} else {
		u.list = u.list.Sub(capacity)
	}
	s.use.add(o.Offer, int64(nodes)*o.model.typ.Capacity.CPU, nodes)
}

// allowed reports whether limits and the share of a pool of spot capacity leave one more node of the offer.
func (s *search) allowed(o *offer) bool {
	p := o.model.pool
	if len(p.exceeded(s.a.usage[p.id], o.model.typ.Capacity)) > 0 {
		return false
	}
	return o.CapacityType != catalog.Spot || s.use.nodes < fewSpotNodes || s.use.byPool[o.Offer]+o.model.typ.Capacity.CPU <= s.ceiling
}

// finish finds the cheapest node below the price that holds all that is left.
func (s *search) finish(t *tier, below float64) *redo {
	a := s.a
	if s.want == nil {
		s.want = make([]int64, len(a.w.dims))
	}
	clear(s.want)
	for _, l := range s.current {
		for i, x := range l.view.kind.need {
			s.want[i] += x * int64(l.left)
		}
	}
	for _, o := range t.offers {
		if a.w.cost(o) >= below {
			return nil
		}
		if !atLeast(o.room, s.want) || !s.admits(o) || !s.allowed(o) {
			continue
		}
		d := a.draft(o)
		all := true
		for _, l := range s.current {
			if l.left > 0 && d.take(l, l.left) < l.left {
				all = false
				break
			}
		}
		if all && s.anchored(t, d.takes) {
			return &redo{o, d.takes}
		}
	}
	return nil
}

// anchored reports whether a pod is among the takes for which no heavier pool sells anything: only such pods open nodes of the tier,
// unless limits have let others do so before.
func (s *search) anchored(t *tier, takes []take) bool {
	return s.free || slices.ContainsFunc(takes, func(x take) bool { return t.own[x.lot.id] })
}

func (s *search) admits(o *offer) bool {
	for _, l := range s.current {
		if l.left > 0 && l.admit.check(o) < 0 {
			return false
		}
	}
	return true
}

// offersFor are the offers that suit any of the current lots.
func (s *search) offersFor(t *tier) []*offer {
	var list []int32
	for _, l := range s.current {
		if t.best[l.id] == nil {
			t.best[l.id] = s.suited(t, l)
		}
		for _, i := range t.best[l.id] {
			if t.marked[i] != s.step {
				t.marked[i] = s.step
				list = append(list, i)
			}
		}
	}
	slices.Sort(list)
	out := make([]*offer, len(list))
	for i, x := range list {
		out[i] = t.offers[x]
	}
	return out
}

// suited finds the offers that hold the lot's pods: the best of all, and those that are the cheapest for one of its pods alone.
func (s *search) suited(t *tier, l *lot) []int32 {
	need := l.view.kind.need
	var good, cheap shortlist
	for i, o := range t.offers {
		if l.admit.check(o) < 0 {
			continue
		}
		part := share(need, o.room)
		if part > 1 {
			continue
		}
		if t.score[i] == 0 {
			t.score[i] = s.rate(t, o)
		}
		good.add(int32(i), t.score[i], suited)
		cheap.add(int32(i), s.a.w.cost(o)*part, single)
	}
	return append(good.index, cheap.index...)
}

// shortlist is the few that have the lowest scores, the first among equals.
type shortlist struct {
	index []int32
	score []float64
}

func (s *shortlist) full(most int) bool { return len(s.index) == most }

func (s *shortlist) add(index int32, score float64, most int) {
	at := len(s.index)
	for at > 0 && score < s.score[at-1] {
		at--
	}
	if at >= most {
		return
	}
	if len(s.index) == most {
		s.index, s.score = s.index[:most-1], s.score[:most-1]
	}
	s.index, s.score = slices.Insert(s.index, at, index), slices.Insert(s.score, at, score)
}

// rate is what the offer costs for the worth of its best fill.
func (s *search) rate(t *tier, o *offer) float64 {
	p := s.a.w.worth
	if fill := p.fill[o.model]; fill > 0 {
		return s.a.w.cost(o) / fill
	}
	f := cover.NewFiller(len(s.a.w.dims), nil)
	var items []int32
	var most []float64
	for _, l := range t.lots {
		if n := fits(l.view.kind.need, o.room); n > 0 && l.admit.check(o) >= 0 {
			items, most = append(items, int32(len(items))), append(most, float64(n))
			f.Need = append(f.Need, scaled(l.view.kind.need, p.units)...)
			f.Group = append(f.Group, -1)
			f.Value = append(f.Value, l.value)
		}
	}
	return s.a.w.cost(o) / max(1e-12, f.Fill(items, most, scaled(o.room, p.units), &cover.Basis{}))
}

// accept puts the pods onto the new nodes in place of the old ones.
func (s *search) accept(group []*node, plan []redo, t *tier) {
	a := s.a
	gone := map[*bin]bool{}
	for _, n := range group {
		gone[n.bin] = true
		s.count(n.bin.offer, n.bin.takes, -1)
	}
	a.bins = slices.DeleteFunc(a.bins, func(b *bin) bool { return gone[b] })
	s.nodes = slices.DeleteFunc(s.nodes, func(n *node) bool { return gone[n.bin] })
	for _, o := range plan {
		b := a.newBin(o.offer, o.offer.model.typ.Capacity)
		b.name = fmt.Sprintf("again-%05d", s.made)
		s.made++
		n := &node{bin: b, tier: t, cost: a.w.cost(o.offer)}
		for _, x := range o.takes {
			pods := slices.Clone(t.supply[x.lot.id][:x.n])
			t.supply[x.lot.id] = t.supply[x.lot.id][x.n:]
			a.stow(load{view: x.lot.view, pins: x.lot.pins, admit: x.lot.admit, alt: x.alt, pods: pods}, b)
			n.parts = append(n.parts, part{x.lot, pods})
		}
		n.waste = n.cost - n.worth()
		a.bins = append(a.bins, b)
		s.nodes = append(s.nodes, n)
		s.count(o.offer, b.takes, 1)
	}
	a.opened += len(plan) - len(group)
}
