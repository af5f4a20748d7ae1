package checker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"joiner/pkg/cluster"
)

// flock is pods that no rule can tell apart, coming to one machine.
type flock struct {
	pod  *cluster.Pod
	on   *machine
	n    int
	here bool // they stand there, or their claim was made for them: nobody asks anew whether they may

	evens []*even
	near  *near

	raises []*even // where it is counted
	joins  []*near
}

// even is a hard spread constraint of a flock, counting by domain.
type even struct {
	cluster.Spread
	of    *flock
	self  bool
	least []string // domains that count for the least crowded one; none for hostnames
	value string   // of the flock's machine
	count map[string]int
}

// near is the required affinity of a flock. The scheduler counts a pod only when all terms select it.
type near struct {
	terms []cluster.AffinityTerm
	of    *flock
	self  bool
	any   int
	count map[place]int
}

// arrive checks the rules between pods. Anti-affinity holds whatever the order; for spreads and affinity some order of arrival
// has to exist that keeps to them.
func (t *trial) arrive() {
	flocks := t.flocks()
	for _, f := range flocks {
		t.apart(f, flocks)
		if !f.here {
			t.evens(f)
			t.nears(f)
		}
	}
	for _, f := range flocks {
		t.link(f, flocks)
	}
	o := order{seen: map[string]bool{}}
	for _, f := range flocks {
		if f.here {
			f.enter(f.n)
		} else if f.n > 0 {
			o.left = append(o.left, f)
		}
	}
	if o.exists() || t.settled(o.left) {
		return
	}
	for _, f := range o.least {
		t.bad("%s: %s cannot come there: %s", f.on.name, f.pod.Name, o.why[f])
	}
}

// settled reports whether the outcome is even for everybody, and affinity alone leaves an order of arrival. That is enough: with
// several spreads on one pod it can be that only a scheduler which looks ahead gets there, and none does.
func (t *trial) settled(flocks []*flock) bool {
	o := order{seen: map[string]bool{}, uneven: true, left: flocks}
	if !o.exists() {
		return false
	}
	for _, f := range flocks {
		f.enter(f.n)
	}
	return !slices.ContainsFunc(flocks, func(f *flock) bool { return f.uneven(0) != "" })
}

// flocks groups the pods of every machine.
func (t *trial) flocks() []*flock {
	var out []*flock
	for _, m := range t.machines {
		byText := map[string]*flock{}
		for i, p := range m.pods() {
			if !p.Deleting.IsZero() && i < len(m.there) {
				continue // it is about to be gone
			}
			q := *p
			here := i < len(m.there) || m.own[p.Namespace+"/"+p.Name]
			q.Name, q.UID, q.Need, q.HostPorts, q.Volumes, q.VolumeZones, q.NodeName = "", "", q.Need.Times(0), nil, nil, nil, ""
			text, err := json.Marshal(q)
			if err != nil {
				t.bad("%s: %v", p.Name, err)
				continue
			}
			key := fmt.Sprint(here, string(text))
			if byText[key] == nil {
				byText[key] = &flock{pod: p, on: m, here: here}
				out = append(out, byText[key])
			}
			byText[key].n++
		}
	}
	return out
}

// picks reports whether the term of the pod selects the other pod.
func (t *trial) picks(p *cluster.Pod, term cluster.AffinityTerm, other *cluster.Pod) bool {
	in := slices.Contains(term.Namespaces, other.Namespace)
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		in = p.Namespace == other.Namespace
	}
	for _, n := range t.Snapshot.Namespaces {
		in = in || n.Name == other.Namespace && selects(term.NamespaceSelector, n.Labels)
	}
	return in && selects(term.Selector, other.Labels)
}

// meet reports whether two machines may turn out to share a value of the key.
func meet(a, b *machine, key string) bool {
	if key == labelHost {
		return a == b
	}
	left := b.values(key)
	return a == b && len(left) > 0 || slices.ContainsFunc(a.values(key), func(v string) bool { return slices.Contains(left, v) })
}

