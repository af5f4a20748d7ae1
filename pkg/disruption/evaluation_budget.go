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

// mostWork is how much work a pass may do before it begins no more.
func (v *state) mostWork() int { return v.rules().steps * stepWork }

// affordsWork reports whether so much more work is left in this pass.
func (v *state) affordsWork(work int) bool { return v.work+work <= v.mostWork() }

// workOf is how much a question is about so many pods, so many of them on new nodes: every node is looked at, which is quickly done.
func (v *state) workOf(pods, fresh int) int { return len(v.s.Nodes)/2 + pods + fresh*freshWork }

// countWork counts a question that was answered.
func (v *state) countWork(pods int, p plan.Plan) {
	fresh := 0
	for _, l := range p.Launches {
		fresh += len(l.Pods)
	}
	v.asked++
	v.work += v.workOf(pods, fresh)
}

// mayEvaluate reports whether there is enough left for the question. For the first one of a search there is, unless others were asked before that
// the next pass does not ask: what is much would never be asked.
func (s *setSearch) mayEvaluate(x candidateSet) bool {
	if s.asked == 0 && s.v.before == 0 {
		return true
	}
	return s.v.asked < s.v.rules().steps && s.v.affordsWork(x.work)
}

// resumeSet asks about the set that was not followed up in the pass before.
func (s *setSearch) resumeSet(claims []string) {
	var set []*stateNode
	for _, name := range claims {
		if n := s.v.byClaim[name]; n != nil && slices.Contains(s.all, n) {
			set = append(set, n)
		}
	}
	if len(set) == 0 {
		return
	}
	x := candidateSet{set: set, work: s.v.workOf(podsOf(set), podsOf(set))}
	if x.usd = s.v.estimateSavings(set); x.usd <= 0 {
		return
	}
	if !s.mayEvaluate(x) {
		s.more, s.rest = true, set
		return
	}
	s.v.patient = true
	s.evaluateOne(x)
	s.v.patient = false
}

// followUp reports whether so much work is left in this pass to ask on about the set, and otherwise notes it for the next one.
func (v *state) followUp(set []*stateNode, work int) bool {
	if !v.affordsWork(work) {
		v.rest = set
		return false
	}
	return true
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
