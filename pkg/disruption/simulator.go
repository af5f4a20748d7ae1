package disruption

import (
	"maps"
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/resources"
)

// The packer says that pods can have a place; the scheduler, which gives each the emptiest node, may leave some without. A board plays
// the scheduler, so that a command brings what its pods will need, and saves what it says; and it finds in no time which nodes may be
// worth a question to the packer.

// simNode is a node that moved pods may come to.
type simNode struct {
	index     int
	name      string
	labels    map[string]string
	taints    []cluster.Taint
	free, all resources.List
	gone      bool // takes no pods
	held      bool // takes none yet
	taken     int  // moved pods that it got
}

// simulator is nodes with the pods on them. Moves on it are noted, and taken back with back.
type simulator struct {
	s        cluster.Snapshot
	sites    []*simNode
	byName   map[string]*simNode
	sorts    map[string]*podClass // by text
	sortOf   map[podName]*podClass
	counters map[string]*podCounter
	order    []*podCounter // in the order in which they came
	text     []byte
	steps    []simStep
	looks    int  // how many sites were looked at for pods
	blind    bool // no pod goes where the packer put it
}

// podName is a pod's key without making a text of it.
type podName struct{ namespace, name string }

// simStep is one move: a pod of the sort came to the site or left it, or the site went, or it came last.
type simStep struct {
	what stepKind
	sort *podClass
	at   *simNode
}

type stepKind int

const (
	podCame stepKind = iota
	podLeft
	siteLeft
	siteCame
)

// newBoard has the hosts of s that take pods, but for those that are out.
func newBoard(s cluster.Snapshot, out map[string]bool) *simulator {
	b := &simulator{s: s, byName: map[string]*simNode{}, sorts: map[string]*podClass{}, sortOf: map[podName]*podClass{}, counters: map[string]*podCounter{}}
	used, daemons := map[string]resources.List{}, map[string]resources.List{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" || p.Terminal() || p.Virtual {
			continue
		}
		used[p.NodeName] = used[p.NodeName].Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			daemons[p.NodeName] = daemons[p.NodeName].Add(p.Need)
		}
	}
	for _, h := range s.StateNodes() {
		if out[h.Name()] || h.MarkedForDeletion() || h.Node == nil {
			continue
		}
		x := &simNode{index: len(b.sites), name: h.Name(), labels: h.Labels(), taints: h.Taints(), all: h.Allocatable()}
		var kept resources.List
		for i := range s.Daemons {
			if nodeAdmits(x, &s.Daemons[i]) {
				kept = kept.Add(s.Daemons[i].Need)
			}
		}
		x.free = x.all.Sub(used[x.name]).Sub(kept.Sub(daemons[x.name]).Max(resources.List{}))
		b.sites, b.byName[x.name] = append(b.sites, x), x
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if x := b.byName[p.NodeName]; x != nil && p.Active() && !p.Virtual {
			b.classOf(p).countPods(x, 1)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(b.sorts)) { // those that stand keep others away
		b.prepareCounters(b.sorts[text])
	}
	return b
}

// removeNode takes the node away with all that stands on it. What of that moves is to be put elsewhere.
func (b *simulator) removeNode(n *stateNode) {
	x := b.byName[n.Name()]
	if x == nil || x.gone {
		return
	}
	for _, p := range n.moving {
		if !p.Active() {
			continue // it is not counted
		}
		b.applyStep(simStep{podLeft, b.classOf(p), x})
	}
	b.applyStep(simStep{siteLeft, nil, x})
}

// addNode adds a node.
func (b *simulator) addNode(x *simNode) {
	x.index = len(b.sites)
	b.applyStep(simStep{siteCame, nil, x})
}

// undoTo takes back all but the first moves.
func (b *simulator) undoTo(to int) {
	for len(b.steps) > to {
		last := b.steps[len(b.steps)-1]
		b.steps = b.steps[:len(b.steps)-1]
		b.undoStep(last)
	}
}

