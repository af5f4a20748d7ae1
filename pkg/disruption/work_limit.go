package disruption

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// A pass is bounded by work, not by time: by its questions, and by how much the packer has to look at for them. What
// was not asked, and what of a question was not followed up, comes first in the next pass.
const (
	// workPerQuestion is the work that a pass may do for each question that it may ask. With 24 questions up to a
	// thousand nodes hardly need more; of 2,000 nodes it is two seconds of CPU.
	workPerQuestion = 800
	// newNodeWork is the factor by which making room for a pod on new nodes is more work than finding it some.
	newNodeWork = 4
)

// workMeter counts the questions of a pass to the packer, and how much it had to look at for them.
type workMeter struct {
	steps, nodes int // the questions that a pass may ask, and the nodes of the cluster
	asked, work  int // so far
	before       int // work before the present search began
}

// workLimit returns the work that a pass may do before it begins nothing more.
func (m *workMeter) workLimit() int { return m.steps * workPerQuestion }

// canAfford reports whether that much more work is left in this pass.
func (m *workMeter) canAfford(work int) bool { return m.work+work <= m.workLimit() }

// questionWork returns the work of a question about that many pods, of which fresh go to new nodes. Every node is
// looked at, which is quickly done.
func (m *workMeter) questionWork(pods, fresh int) int { return m.nodes/2 + pods + fresh*newNodeWork }

// countQuestion counts a question about so many pods that was answered.
func (m *workMeter) countQuestion(pods int, p plan.Plan) {
	fresh := 0
	for _, l := range p.Launches {
		fresh += len(l.Pods)
	}
	m.asked++
	m.work += m.questionWork(pods, fresh)
}

// startSearch counts what was asked until now as asked about proposals.
func (m *workMeter) startSearch() { m.before = m.work }

// mayEvaluate reports whether enough work is left for the question. For the first question of a search there always is,
// unless proposals were asked about before: else a set that is much work would never be asked about.
func (s *setSearch) mayEvaluate(x candidateSet) bool {
	if s.asked == 0 && s.eval.meter.before == 0 {
		return true
	}
	return s.eval.meter.asked < s.eval.meter.steps && s.eval.meter.canAfford(x.work)
}

// resumeSet evaluates the set that the pass before had no work left for.
func (s *setSearch) resumeSet(claims []string) {
	may := s.shared
	if len(claims) == 1 {
		may = s.all
	}
	var set []*stateNode
	for _, name := range claims {
		if i := slices.IndexFunc(may, func(n *stateNode) bool { return n.Claim.Name == name }); i >= 0 {
			set = append(set, may[i])
		}
	}
	if len(set) == 0 {
		return
	}
	x := candidateSet{set: set, work: s.eval.meter.questionWork(podsOf(set), podsOf(set))}
	if x.usd = s.eval.estimateSavings(set); x.usd <= 0 {
		return
	}
	if !s.mayEvaluate(x) {
		s.unfinished, s.rest = true, set
		return
	}
	s.evaluateOne(x, true)
}

func podsOf(set []*stateNode) (n int) {
	for _, x := range set {
		n += len(x.moving)
	}
	return n
}

// movingOf returns the pods that move when the nodes go.
func movingOf(set []*stateNode) (out []*cluster.Pod) {
	for _, n := range set {
		out = append(out, n.moving...)
	}
	return out
}
