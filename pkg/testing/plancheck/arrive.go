package plancheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/cluster"
)

// arrivingPods are pods that no rule can tell apart, coming to one node.
type arrivingPods struct {
	pod  *cluster.Pod
	on   *possibleNode
	n    int
	here bool // they stand there, or their claim was made for them: nobody asks anew whether they may

	evens []*spreadConstraint
	near  *affinityConstraint

	raises []*spreadConstraint // where it is counted
	joins  []*affinityConstraint
}

// spreadConstraint is a hard spread constraint of a flock, counting by domain.
type spreadConstraint struct {
	cluster.Spread
	of    *arrivingPods
	self  bool
	least []string // domains that count for the least crowded one; none for hostnames
	value string   // of the flock's node
	count map[string]int
}

// affinityConstraint is the required affinity of a flock. The scheduler counts a pod only when all terms select it.
type affinityConstraint struct {
	terms []cluster.AffinityTerm
	of    *arrivingPods
	self  bool
	any   int
	count map[domainPlace]int
}

// checkPodRules checks the rules between pods. Anti-affinity holds whatever the order; for spreads and affinity some
// order of arrival has to exist that keeps to them.
func (t *planCheck) checkPodRules() {
	flocks := t.groupClasses()
	for _, f := range flocks {
		t.checkAntiAffinity(f, flocks)
		if !f.here {
			t.readSpreads(f)
			t.readAffinity(f)
		}
	}
	for _, f := range flocks {
		t.linkCounters(f, flocks)
	}
	o := arrivalOrder{seen: map[string]bool{}}
	for _, f := range flocks {
		if f.here {
			f.countArrival(f.n)
		} else if f.n > 0 {
			o.left = append(o.left, f)
		}
	}
	if o.findOrder() || t.rulesHoldAfter(o.left) {
		return
	}
	for _, f := range o.least {
		t.addViolation("%s: %s cannot come there: %s", f.on.name, f.pod.Name, o.why[f])
	}
}

// rulesHoldAfter reports whether the outcome is even for everybody, and affinity alone leaves an order of arrival. That
// is enough: with several spreads on one pod it can be that only a scheduler which looks ahead gets there, and none
// does.
func (t *planCheck) rulesHoldAfter(flocks []*arrivingPods) bool {
	o := arrivalOrder{seen: map[string]bool{}, uneven: true, left: flocks}
	if !o.findOrder() {
		return false
	}
	for _, f := range flocks {
		f.countArrival(f.n)
	}
	return !slices.ContainsFunc(flocks, func(f *arrivingPods) bool { return f.brokenSpread(0) != "" })
}

// groupClasses groups the pods of every node.
func (t *planCheck) groupClasses() []*arrivingPods {
	var out []*arrivingPods
	for _, m := range t.possibleNodes {
		byText := map[string]*arrivingPods{}
		for i, p := range m.allPods() {
			if !p.Deleting.IsZero() && i < len(m.there) {
				continue // it is about to be gone
			}
			q := *p
			here := i < len(m.there) || m.own[p.Namespace+"/"+p.Name]
			q.Name, q.UID, q.Need, q.HostPorts, q.Volumes, q.VolumeZones, q.NodeName = "", "", q.Need.Times(0), nil,
				nil, nil, ""
			text, err := json.Marshal(q)
			if err != nil {
				t.addViolation("%s: %v", p.Name, err)
				continue
			}
			key := fmt.Sprint(here, string(text))
			if byText[key] == nil {
				byText[key] = &arrivingPods{pod: p, on: m, here: here}
				out = append(out, byText[key])
			}
			byText[key].n++
		}
	}
	return out
}

// termSelects reports whether the term of the pod selects the other pod.
func (t *planCheck) termSelects(p *cluster.Pod, term cluster.AffinityTerm, other *cluster.Pod) bool {
	in := slices.Contains(term.Namespaces, other.Namespace)
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		in = p.Namespace == other.Namespace
	}
	for _, n := range t.Snapshot.Namespaces {
		in = in || n.Name == other.Namespace && selectorMatches(term.NamespaceSelector, n.Labels)
	}
	return in && selectorMatches(term.Selector, other.Labels)
}

// mayShareValue reports whether two nodes may turn out to share a value of the key.
func mayShareValue(a, b *possibleNode, key string) bool {
	if key == labelHost {
		return a == b
	}
	left := b.labelValues(key)
	return a == b && len(left) > 0 || slices.ContainsFunc(a.labelValues(key),
		func(v string) bool { return slices.Contains(left, v) })
}

// checkAntiAffinity checks the required anti-affinity of the flock towards all, itself included. Somebody has to be new
// for it to count.
func (t *planCheck) checkAntiAffinity(f *arrivingPods, all []*arrivingPods) {
	for _, term := range f.pod.AntiAffinity {
		for _, o := range all {
			if f.here && o.here || f == o && f.n < 2 || !mayShareValue(f.on, o.on, term.Key) ||
				!t.termSelects(f.pod, term, o.pod) {
				continue
			}
			t.addViolation("%s and %s: %s must not share a value of %s with %s", f.on.name, o.on.name, f.pod.Name,
				term.Key, o.pod.Name)
		}
	}
}

// readSpreads reads the hard spread constraints of a newcomer.
func (t *planCheck) readSpreads(f *arrivingPods) {
	for _, c := range f.pod.Spread {
		if c.Soft {
			continue
		}
		e := &spreadConstraint{Spread: c, of: f, self: selectorMatches(c.Selector, f.pod.Labels),
			count: map[string]int{}}
		var ok bool
		if e.value, ok = f.on.singleValue(c.Key); !ok {
			t.addViolation("%s: %s spreads over %s, the node may be any of %v", f.on.name, f.pod.Name, c.Key,
				f.on.labelValues(c.Key))
			continue
		}
		if c.Key != labelHost {
			e.least = t.soldDomains(f.pod, c)
		}
		f.evens = append(f.evens, e)
	}
}

