package disruption

import (
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
)

// A pass is bounded by work, not by time: by its questions, and by how much the packer has to look at for them. What was not asked, and what
// of a question was not followed up, comes first in the next pass.
const (
	// stepWork is how much work a pass may do for each question that it may ask. With 24 questions up to a thousand nodes hardly need more;
	// of 2,000 nodes it is two seconds of CPU.
	stepWork = 800
	// freshWork is how much more it is to make room on new nodes for a pod than to find it some.
	freshWork = 4
)

// workMeter counts the questions of a pass to the packer, and how much it had to look at for them.
type workMeter struct {
	steps, nodes int // the questions that a pass may ask, and the nodes of the cluster
	asked, work  int // so far
	before       int // work before the present search began
}

// most is how much work a pass may do before it begins no more.
func (m *workMeter) most() int { return m.steps * stepWork }

// affords reports whether so much more work is left in this pass.
func (m *workMeter) affords(work int) bool { return m.work+work <= m.most() }

// of is how much a question is about so many pods, so many of them on new nodes: every node is looked at, which is quickly done.
func (m *workMeter) of(pods, fresh int) int { return m.nodes/2 + pods + fresh*freshWork }

// count counts a question about so many pods that was answered.
func (m *workMeter) count(pods int, p plan.Plan) {
	fresh := 0
	for _, l := range p.Launches {
		fresh += len(l.Pods)
	}
	m.asked++
	m.work += m.of(pods, fresh)
}

// startSearch has what was asked until now count as asked about proposals.
func (m *workMeter) startSearch() { m.before = m.work }

// mayEvaluate reports whether there is enough left for the question. For the first one of a search there is, unless others were asked before that
// the next pass does not ask: what is much would never be asked.
func (s *setSearch) mayEvaluate(x candidateSet) bool {
	if s.asked == 0 && s.eval.meter.before == 0 {
		return true
	}
	return s.eval.meter.asked < s.eval.meter.steps && s.eval.meter.affords(x.work)
}

// resumeSet asks about the set that was not followed up in the pass before.
func (s *setSearch) resumeSet(claims []string) {
	var set []*stateNode
	for _, name := range claims {
		if n := s.byClaim[name]; n != nil && slices.Contains(s.all, n) {
			set = append(set, n)
		}
	}
	if len(set) == 0 {
		return
	}
	x := candidateSet{set: set, work: s.eval.meter.of(podsOf(set), podsOf(set))}
	if x.usd = s.eval.estimateSavings(set); x.usd <= 0 {
		return
	}
	if !s.mayEvaluate(x) {
		s.more, s.rest = true, set
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

// movingOf are the pods that move when the nodes go.
func movingOf(set []*stateNode) (out []*cluster.Pod) {
	for _, n := range set {
		out = append(out, n.moving...)
	}
	return out
}
