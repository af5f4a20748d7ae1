package sim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
)

// trySchedule has the scheduler look at the pods without a node soon, once.
func (w *world) trySchedule() {
	if w.scheduling {
		return
	}
	w.scheduling = true
	w.runAfter(w.drawDuration(20*time.Millisecond, 400*time.Millisecond), func() {
		w.scheduling = false
		w.bindAll()
	})
}

// retryScheduling has the scheduler look again at pods for which it found no node, as it does when nodes come, change
// or go.
func (w *world) retryScheduling() {
	for _, p := range w.pods {
		if p.NodeName == "" && p.Active() {
			w.trySchedule()
			return
		}
	}
}

// bindAll binds pods as kube-scheduler does: by priority and age, each to one of the nodes that may take it. It knows
// nothing of our plans, and shares no rule with them.
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
			if n := w.nodes[name]; w.nodeFits(p, n) {
				fit = append(fit, n)
			}
		}
		if len(fit) > 0 {
			w.bindPod(p, fit[w.rng.IntN(len(fit))])
		} else if !p.Unscheduled {
			p.Unscheduled = true
			w.notifyChange(aPod, nil)
		}
	}
}

// bindPod gives the pod to a kubelet, which starts it.
func (w *world) bindPod(p *pod, n *node) {
	p.NodeName, p.Unscheduled, p.Started = n.Name, false, w.toSecond()
	n.bound = time.Now()
	if !p.app.daemon {
		w.addTrace("pod %s runs on %s", p.Name, n.Name)
	}
	p.starts++
	mine := p.starts
	boot := p.app.bootTime + w.drawDuration(0, time.Second)
	wanted := func() bool {
		host := w.nodes[p.NodeName]
		return p.starts == mine && host != nil && !host.down && w.pods[p.Key()] == p
	}
	w.disks.mount(p.disks, n.Name, n.Labels[labelZone], wanted, func() {
		w.runAfter(boot, func() {
			if wanted() {
				p.Phase = "Running"
				w.setPodReady(p, true)
			}
		})
	})
}

// nodeFits reports whether the node may take the pod.
func (w *world) nodeFits(p *pod, n *node) bool { return w.refusalReason(p, n) == "" }

// refusalReason says why the node does not take the pod: resources, taints, labels, pod affinity, spread or volumes. It
// is empty if it does.
func (w *world) refusalReason(p *pod, n *node) string {
	if !n.Ready || n.down {
		return "not ready"
	}
	if bad := cluster.Untolerated(hardTaints(n.Taints), p.allTolerations()); len(bad) > 0 {
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
	case !podSelects(p, n.Labels):
		return "node selector"
	case !w.affinityAllows(p, n):
		return "pod affinity"
	case !w.spreadAllows(p, n):
		return "spread"
	}
	return w.refusesVolumes(p, n)
}

func hardTaints(taints []cluster.Taint) []cluster.Taint {
	return slices.DeleteFunc(slices.Clone(taints), func(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" })
}

// podSelects reports whether the pod's node selector and required node affinity allow a node with these labels.
func podSelects(p *pod, labels map[string]string) bool {
	for k, v := range p.NodeSelector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return len(p.NodeAffinity) == 0 || slices.ContainsFunc(p.NodeAffinity, func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(r requirements.Requirement) bool { return !requirementMet(r, labels) })
	})
}

// requirementMet is what a node selector requirement means to Kubernetes.
func requirementMet(r requirements.Requirement, labels map[string]string) bool {
	v, ok := labels[r.Key]
	number, err := strconv.ParseInt(v, 10, 64)
	switch r.Operator() {
	case requirements.In:
		return ok && slices.Contains(r.Values, v)
	case requirements.NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case requirements.Exists:
		return ok
	case requirements.DoesNotExist:
		return !ok
	case requirements.Gte:
		return ok && err == nil && number >= *r.Min
	case requirements.Lte:
		return ok && err == nil && number <= *r.Max
	}
	return false
}

// domainOf is where a node stands for a topology key.
func domainOf(n *node, key string) (string, bool) {
	if key == "kubernetes.io/hostname" {
		return n.Name, true
	}
	v, ok := n.Labels[key]
	return v, ok
}

// affinityAllows reports whether required pod affinity and anti-affinity, of the pod and of those that are there, allow
// the node.
func (w *world) affinityAllows(p *pod, n *node) bool {
	for _, term := range p.Affinity {
		here, anywhere := w.matchingPods(term, n)
		if here == 0 && (anywhere > 0 || !term.Selector.Matches(p.Labels)) {
			return false
		}
	}
	for _, term := range p.AntiAffinity {
		if here, _ := w.matchingPods(term, n); here > 0 {
			return false
		}
	}
	for _, other := range w.pods {
		host := w.nodes[other.NodeName]
		if host == nil || other.Terminal() {
			continue
		}
		for _, term := range other.AntiAffinity {
			a, okA := domainOf(host, term.Key)
			b, okB := domainOf(n, term.Key)
			if okA && okB && a == b && term.Selector.Matches(p.Labels) {
				return false
			}
		}
	}
	return true
}

// matchingPods counts the pods that the term selects in the node's domain, and in any.
func (w *world) matchingPods(term cluster.AffinityTerm, n *node) (here, anywhere int) {
	want, ok := domainOf(n, term.Key)
	for _, other := range w.pods {
		host := w.nodes[other.NodeName]
		if host == nil || other.Terminal() || !term.Selector.Matches(other.Labels) {
			continue
		}
		anywhere++
		if d, there := domainOf(host, term.Key); there && ok && d == want {
			here++
		}
	}
	return here, anywhere
}

// spreadAllows reports whether the hard topology spread constraints of the pod allow the node.
func (w *world) spreadAllows(p *pod, n *node) bool {
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		own, ok := domainOf(n, s.Key)
		if !ok {
			return false
		}
		count := map[string]int{}
		for _, other := range w.nodes {
			if d, there := domainOf(other, s.Key); there && podSelects(p, other.Labels) {
				count[d] += 0
			}
		}
		for _, other := range w.pods {
			host := w.nodes[other.NodeName]
			if host == nil || !other.Active() || !s.Selector.Matches(other.Labels) || !podSelects(p, host.Labels) {
				continue
			}
			if d, there := domainOf(host, s.Key); there {
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
