package disruption

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// A new node says how many volumes it attaches only when its CSI driver has registered. A replacement that turns out to
// attach too few is launched in vain, and the next attempt would end the same way. So a launch is expected to attach
// what nodes of its instance type do.

// volumeLimits is how many volumes the CSI drivers of nodes attach, by driver.
type volumeLimits struct {
	least map[string]map[string]int64 // by instance type: what the node that attaches least of that type says
	most  map[string]int64            // what any node says
}

func readVolumeLimits(hosts []cluster.StateNode) volumeLimits {
	out := volumeLimits{least: map[string]map[string]int64{}, most: map[string]int64{}}
	for _, h := range hosts {
		if h.Node == nil {
			continue
		}
		name := h.Offer().Type
		for driver, limit := range h.Node.VolumeLimits {
			if limit <= 0 { // something is wrong there, and says nothing of other nodes
				continue
			}
			if out.least[name] == nil {
				out.least[name] = map[string]int64{}
			}
			least, known := out.least[name][driver]
			if !known || limit < least {
				out.least[name][driver] = limit
			}
			out.most[driver] = max(out.most[driver], limit)
		}
	}
	return out
}

// expectedOn returns how many volumes a new node of the instance type is expected to attach, by driver. Of a type that
// no node has told about it is as many as any node attaches. Drivers that are not named have no limit.
func (v volumeLimits) expectedOn(instanceType string) map[string]int64 {
	out := maps.Clone(v.most)
	maps.Copy(out, v.least[instanceType])
	return out
}

// splitByVolumes returns the pods of a launch whose volumes its node is expected to attach together, and the others.
func (ev *Evaluator) splitByVolumes(l plan.Launch) (attached, beyond []*cluster.Pod) {
	if ev.volumes == nil {
		known := readVolumeLimits(ev.snapshot.StateNodes())
		ev.volumes = &known
	}
	free := ev.volumes.expectedOn(l.Choice.Type)
	there := map[cluster.Volume]bool{}
	for _, p := range ev.podsByKeys(l.Pods) {
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
