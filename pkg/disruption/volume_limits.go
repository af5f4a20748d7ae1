package disruption

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// A new node says how many volumes it attaches only when its CSI driver has registered. A replacement that turns out to
// attach too few is launched in vain, and the next attempt would end the same way. So a launch is expected to attach
// what nodes of its instance type do, or, where all drivers are told to attach few, other nodes.

// splitByVolumes returns the pods of a launch whose volumes its node is expected to attach together, and the others.
func (ev *Evaluator) splitByVolumes(l plan.Launch) (attached, beyond []*cluster.Pod) {
	if ev.volumes == nil {
		known := cluster.ReadVolumeLimits(ev.state.snapshot.StateNodes())
		ev.volumes = &known
	}
	ebs := func(name string) int64 { return ev.attachableEBS(l.Pool, name) }
	free := ev.volumes.LoweredFrom(ebs).ExpectedOn(l.Choice.Type, ebs(l.Choice.Type))
	there := map[cluster.Volume]bool{}
	for _, p := range ev.state.podsByKeys(l.Pods) {
		need := map[string]int64{}
		for _, v := range slices.Compact(slices.Clone(p.Volumes)) { // sorted
			if !there[v] {
				need[v.Driver]++
			}
		}
		exceeds := false
		for driver, n := range need {
			limit, limited := free[driver]
			exceeds = exceeds || limited && n > limit
		}
		if exceeds {
			beyond = append(beyond, p)
			continue
		}
		attached = append(attached, p)
		for _, v := range p.Volumes {
			there[v] = true
		}
		for driver, n := range need {
			if _, limited := free[driver]; limited {
				free[driver] -= n
			}
		}
	}
	return attached, beyond
}

// attachableEBS returns EC2's number of EBS volumes for an instance type of the pool, 0 where it is not known.
func (ev *Evaluator) attachableEBS(pool, instanceType string) int64 {
	p, _ := ev.state.snapshot.PoolOf(pool)
	t, _ := ev.state.typeIn(p, instanceType)
	return t.EBSVolumes
}

// withinVolumeLimits returns the plan with more nodes in place of each that is expected to attach too few volumes for
// its pods. A pod that has too many by itself is unplaced. The nodes of the set go, and no node that is launched
// besides takes these pods.
func (ev *Evaluator) withinVolumeLimits(p plan.Plan, set []*stateNode, besides []plan.Launch) plan.Plan {
	var within, over []plan.Launch
	for _, l := range p.Launches {
		if _, beyond := ev.splitByVolumes(l); len(beyond) > 0 {
			over = append(over, l)
		} else {
			within = append(within, l)
		}
	}
	if len(over) == 0 {
		return p
	}
	p.Launches, p.Unplaced = within, slices.Clone(p.Unplaced)
	for _, l := range over {
		attached, beyond := ev.splitByVolumes(l)
		if len(attached) == 0 {
			p.Unplaced = append(p.Unplaced, tooManyVolumes(l)...)
			continue
		}
		for _, pods := range [][]*cluster.Pod{attached, beyond} {
			more := ev.planAlone(pods, set, slices.Concat(besides, p.Launches))
			p.Launches, p.Unplaced = append(p.Launches, more.Launches...), append(p.Unplaced, more.Unplaced...)
		}
	}
	return p
}

// tooManyVolumes returns the pods of a launch as unplaced.
func tooManyVolumes(l plan.Launch) (out []plan.Unplaced) {
	for _, pod := range l.Pods {
		out = append(out, plan.Unplaced{Pod: pod,
			Why: []string{"it has more volumes than nodes of type " + l.Choice.Type + " can have attached"}})
	}
	return out
}
