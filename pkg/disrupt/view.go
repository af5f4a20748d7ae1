package disrupt

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/budget"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/hold"
	"joiner/pkg/overlay"
	"joiner/pkg/pack"
	"joiner/pkg/plan"
	"joiner/pkg/static"
)

// rules are the settings, with their defaults filled in.
type rules struct {
	confirmAfter   time.Duration // a proposal is this old before it is begun
	replaceTimeout time.Duration // a command that is not done by then is taken back
	payback        time.Duration // a move must earn its cost within this
	retryAfter     time.Duration // nodes of a command that came to nothing are left alone for this
	moveUSD        float64       // what moving one ordinary pod costs
	steps          int           // what-if questions of one search
	waves          int           // a command may have so many times as many nodes as budgets let go at a time
	drifted        int           // nodes with pods that one command about drift replaces at most
	spotTypes      int           // types that a spot replacement for spot nodes names at least
}

func rulesOf(r cluster.Rules) rules {
	payback := cmp.Or(r.Payback, time.Hour)
	waves := max(1, r.DisruptionWaves)
	return rules{
		confirmAfter:   cmp.Or(r.ConfirmAfter, 15*time.Second),
		replaceTimeout: time.Duration(waves) * cmp.Or(r.ReplaceTimeout, 10*time.Minute),
		payback:        payback,
		retryAfter:     min(payback, time.Hour),
		moveUSD:        cmp.Or(r.MoveUSD, 0.0012),
		steps:          cmp.Or(r.DisruptionSteps, 24),
		waves:          waves,
		drifted:        max(1, r.DriftedPerCommand),
		spotTypes:      cmp.Or(r.SpotTypes, 15),
	}
}

// How the packer is asked what if.
const (
	searchSteps = cluster.NoSearch // many plans that are good tell more than a few that are a little better
	nodeCostUSD = 0.02             // per hour: many small nodes in place of a few leave room that the scheduler finds no use for
)

// node is a node of ours with what a decision about it needs.
type node struct {
	cluster.Host
	pool   *cluster.Pool  // nil when it is gone
	pods   []cluster.Pod  // that stand on it and have not ended
	moving []*cluster.Pod // of these, those that will need room elsewhere
	offer  catalog.Offer
	price  float64 // USD per hour, 0 when nobody knows
	cost   float64 // of moving its pods (spec core.md §6.3), in ordinary pods
	empty  bool    // nothing on it needs room elsewhere
	waste  float64 // price less what its pods cost at least on new nodes

	taken   bool   // a command or proposal has it
	barred  refuse // why it may not go gracefully; the zero value lets it go
	barredE refuse // why it may not go although it drifted
	kept    refuse // why it is not consolidated, found on the way
	drift   refuse // why it stays although it drifted and may go
}

// refuse is a reason why a node stays.
type refuse struct{ word, why string }

// view is a snapshot with what a pass knows about it.
type view struct {
	s         cluster.Snapshot
	r         rules
	stock     *pack.Stock // once asked for
	restock   func() *pack.Stock
	types     func(cluster.Pool) []catalog.Type
	base      plan.Plan // where pods go as it is
	saving    *baseline // of consolidation
	renewal   *baseline // of drift
	nodes     []*node   // ours, sorted by claim
	byClaim   map[string]*node
	byNode    map[string]*node
	quiet     map[string]Quiet
	left      map[string]map[v1.DisruptionReason]int // by pool: how many more of its nodes may go
	wave      map[string]int                         // by pool: how many nodes of a consolidation may be out of service at a time
	closed    []Closed
	typeIn    func(pool cluster.Pool, name string) (catalog.Type, bool) // as the pool sees it
	paid      map[string]float64                                        // which part of the price the account's commitments pay, by NodeClaim
	room      map[string]int64                                          // what they have left, by their ids
	podBy     map[string]*cluster.Pod
	asking    []cluster.Pod             // of the last question, their memory is used again
	asked     int                       // what-if questions in this pass
	work      int                       // that they were
	before    int                       // before the search began, about proposals
	patient   bool                      // new nodes for all pods of a set are asked for whatever work that is
	rest      []*node                   // of the set that was asked about last, if there was no work left to follow it up
	world     uint64                    // digest of all that their answers depend on, 0 while it is not known
	yield     float64                   // what the set asked about last would earn by the packer's first answer, not a number where it gave none
	worth     map[string]float64        // what the pods that move are worth, by key, once asked
	moving    bool                      // a command of this pass moves pods
	moved     bool                      // the same of those that act, while it is about pools that only report
	reporting bool                      // it is about pools that only report
	housed    map[string]bool           // by key: pods for which commands of this pass launch nodes
	aside     map[string]*cluster.Aside // by NodeClaim: those about whose disruption decisions fail
	asidePool map[string]*cluster.Aside // by NodePool: those about which they do
	renewing  map[string]int            // by static pool: nodes that commands of this pass replace
	purses    map[string]*static.Purse
	building  map[string]bool    // by id: commands under way that go on
	failures  map[string]Failure // by NodeClaim

	strays           map[string]time.Time  // by NodeClaim: since when its node is tainted and nothing is under way
	vainBefore, vain map[string]time.Time  // by id of a command: since when it has waited for nothing, as remembered and as found
	foreseen         func(*running) string // once asked for: which pod of a command will have no room later either
	virtual          map[string]bool       // pods that stand for room to be kept free
	keeps            map[string]bool       // by host: it has such room
}