func (b *simulator) applyStep(s simStep) {
	b.steps = append(b.steps, s)
	switch s.what {
	case podCame:
		s.at.free = s.at.free.Sub(s.sort.pod.Need)
		s.at.taken++
		s.sort.countPods(s.at, 1)
	case podLeft:
		s.sort.countPods(s.at, -1)
	case siteLeft:
		s.at.gone = true
		b.countNode(s.at, -1)
	case siteCame:
		b.sites, b.byName[s.at.name] = append(b.sites, s.at), s.at
		for _, c := range b.order {
			c.addNodeDomain(s.at)
		}
		for _, k := range b.sorts {
			k.addLastNode(s.at)
		}
	}
}

func (b *simulator) undoStep(s simStep) {
	switch s.what {
	case podCame:
		s.at.free = s.at.free.Add(s.sort.pod.Need)
		s.at.taken--
		s.sort.countPods(s.at, -1)
	case podLeft:
		s.sort.countPods(s.at, 1)
	case siteLeft:
		s.at.gone = false
		b.countNode(s.at, 1)
	case siteCame:
		b.sites = b.sites[:len(b.sites)-1]
		delete(b.byName, s.at.name)
		for _, c := range b.order {
			c.removeNodeDomain(s.at)
		}
		for _, k := range b.sorts {
			k.removeLastNode(s.at)
		}
	}
}

// bindPods puts the pods onto the sites one after the other. It returns those that find no place. Where more decides about a pod than what
// a board knows, it goes where the packer put it: planned names the site by pod.
func (b *simulator) bindPods(pods []*cluster.Pod, planned map[string]string) []*cluster.Pod {
	return b.bindUntilStuck(pods, planned, true)
}

// bindUntilStuck is run that stops, unless all are wanted, at the first pod without a place.
func (b *simulator) bindUntilStuck(pods []*cluster.Pod, planned map[string]string, all bool) (left []*cluster.Pod) {
	for _, p := range pods {
		if b.blind || !hasUnmodelledConstraints(p) {
			continue
		}
		if x := b.byName[planned[p.Key()]]; x != nil && !x.gone && p.Need.FitsIn(x.free) {
			b.applyStep(simStep{podCame, b.classOf(p), x})
		} else {
			left = append(left, p)
		}
		if len(left) > 0 && !all {
			return left
		}
	}
	for _, p := range pods {
		if !b.blind && hasUnmodelledConstraints(p) {
			continue
		}
		k := b.classOf(p)
		if x := b.emptiestNode(k); x != nil {
			b.applyStep(simStep{podCame, k, x})
		} else {
			left = append(left, p)
		}
		if len(left) > 0 && !all {
			return left
		}
	}
	return left
}

// emptiestNode is the emptiest site that takes a pod of the sort, or nil.
func (b *simulator) emptiestNode(k *podClass) (out *simNode) {
	need := k.pod.Need
	rules := b.rulesOf(k)
	most := 0.0
	all := b.admittingNodes(k)
	b.looks += len(all)
	for _, x := range all {
		if x.gone || x.held || x.free.CPU < need.CPU || x.free.Memory < need.Memory {
			continue
		}
		e := x.freeShare(need)
		if (out == nil || e > most) && need.FitsIn(x.free) && rules.allowsNode(x) {
			out, most = x, e
		}
	}
	return out
}

// unschedulableEitherWay are the pods that do leaves without a place, which runs them: with those of which a board does not know all where the packer put
// them, else, since the scheduler may have another mind, as if there were no more to know. It takes back what do does.
func (b *simulator) unschedulableEitherWay(pods []*cluster.Pod, do func() []*cluster.Pod) []*cluster.Pod {
	before := len(b.steps)
	left := do()
	b.undoTo(before)
	if len(left) > 0 || !slices.ContainsFunc(pods, hasUnmodelledConstraints) {
		return left
	}
	b.blind = true
	left = do()
	b.undoTo(before)
	b.blind = false
	return left
}

// hasUnmodelledConstraints reports whether more decides where the pod may be than a board knows.
func hasUnmodelledConstraints(p *cluster.Pod) bool {
	return len(p.HostPorts)+len(p.VolumeZones)+len(p.Volumes)+len(p.UnreadClaims) > 0
}
