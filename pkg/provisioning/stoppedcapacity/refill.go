package stoppedcapacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/binpack"
)

const (
	// LongestStop is the longest time that a node may be stopped: serving certificates of kubelets last 45 days on EKS,
	// and images of DaemonSets change.
	LongestStop = 30 * 24 * time.Hour
	// mostRemovals bounds the nodes that one pass ends.
	mostRemovals = 100
)

// Refill holds what buffers lack and have too many.
type Refill struct {
	Launches []plan.Launch    // nodes to make and to stop
	Removals []plan.Removal   // nodes that no buffer needs, or that cannot be used any more
	Placed   []plan.Placement // pods of buffers that a node is kept for
	Unplaced []plan.Unplaced  // pods of buffers that no node is kept for, and none can be made
	Partly   bool             // buffers or NodePools are left out that decisions fail about
}

// NextRefill decides what the buffers lack and have too many, at most so many launches. A node that cannot be used any
// more is ended as soon as no launch is left to make in its stead. sells is what classes may launch.
func NextRefill(s cluster.Snapshot, sells binpack.Offerings, most int) Refill {
	fresh, stale := map[string]bool{}, map[string]string{}
	for _, c := range s.Claims {
		if !c.Standby() || !c.Deleting.IsZero() {
			continue
		}
		if why := staleReason(s, c); why != "" {
			stale[c.Name] = why
		} else if c.StartRequested().IsZero() {
			fresh[c.Name] = true
		}
	}
	view, spotOnly := bufferView(s, fresh)
	packed := plan.Plan{}
	if len(view.Pods) > 0 {
		packed = binpack.PodsFrom(view, sells)
	}
	out := Refill{Placed: packed.Existing, Unplaced: packed.Unplaced, Partly: slices.ContainsFunc(s.Aside,
		func(a cluster.Aside) bool { return a.Kind == cluster.BufferPart || isPool(a) })}
	for i := range out.Unplaced {
		out.Unplaced[i].Why = slices.Concat(out.Unplaced[i].Why, spotOnly)
	}
	for _, l := range packed.Launches[:min(len(packed.Launches), max(most, 0))] {
		out.Launches = append(out.Launches, forStop(l))
	}
	if out.Partly {
		fresh = nil // nobody knows which of them the others have use for
	}
	if len(packed.Launches) == 0 {
		out.Removals = surplus(s, packed, fresh, stale)
	}
	return out
}

// forStop is the launch as one of a node that is made to be stopped.
func forStop(l plan.Launch) plan.Launch {
	l = l.Clone()
	l.Annotations = lists.CopyMap(l.Annotations)
	delete(l.Annotations, v1.AnnotationNominatedPods)
	l.Annotations[v1.AnnotationStoppedCapacity] = "true"
	l.Pods = nil
	return l
}

// bufferView is the cluster as the buffers' pods see it: their places are the claims named and new on-demand nodes.
// Everything else counts for limits only. spotOnly says which pools sell nothing that can be stopped.
func bufferView(s cluster.Snapshot, fresh map[string]bool) (view cluster.Snapshot, spotOnly []string) {
	view = AsComing(s, fresh)
	view.Claims = slices.Clone(view.Claims)
	for i, c := range view.Claims {
		if !fresh[c.Name] {
			c.Annotations = lists.CopyMap(c.Annotations)
			c.Annotations[v1.AnnotationStoppedCapacity] = "true"
			c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions),
				func(k cluster.Condition) bool { return k.Type == v1.ConditionStopped })
			view.Claims[i] = c
		}
	}
	owned := map[string]bool{}
	for _, node := range view.StateNodes() {
		if node.Node != nil && node.Claim != nil {
			owned[node.Node.Name] = true
		}
	}
	view.Nodes = slices.DeleteFunc(slices.Clone(view.Nodes), func(n cluster.Node) bool { return !owned[n.Name] })
	view.Pods = nil
	for _, b := range s.Stopped {
		view.Pods = append(view.Pods, b.Pods...)
	}
	view.Pools = nil
	onDemand := requirements.Of(instancetypes.LabelCapacityType, instancetypes.OnDemand)
	for _, p := range s.Pools {
		if have, limited := p.Requirements.Get(instancetypes.LabelCapacityType); limited &&
			!have.Has(instancetypes.OnDemand) {
			if !p.Static && !p.Deleting {
				spotOnly = append(spotOnly, fmt.Sprintf("NodePool %s: %s of spec.template.spec.requirements leaves no on-demand capacity, and EC2 cannot stop other instances",
					p.Name, instancetypes.LabelCapacityType))
			}
			continue
		}
		p.Requirements = p.Requirements.And(onDemand)
		view.Pools = append(view.Pools, p)
	}
	view.Rules.MaxClaims = 0
	return view, spotOnly
}

