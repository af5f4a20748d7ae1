package disruption

import (
	"cmp"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption/simulator"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/nomination"
	"joiner/pkg/model/overlays"
	"joiner/pkg/model/plan"
	"joiner/pkg/provisioning/staticcapacity"
	"joiner/pkg/scheduling/binpack"
)

// disruptionRules are the settings, with their defaults filled in.
type disruptionRules struct {
	confirmAfter         time.Duration // a proposal is this old before it is begun
	replaceTimeout       time.Duration // a command that is not done by then is taken back
	payback              time.Duration // a move must earn its cost within this
	retryAfter           time.Duration // nodes of a command that came to nothing are left alone for this
	moveUSD              float64       // what moving one ordinary pod costs
	steps                int           // what-if questions of one search
	drifted              int           // nodes with pods that one command about drift replaces at most
	minSpotInstanceTypes int           // types that a spot replacement for spot nodes names at least
}

func rulesOf(r cluster.Settings) disruptionRules {
	payback := cmp.Or(r.ConsolidationPayback, time.Hour)
	return disruptionRules{
		confirmAfter:         cmp.Or(r.ConfirmAfter, 15*time.Second),
		replaceTimeout:       cmp.Or(r.ReplaceTimeout, 10*time.Minute),
		payback:              payback,
		retryAfter:           min(payback, time.Hour),
		moveUSD:              cmp.Or(r.PodEvictionCostUSD, 0.0012),
		steps:                cmp.Or(r.ConsolidationMaxEvaluations, 24),
		drifted:              max(1, r.DriftedPerCommand),
		minSpotInstanceTypes: cmp.Or(r.MinSpotInstanceTypes, 15),
	}
}

// How the packer is asked what if.
const (
	packingIterations  = cluster.NoIterations // many plans that are good tell more than a few that are a little better
	perNodeOverheadUSD = 0.02                 // per hour: many small nodes in place of a few leave room that the scheduler finds no use for
)

// stateNode is a node of ours with what a decision about it needs.
type stateNode struct {
	cluster.StateNode
	pool   *cluster.Pool  // nil when it is gone
	pods   []cluster.Pod  // that stand on it and have not ended
	moving []*cluster.Pod // of these, those that will need room elsewhere
	offer  instancetypes.Offer
	price  float64 // USD per hour, 0 when nobody knows
	cost   float64 // of moving its pods, in ordinary pods
	empty  bool    // nothing on it needs room elsewhere
	waste  float64 // price less what its pods cost at least on new nodes

	taken   bool    // a command or proposal has it
	barred  refusal // why it may not go gracefully; the zero value lets it go
	barredE refusal // why it may not go although it drifted
	kept    refusal // why it is not consolidated, found on the way
	drift   refusal // why it stays although it drifted and may go
}

// refusal is a reason why a node stays.
type refusal struct{ word, why string }

// state is a snapshot with what a pass knows about it.
type state struct {
	s         cluster.Snapshot
	r         disruptionRules
	stock     *binpack.WhatIf // once asked for
	restock   func() *binpack.WhatIf
	types     func(cluster.Pool) []instancetypes.Type
	base      plan.Plan    // where pods go as it is
	saving    *baseline    // of consolidation
	renewal   *baseline    // of drift
	nodes     []*stateNode // ours, sorted by claim
	byClaim   map[string]*stateNode
	byNode    map[string]*stateNode
	quiet     map[string]PodStability
	budget    *Budget
	meter     workMeter
	typeIn    func(pool cluster.Pool, name string) (instancetypes.Type, bool) // as the pool sees it
	paid      map[string]float64                                              // which part of the price the account's commitments pay, by NodeClaim
	room      map[string]int64                                                // what they have left, by their ids
	podBy     map[string]*cluster.Pod
	asking    []cluster.Pod             // of the last question, their memory is used again
	world     uint64                    // digest of all that their answers depend on, 0 while it is not known
	minCostOf map[*cluster.Pod]float64  // of those that stand for all that are like them, USD per hour
	worth     map[string]float64        // what the pods that move are worth, by key, once asked
	moving    bool                      // a command of this pass moves pods
	moved     bool                      // the same of those that act, while it is about pools that only report
	reporting bool                      // it is about pools that only report
	housed    map[string]bool           // by key: pods for which commands of this pass launch nodes
	aside     map[string]*cluster.Aside // by NodeClaim: those about whose disruption decisions fail
	asidePool map[string]*cluster.Aside // by NodePool: those about which they do
	renewing  map[string]int            // by static pool: nodes that commands of this pass replace
	purses    map[string]*staticcapacity.PoolHeadroom
	building  map[string]bool           // by id: commands under way that go on
	failures  map[string]CommandFailure // by NodeClaim

	strays           map[string]time.Time         // by NodeClaim: since when its node is tainted and nothing is under way
	vainBefore, vain map[string]time.Time         // by id of a command: since when it has waited for nothing, as remembered and as found
	foreseen         func(*runningCommand) string // once asked for: which pod of a command will have no room later either
	virtual          map[string]bool              // pods that stand for room to be kept free
	keeps            map[string]bool              // by host: it has such room
}

func (v *state) now() time.Time         { return v.s.Now }
func (v *state) rules() disruptionRules { return v.r }

