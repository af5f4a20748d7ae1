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
	for fills := 0; ; fills++ {
		left := v.spills(set, places, p.Launches)
		if len(left) == 0 {
			return p, v.agreed(set, p.Launches)
		}
		if fills == mostFills {
			return plan.Plan{}, false
		}
		more := v.alone(left, set, p.Launches)
		if len(more) == 0 {
			return plan.Plan{}, false
		}
		p.Launches = append(slices.Clone(p.Launches), more...)
	}
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
	p := v.without(v.saving, set, launches...)
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

// spills are pods that find no place when the launches are held, in some order in which they may come.
func (v *view) spills(set []*node, places map[string]string, launches []plan.Launch) []*cluster.Pod {
	b := v.table()
	defer b.back(len(b.steps))
	pods := v.cleared(b, set)
	var held []heldSite
	for i, l := range launches {
		held = append(held, heldSite{v.siteOf(l, fmt.Sprintf("launch %d", i)), v.podsBy(l.Pods)})
	}
	for _, order := range b.orders() {
		slices.SortFunc(pods, order)
		left := b.either(pods, func() []*cluster.Pod {
			for _, h := range held {
				b.come(h.at) // spreads count it already
			}
			return b.fill(pods, places, held)
		})
		if len(left) > 0 {
			return left
		}
	}
	return nil
}

// heldSite is a node that is held for pods.
type heldSite struct {
	at   *site
	pods []*cluster.Pod
}

// fill puts the pods onto the sites as they come while some are held, and returns those that find no place: they take the room that is open,
// those that find none are let onto the nodes that are held for them, and the rest of the room there is for those that were meant to go
// elsewhere, the large ones first.
func (b *board) fill(pods []*cluster.Pod, places map[string]string, held []heldSite) []*cluster.Pod {
	for _, h := range held {
		h.at.held = true
	}
	left := b.let(held, b.run(pods, places))
	for _, h := range held {
		h.at.held = false
	}
	slices.SortFunc(left, func(x, y *cluster.Pod) int {
		return cmp.Or(bySize(y, x), byKey(x, y))
	})
	return b.run(left, nil)
}

// let puts pods onto the nodes that are held for their like, and returns the others. Where one must come before another may it does.
func (b *board) let(held []heldSite, pods []*cluster.Pod) []*cluster.Pod {
	want := make([]map[*sort]int, len(held))
	for i, h := range held {
		want[i] = map[*sort]int{}
		for _, p := range h.pods {
			want[i][b.sort(p)]++
		}
	}
	for before := -1; before != len(pods); {
		before = len(pods)
		for i, h := range held {
			pods = slices.DeleteFunc(pods, func(p *cluster.Pod) bool {
				k := b.sort(p)
				if want[i][k] == 0 || !p.Need.FitsIn(h.at.free) || !b.rules(k).allow(h.at) {
					return false
				}
				want[i][k]--
				b.do(step{podCame, k, h.at})
				return true
			})
		}
	}
	return pods
}