func (t *planCheck) readAffinity(f *arrivingPods) {
	if len(f.pod.Affinity) == 0 {
		return
	}
	f.near = &affinityConstraint{terms: f.pod.Affinity, of: f, self: t.pickedByAll(f.pod, f.pod),
		count: map[domainPlace]int{}}
	for _, term := range f.pod.Affinity {
		if len(f.on.labelValues(term.Key)) == 0 {
			t.addViolation("%s: %s wants to be near by %s, which the node does not have", f.on.name, f.pod.Name,
				term.Key)
		}
	}
}

func (t *planCheck) pickedByAll(p, other *cluster.Pod) bool {
	return !slices.ContainsFunc(p.Affinity, func(x cluster.AffinityTerm) bool { return !t.termSelects(p, x, other) })
}

// soldDomains are the values of the key that pools sell to pods that wait, now or not, and that nodes have, where the
// constraint's policies let the pod's own rules exclude none.
func (t *planCheck) soldDomains(p *cluster.Pod, c cluster.Spread) []string {
	var out []string
	see := func(labels map[string]string, taints []cluster.Taint) {
		v, ok := labels[c.Key]
		for _, o := range p.Spread {
			_, has := labels[o.Key]
			ok = ok && (has || o.Soft || o.Key == labelHost)
		}
		if _, refused := keepsOut(p, taints); ok && (c.IgnoreNodeAffinity || podSuits(p, labels, true)) &&
			!(refused && c.HonorTaints) {
			out = append(out, v)
		}
	}
	for _, m := range t.possibleNodes {
		if !m.closed {
			for _, s := range m.shapes {
				see(s.labels, m.taints)
			}
		}
	}
	for _, pool := range t.Snapshot.Pools {
		if !pool.Ready || pool.Deleting || pool.Static {
			continue
		}
		rules := labelRequirements(pool.Requirements.All())
		shapes := t.possibleShapes(pool, nil,
			slices.DeleteFunc(slices.Clone(rules), func(w labelRequirement) bool { return !decidedByType(w.Key) }),
			true)
		if !t.Snapshot.Rules.RelaxMinValues && lacksValues(rules, shapes) {
			continue
		}
		for _, s := range shapes {
			for _, l := range chosenLabels(p, c.Key, rules, s.labels) {
				if t.bringsNode(c.Key, l[c.Key]) {
					see(l, pool.Taints)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// bringsNode reports whether some pod that waits may be on a node with the value, as far as the key tells.
func (t *planCheck) bringsNode(key, value string) bool {
	id := [2]string{key, value}
	out, ok := t.brings[id]
	if ok {
		return out
	}
	for _, p := range t.byKey { // one is enough, whichever
		selected, has := p.NodeSelector[key]
		out = out || len(p.Unmodelled) == 0 && (!has || selected == value) &&
			leavesOpen(p.NodeAffinity, key, value) && leavesOpen(p.VolumeZones, key, value)
	}
	t.brings[id] = out
	return out
}

// leavesOpen reports whether some of the terms, if there are any, lets the label have the value.
func leavesOpen[R rawRequirement](terms [][]R, key, value string) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t []R) bool {
		return !slices.ContainsFunc(labelRequirements(t), func(w labelRequirement) bool {
			return w.Key == key && !w.isMet(map[string]string{key: value})
		})
	})
}

// lacksValues reports whether all that a pool may make has too few values of some key for its minValues.
func lacksValues(rules []labelRequirement, shapes []possibleShape) bool {
	return slices.ContainsFunc(rules, func(w labelRequirement) bool {
		seen := map[string]bool{}
		for _, s := range shapes {
			if v, ok := s.labels[w.Key]; ok {
				seen[v] = true
			}
		}
		return len(seen) < w.MinValues
	})
}

// chosenLabels are the labels that a pool's node may come to have where the pool wants labels of its own and leaves
// their values open: one of those it names, or any that the pod speaks of, or another. The label of the spread has only
// those.
func chosenLabels(p *cluster.Pod, spread string, rules []labelRequirement,
	labels map[string]string) []map[string]string {
	out := []map[string]string{labels}
	for _, w := range rules {
		if decidedByType(w.Key) || labels[w.Key] != "" || w.isMet(nil) {
			continue
		}
		values := w.Values
		if w.Not || len(values) == 0 {
			if w.Key == spread {
				continue // values that nobody names are no domains
			}
			values = slices.DeleteFunc(append(spokenOf(p, w.Key), w.boundaryValue()),
				func(v string) bool { return !w.isMet(map[string]string{w.Key: v}) })
		}
		var next []map[string]string
		for _, l := range out {
			for _, v := range values {
				if len(next) < mostChoices {
					l = maps.Clone(l)
					l[w.Key] = v
					next = append(next, l)
				}
			}
		}
		out = next
	}
	return out
}

// spokenOf are the values of the label that the pod names.
func spokenOf(p *cluster.Pod, key string) []string {
	var out []string
	if v, ok := p.NodeSelector[key]; ok {
		out = append(out, v)
	}
	for _, term := range p.NodeAffinity {
		for _, w := range labelRequirements(term) {
			if w.Key == key {
				out = append(append(out, w.Values...), w.boundaryValue())
			}
		}
	}
	return out
}

// boundaryValue is a value that is near the bounds of the wish, or no number where it has none.
func (w labelRequirement) boundaryValue() string {
	switch {
	case w.Min != nil:
		return strconv.FormatInt(*w.Min, 10)
	case w.Max != nil:
		return strconv.FormatInt(*w.Max, 10)
	}
	return "any-other"
}
