package sim

import (
	"context"
	"slices"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
)

// TolerateNomination makes the pod tolerate the taint of a held node.
func (p *Ports) TolerateNomination(ctx context.Context, pod cluster.Pod, t cluster.Taint) error {
	return tryPort(ctx, p, "let tolerate", pod.Key()+" "+t.Value, func() error {
		have, ok := p.w.pods[pod.Key()]
		if !ok || have.UID != pod.UID || slices.Contains(have.Holds, t.Value) {
			return nil
		}
		p.w.countMutation("let tolerate")
		have.Holds = append(slices.Clone(have.Holds), t.Value)
		p.w.trySchedule()
		return nil
	})
}

// OpenNode takes the hold off the node.
func (p *Ports) OpenNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "open node", n, func(have *node) bool {
		p.w.checkOurs(have, "opened")
		before := len(have.Taints)
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints), cluster.Taint.IsNomination)
		p.w.trySchedule()
		return len(have.Taints) < before
	})
}

// allTolerations are all of the pod's, those for held nodes too.
func (p *pod) allTolerations() []cluster.Toleration {
	out := slices.Clone(p.Tolerations)
	if len(p.Holds) > 0 {
		out = append(out, cluster.Toleration{Key: v1.TaintHold, Operator: "Equal", Value: v1.HoldAtBoot,
			Effect: "NoSchedule"})
	}
	for _, h := range p.Holds {
		out = append(out, cluster.Toleration{Key: v1.TaintHold, Operator: "Equal", Value: h, Effect: "NoSchedule"})
	}
	return out
}