func (v *view) now() time.Time { return v.s.Now }
func (v *view) rules() rules   { return v.r }

func look(s cluster.Snapshot, m Memory, sells pack.Market, d *pack.Depot) *view {
	s = hold.Successors(s)
	s.Rules.SearchSteps, s.Rules.NodeCostUSD = searchSteps, max(s.Rules.NodeCostUSD, nodeCostUSD)
	v := &view{
		s: s, r: m.Late.at(s.Now).slower(rulesOf(s.Rules)), patient: true, types: overlay.Market(s, sells), byClaim: map[string]*node{}, byNode: map[string]*node{}, quiet: map[string]Quiet{},
		left: map[string]map[v1.DisruptionReason]int{}, wave: map[string]int{},
		failures: map[string]Failure{}, vain: map[string]time.Time{}, building: map[string]bool{}, virtual: map[string]bool{}, keeps: map[string]bool{}, housed: map[string]bool{}, renewing: map[string]int{}, purses: map[string]*static.Purse{},
	}
	v.aside, v.asidePool = map[string]*cluster.Aside{}, map[string]*cluster.Aside{}
	for i, a := range s.Aside {
		if a.Kind == cluster.ClaimPart {
			v.aside[a.Name] = &s.Aside[i]
		} else {
			v.asidePool[a.Name] = &s.Aside[i]
		}
	}
	v.typeIn = overlay.Named(v.types)
	v.paid, v.room = s.Allot()
	v.sight()
	v.restock = func() *pack.Stock { return d.Stocked(s, sells) }
	if v.astir() {
		v.base = v.pack(v.kept())
	}
	for _, n := range v.nodes {
		v.appraise(n, m)
	}
	for _, x := range v.base.Existing {
		v.keeps[x.Node] = v.keeps[x.Node] || v.virtual[x.Pod]
	}
	v.remember(m.Failed)
	v.budgets()
	v.renewal, v.saving = v.baselines()
	return v
}

// sight finds our nodes and the pods on them.
func (v *view) sight() {
	on := map[string][]cluster.Pod{}
	for i := range v.s.Pods {
		p := &v.s.Pods[i]
		if p.Virtual && v.virtual != nil {
			v.virtual[p.Key()] = true
		}
		if p.NodeName != "" && !p.Terminal() && !p.Virtual {
			on[p.NodeName] = append(on[p.NodeName], *p)
		}
	}
	for _, h := range v.s.Hosts() {
		if h.Claim == nil {
			continue
		}
		n := &node{Host: h}
		if h.Node != nil {
			n.pods = on[h.Node.Name]
			if !slices.IsSortedFunc(n.pods, keyed) {
				slices.SortFunc(n.pods, keyed)
			}
		}
		v.nodes = append(v.nodes, n)
		v.byClaim[n.Claim.Name] = n
	}
	slices.SortFunc(v.nodes, func(a, b *node) int { return strings.Compare(a.Claim.Name, b.Claim.Name) })
}

func keyed(a, b cluster.Pod) int { return byKey(&a, &b) }

