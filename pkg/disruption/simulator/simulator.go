// Package simulator plays kube-scheduler on a snapshot: which pods find a node when others are gone, and which do not.
//
// The packer says that pods can have a place; the scheduler, which gives each pod the emptiest node, may leave some
// without. Start reading at Simulator.Bind. Everything that is done to a Simulator can be undone, so that many sets of
// nodes are tried on one. It knows labels, taints, spreads, pod affinity and resources. It refuses to know host ports,
// volumes, prices and what new nodes there could be: pods that depend on host ports or volumes go where the packer put
// them.
package simulator

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/podclass"
)

// Node is a node that moved pods may come to.
type Node struct {
	index     int
	name      string
	labels    map[string]string
	taints    []cluster.Taint
	provides  func(part string) bool // whether it has what a pod requires
	free, all resources.List
	gone      bool // takes no pods
	held      bool // takes none yet
	taken     int  // moved pods that it got
}

// Simulator is nodes with the pods on them. What is done to it is recorded, and taken back with UndoTo.
type Simulator struct {
	s          cluster.Snapshot
	spaces     topology.Namespaces
	nodes      []*Node
	byName     map[string]*Node
	classes    map[string]*podClass // by text
	classByPod map[podName]*podClass
	counters   map[string]*podCounter
	admissions map[string]*admission // by text
	blocks     nodeBlocks
	order      []*podCounter // in the order in which they came
	apart      []*podClass   // that stand, with required anti-affinity; it counts once it is about a pod that moves
	signature  podclass.Signature
	steps      []step
	looks      int  // for each pod that was bound: the nodes that admit it
	blind      bool // no pod goes where the packer put it
	retries    bool // pods that must be beside others are tried again after each that comes, not after all
}

// podName is a pod's key without making a text of it.
type podName struct{ namespace, name string }

// step is one change: a pod of the class came to the node or left it, or the node went, or it came last.
type step struct {
	what  stepKind
	class *podClass
	at    *Node
}

type stepKind int

const (
	podCame stepKind = iota
	podLeft
	nodeLeft
	nodeCame
)

// New returns a simulator of the nodes of s that take pods, without those named in out.
func New(s cluster.Snapshot, out map[string]bool) *Simulator {
	sim := &Simulator{s: s, spaces: topology.IndexNamespaces(s.Namespaces), byName: map[string]*Node{},
		classes:    map[string]*podClass{},
		classByPod: map[podName]*podClass{}, counters: map[string]*podCounter{}, admissions: map[string]*admission{}}
	used, daemons := sumNeeds(s.Pods)
	for _, node := range s.StateNodes() {
		if out[node.Name()] || node.MarkedForDeletion() || node.Standby() || node.Node == nil {
			continue
		}
		n := &Node{index: len(sim.nodes), name: node.Name(), labels: node.Labels(),
			taints: cluster.HardTaints(node.Taints()), all: node.Allocatable(),
			provides: func(part string) bool { return sim.s.Provides(node, part) }}
		var kept resources.List
		for i := range s.Daemons {
			if nodeAdmits(n, &s.Daemons[i]) && s.Daemons[i].Need.FitsIn(n.all) { // or it never runs there
				kept = kept.Add(s.Daemons[i].Need)
			}
		}
		n.free = n.all.Sub(used[n.name]).Sub(kept.Sub(daemons[n.name]).Max(resources.List{}))
		sim.nodes, sim.byName[n.name] = append(sim.nodes, n), n
		sim.blocks.forgetBounds(n)
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if n := sim.byName[p.NodeName]; n != nil && p.Active() && !p.Virtual {
			sim.classOf(p).countPods(n, 1)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(sim.classes)) {
		if class := sim.classes[text]; len(class.pod.AntiAffinity) > 0 {
			sim.apart = append(sim.apart, class)
		}
	}
	return sim
}

// sumNeeds returns by node what the pods on it need, with those for which others make way there, and what those of
// DaemonSets need among them.
func sumNeeds(pods []cluster.Pod) (used, daemons map[string]resources.List) {
	used, daemons = map[string]resources.List{}, map[string]resources.List{}
	for i := range pods {
		p := &pods[i]
		on := p.NodeName
		if on == "" && p.Active() {
			on = p.Nominated
		}
		if on == "" || p.Terminal() || p.Virtual {
			continue
		}
		used[on] = used[on].Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			daemons[on] = daemons[on].Add(p.Need)
		}
	}
	return used, daemons
}

