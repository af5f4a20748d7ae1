package disrupt

import (
	"cmp"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/hold"
	"joiner/pkg/plan"
)

// candidates are the nodes that consolidation may look at, by name.
func (v *view) candidates() []*node {
	var out []*node
	for _, n := range v.nodes {
		if v.open(n, v1.DisruptionUnderutilized) {
			out = append(out, n)
		}
	}
	return out
}

// weigh sorts nodes so that those come first that waste most for each pod that would move.
func (v *view) weigh(all []*node) {
	b := v.table()
	for _, n := range all {
		n.waste = n.price
		for _, p := range n.moving {
			if usd := v.floor(b.sort(p)); usd < beyond {
				n.waste -= usd
			}
		}
	}
	slices.SortFunc(all, byWaste)
}

func byWaste(a, b *node) int {
	return cmp.Or(cmp.Compare(b.waste/b.cost, a.waste/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
}

// byLoss puts those first that waste most.
func byLoss(a, b *node) int {
	return cmp.Or(cmp.Compare(b.waste, a.waste), strings.Compare(a.Claim.Name, b.Claim.Name))
}

// mostRetries is how often a set of nodes is asked about again without the nodes that stood in its way.
const mostRetries = 3

// worthIt is the command that moves the pods of the nodes to where they cost less, if that pays. Nodes whose pods nobody can take
// are left out, and so are those that a launch would only bring back: the same offer for the same pool.
func (v *view) worthIt(set []*node) (Command, bool) {
	set = spare(slices.SortedFunc(slices.Values(set), byWaste), "stuck", v.huddled(set))
	v.yield, v.rest = math.NaN(), nil
	for i := range mostRetries {
		if len(set) == 0 {
			return Command{}, false
		}
		if i > 0 && !v.followUp(set, v.workOf(podsOf(set), 0)) {
			return Command{}, false
		}
		if c, ok, done := v.shed(set); done {
			return c, ok
		}
		p, held := v.planned(set)
		if i == 0 && len(p.Unplaced) == 0 {
			v.yield = v.yields(set, p)
		}
		word, out := "stuck", v.stuck(set, p)
		if len(out) == 0 {
			word, out = "alike", alike(set, p.Launches)
		}
		switch {
		case len(out) > 0:
		case held:
			return v.holding(set, p)
		default:
			return v.lasting(set, p)
		}
		set = spare(set, word, out)
		if v.hope(set) <= 0 {
			break // the rest has nothing to gain
		}
	}
	return Command{}, false
}

// spare is the set without the nodes that have a reason to stay.
func spare(set []*node, word string, why map[*node]string) []*node {
	for n, w := range why {
		n.kept = refuse{word, w}
	}
	return slices.DeleteFunc(slices.Clone(set), func(n *node) bool { return why[n] != "" })
}

// planned is where the pods of the nodes would go, and whether that is because new nodes are held for some: what the packer says where that
// bears what the scheduler does with the others, or new nodes for what the scheduler leaves, whichever costs less.
func (v *view) planned(set []*node) (p plan.Plan, held bool) {
	p = v.without(v.saving, set)
	if len(p.Unplaced) > 0 || !hold.Can(v.s.Rules, movingOf(set)) {
		return p, false
	}
	filled, held := v.filled(set, p.Places())
	if (!held || p.Price() < filled.Price()) && v.bears(set, p) {
		return p, true
	}
	if held {
		return filled, true
	}
	return p, false
}

// yields is what the set earns within the payback time by the plan for its pods.
func (v *view) yields(set []*node, p plan.Plan) float64 {
	return v.gain(set, p.Price())
}

// shed is the command without replacements, where the scheduler finds room for all pods. It is done unless some have none, or must be
// told where to go. Where pods spread the packer must agree: it reckons with the domains in which nodes may come.
func (v *view) shed(set []*node) (c Command, ok, done bool) {
	b := v.table()
	defer b.back(len(b.steps))
	pods := v.cleared(b, set)
	if len(b.leftover(pods, nil, true)) > 0 {
		return Command{}, false, false
	}
	if slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return len(p.Spread) > 0 }) {
		if p := v.without(v.saving, set); len(p.Launches)+len(p.Unplaced) > 0 {
			return Command{}, false, false
		}
	}
	c, ok = v.paying(set, nil)
	return c, ok, true
}