// surplus are the nodes that no buffer has use for, and those that cannot be used any more, by name.
func surplus(s cluster.Snapshot, packed plan.Plan, fresh map[string]bool, stale map[string]string) []plan.Removal {
	used := lists.Set(packed.Existing, func(e plan.Placement) string { return e.Node })
	var out []plan.Removal
	for _, c := range s.Claims {
		why := stale[c.Name]
		if fresh[c.Name] && !used[c.Name] {
			why = "no CapacityBuffer has use for its stopped capacity"
		}
		if why != "" {
			out = append(out, plan.Removal{Claim: c.Name, Pool: c.Pool, Why: why})
		}
	}
	slices.SortFunc(out, func(a, b plan.Removal) int { return strings.Compare(a.Claim, b.Claim) })
	return out[:min(len(out), mostRemovals)]
}

// staleReason says why a node of stopped capacity is not started any more, and is replaced; empty for one that is.
func staleReason(s cluster.Snapshot, c cluster.Claim) string {
	stopped := c.Condition(v1.ConditionStopped)
	pool, known := s.PoolOf(c.Pool)
	switch drifted := c.Condition(v1.ConditionDrifted); {
	case !known && slices.ContainsFunc(s.Aside, func(a cluster.Aside) bool { return isPool(a) && a.Name == c.Pool }):
		return "" // it is left out for a while
	case !known || pool.Deleting:
		return "NodePool " + c.Pool + " is gone"
	case drifted.Status == "True" && !keepsGood(pool, c):
		return "it has drifted: " + cmp.Or(drifted.Message, drifted.Reason)
	case c.ExpireAfter > 0 && !s.Now.Before(c.Created.Add(c.ExpireAfter/10*9)):
		return fmt.Sprintf("it is older than nine tenths of %s, after which it expires", c.ExpireAfter)
	case c.Annotations[v1.AnnotationReplaceRequested] != "":
		return "a notice of EC2 has it replaced"
	case !c.StartRequested().IsZero() && !s.Now.Before(c.StartRequested().Add(requestHolds)):
		return fmt.Sprintf("its instance did not start within %s", requestHolds)
	case stopped.Status == "True" && !s.Now.Before(stopped.Since.Add(LongestStop)):
		return fmt.Sprintf("it has been stopped for %s, longer than certificates of kubelets are relied on", LongestStop)
	}
	return ""
}

func isPool(a cluster.Aside) bool { return a.Kind == cluster.PoolPart && a.For == "" }

// keepsGood reports whether a NodeRollout has the pool's nodes of the claim's revision replaced by others, one after
// the other: what is launched in their stead meanwhile would be the same.
func keepsGood(pool cluster.Pool, c cluster.Claim) bool {
	reason := c.Condition(v1.ConditionDrifted).Reason
	return pool.Rollout != nil && (reason == "NodeClassDrift" || reason == "AMIDrift") &&
		pool.Rollout.RevisionOf(c) == pool.Rollout.Good
}

// Room returns the number of launches that a pass may make beside those that it has made; no limit is a maximum of 0.
func Room(s cluster.Snapshot, made int) int {
	if s.Rules.MaxClaims == 0 {
		return math.MaxInt
	}
	return s.Rules.MaxClaims - made
}