// RemoveNode takes a node away with all pods on it. Those that move are to be bound elsewhere. It does nothing about a
// node that is not there.
func (sim *Simulator) RemoveNode(name string, moving []*cluster.Pod) {
	n := sim.byName[name]
	if n == nil || n.gone {
		return
	}
	for _, p := range moving {
		if !p.Active() {
			continue // it is not counted
		}
		sim.applyStep(step{podLeft, sim.classOf(p), n})
	}
	sim.applyStep(step{nodeLeft, nil, n})
}

// AddNode adds a node without pods.
func (sim *Simulator) AddNode(n *Node) {
	n.index = len(sim.nodes)
	sim.applyStep(step{nodeCame, nil, n})
}

// Mark names the present state, for UndoTo.
func (sim *Simulator) Mark() int { return len(sim.steps) }

// Looks is the work so far, the same on every machine: for each pod that was bound, how many nodes admit it.
func (sim *Simulator) Looks() int { return sim.looks }

// Node is the node of that name, nil when it is not there. One that was removed is.
func (sim *Simulator) Node(name string) *Node { return sim.byName[name] }

// Place puts the pod onto the node whatever the rules say. It reports whether there is such a node.
func (sim *Simulator) Place(p *cluster.Pod, node string) bool {
	n := sim.byName[node]
	if n != nil {
		sim.applyStep(step{podCame, sim.classOf(p), n})
	}
	return n != nil
}

// LastPlaced is the node of the pod that was placed or bound last, if that was the last change; else it is empty.
func (sim *Simulator) LastPlaced() string {
	if n := len(sim.steps); n > 0 && sim.steps[n-1].what == podCame {
		return sim.steps[n-1].at.name
	}
	return ""
}

// Representative is one pod for all those that no rule of the scheduler tells apart from p, always the same one.
func (sim *Simulator) Representative(p *cluster.Pod) *cluster.Pod { return sim.classOf(p).pod }

// UndoTo takes back what was done since the mark.
func (sim *Simulator) UndoTo(mark int) {
	for len(sim.steps) > mark {
		last := sim.steps[len(sim.steps)-1]
		sim.steps = sim.steps[:len(sim.steps)-1]
		sim.undoStep(last)
	}
}

func (sim *Simulator) applyStep(s step) {
	sim.steps = append(sim.steps, s)
	switch s.what {
	case podCame:
		s.at.free = s.at.free.Sub(s.class.need)
		sim.blocks.forgetBounds(s.at)
		s.at.taken++
		s.class.countPods(s.at, 1)
	case podLeft:
		s.class.countPods(s.at, -1)
	case nodeLeft:
		s.at.gone = true
		sim.blocks.forgetBounds(s.at)
		countNodes(sim.order, s.at, -1)
	case nodeCame:
		sim.nodes, sim.byName[s.at.name] = append(sim.nodes, s.at), s.at
		for _, c := range sim.order {
			c.addNodeDomain(s.at)
		}
		for _, a := range sim.admissions {
			a.addNode(s.at)
		}
		sim.blocks.forgetBounds(s.at)
	}
}

func (sim *Simulator) undoStep(s step) {
	switch s.what {
	case podCame:
		s.at.free = s.at.free.Add(s.class.need)
		sim.blocks.forgetBounds(s.at)
		s.at.taken--
		s.class.countPods(s.at, -1)
	case podLeft:
		s.class.countPods(s.at, 1)
	case nodeLeft:
		s.at.gone = false
		sim.blocks.forgetBounds(s.at)
		countNodes(sim.order, s.at, 1)
	case nodeCame:
		sim.nodes = sim.nodes[:len(sim.nodes)-1]
		delete(sim.byName, s.at.name)
		for _, c := range sim.order {
			c.removeNodeDomain(s.at)
		}
		for _, a := range sim.admissions {
			a.removeNode(s.at)
		}
		sim.blocks.forgetBounds(s.at)
	}
}
