package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"joiner.sh/pkg/model/resources"
)

// scheduler binds pods to nodes by the rules of kube-scheduler.
type scheduler struct {
	*engine
	api        *apiServer
	kubelets   *kubelets
	volumes    *volumes
	scheduling bool // a look at the pods without a node is due
	mostTried  int  // so many pods are decided about in one look
}

// drawMostTried draws how slow kube-scheduler is: from a few pods a look to all.
func drawMostTried(seed uint64) int {
	return []int{1 << 20, 1 << 20, 2, 8}[rand.New(rand.NewPCG(seed, 0x7363686564)).IntN(4)]
}

// trySchedule has the scheduler look at the pods without a node soon, once.
func (k *scheduler) trySchedule() {
	if k.scheduling {
		return
	}
	k.scheduling = true
	k.runAfter(k.drawDuration(20*time.Millisecond, 400*time.Millisecond), func() {
		k.scheduling = false
		k.bindAll()
	})
}

// retryScheduling has the scheduler look again at pods for which it found no node, as it does when nodes come, change
// or go.
func (k *scheduler) retryScheduling() {
	for _, p := range k.api.pods {
		if p.NodeName == "" && p.Active() {
			k.trySchedule()
			return
		}
	}
}

// bindAll binds pods as kube-scheduler does: by priority and age, each to one of the nodes that may take it. It knows
// nothing of our plans, and shares no rule with them. A pod that is bound may make room for one before it, by spread
// or affinity, so those are looked at again. A slow one leaves the others for the next look.
func (k *scheduler) bindAll() {
	waiting := selectInOrder(k.api.pods, func(p *pod) bool { return p.NodeName == "" && p.Active() })
	slices.SortStableFunc(waiting, func(a, b *pod) int {
		if a.Priority != b.Priority {
			return int(b.Priority - a.Priority)
		}
		return a.Created.Compare(b.Created)
	})
	nodes, usedBy := selectInOrder(k.api.nodes, func(*node) bool { return true }), k.usedByNode()
	used := make([]resources.List, len(nodes))
	for i, n := range nodes {
		used[i] = usedBy[n.Name]
	}
	tries := k.mostTried
	for before := len(waiting) + 1; len(waiting) < before; {
		before = len(waiting)
		waiting = k.bindThose(waiting, nodes, used, &tries)
	}
	if tries == 0 {
		k.trySchedule()
	}
}

// bindThose binds the pods that have a place, as long as tries are left, and returns the others.
func (k *scheduler) bindThose(waiting []*pod, nodes []*node, used []resources.List, tries *int) (left []*pod) {
	for i, p := range waiting {
		if *tries == 0 {
			return append(left, waiting[i:]...)
		}
		var fit []int
		for i, n := range nodes {
			// Most nodes are full, which is the cheapest to find out.
			if used[i].Add(p.Need).FitsIn(n.Allocatable) && k.nodeFits(p, n, used[i]) {
				fit = append(fit, i)
			}
		}
		if len(fit) > 0 {
			*tries--
			i := fit[k.rng.IntN(len(fit))]
			k.bindPod(p, nodes[i])
			used[i] = used[i].Add(p.Need)
			continue
		}
		left = append(left, p)
		if !p.Unscheduled {
			*tries--
			p.Unscheduled = true
			k.api.notifyChange(aPod, nil)
		}
	}
	return left
}

// bindPod gives the pod to the kubelet of the node.
func (k *scheduler) bindPod(p *pod, n *node) {
	p.NodeName, p.Unscheduled, p.Started = n.Name, false, k.toSecond()
	n.bound = time.Now()
	if !p.app.daemon {
		k.addTrace("pod %s runs on %s", p.Name, n.Name)
	}
	k.kubelets.startPod(p, n)
}
