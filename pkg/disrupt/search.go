package disrupt

import (
	"cmp"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// air is how much more new nodes cost than the least that the pods on them could.
const air = 1.03

// findCheaper finds nodes whose pods can run for less (spec core.md §6.4 says what the in-cluster original does: prefixes of one order
// up to 100 nodes, one replacement at most). Sets of nodes that promise something are put together by playing the scheduler, which is
// cheap, and the packer is asked about few of them: what can go without replacement, those that waste most, what can go at all, and the
// better half of these, and so on. The one that earns most is taken. Where there is none it asks about sets further down, and about single nodes, going on
// in the next pass where this one stopped.
func (v *view) findCheaper(m *Memory) (best Command, found bool) {
	all := v.candidates()
	take := func(set []*node) {
		if c, ok := v.worthIt(set); ok && (!found || v.earns(c) > v.earns(best)) {
			best, found = c, true
		}
	}
	if m.Offset == 0 {
		take(v.promising(all, false))
		wasteful := v.within(all, v1.DisruptionUnderutilized)
		for size := len(wasteful); size > 1 && v.asked < v.rules().steps/3; size /= 2 {
			take(wasteful[:size])
		}
	}
	half := v.asked + (v.rules().steps-v.asked)/2
	for v.asked < half && m.Offset < len(all) && !found {
		some := v.promising(slices.Concat(all[m.Offset:], all[:m.Offset]), true)
		for size := len(some); size > 1 && v.asked < v.rules().steps; size /= 2 {
			take(some[:size])
		}
		m.Offset += max(len(some), 1)
	}
	if !found {
		m.Cursor = v.single(v.hopeful(all), m.Cursor, take, &found)
	}
	if found || m.Offset >= len(all) {
		m.Offset = 0
	}
	if found {
		m.Cursor = ""
	}
	return best, found
}

// hopeful are the nodes that promise to earn something when they alone go.
func (v *view) hopeful(all []*node) []*node {
	b := v.table()
	return slices.DeleteFunc(slices.Clone(all), func(n *node) bool {
		defer b.back(len(b.steps))
		b.leave(n)
		left := b.run(n.moving, nil)
		_, ok := v.promise(b, n, left, true)
		if i := slices.IndexFunc(left, func(p cluster.Pod) bool { return v.floor(b.sort(&p)) >= beyond }); !ok && i >= 0 {
			n.kept = cmp.Or(n.kept, refuse{"stuck", "pod " + left[i].Key() + " has no room elsewhere, and no pool launches what it needs"})
		} else if !ok {
			n.kept = cmp.Or(n.kept, refuse{"payback", "what its pods need costs as much as it does, or nearly so"})
		}
		return !ok
	})
}

// promising puts together the nodes that earn something when they go, those first that earn most for each pod moved, within the
// budgets. Pods without room elsewhere cost what the best nodes cost for them; unless that is wanted their nodes stay.
func (v *view) promising(all []*node, replace bool) []*node {
	b := v.table()
	defer b.back(len(b.steps))
	used := map[string]int{}
	worth := map[*node]float64{}
	var out []*node
	for _, n := range all {
		x := b.byName[n.Node.Name]
		if x == nil || x.taken > 0 {
			continue // pods would move twice
		}
		if used[n.pool.Name] >= v.left[n.pool.Name][v1.DisruptionUnderutilized] {
			n.kept = cmp.Or(n.kept, refuse{"budget", "the budgets of its NodePool let no more nodes go now for reason " + string(v1.DisruptionUnderutilized)})
			continue
		}
		before := len(b.steps)
		b.leave(n)
		earns, ok := v.promise(b, n, b.run(n.moving, nil), replace)
		if !ok {
			b.back(before)
			continue
		}
		used[n.pool.Name]++
		worth[n] = earns
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b *node) int {
		return cmp.Or(cmp.Compare(worth[b]/b.cost, worth[a]/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out
}

// promise is what the node may earn within the payback time when pods without room elsewhere get new nodes.
func (v *view) promise(b *board, n *node, left []cluster.Pod, replace bool) (usd float64, ok bool) {
	if len(left) > 0 && !replace {
		return 0, false
	}
	usd = n.price
	for i := range left {
		usd -= v.floor(b.sort(&left[i])) * air
	}
	usd = usd*v.rules().payback.Hours() - (n.cost-1)*v.rules().moveUSD
	return usd, usd > 0
}

// beyond all prices, USD per hour.
const beyond = 1e9

// floor is the least that a pod of the sort costs on new nodes, USD per hour; beyond all prices where nobody sells what it needs.
func (v *view) floor(k *sort) float64 {
	if !k.priced {
		k.floor, _ = v.stock.Floor(*k.pod)
		k.priced = true
	}
	return k.floor
}

// leaving are the names of nodes that something takes away already.
func (v *view) leaving() map[string]bool {
	out := map[string]bool{}
	for _, n := range v.nodes {
		if n.taken && n.Node != nil {
			out[n.Node.Name] = true
		}
	}
	return out
}

// single asks about one node after the other, from the one after the cursor on, until one is worth it or the questions are used up.
// It returns the new cursor.
func (v *view) single(set []*node, cursor string, take func([]*node), found *bool) string {
	byName := slices.SortedFunc(slices.Values(set), func(a, b *node) int { return strings.Compare(a.Claim.Name, b.Claim.Name) })
	i, _ := slices.BinarySearchFunc(byName, cursor, func(n *node, name string) int { return strings.Compare(n.Claim.Name, name) })
	if i < len(byName) && byName[i].Claim.Name == cursor {
		i++
	}
	for k := range byName {
		n := byName[(i+k)%len(byName)]
		if v.asked >= v.rules().steps {
			return cursor
		}
		cursor = n.Claim.Name
		if len(v.within([]*node{n}, v1.DisruptionUnderutilized)) == 0 {
			continue
		}
		if take([]*node{n}); *found {
			return cursor
		}
	}
	return ""
}
