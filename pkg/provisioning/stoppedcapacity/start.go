package stoppedcapacity

import (
	"cmp"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// Rules of a start.
const (
	// PremiumUSD caps the price of a start above the launch that it saves, in USD per hour and pod that it takes.
	PremiumUSD = 0.10
	// requestHolds is the time for which an instance that was asked to start counts as one that starts, although nobody
	// wrote down that it does: whoever asked may have died. Afterwards it is replaced.
	requestHolds = 5 * time.Minute
)

// IsAsked reports whether a buffer asks for stopped capacity, or some is left.
func IsAsked(s cluster.Snapshot) bool {
	return len(s.Stopped) > 0 || slices.ContainsFunc(s.Claims, cluster.Claim.Standby)
}

// Startable are the claims whose stopped instances pods may have, by name; requested are those of them that were asked
// to start and that nobody wrote down as started.
func Startable(s cluster.Snapshot) (free, requested map[string]bool) {
	free, requested = map[string]bool{}, map[string]bool{}
	for _, c := range s.Claims {
		pool, known := s.PoolOf(c.Pool)
		switch {
		case !c.Standby() || !c.Is(v1.ConditionStopped) || !c.Deleting.IsZero():
		case isUnavailable(s, c):
		case !c.StartRequested().IsZero() && s.Now.Before(c.StartRequested().Add(requestHolds)):
			requested[c.Name] = true
		case known && !pool.Deleting && !budgets.IsHibernating(pool.Disruption, s.Now) && staleReason(s, c) == "":
			free[c.Name] = true
		}
	}
	return free, requested
}

// isUnavailable reports whether EC2 refused lately to start or launch what the claim has.
func isUnavailable(s cluster.Snapshot, c cluster.Claim) bool {
	o := instancetypes.OfferingKeyOf(c.Labels)
	return slices.ContainsFunc(s.Unavailable, func(u instancetypes.UnavailableOffering) bool {
		return u.Covers(o, s.Now)
	})
}

// AsComing returns the snapshot in which the claims named are nodes on their way. The snapshot given is not changed.
func AsComing(s cluster.Snapshot, names map[string]bool) cluster.Snapshot {
	if len(names) == 0 {
		return s
	}
	gone := map[string]bool{} // provider ids whose Node objects do not count any more
	s.Claims = slices.Clone(s.Claims)
	for i, c := range s.Claims {
		if !names[c.Name] {
			continue
		}
		gone[c.ProviderID] = c.ProviderID != ""
		c.NodeName = ""
		c.Annotations = maps.Clone(c.Annotations)
		delete(c.Annotations, v1.AnnotationStoppedCapacity)
		delete(c.Annotations, v1.AnnotationNominatedPods)
		c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions), func(k cluster.Condition) bool {
			return k.Type == v1.ConditionInitialized || k.Type == v1.ConditionRegistered
		})
		c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionRegistered,
			Status: "Unknown", Since: s.Now})
		s.Claims[i] = c
	}
	s.Nodes = slices.DeleteFunc(slices.Clone(s.Nodes), func(n cluster.Node) bool { return gone[n.ProviderID] })
	return s
}

// StartsIn are the starts that a plan needs which has pods on the claims named; requested ones are started again, with
// pods or without.
func StartsIn(p plan.Plan, free, requested map[string]bool) []plan.Start {
	pods := map[string][]string{}
	for name := range requested {
		pods[name] = nil
	}
	for _, e := range p.Existing {
		if free[e.Node] || requested[e.Node] {
			pods[e.Node] = append(pods[e.Node], e.Pod)
		}
	}
	var out []plan.Start
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		slices.Sort(pods[name])
		out = append(out, plan.Start{Claim: name, Pods: pods[name]})
	}
	return out
}

// TooDear names the start that is to be left out because the starts of the plan with them cost too much more than what
// the plan without them launches, and is empty if they do not. It is the one that costs most for each of its pods. A
// start for a pod that has no other place is never left out, and pods that only stand for room are worth nothing.
func TooDear(s cluster.Snapshot, without, with plan.Plan, free map[string]bool,
	types func(cluster.Pool) []instancetypes.Type) string {
	exists, stranded := map[string]bool{}, map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		exists[p.Key()] = !p.Virtual
	}
	for _, u := range without.Unplaced {
		stranded[u.Pod] = exists[u.Pod]
	}
	dearer, pods := with.TotalPrice()-without.TotalPrice(), 0
	worst, perPod := "", 0.0
	for _, one := range StartsIn(with, free, nil) {
		if slices.ContainsFunc(one.Pods, func(pod string) bool { return stranded[pod] }) {
			continue
		}
		usd := PriceOf(s, one.Claim, types)
		dearer += usd
		for _, pod := range one.Pods {
			if exists[pod] {
				pods++
			}
		}
		if share := usd / float64(len(one.Pods)); worst == "" || share > perPod {
			worst, perPod = one.Claim, share
		}
	}
	if dearer <= float64(pods)*PremiumUSD {
		return ""
	}
	return worst
}

// PriceOf returns the price of the node of the claim while it runs, in USD per hour; 0 where nobody knows.
func PriceOf(s cluster.Snapshot, claim string, types func(cluster.Pool) []instancetypes.Type) float64 {
	i := slices.IndexFunc(s.Claims, func(c cluster.Claim) bool { return c.Name == claim })
	if i < 0 {
		return 0
	}
	pool, _ := s.PoolOf(s.Claims[i].Pool)
	pool.Name, pool.Class = s.Claims[i].Pool, cmp.Or(pool.Class, s.Claims[i].Class)
	return cluster.USD(cluster.StateNode{Claim: &s.Claims[i]}.LimitCharge(types(pool)))
}
