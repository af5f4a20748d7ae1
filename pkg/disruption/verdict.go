package disruption

import "strings"

// verdict holds all that a pass finds and decides about a node; but for its Budget nothing else changes in a pass. Its
// methods are the only writers of its fields.
//
// Precedence: what was found last holds, because it answers the latest question: whether the node is a candidate, or
// what the packer, the price or a budget says of a set with it. Only presumeNotConsolidated yields to a reason that
// stands: it says what an estimate, a budget or an earlier pass makes likely, and an answer tells more. Where a method
// may be given no reason, its comment says what that means.
type verdict struct {
	taken           bool    // a command or proposal of this pass has it
	blocked         refusal // why it may not go gracefully; the zero value lets it go
	driftBlocked    refusal // why it may not go although it drifted
	notConsolidated refusal // why it is not consolidated, found on the way
	notReplaced     refusal // why it stays although it drifted and may go
	needsSplit      bool    // its pods need nodes of two revisions
}

// refusal is a reason why a node stays.
type refusal struct {
	reason IneligibleReason
	why    string
}

// maxReasonLength is the largest number of bytes of why a node is not consolidated. All of it is remembered from pass
// to pass, so that passes tell the same.
const maxReasonLength = 300

func (r refusal) shortened() refusal {
	if len(r.why) > maxReasonLength {
		r.why = strings.ToValidUTF8(r.why[:maxReasonLength-len("…")], "") + "…"
	}
	return r
}

// take has a command or proposal of this pass disrupt the node. A taken node stays taken.
func (v *verdict) take() { v.taken = true }

// blockDisruption records why the node may not go gracefully, and why not where it drifted. No reason lets it go.
func (v *verdict) blockDisruption(gracefully, drifted refusal) {
	v.blocked, v.driftBlocked = gracefully, drifted
}

// reviewConsolidation records why the node, or a set with it, is not consolidated, in place of all that was found
// before. No reason makes it a candidate.
func (v *verdict) reviewConsolidation(r refusal) { v.notConsolidated = r.shortened() }

// presumeNotConsolidated records why the node is probably not consolidated. The first reason holds.
func (v *verdict) presumeNotConsolidated(r refusal) {
	if v.notConsolidated.reason == "" {
		v.notConsolidated = r.shortened()
	}
}

// refuseSet records why none of the nodes is consolidated. The last reason holds.
func refuseSet(set []*stateNode, r refusal) {
	for _, n := range set {
		n.reviewConsolidation(r)
	}
}

// refuseReplacement records why the drifted node is not replaced. The last reason holds; no reason changes nothing.
func (v *verdict) refuseReplacement(r refusal) {
	if r.reason != "" {
		v.notReplaced = r
	}
}

// refuseTrial is refuseReplacement for a node whose pods need more nodes than the step of a NodeRollout allows. With
// split they may be divided among nodes of two revisions.
func (v *verdict) refuseTrial(r refusal, split bool) {
	v.refuseReplacement(r)
	v.needsSplit = split
}
