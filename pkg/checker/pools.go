package checker

import (
	"fmt"
	"maps"
	"slices"

	"joiner/pkg/cluster"
)

// pools checks what the plan may take of each pool: limits, minValues, weights, reservations, and the number of new claims.
func (t *trial) pools() {
	used, grew := map[string]amounts{}, map[string]bool{}
	reserved, remaining := map[string]int64{}, map[string]int64{}
	for _, m := range t.machines {
		if m.pool == "" || t.deleting(m) {
			continue
		}
		if used[m.pool] == nil {
			used[m.pool] = amounts{}
		}
		most := amounts{}
		for _, s := range m.shapes {
			for k, v := range s.capacity { // each key on its own
				most[k] = max(most[k], v)
			}
			if r := s.offer.Reservation; r != nil {
				remaining[r.ID] = r.Remaining
			}
		}
		used[m.pool].add(most, 1)
		used[m.pool]["nodes"]++
		if m.launch != nil {
			grew[m.pool] = true
			if id := reservation(m.launch.Choice); id != "" {
				reserved[id]++
			}
		} else if m.id == "" && len(m.shapes) > 0 && reservation(m.shapes[0].offer) != "" && !slices.ContainsFunc(m.shapes, func(s shape) bool { return reservation(s.offer) == "" }) {
			reserved[reservation(m.shapes[0].offer)]++ // its instance is not taken out of the reservation yet
		}
	}
	for _, p := range t.Snapshot.Pools {
		for _, name := range p.Limited {
			if have, most := used[p.Name][name], p.Limits.Get(name); grew[p.Name] && have > most {
				t.bad("pool %s: %d of %s are more than its limit %d", p.Name, have, name, most)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(reserved)) {
		if reserved[id] > remaining[id] {
			t.bad("reservation %s: %d launches into it, it has room for %d", id, reserved[id], remaining[id])
		}
	}
	t.commitments()
	if most := t.Snapshot.Rules.MaxClaims; most > 0 && len(t.plan.Launches) > most {
		t.bad("%d new claims, a pass may make %d", len(t.plan.Launches), most)
	}
	if b, p := t.plan.LowerBoundUSD, t.plan.Price(); b > p*(1+1e-9)+1e-12 {
		t.bad("the plan costs %g USD/h, less than its bound %g", p, b)
	}
	for _, m := range t.machines {
		if m.launch != nil {
			t.values(m)
			t.weight(m)
		}
	}
}

// values wants as many distinct values of each key among what a launch may become as the pool's minValues say.
func (t *trial) values(m *machine) {
	pool, _ := t.Snapshot.PoolOf(m.pool)
	if t.Snapshot.Rules.RelaxMinValues {
		return
	}
	for _, w := range wishes(pool.Requirements.All()) {
		if got := len(m.values(w.Key)); got < w.MinValues {
			t.bad("%s: %d values of %s, pool %s wants %d", m.name, got, w.Key, pool.Name, w.MinValues)
		}
	}
}

// weight wants no new node in a light pool when every pod on it is free to be in a heavier one. It asks only where nothing but
// a pod's own needs decides: pods without rules about other pods or preferences, in pools without limits and minValues.
func (t *trial) weight(m *machine) {
	light, _ := t.Snapshot.PoolOf(m.pool)
	said := ""
	for _, p := range m.came {
		heavy, s, ok := t.heavier(light, p)
		if !ok {
			return
		}
		said = fmt.Sprintf("%s is in pool %s of weight %d, pool %s of weight %d could have it on %s", p.Name, light.Name, light.Weight, heavy.Name, heavy.Weight, s)
	}
	if said != "" {
		t.bad("%s: %s", m.name, said)
	}
}

// heavier finds a pool of more weight that could have the pod on a node of its own.
func (t *trial) heavier(light cluster.Pool, p *cluster.Pod) (cluster.Pool, shape, bool) {
	if len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity)+len(p.NodePrefers)+len(p.Prefers)+len(p.Avoids)+len(p.HostPorts) > 0 || t.shunned(p) {
		return cluster.Pool{}, shape{}, false
	}
	for _, heavy := range t.Snapshot.Pools {
		class, found := t.Snapshot.ClassOf(heavy.Class)
		usable := heavy.Ready && !heavy.Deleting && !heavy.Static && found && class.Ready && len(heavy.Limited) == 0
		soft := slices.ContainsFunc(heavy.Taints, func(x cluster.Taint) bool { return x.Effect == "PreferNoSchedule" })
		if heavy.Weight <= light.Weight || !usable || soft {
			continue
		}
		if s, ok := t.couldHold(heavy, p); ok {
			return heavy, s, true
		}
	}
	return cluster.Pool{}, shape{}, false
}

// shunned reports whether the anti-affinity of any pod concerns this one.
func (t *trial) shunned(p *cluster.Pod) bool {
	return slices.ContainsFunc(slices.Concat(t.Snapshot.Pods, t.Snapshot.Daemons), func(o cluster.Pod) bool {
		return slices.ContainsFunc(o.AntiAffinity, func(x cluster.AffinityTerm) bool { return t.picks(&o, x, p) })
	})
}

func (t *trial) couldHold(pool cluster.Pool, p *cluster.Pod) (shape, bool) {
	rules := wishes(pool.Requirements.All())
	if _, refused := keepsOut(p, pool.Taints); refused || slices.ContainsFunc(rules, func(w wish) bool { return w.MinValues > 0 }) {
		return shape{}, false
	}
	m := &machine{pool: pool.Name, taints: pool.Taints}
	for _, s := range t.shapes(pool, nil, rules, false) {
		if reservation(s.offer) != "" {
			continue // others may have taken what room it had
		}
		need := amountsOf(p.Need)
		for _, d := range t.guests(m, s) {
			need.add(amountsOf(d.Need), 1)
		}
		if _, ok := need.fits(s.room); ok && suits(p, s.labels, false) {
			return s, true
		}
	}
	return shape{}, false
}
