package disrupt

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// The packer fills the last gaps of nodes, and the scheduler does not: it gives each pod the emptiest node. New nodes that are held do not
// depend on what it does with the room that is open. So they are made for the pods that it leaves without a place.

// mostFills is how often pods that are left are given more new nodes.
const mostFills = 4

// filled is the plan for the pods of the set in which the scheduler fills the room that is open, and what it leaves gets new nodes. It is
// false where some find no place in the end. places says where those pods may go about which more decides than what a board knows.
func (v *view) filled(set []*node, places map[string]string) (plan.Plan, bool) {
	var p plan.Plan
	for range mostFills {
		left := v.spills(set, places, p.Launches)
		if len(left) == 0 {
			return p, v.agreed(set, p.Launches)
		}
		more := v.alone(left, set, p.Launches)
		if len(more) == 0 {
			return plan.Plan{}, false
		}
		p.Launches = append(slices.Clone(p.Launches), more...)
	}
	return p, len(v.spills(set, places, p.Launches)) == 0 && v.agreed(set, p.Launches)
}

// agreed reports whether the packer finds room for all pods too, where some spread over domains of which one has no node: it reckons with
// the nodes that may come there, and a board does not.
func (v *view) agreed(set []*node, launches []plan.Launch) bool {
	if len(launches) == 0 {
		return false // nothing is held, and shed knows better
	}
	if !v.mayWiden(set, launches) {
		return true
	}
	p := v.without(set, false, launches...)
	return len(p.Launches)+len(p.Unplaced) == 0
}

// mayWiden reports whether pods of the set spread over domains in which a node may come and none is.
func (v *view) mayWiden(set []*node, launches []plan.Launch) bool {
	b := v.table()
	defer b.back(len(b.steps))
	pods := v.cleared(b, set)
	for i, l := range launches {
		b.come(v.siteOf(l, fmt.Sprintf("launch %d", i)))
	}
	return slices.ContainsFunc(pods, func(p *cluster.Pod) bool {
		k := b.sort(p)
		b.prepare(k)
		return slices.ContainsFunc(k.spreads, func(s spread) bool {
			return s.counter.key != corev1.LabelHostname && s.counter.peopled() < len(v.shop().Domains(s.counter.key))
		})
	})
}

// bears reports whether all pods find a place when the new nodes of the plan are held.
func (v *view) bears(set []*node, p plan.Plan) bool {
	return len(p.Launches) > 0 && len(v.spills(set, p.Places(), p.Launches)) == 0
}

// spills are pods that find no place when the launches are held. Nobody knows in what order they come, so they come by name and the other way
// round.
func (v *view) spills(set []*node, places map[string]string, launches []plan.Launch) []*cluster.Pod {
	b := v.table()
	defer b.back(len(b.steps))
	pods := v.cleared(b, set)
	before := len(b.steps)
	for range 2 {
		left := b.spilled(v, pods, places, launches)
		b.back(before)
		if len(left) > 0 {
			return left
		}
		slices.Reverse(pods)
	}
	return nil
}

// spilled are the pods that find no place when they come in that order: they take the room that is open, those that find none are let onto
// the new nodes held for them, and the rest of the room there is for those that were meant to go elsewhere, the large ones first.
func (b *board) spilled(v *view, pods []*cluster.Pod, places map[string]string, launches []plan.Launch) []*cluster.Pod {
	sites := make([]*site, len(launches))
	for i, l := range launches {
		sites[i] = v.siteOf(l, fmt.Sprintf("launch %d", i))
		sites[i].held = true
		b.come(sites[i]) // spreads count it already
	}
	left := b.run(pods, places)
	for i, x := range sites {
		want := map[*sort]int{}
		for _, key := range launches[i].Pods {
			if p := v.podOf(key); p != nil {
				want[b.sort(p)]++
			}
		}
		left = slices.DeleteFunc(left, func(p *cluster.Pod) bool {
			k := b.sort(p)
			if want[k] == 0 || !p.Need.FitsIn(x.free) {
				return false
			}
			want[k]--
			b.do(step{podCame, k, x})
			return true
		})
	}
	for _, x := range sites {
		x.held = false
	}
	slices.SortFunc(left, func(x, y *cluster.Pod) int {
		return cmp.Or(cmp.Compare(y.Need.CPU, x.Need.CPU), cmp.Compare(y.Need.Memory, x.Need.Memory), byKey(x, y))
	})
	return b.run(left, nil)
}
