package plancheck

import (
	"fmt"
	"maps"
	"slices"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// checkPools checks what the plan may take of each pool: limits, minValues, weights, reservations, and the number of
// new claims.
func (t *planCheck) checkPools() {
	used, grew := map[string]resourceAmounts{}, map[string]bool{}
	reserved, remaining := map[string]int64{}, map[string]int64{}
	for _, m := range t.possibleNodes {
		if m.pool == "" || t.deletingNodes(m) {
			continue
		}
		if used[m.pool] == nil {
			used[m.pool] = resourceAmounts{}
		}
		most := resourceAmounts{}
		for _, s := range m.shapes {
			for k, v := range s.capacity { // each key on its own
				most[k] = max(most[k], v)
			}
			if r := s.offering.Reservation; r != nil {
				remaining[r.ID] = r.Remaining
			}
		}
		used[m.pool].addAmounts(most, 1)
		used[m.pool]["nodes"]++
		if m.launch != nil {
			grew[m.pool] = true
			if id := reservationOf(m.launch.Choice); id != "" {
				reserved[id]++
			}
		} else if m.id == "" && len(m.shapes) > 0 && reservationOf(m.shapes[0].offering) != "" &&
			!slices.ContainsFunc(m.shapes, func(s possibleShape) bool { return reservationOf(s.offering) == "" }) {
			reserved[reservationOf(m.shapes[0].offering)]++ // its instance is not taken out of the reservation yet
		}
	}
	for _, p := range t.Snapshot.Pools {
		for _, name := range p.Limited {
			if have, most := used[p.Name][name], p.Limits.Get(name); grew[p.Name] && have > most {
				t.addViolation("pool %s: %d of %s are more than its limit %d", p.Name, have, name, most)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(reserved)) {
		if reserved[id] > remaining[id] {
			t.addViolation("reservation %s: %d launches into it, it has room for %d", id, reserved[id], remaining[id])
		}
	}
	t.checkCommitments()
	if most := t.Snapshot.Rules.MaxClaims; most > 0 && len(t.plan.Launches) > most {
		t.addViolation("%d new claims, a pass may make %d", len(t.plan.Launches), most)
	}
	if b, p := t.plan.LowerBoundUSD, t.plan.TotalPrice(); b > p*(1+1e-9)+1e-12 {
		t.addViolation("the plan costs %g USD/h, less than its bound %g", p, b)
	}
	for _, m := range t.possibleNodes {
		if m.launch != nil {
			t.checkMinValues(m)
			t.checkWeights(m)
		}
	}
}

// checkMinValues wants as many distinct values of each key among what a launch may become as the pool's minValues say.
// Where these may be lowered (BestEffort), it wants as many as the claim still asks for, that the claim says so, and no
// key lowered further than the pod that leaves fewest values needs.
func (t *planCheck) checkMinValues(m *possibleNode) {
	pool, _ := t.Snapshot.PoolOf(m.pool)
	lowered := false
	for _, w := range labelRequirements(pool.Requirements.All()) {
		want := w.MinValues
		if t.Snapshot.Rules.RelaxMinValues {
			asked, _ := m.launch.Requirements.Get(w.Key)
			lowered = lowered || asked.MinValues < want
			if least := t.leastValues(m, pool, w); asked.MinValues < least {
				t.addViolation("%s: it asks for %d values of %s, each of its pods leaves %d, pool %s wants %d", m.name,
					asked.MinValues, w.Key, least, pool.Name, want)
			}
			want = asked.MinValues
		}
		if got := len(m.labelValues(w.Key)); got < want {
			t.addViolation("%s: %d values of %s, pool %s wants %d", m.name, got, w.Key, pool.Name, want)
		}
	}
	if says := m.launch.Annotations[api.AnnotationMinValuesRelaxed]; t.Snapshot.Rules.RelaxMinValues &&
		(says == "true") != lowered {
		t.addViolation("%s: %s is %q, its minValues are lowered: %t", m.name, api.AnnotationMinValuesRelaxed, says,
			lowered)
	}
}

// leastValues returns the number of values of the key, and no more than the pool wants, that each pod of a launch would
// leave were it alone. What lowers minValues is not what the pods need together. It is 0 where limits or a reservation
// may leave less.
func (t *planCheck) leastValues(m *possibleNode, pool cluster.Pool, w labelRequirement) int {
	if w.MinValues == 0 || len(pool.Limited) > 0 || reservationOf(m.launch.Choice) != "" {
		return 0
	}
	rules := slices.DeleteFunc(labelRequirements(m.launch.Requirements.All()),
		func(r labelRequirement) bool { return r.Key == labelType })
	rules = append(rules, labelRequirements(pool.Requirements.All())...)
	shapes := t.possibleShapes(pool, m.launch.Labels, rules, false)
	least := w.MinValues
	for _, p := range m.came {
		seen := map[string]bool{}
		for _, s := range shapes {
			need := amountsOf(p.Need)
			for _, d := range t.offeringDaemons(m, s, shapes) {
				need.addAmounts(amountsOf(d.Need), 1)
			}
			if _, ok := need.firstShort(s.room); ok && reservationOf(s.offering) == "" && podSuits(p, s.labels, false) {
				seen[s.labels[w.Key]] = true
			}
		}
		delete(seen, "")
		least = min(least, len(seen))
	}
	return least
}

// checkWeights wants no new node in a light pool when every pod on it is free to be in a heavier one. It asks only
// where nothing but a pod's own needs decides: pods without rules about other pods or preferences, in pools without
// limits and minValues. A DaemonSet counts on every node that may have its labels, as in Karpenter.
func (t *planCheck) checkWeights(m *possibleNode) {
	light, _ := t.Snapshot.PoolOf(m.pool)
	said := ""
	for _, p := range m.came {
		heavy, s, ok := t.heavierPool(light, p)
		if !ok {
			return
		}
		said = fmt.Sprintf("%s is in pool %s of weight %d, pool %s of weight %d could have it on %s", p.Name,
			light.Name, light.Weight, heavy.Name, heavy.Weight, s)
	}
	if said != "" {
		t.addViolation("%s: %s", m.name, said)
	}
}

// heavierPool finds a pool of more weight that could have the pod on a node of its own.
func (t *planCheck) heavierPool(light cluster.Pool, p *cluster.Pod) (cluster.Pool, possibleShape, bool) {
	if len(p.Spread)+len(p.Affinity)+len(p.AntiAffinity)+len(p.NodePrefers)+len(p.Prefers)+len(p.Avoids)+len(
		p.HostPorts) > 0 || t.isShunned(p) {
		return cluster.Pool{}, possibleShape{}, false
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
	return cluster.Pool{}, possibleShape{}, false
}

// isShunned reports whether the anti-affinity of any pod concerns this one.
func (t *planCheck) isShunned(p *cluster.Pod) bool {
	return slices.ContainsFunc(slices.Concat(t.Snapshot.Pods, t.Snapshot.Daemons), func(o cluster.Pod) bool {
		return slices.ContainsFunc(o.AntiAffinity, func(x cluster.AffinityTerm) bool { return t.termSelects(&o, x, p) })
	})
}

func (t *planCheck) couldHold(pool cluster.Pool, p *cluster.Pod) (possibleShape, bool) {
	rules := labelRequirements(pool.Requirements.All())
	if _, refused := keepsOut(p, pool.Taints); refused ||
		slices.ContainsFunc(rules, func(w labelRequirement) bool { return w.MinValues > 0 }) {
		return possibleShape{}, false
	}
	m := &possibleNode{pool: pool.Name, taints: pool.Taints, class: pool.ClassKey()}
	if slices.ContainsFunc(p.Requires, func(part string) bool { return t.lacksPart(m, part) }) {
		return possibleShape{}, false
	}
	shapes := t.possibleShapes(pool, nil, rules, false)
	for _, s := range shapes {
		if reservationOf(s.offering) != "" {
			continue // others may have taken what room it had
		}
		need := amountsOf(p.Need)
		for _, d := range t.offeringDaemons(m, s, shapes) {
			need.addAmounts(amountsOf(d.Need), 1)
		}
		if _, ok := need.firstShort(s.room); ok && podSuits(p, s.labels, false) {
			return s, true
		}
	}
	return possibleShape{}, false
}

// offeringDaemons are the DaemonSets that a node of the shape's offering may get, whatever values its open labels
// take.
func (t *planCheck) offeringDaemons(m *possibleNode, s possibleShape, shapes []possibleShape) []*cluster.Pod {
	var out []*cluster.Pod
	for _, x := range shapes {
		if x.offering.OfferingKey != s.offering.OfferingKey {
			continue
		}
		for _, d := range t.daemonPods(m, x) {
			if !slices.Contains(out, d) {
				out = append(out, d)
			}
		}
	}
	return out
}
