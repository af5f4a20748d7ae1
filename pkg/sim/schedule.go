package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/require"
)

// trySchedule has the scheduler look at the pods without a node soon, once.
func (w *world) trySchedule() {
	if w.scheduling {
		return
	}
	w.scheduling = true
	w.in(w.between(20*time.Millisecond, 400*time.Millisecond), func() {
		w.scheduling = false
		w.bindAll()
	})
}

// retry has the scheduler look again at pods for which it found no node, as it does when nodes come, change or go.
func (w *world) retry() {
	for _, p := range w.pods {
		if p.NodeName == "" && p.Active() {
			w.trySchedule()
			return
		}
	}
}

// bindAll binds pods as kube-scheduler does: by priority and age, each to one of the nodes that may take it. It knows nothing of
// our plans, and shares no rule with them.
func (w *world) bindAll() {
	var waiting []*pod
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[key]; p.NodeName == "" && p.Active() {
			waiting = append(waiting, p)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *pod) int {
		if a.Priority != b.Priority {
			return int(b.Priority - a.Priority)
		}
		return a.Created.Compare(b.Created)
	})
	for _, p := range waiting {
		var fit []*node
		for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
			if n := w.nodes[name]; w.fits(p, n) {
				fit = append(fit, n)
			}
		}
		if len(fit) > 0 {
			w.bind(p, fit[w.rng.IntN(len(fit))])
		} else if !p.Unscheduled {
			p.Unscheduled = true
			w.changed(aPod, nil)
		}
	}
}

// bind gives the pod to a kubelet, which starts it.
func (w *world) bind(p *pod, n *node) {
	p.NodeName, p.Unscheduled, p.Started = n.Name, false, w.second()
	n.bound = time.Now()
	if !p.app.daemon {
		w.tell("pod %s runs on %s", p.Name, n.Name)
	}
	p.starts++
	mine := p.starts
	boot := p.app.bootTime + w.between(0, time.Second)
	wanted := func() bool {
		host := w.nodes[p.NodeName]
		return p.starts == mine && host != nil && !host.down && w.pods[p.Key()] == p
	}
	w.disks.mount(p.disks, n.Name, n.Labels[labelZone], wanted, func() {
		w.in(boot, func() {
			if wanted() {
				p.Phase = "Running"
				w.setPodReady(p, true)
			}
		})
	})
}

// fits reports whether the node may take the pod.
func (w *world) fits(p *pod, n *node) bool { return w.refuses(p, n) == "" }

// refuses says why the node does not take the pod: resources, taints, labels, pod affinity, spread or volumes. It is empty if it does.
func (w *world) refuses(p *pod, n *node) string {
	if !n.Ready || n.down {
		return "not ready"
	}
	if bad := cluster.Untolerated(hard(n.Taints), p.tolerations()); len(bad) > 0 {
		return "taint " + bad[0].Key
	}
	used := p.Need
	for _, other := range w.pods {
		if other.NodeName == n.Name && !other.Terminal() {
			used = used.Add(other.Need)
		}
	}
	switch {
	case !used.FitsIn(n.Allocatable):
		return fmt.Sprintf("%s do not fit into %s", used, n.Allocatable)
	case !selects(p, n.Labels):
		return "node selector"
	case !w.friendly(p, n):
		return "pod affinity"
	case !w.spreads(p, n):
		return "spread"
	}
	return w.refusesVolumes(p, n)
}

func hard(taints []cluster.Taint) []cluster.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" })
}

// selects reports whether the pod's node selector and required node affinity allow a node with these labels.
func selects(p *pod, labels map[string]string) bool {
	for k, v := range p.NodeSelector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return len(p.NodeAffinity) == 0 || slices.ContainsFunc(p.NodeAffinity, func(term []require.Requirement) bool {
		return !slices.ContainsFunc(term, func(r require.Requirement) bool { return !meets(r, labels) })
	})
}

// meets is what a node selector requirement means to Kubernetes.
func meets(r require.Requirement, labels map[string]string) bool {
	v, ok := labels[r.Key]
	number, err := strconv.ParseInt(v, 10, 64)
	switch r.Operator() {
	case require.In:
		return ok && slices.Contains(r.Values, v)
	case require.NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case require.Exists:
		return ok
	case require.DoesNotExist:
		return !ok
	case require.Gte:
		return ok && err == nil && number >= *r.Min
	case require.Lte:
		return ok && err == nil && number <= *r.Max
	}
	return false
}

// domain is where a node stands for a topology key.
func domain(n *node, key string) (string, bool) {
	if key == "kubernetes.io/hostname" {
		return n.Name, true
	}
	v, ok := n.Labels[key]
	return v, ok
}

// friendly reports whether required pod affinity and anti-affinity, of the pod and of those that are there, allow the node.
func (w *world) friendly(p *pod, n *node) bool {
	for _, term := range p.Affinity {
		here, anywhere := w.matching(term, n)
		if here == 0 && (anywhere > 0 || !term.Selector.Matches(p.Labels)) {
			return false
		}
	}
	for _, term := range p.AntiAffinity {
		if here, _ := w.matching(term, n); here > 0 {
			return false
		}
	}
	for _, other := range w.pods {
		host := w.nodes[other.NodeName]
		if host == nil || other.Terminal() {
			continue
		}
		for _, term := range other.AntiAffinity {
			a, okA := domain(host, term.Key)
			b, okB := domain(n, term.Key)
			if okA && okB && a == b && term.Selector.Matches(p.Labels) {
				return false
			}
		}
	}
	return true
}

// matching counts the pods that the term selects in the node's domain, and in any.
func (w *world) matching(term cluster.AffinityTerm, n *node) (here, anywhere int) {
	want, ok := domain(n, term.Key)
	for _, other := range w.pods {
		host := w.nodes[other.NodeName]
		if host == nil || other.Terminal() || !term.Selector.Matches(other.Labels) {
			continue
		}
		anywhere++
		if d, there := domain(host, term.Key); there && ok && d == want {
			here++
		}
	}
	return here, anywhere
}

// spreads reports whether the hard topology spread constraints of the pod allow the node.
func (w *world) spreads(p *pod, n *node) bool {
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		own, ok := domain(n, s.Key)
		if !ok {
			return false
		}
		count := map[string]int{}
		for _, other := range w.nodes {
			if d, there := domain(other, s.Key); there && selects(p, other.Labels) {
				count[d] += 0
			}
		}
		for _, other := range w.pods {
			host := w.nodes[other.NodeName]
			if host == nil || !other.Active() || !s.Selector.Matches(other.Labels) || !selects(p, host.Labels) {
				continue
			}
			if d, there := domain(host, s.Key); there {
				count[d]++
			}
		}
		least := count[own]
		for _, c := range count {
			least = min(least, c)
		}
		if int(s.MinDomains) > len(count) {
			least = 0
		}
		if count[own]+1-least > int(s.MaxSkew) {
			return false
		}
	}
	return true
}