func newState(s cluster.Snapshot, m Memory, sells binpack.Offerings, d *binpack.OfferingCache) *state {
	s = nomination.ResolveOwnerNominations(s)
	s.Rules.PackingIterations, s.Rules.PerNodeOverheadUSD = packingIterations, max(s.Rules.PerNodeOverheadUSD, perNodeOverheadUSD)
	v := &state{
		s: s, r: m.Late.decayAt(s.Now).reduceRules(rulesOf(s.Rules)), types: overlays.ByPool(s, sells), byClaim: map[string]*stateNode{}, byNode: map[string]*stateNode{}, quiet: map[string]PodStability{},
		budget:   newBudget(s),
		failures: map[string]CommandFailure{}, vain: map[string]time.Time{}, building: map[string]bool{}, virtual: map[string]bool{}, keeps: map[string]bool{}, housed: map[string]bool{}, minCostOf: map[*cluster.Pod]float64{}, renewing: map[string]int{}, purses: map[string]*staticcapacity.PoolHeadroom{},
	}
	v.aside, v.asidePool = map[string]*cluster.Aside{}, map[string]*cluster.Aside{}
	for i, a := range s.Aside {
		if a.Kind == cluster.ClaimPart {
			v.aside[a.Name] = &s.Aside[i]
		} else {
			v.asidePool[a.Name] = &s.Aside[i]
		}
	}
	v.meter = workMeter{steps: v.r.steps, nodes: len(s.Nodes)}
	v.typeIn = overlays.FindType(v.types)
	v.paid, v.room = s.AllotCommitments()
	v.indexNodes()
	v.restock = func() *binpack.WhatIf { return d.WhatIf(s, sells) }
	if v.hasWork() {
		v.base = v.planSnapshot(v.withNewReplacements())
	}
	for _, n := range v.nodes {
		v.priceNode(n, m)
	}
	for _, x := range v.base.Existing {
		v.keeps[x.Node] = v.keeps[x.Node] || v.virtual[x.Pod]
	}
	v.keepFailures(m.Failed)
	v.renewal, v.saving = v.baselines()
	return v
}

// indexNodes finds our nodes and the pods on them.
func (v *state) indexNodes() {
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
	for _, h := range v.s.StateNodes() {
		if h.Claim == nil {
			continue
		}
		n := &stateNode{StateNode: h}
		if h.Node != nil {
			n.pods = on[h.Node.Name]
			if !slices.IsSortedFunc(n.pods, podsByKey) {
				slices.SortFunc(n.pods, podsByKey)
			}
		}
		v.nodes = append(v.nodes, n)
		v.byClaim[n.Claim.Name] = n
	}
	slices.SortFunc(v.nodes, func(a, b *stateNode) int { return strings.Compare(a.Claim.Name, b.Claim.Name) })
}

func podsByKey(a, b cluster.Pod) int { return simulator.ByKey(&a, &b) }

// withNewReplacements is the snapshot in which the replacements of commands under way are new still, so that the packer keeps them for the pods they
// were made for: those cannot run there before the nodes they run on are gone.
func (v *state) withNewReplacements() cluster.Snapshot {
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

// priceNode adds what the node costs, what moving its pods costs, and since when they are the same.
func (v *state) priceNode(n *stateNode, m Memory) {
	v.byNode[n.Name()] = n
	if p, ok := v.s.PoolOf(n.Pool()); ok {
		n.pool = &p
		n.offer, n.price = v.priceOf(n.StateNode, p)
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

// sumPodEvents tells whether pods came, ended or began to end on a node. DaemonSets do not count.
func sumPodEvents(pods []cluster.Pod) uint32 {
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

// isYoung reports whether the pods of the node have changed within its own pool's consolidateAfter.
func (v *state) isYoung(n *stateNode) bool {
	return v.now().Before(v.quietSince(n).Add(n.pool.Disruption.After))
}

// takesNoPods reports whether consolidation puts nothing more on the node because it is young; where its pool makes no new nodes it does
// .
func (v *state) takesNoPods(n *stateNode) bool {
	return n.pool != nil && n.pool.Ready && !n.pool.Static && !n.pool.Disruption.Never && v.isYoung(n)
}

// leavingFor are the names of nodes that are taken, but for those of static pools, which bring room for their pods.
func (v *state) leavingFor() map[string]bool {
	out := map[string]bool{}
	for _, n := range v.nodes {
		if n.taken && n.Node != nil && !n.inStaticPool() {
			out[n.Node.Name] = true
		}
	}
	return out
}

func (v *state) planSnapshot(s cluster.Snapshot) plan.Plan { return v.resolveOfferings().PlanPods(s) }

// resolveOfferings is what the pools can launch. Finding that takes its time, and many passes have nothing to ask.
func (v *state) resolveOfferings() *binpack.WhatIf {
	if v.stock == nil {
		v.stock = v.restock()
	}
	return v.stock
}

// hasWork reports whether any pod waits or is to move, so that the packer has something to say about the snapshot as it is.
func (v *state) hasWork() bool {
	return slices.ContainsFunc(v.s.StateNodes(), cluster.StateNode.MarkedForDeletion) || slices.ContainsFunc(v.s.Pods, cluster.Pod.Provisionable)
}

// named are the nodes of the claims.
func (v *state) named(claims []string) []*stateNode {
	out := make([]*stateNode, len(claims))
	for i, name := range claims {
		out[i] = v.byClaim[name]
	}
	return out
}
