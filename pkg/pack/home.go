package pack

import (
	"maps"
	"slices"
)

const (
	// worthMoving is the part of a plan's price that another domain for a group has to save, as far as can be told, to be tried;
	// more of it for plans with many new nodes, which take longer to make.
	worthMoving, worthMovingMany = 0.003, 0.02
	// mostMoves is how often plans with very few new nodes are made anew for that; others once.
	mostMoves = 8
	// veryFewNodes is how many that are.
	veryFewNodes = 30
)

// gathering is pods that must be near each other in one domain of a key, and nobody is there yet who says in which.
type gathering struct {
	counter int
	key     string
	kinds   []*kind
}

// gatherings are those of the pods that wait.
func (w *world) gatherings() []gathering {
	var out []gathering
	at := map[int]int{}
	for _, k := range w.kinds {
		for _, r := range k.last().other {
			if r.what != follow || !r.required || !r.self || sum(w.tally.count[r.counter]) > 0 {
				continue
			}
			if _, ok := at[r.counter]; !ok {
				at[r.counter] = len(out)
				out = append(out, gathering{counter: r.counter, key: r.key})
			}
			g := &out[at[r.counter]]
			g.kinds = append(g.kinds, k)
		}
	}
	return out
}

// settledWell tries other domains for groups that gather. The first plan puts each where its own nodes are the cheapest, but the room
// that other pods leave on theirs is known only once there is a plan. What comes out places as many pods for less.
func (w *world) settledWell(best *attempt, byPriority bool) *attempt {
	groups := w.gatherings()
	if len(groups) == 0 {
		return best
	}
	moves, worth := 1, worthMovingMany
	switch {
	case best.opened <= veryFewNodes:
		moves, worth = mostMoves, worthMoving
	case best.opened <= fewNodes:
		worth = worthMoving
	}
	tried := map[place]bool{}
	for range moves {
		homes := maps.Clone(w.homes)
		if homes == nil {
			homes = map[place]int{}
		}
		moved := false
		for _, g := range groups {
			if to := best.better(g, worth, tried); to >= 0 {
				g.settle(w, homes, to)
				moved = true
				if moves > 1 {
					break // one after the other, for the next may want the same room
				}
			}
		}
		if !moved {
			break
		}
		before := w.homes
		w.homes = homes
		next := w.pass(byPriority, best.by)
		if a, b := best.waiting(w.kinds), next.waiting(w.kinds); b < a || b == a && next.cost() < best.cost()*(1-1e-9) {
			best = next
		} else {
			w.homes = before
		}
	}
	return best
}

// settle leaves the group no other domain than this.
func (g gathering) settle(w *world, homes map[place]int, to int) {
	for d, name := range w.domains[g.key] {
		for _, k := range g.kinds {
			p := place{k.id, g.key, name}
			if delete(homes, p); d != to {
				homes[p] = 0
			}
		}
	}
}

// better returns the domain in which the group would cost least, -1 when that is where it is, was tried, or saves less than the part
// worth of the price.
func (a *attempt) better(g gathering, worth float64, tried map[place]bool) int {
	names := a.w.domains[g.key]
	from := slices.IndexFunc(a.tally.count[g.counter], func(n int) bool { return n > 0 })
	if from < 0 {
		return -1
	}
	mine := a.costOf(g)
	if mine < worth*a.price() {
		return -1
	}
	to, least := -1, mine-worth*a.price()
	for d, name := range names {
		if p := (place{g.kinds[0].id, g.key, name}); d == from || tried[p] {
			continue
		}
		if cost := a.costIn(g, name); cost < least {
			to, least = d, cost
		}
	}
	if to >= 0 {
		tried[place{g.kinds[0].id, g.key, names[to]}] = true
	}
	return to
}

// costOf is the group's part of the price of the new nodes it is on, by what it takes of them.
func (a *attempt) costOf(g gathering) float64 {
	sum := 0.0
	for _, b := range a.bins {
		if b.offer == nil {
			continue
		}
		mine, all := make([]int64, len(a.w.dims)), make([]int64, len(a.w.dims))
		for _, l := range b.load {
			its := slices.Contains(g.kinds, l.view.kind)
			for i, x := range l.view.kind.need {
				if all[i] += x * int64(len(l.pods)); its {
					mine[i] += x * int64(len(l.pods))
				}
			}
		}
		if part := share(mine, all); part > 0 {
			sum += part * a.priceOf(b)
		}
	}
	return sum
}

// costIn is about what the group would cost in the domain: nothing where other nodes have room for it, else its share of new ones.
func (a *attempt) costIn(g gathering, domain string) float64 {
	type roomOf struct {
		bin  *bin
		room []int64
	}
	var there []roomOf
	for _, b := range a.bins {
		if b.domain(g.key) == domain && (b.offer == nil || !b.offer.model.pool.minValues()) {
			there = append(there, roomOf{b, slices.Clone(b.room)})
		}
	}
	sum := 0.0
	for _, k := range g.kinds {
		left := len(k.pods) - len(a.rest[k.id])
		l := &lot{view: k.last(), pins: []pin{{g.key, domain}}, admit: a.w.pinned(k.last().admit, []pin{{g.key, domain}})}
		for _, p := range there {
			n := min(left, fits(k.need, p.room))
			if n == 0 || a.into(l, p.bin) < 0 {
				continue
			}
			n = min(n, a.w.most(l.view, a.site(p.bin)))
			for i, x := range k.need {
				p.room[i] -= x * int64(n)
			}
			left -= n
		}
		if left > 0 {
			sum += float64(left) * a.w.cheapest(l.view, l.pins)
		}
	}
	return sum
}
