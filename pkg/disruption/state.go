package disruption

import (
	"cmp"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/provisioning/ceiling"
	"joiner.sh/pkg/scheduling/binpack"
)

// disruptionRules are the settings, with their defaults filled in.
type disruptionRules struct {
	payback              time.Duration // a move must earn its cost within this
	retryAfter           time.Duration // nodes of a command that came to nothing are left alone for this
	moveUSD              float64       // what moving one ordinary pod costs
	steps                int           // what-if questions of one search
	drifted              int           // nodes with pods that one command about drift replaces at most
	minSpotInstanceTypes int           // types that a spot replacement for spot nodes names at least
	noSpotToSpot         bool          // spot nodes are not replaced by spot nodes where their NodePool does not say so
}

const (
	// confirmAfter is the age at which a proposal is begun: Karpenter's rule that consolidation is validated anew after
	// 15 seconds.
	confirmAfter = 15 * time.Second
	// replaceTimeout is by when a command is done that is not taken back: Karpenter's rule for commands whose
	// replacements do not become ready.
	replaceTimeout = 10 * time.Minute
	// maxRepeats caps the what-if questions of a search where the settings do not say, and the times that a pass is
	// decided anew in search of what the decision fails about. A pass takes seconds in a large cluster, and the next
	// one goes on. With half four clusters of 100 nodes cost the same, with double 0.2 % less for an eighth more CPU.
	maxRepeats = 24
)

func rulesOf(settings cluster.Settings) disruptionRules {
	payback := cmp.Or(settings.ConsolidationPayback, time.Hour)
	return disruptionRules{
		payback:              payback,
		retryAfter:           min(payback, time.Hour),
		moveUSD:              settings.EvictionCostUSD(),
		steps:                cmp.Or(settings.ConsolidationMaxEvaluations, maxRepeats),
		drifted:              max(1, settings.DriftedPerCommand),
		minSpotInstanceTypes: settings.LeastSpotTypes(),
		noSpotToSpot:         settings.NoSpotToSpotConsolidation,
	}
}

// How the packer is asked what if.
const (
	packingIterations = cluster.NoIterations // many plans that are good tell more than a few that are a little better
	// per hour: many small nodes in place of a few leave room that the scheduler finds no use for. With half four
	// clusters of 100 nodes cost 0.3 % more, with double 0.4 % less, both for a fifth more CPU.
	perNodeOverheadUSD = 0.02
)

// stateNode is a node of ours with what a decision about it needs.
type stateNode struct {
	cluster.StateNode
	pool     *cluster.Pool  // nil when it is gone
	pods     []*cluster.Pod // that stand on it and have not ended
	moving   []*cluster.Pod // of these, those that will need room elsewhere
	offering instancetypes.OfferingKey
	price    float64 // USD per hour, 0 when nobody knows
	cost     float64 // of moving its pods, in ordinary pods
	empty    bool    // nothing on it needs room elsewhere
	waste    float64 // price less what its pods cost at least on new nodes

	verdict
}

// State is a snapshot with what a pass knows about it before it decides. Nothing but the verdicts on its nodes changes
// once it is made.
type State struct {
	snapshot  cluster.Snapshot
	rules     disruptionRules
	late      Overruns                                                        // that the rules reckon with
	types     func(cluster.Pool) []instancetypes.Type                         // what a pool may launch
	typeIn    func(pool cluster.Pool, name string) (instancetypes.Type, bool) // as the pool sees it
	sells     binpack.Offerings
	resolve   func() *binpack.WhatIf
	offerings *binpack.WhatIf // of restock, once asked for
	base      plan.Plan       // where pods go as it is
	nodeIndex
	quietPeriods
	podBy           map[string]*cluster.Pod   // by key, once asked for
	restricted      map[string]string         // by key: why a pod must stay in the domain of its kin
	obstacles       func() cluster.Obstacles  // those of the snapshot
	cache           *Cache                    // nil where nothing is kept
	paidShares      map[string]float64        // which part of the price the account's commitments pay, by NodeClaim
	commitmentsLeft map[string]int64          // what they have left, by their ids
	faultyClaims    map[string]*cluster.Aside // by NodeClaim: those about whose disruption decisions fail
	faultyPools     map[string]*cluster.Aside // by NodePool: those about which they do
	virtual         map[string]bool           // by key: pods that stand for room to be kept free
	keepsRoom       map[string]bool           // by node: it has such room
}

func (st *State) now() time.Time { return st.snapshot.Now }