func byKey(a, b *cluster.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// kept is the snapshot in which the replacements of commands under way are new still, so that the packer keeps them for the pods they
// were made for: those cannot run there before the nodes they run on are gone.
func (v *view) kept() cluster.Snapshot {
	s := v.s
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	fresh := map[string]bool{}
	for _, r := range v.underWay() {
		for _, n := range r.with {
			fresh[n.Claim.Name], fresh[n.Name()] = true, true
		}
	}
	for i := range s.Nodes {
		if fresh[s.Nodes[i].Name] {
			s.Nodes[i].ReadySince = s.Now
		}
	}
	for i := range s.Claims {
		c := &s.Claims[i]
		if !fresh[c.Name] {
			continue
		}
		c.Conditions = slices.Clone(c.Conditions)
		for k := range c.Conditions {
			if c.Conditions[k].Type == v1.ConditionInitialized {
				c.Conditions[k].Since = s.Now
			}
		}
	}
	return s
}

// appraise adds what the node costs, what moving its pods costs, and since when they are the same.
func (v *view) appraise(n *node, m Memory) {
	v.byNode[n.Name()] = n
	if p, ok := v.s.PoolOf(n.Pool()); ok {
		n.pool = &p
		n.offer, n.price = v.priceOf(n.Host, p)
	}
	n.cost = 1
	for i := range n.pods {
		if p := &n.pods[i]; p.Reschedulable() {
			n.moving = append(n.moving, p)
			n.cost += max(0, p.EvictionCost())
		}
	}
	n.empty = n.cost <= 1
	v.quiet[n.Claim.Name] = quietOf(n, m, v.s.Now)
}

// sum tells whether pods came, ended or began to end on a node (spec core.md §4.10). DaemonSets do not count.
func sum(pods []cluster.Pod) uint32 {
	var total uint32
	for _, p := range pods {
		if p.Owner == cluster.OwnerDaemonSet {
			continue
		}
		h := fnv.New32a()
		h.Write([]byte(p.UID + "/" + p.Key()))
		if p.Terminating() {
			h.Write([]byte("!"))
		}
		total += h.Sum32()
	}
	return total
}

// budgets counts how many more nodes of every pool may go, by reason.
func (v *view) budgets() {
	counts := budget.Counts(v.s)
	for _, p := range v.s.Pools {
		v.left[p.Name] = map[v1.DisruptionReason]int{}
		closed := Closed{Pool: p.Name}
		for _, r := range []v1.DisruptionReason{v1.DisruptionDrifted, v1.DisruptionEmpty, v1.DisruptionUnderutilized} {
			n, err := budget.Allowed(p.Disruption, r, counts[p.Name].Total, v.s.Now)
			if err != nil {
				n = 0
			}
			if n == 0 && counts[p.Name].Total > 0 {
				closed.Reasons = append(closed.Reasons, r)
			}
			v.left[p.Name][r] = max(n-counts[p.Name].Gone, 0)
			if r == v1.DisruptionUnderutilized {
				v.wave[p.Name] = n
				if counts[p.Name].Gone == 0 {
					v.left[p.Name][r] = min(n, counts[p.Name].Total) * v.rules().waves
				}
			}
		}
		if len(closed.Reasons) > 0 {
			v.closed = append(v.closed, closed)
		}
	}
	slices.SortFunc(v.closed, func(a, b Closed) int { return strings.Compare(a.Pool, b.Pool) })
}

// young reports whether the pods of the node have changed within its own pool's consolidateAfter (spec core.md §4.11).
func (v *view) young(n *node) bool {
	return v.now().Before(v.quietSince(n).Add(n.pool.Disruption.After))
}

// settling reports whether consolidation puts nothing more on the node because it is young; where its pool makes no new nodes it does
// (spec core.md §6.5).
func (v *view) settling(n *node) bool {
	return n.pool != nil && n.pool.Ready && !n.pool.Static && !n.pool.Disruption.Never && v.young(n)
}

// leavingFor are the names of nodes that are taken, but for those of static pools, which bring room for their pods.
func (v *view) leavingFor() map[string]bool {
	out := map[string]bool{}
	for _, n := range v.nodes {
		if n.taken && n.Node != nil && !n.static() {
			out[n.Node.Name] = true
		}
	}
	return out
}

func (v *view) pack(s cluster.Snapshot) plan.Plan { return v.shop().Pods(s) }

// shop is what the pools can launch. Finding that takes its time, and many passes have nothing to ask.
func (v *view) shop() *pack.Stock {
	if v.stock == nil {
		v.stock = v.restock()
	}
	return v.stock
}

// astir reports whether any pod waits or is to move, so that the packer has something to say about the snapshot as it is.
func (v *view) astir() bool {
	return slices.ContainsFunc(v.s.Hosts(), cluster.Host.Condemned) || slices.ContainsFunc(v.s.Pods, cluster.Pod.Provisionable)
}
