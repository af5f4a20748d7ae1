package search

import (
	"math/rand/v2"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
)

// localSearch makes a plan cheaper step by step: it takes a few new nodes away, wasteful ones first, packs their pods
// anew by the same exact rules, and keeps that only where it costs less. Pods stay in the domains (zones, say) that
// they were given, so rules that count by domain hold all the time. What it does depends on nothing but the solution,
// and it counts in steps.
type localSearch struct {
	a       *packing.Solution
	prices  *prices.ShadowPrices
	nodes   []*searchNode // the nodes that may be taken apart
	hosts   []*searchNode // of them those that are there, while they are read
	tiers   []*weightTier
	step    int
	visit   int // of groups of nodes
	fresh   int // new nodes among those that may be taken apart
	work    int
	looked  int // work beside that: what offerings suit a batch is found once
	made    int
	use     capacity.SpotUsage // of the plan as it is
	ceiling int64              // of one pool of spot capacity, in millicores
	want    []int64
	free    bool // of the step: new nodes need no pod of their tier's own
	current []*packing.PodBatch
	memory  packing.GuideMemory // of the guides of steps
	chance  *rand.Rand          // equal searches draw equal numbers
}

// searchNode is a node as the search sees it, a new one or one that is there.
type searchNode struct {
	bin   *capacity.Bin
	host  *searchHost // nil for a new node
	parts []batchPart
	tier  *weightTier
	cost  float64
	scale float64 // what it costs; of a host, what its room is worth
	waste float64 // the same, beyond what its pods are worth
	tries int     // steps that began with it
}

// searchHost is a node that is there as the search sees it: pods of this plan may leave it, and others take their
// place. All that counts pods by domain stays as it is, because pods stay in their domains.
type searchHost struct {
	index int           // among the nodes that are there
	base  *capacity.Bin // without the pods that may leave
}

// hostTakes holds the pods that a step puts on a host, in place of the pods of this plan that were there.
type hostTakes struct {
	node  *searchNode
	takes []packing.BatchTake
}

// batchPart is some pods of a batch on a node.
type batchPart struct {
	batch *packing.PodBatch
	pods  []string
}

// weightTier is the pools of one weight: pods on their nodes stay on nodes of that weight.
type weightTier struct {
	pools     []*capacity.OfferingPool
	batches   []*packing.PodBatch
	supply    [][]string           // by batch: the pods of the step
	offerings []*capacity.Offering // worth a look, cheapest first
	own       []bool               // by batch: no heavier pool sells anything for it
	moves     []bool               // by batch: its pods may come to hosts, and leave them
	onHost    [][]int8             // by batch and host: 1 where its pods may be, -1 where not, once asked
	marked    []int                // by offering: the visit that looked at it last
	score     []float64
	best      [][]int32 // by batch: a few offerings that suit it, once asked
	fits      [][]int16 // by batch and offering: how many of its pods a node holds, once asked
}

// searchLimit caps the steps of a search, of which some are done, and the work that is worth it. What all searches of a
// plan may still do, worth it or not, is left; nil for any.
type searchLimit struct {
	steps, done, work int
	left              *int
}

const (
	// defaultSearchSteps caps the steps of a search where nothing says how many, as is right for so many nodes.
	defaultSearchSteps = patience * stepsPerNode
	// workPerLook and workPerStep are the work to look at a node or at an offering, and to pack anew.
	workPerLook, workPerStep = 100, 60_000
	// mostMates is the largest number of nodes that a step packs anew beside the one that it begins with. Half costs
	// 0.02 % more in the mean of the families of infra/lab/ablation, double 0.01 % less for a fifth more CPU. It is
	// twice that where nodes that are there take part, each of which has little room: half-empty clusters cost 0.5 %
	// less than with one and a half times, and another 0.2 % less with three times for a twelfth more CPU.
	mostMates = 8
)

func (n *searchNode) podsWorth() float64 {
	sum := 0.0
	for _, p := range n.parts {
		sum += float64(len(p.pods)) * p.batch.Value
	}
	return sum
}

// putPods puts pods of the step's into the bin, which is that of the node.
func (s *localSearch) putPods(x packing.BatchTake, b *capacity.Bin, n *searchNode, t *weightTier) {
	pods := slices.Clone(t.supply[x.Batch.ID][:x.N])
	t.supply[x.Batch.ID] = t.supply[x.Batch.ID][x.N:]
	s.a.AddToBin(x.LoadOf(pods), b)
	n.parts = append(n.parts, batchPart{x.Batch, pods})
}

// bestScores is the few that have the lowest scores, the first among equals.
type bestScores struct {
	index []int32
	score []float64
}

func (s *bestScores) isFull(most int) bool { return len(s.index) == most }

func (s *bestScores) addScore(index int32, score float64, most int) {
	at := len(s.index)
	for at > 0 && score < s.score[at-1] {
		at--
	}
	if at >= most {
		return
	}
	if len(s.index) == most {
		s.index, s.score = s.index[:most-1], s.score[:most-1]
	}
	s.index, s.score = slices.Insert(s.index, at, index), slices.Insert(s.score, at, score)
}

const (
	// patience caps the steps that a search goes on without having saved enough.
	patience = 100
	// stepsPerNode is the same for each node, where there is work to spare or more steps are asked for than usual. Half
	// costs the workloads of the bench 0.1 % more for a sixth less CPU, double 0.1 % less for a quarter more.
	stepsPerNode = 4
)

// searchProgress records the steps and the savings of a search so far.
type searchProgress struct {
	since int     // steps for which it goes on without having saved enough
	saved float64 // USD per hour, not enough yet
}

// countStep counts a step that saves the gain, after which the plan costs the total. What is enough is a small gap.
func (p *searchProgress) countStep(gain, total float64) {
	p.saved += gain
	p.since++
	if p.saved > smallGap*total {
		*p = searchProgress{}
	}
}

// patienceFor returns the steps for which the search goes on without having saved enough.
func (s *localSearch) patienceFor(most searchLimit) int {
	if most.work == 0 && most.steps <= defaultSearchSteps {
		return patience
	}
	return max(patience, stepsPerNode*len(s.nodes))
}