// newState reads the snapshot. c, if there is one, holds what earlier passes found out about what is sold.
func newState(s cluster.Snapshot, m Memory, sells binpack.Offerings, c *Cache) *State {
	s, restricted := topology.RestrictSelfAffinity(nomination.ResolveOwnerNominations(s))
	s.Rules.PackingIterations, s.Rules.PerNodeOverheadUSD = packingIterations,
		max(s.Rules.PerNodeOverheadUSD, perNodeOverheadUSD)
	s.Rules.MaxClaims = ceiling.MostClaims(s)
	rules := rulesOf(s.Rules)
	late := m.Overruns.decayAt(s.Now).upTo(rules.steps)
	st := &State{snapshot: s, restricted: restricted, rules: late.reduceRules(rules), late: late,
		types: overlays.ByPool(s, sells), sells: sells, nodeIndex: newNodeIndex(s),
		quietPeriods: quietPeriods{s.Now, map[string]PodStability{}},
		virtual:      map[string]bool{}, keepsRoom: map[string]bool{},
		faultyClaims: map[string]*cluster.Aside{}, faultyPools: map[string]*cluster.Aside{}}
	for i, a := range s.Aside {
		if a.Kind == cluster.ClaimPart {
			st.faultyClaims[a.Name] = &s.Aside[i]
		} else {
			st.faultyPools[a.Name] = &s.Aside[i]
		}
	}
	st.obstacles = sync.OnceValue(st.snapshot.Obstacles)
	st.typeIn = overlays.FindType(st.types)
	st.paidShares, st.commitmentsLeft = s.AllotCommitments()
	for _, p := range s.Pods {
		if p.Virtual {
			st.virtual[p.Key()] = true
		}
	}
	st.resolve, st.cache = func() *binpack.WhatIf { return c.offerings().WhatIf(s, sells) }, c
	if st.hasWork() {
		st.base = st.planSnapshot(st.withNewReplacements())
	}
	for _, n := range st.nodes {
		st.priceNode(n, m)
	}
	for _, x := range st.base.Existing {
		st.keepsRoom[x.Node] = st.keepsRoom[x.Node] || st.virtual[x.Pod]
	}
	return st
}

// withNewReplacements returns the snapshot in which the replacements of commands under way are new still, so that the
// packer keeps them for the pods they were made for: those cannot run there before the nodes they run on are gone.
func (st *State) withNewReplacements() cluster.Snapshot {
	s := st.snapshot
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	fresh := map[string]bool{}
	for _, r := range st.underWay() {
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
func (st *State) priceNode(n *stateNode, m Memory) {
	if p, ok := st.snapshot.PoolOf(n.Pool()); ok {
		n.pool = &p
		n.offering, n.price = st.priceOf(n.StateNode, p)
	}
	n.cost = 1
	for _, p := range n.pods {
		if p.Reschedulable() {
			n.moving = append(n.moving, p)
			n.cost += max(0, p.EvictionCost())
		}
	}
	n.empty = n.cost <= 1
	st.quiet[n.Claim.Name] = podStabilityOf(n, m, st.snapshot.Now)
}

// sumPodEvents returns a sum that changes when pods come to a node, end or begin to end. DaemonSets do not count.
func sumPodEvents(pods []*cluster.Pod) uint32 {
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

func (st *State) planSnapshot(s cluster.Snapshot) plan.Plan { return st.resolveOfferings().PlanPods(s) }

// resolveOfferings returns what the pools can launch. Finding that takes time, and many passes have nothing to ask.
func (st *State) resolveOfferings() *binpack.WhatIf {
	if st.offerings == nil {
		st.offerings = st.resolve()
	}
	return st.offerings
}

// hasWork reports whether any pod waits or is to move, so that the base plan has something to say.
func (st *State) hasWork() bool {
	return slices.ContainsFunc(st.snapshot.StateNodes(), cluster.StateNode.MarkedForDeletion) ||
		slices.ContainsFunc(st.snapshot.Pods, cluster.Pod.Provisionable)
}

// priceOf returns what the node costs, as its claim's labels say what it is, whether or not more of it can be had. 0 is
// unknown.
func (st *State) priceOf(node cluster.StateNode, p cluster.Pool) (o instancetypes.OfferingKey, usd float64) {
	o = node.OfferingKey()
	t, ok := st.typeIn(p, o.Type)
	if !ok {
		return o, 0
	}
	for _, x := range t.Offerings {
		if x.OfferingKey == o && len(x.Paid) == 0 && (x.Reservation == nil ||
			x.Reservation.ID == node.Claim.Labels[instancetypes.LabelReservationID]) {
			if part := st.paidShares[node.Claim.Name]; part > 0 && x.Reservation == nil {
				return o, instancetypes.PaidPrice(x.InstanceUSD(), part) + x.NodeUSD
			}
			return o, x.Price
		}
	}
	return o, 0
}