// huddled says of which nodes pods must share one node with others, all of which would move, and why that is not done together with other pods:
// the first of them decides where the others must be, and where the room there is gone by then no new node may take them.
func (v *view) huddled(set []*node) map[*node]string {
	out := map[*node]string{}
	if !slices.ContainsFunc(set, (*node).huddles) {
		return out
	}
	b := v.table()
	defer b.back(len(b.steps))
	all := v.cleared(b, set)
	for _, n := range set {
		for _, p := range n.moving {
			if count := b.huddle(p, all); count > 1 && count < len(all) {
				out[n] = "pod " + p.Key() + " must share a node with others that would move as well, and other pods may take their room"
			}
		}
	}
	return out
}

// huddles reports whether a pod of the node must share one with others.
func (n *node) huddles() bool {
	return slices.ContainsFunc(n.moving, func(p *cluster.Pod) bool {
		return slices.ContainsFunc(p.Affinity, func(t cluster.AffinityTerm) bool { return t.Key == corev1.LabelHostname })
	})
}

// stuck says of which nodes some pod has no room elsewhere, and why.
func (v *view) stuck(set []*node, p plan.Plan) map[*node]string {
	out := map[*node]string{}
	if len(p.Unplaced) == 0 {
		return out
	}
	why := map[string]string{}
	for _, u := range p.Unplaced {
		why[u.Pod] = u.Message()
	}
	for _, n := range set {
		for _, pod := range n.moving {
			if w, ok := why[pod.Key()]; ok {
				out[n] = "pod " + pod.Key() + " has no room elsewhere: " + w
				break
			}
		}
	}
	return out
}

// alike pairs launches with nodes that go and are the same offer of the same pool.
func alike(set []*node, launches []plan.Launch) map[*node]string {
	out := map[*node]string{}
	for _, l := range launches {
		for i := len(set) - 1; i >= 0; i-- { // the least wasteful first
			if n := set[i]; out[n] == "" && n.offer == l.Choice.Offer && n.pool.Name == l.Pool {
				out[n] = "it would be replaced by its like"
				break
			}
		}
	}
	return out
}

// holding is the command if it pays, with its new nodes held.
func (v *view) holding(set []*node, p plan.Plan) (Command, bool) {
	c, ok := v.paying(set, p.Launches)
	if ok {
		c.Launches = hold.Keep(v.podOf, c.ID, c.Launches)
	}
	return c, ok
}

// lasting is the command if it pays, with what the scheduler makes of it reckoned in. Where that leaves pods without a place, because it
// does not fill the last gaps of nodes as the packer does, new nodes for all pods of the set may still pay.
func (v *view) lasting(set []*node, p plan.Plan) (Command, bool) {
	if c, ok, sturdy := v.stands(set, p); sturdy {
		return c, ok
	}
	if len(p.Existing) > 0 {
		if fresh := v.afresh(set); len(fresh.Launches) > 0 && len(alike(set, fresh.Launches)) == 0 {
			if c, ok, sturdy := v.stands(set, fresh); sturdy {
				return c, ok
			}
		}
	}
	for _, n := range set {
		n.kept = refuse{"stuck", "the scheduler may leave pods of it without a node"}
	}
	return Command{}, false
}

// afresh is the plan of new nodes for all pods of the set, none where those cannot pay.
func (v *view) afresh(set []*node) plan.Plan {
	pods := movingOf(set)
	if v.gain(set, v.floors(v.table(), pods)) <= 0 || !v.patient && !v.followUp(set, v.workOf(len(pods), len(pods))) {
		return plan.Plan{}
	}
	return plan.Plan{Launches: v.alone(pods, set, nil)}
}

