package simulator

import (
	"math"
	"math/bits"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// nodesPerBlock is the number of nodes in a block: as many as a word has bits.
const nodesPerBlock = bits.UintSize

// nodeBlock bounds the room of the nodes of a block, so that a search passes over those that cannot be the emptiest.
type nodeBlock struct {
	known     bool            // the bounds are those of now
	share     float64         // the most that freeShare is of them, for a pod that needs nothing
	free, all cpuMemoryBounds // the most of each
}

// cpuMemoryBounds is CPU in millicores and memory in bytes.
type cpuMemoryBounds struct{ cpu, memory int64 }

// findBounds looks at the nodes of a block that are not gone.
func findBounds(nodes []*Node) nodeBlock {
	b := nodeBlock{known: true, share: math.Inf(-1), free: cpuMemoryBounds{math.MinInt64, math.MinInt64}}
	for _, n := range nodes {
		if n.gone {
			continue
		}
		b.share = max(b.share, n.freeShare(resources.List{}))
		b.free = cpuMemoryBounds{max(b.free.cpu, n.free.CPU), max(b.free.memory, n.free.Memory)}
		b.all = cpuMemoryBounds{max(b.all.cpu, n.all.CPU), max(b.all.memory, n.all.Memory)}
	}
	return b
}

// maxFreeShare is at least what freeShare is of any node of the block for a pod that needs that much: its terms are
// bounds of the same terms in the same order, and rounding keeps their order. fits is false where none has the room.
func (b *nodeBlock) maxFreeShare(need resources.List) (share float64, fits bool) {
	if b.free.cpu < need.CPU || b.free.memory < need.Memory {
		return 0, false
	}
	return b.share - float64(need.CPU)/float64(max(b.all.cpu, 1)) -
		float64(need.Memory)/float64(max(b.all.memory, 1)), true
}

// nodeBlocks are all blocks, in the order of the nodes.
type nodeBlocks []nodeBlock

// boundsOf is the i-th block of the nodes with its bounds.
func (blocks nodeBlocks) boundsOf(i int, nodes []*Node) *nodeBlock {
	b := &blocks[i]
	if !b.known {
		*b = findBounds(nodes[i*nodesPerBlock : min(len(nodes), (i+1)*nodesPerBlock)])
	}
	return b
}

// forgetBounds has the block of the node looked at anew, because its room changes or it comes or goes.
func (blocks *nodeBlocks) forgetBounds(n *Node) {
	i := n.index / nodesPerBlock
	for len(*blocks) <= i {
		*blocks = append(*blocks, nodeBlock{})
	}
	(*blocks)[i].known = false
}

// admission is the nodes whose labels and taints admit pods that are alike in what they ask of these.
type admission struct {
	pod   *cluster.Pod // any one of them
	words []uint       // a bit for each node, by index
	count int
}

func (a *admission) addNode(n *Node) {
	i := n.index / nodesPerBlock
	for len(a.words) <= i {
		a.words = append(a.words, 0)
	}
	if nodeAdmits(n, a.pod) {
		a.words[i] |= 1 << (n.index % nodesPerBlock)
		a.count++
	}
}

func (a *admission) removeNode(n *Node) {
	word, bit := &a.words[n.index/nodesPerBlock], uint(1)<<(n.index%nodesPerBlock)
	if *word&bit != 0 {
		*word &^= bit
		a.count--
	}
}

// admissionOf returns the admission of the pods of the class.
func (sim *Simulator) admissionOf(class *podClass) *admission {
	if class.admission != nil {
		return class.admission
	}
	text := sim.signature.NodeText(class.pod)
	a, known := sim.admissions[string(text)]
	if !known {
		a = &admission{pod: class.pod}
		sim.admissions[string(text)] = a
		for _, n := range sim.nodes {
			a.addNode(n)
		}
	}
	class.admission = a
	return a
}

// roomSearch looks for the emptiest node that takes a pod of a class.
type roomSearch struct {
	sim   *Simulator
	admit *admission
	need  resources.List
	rules classRules
	out   *Node
	share float64
}

// lookAtBlock looks at the nodes of a block that admit the pod. Of nodes that are as empty the first one wins.
func (r *roomSearch) lookAtBlock(i int) {
	for word := r.admit.words[i]; word != 0; word &= word - 1 {
		n := r.sim.nodes[i*nodesPerBlock+bits.TrailingZeros(word)]
		if n.gone || n.held || n.free.CPU < r.need.CPU || n.free.Memory < r.need.Memory {
			continue
		}
		share := n.freeShare(r.need)
		better := r.out == nil || share > r.share || share == r.share && n.index < r.out.index
		if better && r.need.FitsIn(n.free) && r.rules.allowsNode(n) {
			r.out, r.share = n, share
		}
	}
}

// emptiestNode is the emptiest node that takes a pod of the class, or nil. It begins where the most room may be, so
// that it passes over most other blocks.
func (sim *Simulator) emptiestNode(class *podClass) *Node {
	r := roomSearch{sim: sim, admit: sim.admissionOf(class), need: class.need, rules: sim.rulesOf(class)}
	sim.looks += r.admit.count
	first, most := -1, 0.0
	for i, word := range r.admit.words {
		if word == 0 {
			continue
		}
		if share, fits := sim.blocks.boundsOf(i, sim.nodes).maxFreeShare(r.need); fits && (first < 0 || share > most) {
			first, most = i, share
		}
	}
	if first < 0 {
		return nil
	}
	r.lookAtBlock(first)
	for i, word := range r.admit.words {
		if i == first || word == 0 {
			continue
		}
		share, fits := sim.blocks.boundsOf(i, sim.nodes).maxFreeShare(r.need)
		if fits && (r.out == nil || share >= r.share) {
			r.lookAtBlock(i)
		}
	}
	return r.out
}
