package sim

import (
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// claim is a NodeClaim as it is stored, and what the checks know of it.
type claim struct {
	cluster.Claim
	pods     []string // UIDs of the pods it was made for
	released bool     // we removed our finalizer

	writer  *invocation // that wrote it last, nil for somebody else
	written time.Time   // when
	maker   *invocation // that stored it
	made    time.Time   // by it
	noticed time.Time   // marked for deletion because of a notice, by who handles it
	dropped time.Time   // by a user, or because its instance ended, fails, or will be stopped before budgets allow it
	expired time.Time   // by lifecycle, for its age or because it came to nothing
	spared  time.Time   // when a disruption of it was taken back

	paid []instancetypes.CommitmentDraw // what it was to take of a commitment
}

// node is a Node object, and what makes it go.
type node struct {
	cluster.Node
	owner   string    // UID of the NodeClaim it belongs to, from registration on
	machine *machine  // nil for a node that somebody else runs
	down    bool      // its kubelet is silent
	bound   time.Time // when it got its last pod
	guarded time.Time // when a user protected it

	untainted time.Time // when a disruption of it was taken back
	guardEnds time.Time // by when all users will have taken that back
}

// isTainted reports whether nothing more is to come to the node, because it leaves.
func (n *node) isTainted() bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == v1.TaintDisrupted })
}

// pod is a Pod object and what runs behind it.
type pod struct {
	cluster.Pod
	app          *app
	volumeClaims []string // the claims of its volumes, by namespace and name
	starts       int      // counts the starts and ends under way, so that a late one is known as stale
}

// allTolerations are all of the pod's, those for held nodes too.
func (p *pod) allTolerations() []cluster.Toleration {
	out := slices.Clone(p.Tolerations)
	if len(p.Holds) > 0 {
		out = append(out, cluster.Toleration{Key: v1.TaintHold, Operator: "Equal", Value: v1.HoldAtBoot,
			Effect: "NoSchedule"})
	}
	for _, h := range p.Holds {
		out = append(out, cluster.Toleration{Key: v1.TaintHold, Operator: "Equal", Value: h, Effect: "NoSchedule"})
	}
	return out
}

// capacityLease is held by who creates capacity.
const capacityLease = "joiner-capacity"

type storedLease struct {
	version int // of the object
	holder  string
	until   time.Time
}

func isWithin(part, all map[string]string) bool {
	for k, v := range part {
		if have, ok := all[k]; !ok || have != v {
			return false
		}
	}
	return true
}