// stands is the command of the plan if it pays, and whether the scheduler gives every pod a place, with what is launched besides for that.
func (v *view) stands(set []*node, p plan.Plan) (c Command, ok, sturdy bool) {
	c, ok = v.paying(set, p.Launches)
	if !ok {
		return c, false, true
	}
	launches, sturdy := v.sturdy(v.saving, set, p, v.earns(c)/(v.rules().payback.Hours()+v.overlap(set)))
	if sturdy && len(launches) > len(p.Launches) {
		c, ok = v.paying(set, launches)
	}
	return c, ok, sturdy
}

// paying is the command if what it saves pays for the moves within the payback time and passes the thresholds of the pools.
func (v *view) paying(set []*node, launches []plan.Launch) (Command, bool) {
	launches, ok := v.guard(set, launches)
	if !ok {
		return Command{}, false
	}
	c := v.command(set, v1.DisruptionUnderutilized, launches)
	var refused refuse
	switch {
	case !v.enough(set, c):
		refused = refuse{"threshold", "it would save less than its NodePool asks for"}
	case !v.balanced(set, c):
		refused = refuse{"balanced", "it would save too little for the disruption, as the policy Balanced weighs it"}
	case v.earns(c) <= 0:
		refused = refuse{"payback", "moving its pods costs more than the cheaper nodes save within " + v.rules().payback.String()}
	default:
		v.settle(c)
		return c, true
	}
	for _, n := range set {
		n.kept = refused
	}
	return Command{}, false
}

// sideBySide is for how many hours a new node runs before the old one is gone where all go at once: three minutes, of which two are its start.
const sideBySide = 0.05

// earns is what a command has earned when its payback time is over, in USD: the saving less what it spends.
func (v *view) earns(c Command) float64 { return c.SavesUSD*v.rules().payback.Hours() - v.spends(c) }

// spends is what the moves cost, in USD, with the time in which old and new nodes run side by side.
func (v *view) spends(c Command) float64 {
	usd := v.uproots(c)
	hours := v.overlap(v.named(c.Claims))
	for _, l := range c.Launches {
		usd += l.Choice.Price * hours
	}
	return usd
}

// uproots is what moving the pods alone costs, in USD.
func (v *view) uproots(c Command) (usd float64) {
	for _, name := range c.Claims {
		usd += (v.byClaim[name].cost - 1) * v.rules().moveUSD
	}
	return usd
}

// enough reports whether the saving passes the thresholds of all pools whose nodes go.
func (v *view) enough(set []*node, c Command) bool {
	before := 0.0
	for _, n := range set {
		before += n.price
	}
	return !slices.ContainsFunc(set, func(n *node) bool {
		d := n.pool.Disruption
		return c.SavesUSD < d.SavesUSD || c.SavesUSD*100 < before*d.SavesPercent
	})
}

// balanced is the rule of the policy Balanced for each pool that has it: the part of the pool's price that is saved must be at
// least half of the part of the pool's disruption cost that is spent (spec core.md §6.4).
func (v *view) balanced(set []*node, c Command) bool {
	const least = 0.5
	type share struct{ price, moves, allPrice, allMoves float64 }
	pools := map[string]*share{}
	total := 0.0
	for _, n := range set {
		total += n.price
		if n.pool.Disruption.Policy == string(v1.ConsolidationBalanced) && pools[n.pool.Name] == nil {
			pools[n.pool.Name] = &share{}
		}
	}
	for _, n := range v.nodes {
		if p := pools[n.Pool()]; p != nil && n.Claim.ProviderID != "" {
			p.allPrice += n.price
			p.allMoves += n.cost
		}
	}
	for _, n := range set {
		if p := pools[n.pool.Name]; p != nil {
			p.price += n.price
			p.moves += n.cost
		}
	}
	for _, p := range pools { // each on its own, so the order does not matter
		saved := c.SavesUSD * p.price / total
		if saved/p.allPrice < least*p.moves/p.allMoves {
			return false
		}
	}
	return true
}