// apart checks the required anti-affinity of the flock towards all, itself included. Somebody has to be new for it to count.
func (t *trial) apart(f *flock, all []*flock) {
	for _, term := range f.pod.AntiAffinity {
		for _, o := range all {
			if f.here && o.here || f == o && f.n < 2 || !meet(f.on, o.on, term.Key) || !t.picks(f.pod, term, o.pod) {
				continue
			}
			t.bad("%s and %s: %s must not share a value of %s with %s", f.on.name, o.on.name, f.pod.Name, term.Key, o.pod.Name)
		}
	}
}

// evens reads the hard spread constraints of a newcomer.
func (t *trial) evens(f *flock) {
	for _, c := range f.pod.Spread {
		if c.Soft {
			continue
		}
		e := &even{Spread: c, of: f, self: selects(c.Selector, f.pod.Labels), count: map[string]int{}}
		var ok bool
		if e.value, ok = f.on.value(c.Key); !ok {
			t.bad("%s: %s spreads over %s, the node may be any of %v", f.on.name, f.pod.Name, c.Key, f.on.values(c.Key))
			continue
		}
		if c.Key != labelHost {
			e.least = t.domains(f.pod, c)
		}
		f.evens = append(f.evens, e)
	}
}

func (t *trial) nears(f *flock) {
	if len(f.pod.Affinity) == 0 {
		return
	}
	f.near = &near{terms: f.pod.Affinity, of: f, self: t.pickedByAll(f.pod, f.pod), count: map[place]int{}}
	for _, term := range f.pod.Affinity {
		if len(f.on.values(term.Key)) == 0 {
			t.bad("%s: %s wants to be near by %s, which the node does not have", f.on.name, f.pod.Name, term.Key)
		}
	}
}

func (t *trial) pickedByAll(p, other *cluster.Pod) bool {
	return !slices.ContainsFunc(p.Affinity, func(x cluster.AffinityTerm) bool { return !t.picks(p, x, other) })
}

// domains are the values of the key that pools sell, now or not, and that nodes have, where the constraint's policies let
// the pod's own rules exclude none (spec core.md §3.6).
func (t *trial) domains(p *cluster.Pod, c cluster.Spread) []string {
	var out []string
	see := func(labels map[string]string, taints []cluster.Taint) {
		v, ok := labels[c.Key]
		if _, refused := keepsOut(p, taints); ok && (c.IgnoreNodeAffinity || suits(p, labels, true)) && !(refused && c.HonorTaints) {
			out = append(out, v)
		}
	}
	for _, m := range t.machines {
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
		rules := wishes(pool.Requirements.All())
		for _, s := range t.shapes(pool, nil, slices.DeleteFunc(slices.Clone(rules), func(w wish) bool { return !decidedByType(w.Key) }), true) {
			for _, l := range chosen(p, c.Key, rules, s.labels) {
				see(l, pool.Taints)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// chosen are the labels that a pool's node may come to have where the pool wants labels of its own and leaves their values open: one
// of those it names, or any that the pod speaks of, or another. The label of the spread has only those.
func chosen(p *cluster.Pod, spread string, rules []wish, labels map[string]string) []map[string]string {
	out := []map[string]string{labels}
	for _, w := range rules {
		if decidedByType(w.Key) || labels[w.Key] != "" || w.met(nil) {
			continue
		}
		values := w.Values
		if w.Not || len(values) == 0 {
			if w.Key == spread {
				continue // values that nobody names are no domains
			}
			values = slices.DeleteFunc(append(spokenOf(p, w.Key), w.other()), func(v string) bool { return !w.met(map[string]string{w.Key: v}) })
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
		for _, w := range wishes(term) {
			if w.Key == key {
				out = append(append(out, w.Values...), w.other())
			}
		}
	}
	return out
}

// other is a value that is near the bounds of the wish, or no number where it has none.
func (w wish) other() string {
	switch {
	case w.Min != nil:
		return strconv.FormatInt(*w.Min, 10)
	case w.Max != nil:
		return strconv.FormatInt(*w.Max, 10)
	}
	return "any-other"
}
