package lifecycle

import (
	"slices"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// DoubtfulInstances are the ids, sorted, of the instances whose state the next steps depend on: those of claims that
// come into service, end or stop, those without a Ready node, and those of our nodes without a claim. Of others it is
// enough to know how they were some minutes ago.
func DoubtfulInstances(s cluster.Snapshot) []string {
	nodes, owned := map[string][]*cluster.Node{}, map[string]bool{}
	for i := range s.Nodes {
		if id := s.Nodes[i].ProviderID; id != "" {
			nodes[id] = append(nodes[id], &s.Nodes[i])
		}
	}
	var out []string
	for i := range s.Claims {
		c := &s.Claims[i]
		if c.ProviderID == "" {
			continue
		}
		owned[c.ProviderID] = true
		if isDoubtful(c, nodes[c.ProviderID]) {
			out = append(out, c.InstanceID())
		}
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if n.Finalizer && n.ProviderID != "" && n.Labels[awsv1.LabelEC2NodeClass] != "" && !owned[n.ProviderID] {
			out = append(out, cluster.InstanceIDOf(n.ProviderID))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// isDoubtful reports whether the next step of the claim, which has an instance and these nodes, depends on what EC2
// says of the instance now.
func isDoubtful(c *cluster.Claim, nodes []*cluster.Node) bool {
	if c.Deleting.IsZero() && c.Is(v1.ConditionStopped) && c.StartRequested().IsZero() {
		return len(nodes) > 0 // it waits to be started, without a node
	}
	return !c.Deleting.IsZero() || c.IsStopping() || !c.Is(v1.ConditionInitialized) || len(nodes) != 1 ||
		!nodes[0].Ready || !nodes[0].Deleting.IsZero()
}

// InstanceIndex finds the instances that actions are about.
type InstanceIndex struct {
	claims  map[string]*cluster.Claim // by name
	nodes   map[string]*cluster.Node  // by name
	started map[string][]string       // by the UID of the claim in their tags
}

// NewInstanceIndex is the index of a snapshot.
func NewInstanceIndex(s cluster.Snapshot) *InstanceIndex {
	x := &InstanceIndex{lists.Pointers(s.Claims, func(c *cluster.Claim) string { return c.Name }),
		lists.Pointers(s.Nodes, func(n *cluster.Node) string { return n.Name }), map[string][]string{}}
	for _, i := range s.Instances {
		if i.ClaimUID != "" {
			x.started[i.ClaimUID] = append(x.started[i.ClaimUID], i.ID)
		}
	}
	return x
}

// InstancesOf are the ids of the instances that the action is about: the one that it names, and those of its claim and
// its node. All says that only a list of all instances tells, because the claim does not know its own.
func (x *InstanceIndex) InstancesOf(a plan.Action) (ids []string, all bool) {
	if a.Instance != "" {
		ids = append(ids, a.Instance)
	}
	if n := x.nodes[a.Node]; n != nil && n.ProviderID != "" {
		ids = append(ids, cluster.InstanceIDOf(n.ProviderID))
	}
	c := x.claims[a.Claim]
	if c == nil {
		return ids, false
	}
	ids = append(ids, x.started[c.UID]...)
	if c.ProviderID == "" {
		return ids, true
	}
	return append(ids, c.InstanceID()), false
}

// claimHasInstance reports whether a claim has the instance, will have it, or ends it in order.
func (x index) claimHasInstance(i cluster.Instance) bool {
	if _, owned := x.owners[i.ProviderID()]; owned {
		return true
	}
	if i.Batch != "" && x.batches[i.Batch] {
		return true // provision will share it out
	}
	c, ok := x.claims[i.ClaimUID]
	if !ok || i.ClaimUID == "" {
		return false
	}
	if c.Deleting.IsZero() {
		return c.ProviderID == "" // launched, but the claim does not say so yet: provision adopts it
	}
	return c.Finalizer // finalize ends it
}
