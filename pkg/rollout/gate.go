package rollout

import (
	"cmp"
	"slices"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// Gate returns the snapshot in which NodePools launch and drift as their NodeRollouts allow. It may be repeated:
// classes that it added before stay, with what has been found out about them since. The snapshot given is not changed.
// A NodePool that two NodeRollouts select belongs to the first by name. One whose NodeRollout has no last good revision
// yet is left as it is.
func Gate(s cluster.Snapshot) cluster.Snapshot {
	if len(s.Rollouts) == 0 {
		return s
	}
	s.Classes, s.Pools = slices.Clone(s.Classes), slices.Clone(s.Pools)
	there := lists.Set(s.Classes, func(c instancetypes.Class) string { return c.Name })
	for _, r := range s.Rollouts {
		class, refused := ClassOf(s, r)
		if refused != "" || r.Status.LastGood == "" {
			continue
		}
		g := gateOf(s, r, class)
		for i := range s.Pools {
			if p := &s.Pools[i]; owns(s, r, p.Name) {
				p.Rollout, p.Revision = &g, g.Good
				p.Annotations = lists.CopyMap(p.Annotations)
				p.Annotations[api.AnnotationNodeRevision] = g.Good
			}
		}
		for _, c := range revisionClasses(r, class, g) {
			if !there[c.Name] {
				there[c.Name], s.Classes = true, append(s.Classes, c)
			}
		}
	}
	slices.SortFunc(s.Classes, func(a, b instancetypes.Class) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

// gateOf returns what the status of the rollout allows now.
func gateOf(s cluster.Snapshot, r cluster.Rollout, class string) cluster.PoolRollout {
	g := cluster.PoolRollout{Name: r.Name, Good: r.Status.LastGood, DriftTo: r.Status.LastGood, Known: marksOf(r)}
	switch phase := r.Status.Phase; {
	case r.Pinned != "":
		if g.Good, g.DriftTo = r.Pinned, r.Pinned; r.Status.Revision != r.Pinned {
			g.Failed = r.Status.Revision
		}
	case isUnderWay(r.Status):
		g.Try, g.DriftTo = r.Status.Revision, r.Status.Revision
		if now, ok := currentRevision(s, r, class); ok && now == g.Try && r.Abort != g.Try {
			g.Slots = max(r.Status.Allowed-len(everTried(s, r, g)), 0)
		}
	case phase == cluster.RolloutHalted:
		g.Try, g.DriftTo, g.Failed = r.Status.Revision, "", r.Status.Revision
	case phase == cluster.RolloutRollingBack:
		g.Failed = r.Status.Revision
	}
	g.RolledBack = rolledBack(r, g)
	return g
}

// marksOf are the marks of the revisions that are kept.
func marksOf(r cluster.Rollout) []cluster.KnownRevision {
	return lists.Of(r.Revisions, func(v cluster.NodeRevision) cluster.KnownRevision {
		return cluster.KnownRevision{Name: v.Name, Hash: v.Resolved.Hash, HashVersion: v.Resolved.HashVersion,
			Images: lists.Of(v.Resolved.Images, func(i instancetypes.Image) string { return i.ID })}
	})
}

// revisionOf returns what tells the revision that a claim has or is to be launched with; empty for one that nobody
// knows.
func revisionOf(r cluster.Rollout) func(cluster.Claim) string {
	return cluster.PoolRollout{Known: marksOf(r)}.RevisionOf
}

// rolledBack are the revisions whose nodes are all to be replaced by those of the last good one. One that was trusted
// is none of them: after undo it may have every node, and its pods need them until others are there.
func rolledBack(r cluster.Rollout, g cluster.PoolRollout) (out []string) {
	if g.DriftTo != g.Good {
		return nil
	}
	for _, name := range append(slices.Clone(r.Status.Failed), g.Failed) {
		if name != "" && name != g.Good && name != r.Status.LastGood && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// revisionClasses are the revisions as classes of the snapshot. One that launches need and that nobody kept is there
// as one that is not ready.
func revisionClasses(r cluster.Rollout, class string, g cluster.PoolRollout) []instancetypes.Class {
	out := lists.Of(r.Revisions, func(v cluster.NodeRevision) instancetypes.Class { return v.Resolved })
	if _, kept := keptRevision(r, g.Good); !kept {
		out = append(out, instancetypes.Class{Name: cluster.RevisionKey(class, g.Good),
			Message: "its revision " + g.Good + " is not stored any more: see NodeRollout " + r.Name})
	}
	return out
}

// owns reports whether the pool is the rollout's: it selects it, and none before it by name does.
func owns(s cluster.Snapshot, r cluster.Rollout, pool string) bool {
	for _, other := range s.Rollouts {
		if slices.Contains(other.Pools, pool) {
			return other.Name == r.Name
		}
	}
	return false
}

// claimsOf are the claims of the rollout's pools, without stopped capacity.
func claimsOf(s cluster.Snapshot, r cluster.Rollout) []cluster.Claim {
	mine := map[string]bool{}
	for _, p := range r.Pools {
		mine[p] = owns(s, r, p)
	}
	return lists.Where(s.Claims, func(c cluster.Claim) bool { return mine[c.Pool] && !c.Standby() })
}

// everTried are the claims that have, had or will have the revision that is tried.
func everTried(s cluster.Snapshot, r cluster.Rollout, g cluster.PoolRollout) map[string]bool {
	out := lists.Set(r.Status.Tried, func(t cluster.TriedNode) string { return t.Name })
	for _, c := range claimsOf(s, r) {
		if g.RevisionOf(c) == g.Try {
			out[c.Name] = true
		}
	}
	return out
}

// AssignLaunches gives the revision that is tried to as many of the launches as the step allows, the first ones.
// Launches for pods that stand on a node, which goes because of EC2, of its age or of people, keep the last good one.
// The launches given are not changed.
func AssignLaunches(s cluster.Snapshot, launches []plan.Launch) []plan.Launch {
	slots := map[string]int{}
	for _, p := range s.Pools {
		if p.Rollout != nil {
			slots[p.Rollout.Name] = p.Rollout.Slots
		}
	}
	if len(slots) == 0 {
		return launches
	}
	on := map[string]bool{}
	for _, p := range s.Pods {
		on[p.Key()] = p.NodeName != ""
	}
	onNode := func(pod string) bool { return on[pod] }
	out := slices.Clone(launches)
	for i, l := range out {
		p, _ := s.PoolOf(l.Pool)
		if p.Rollout == nil || slots[p.Rollout.Name] <= 0 || slices.ContainsFunc(l.Pods, onNode) {
			continue
		}
		slots[p.Rollout.Name]--
		out[i] = WithRevision(l, p.Rollout.Try)
	}
	return out
}

// WithRevision is the launch with that revision of its class.
func WithRevision(l plan.Launch, revision string) plan.Launch {
	l.Annotations = lists.CopyMap(l.Annotations)
	l.Annotations[api.AnnotationNodeRevision] = revision
	return l
}
