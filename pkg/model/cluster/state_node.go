package cluster

import (
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// StateNode is a place for pods that exists or is on its way: a node with its claim, a node alone, or a claim alone.
type StateNode struct {
	Node  *Node  // nil while the claim has no node
	Claim *Claim // nil for a node that Joiner does not manage
}

// StateNodes pairs nodes with their claims, by provider id, else by node name, else by the label of the instance, which
// is written before the provider id. Nodes come first, both sorted by name.
func (s Snapshot) StateNodes() []StateNode {
	claims := s.indexClaims()
	taken := make([]bool, len(s.Claims))
	var out, alone []StateNode
	for i := range s.Nodes {
		n := &s.Nodes[i]
		node := StateNode{Node: n}
		if j, ok := s.claimOfNode(claims, n); ok && !taken[j] {
			node.Claim, taken[j] = &s.Claims[j], true
		}
		out = append(out, node)
	}
	for i := range s.Claims {
		if !taken[i] {
			alone = append(alone, StateNode{Claim: &s.Claims[i]})
		}
	}
	slices.SortFunc(out, byHostName)
	slices.SortFunc(alone, byHostName)
	return append(out, alone...)
}

// claimIndex has the places of claims in a snapshot, by what nodes are known by.
type claimIndex struct{ byID, byName, byInstance map[string]int }

func (s Snapshot) indexClaims() claimIndex {
	x := claimIndex{byID: map[string]int{}, byName: map[string]int{}, byInstance: map[string]int{}}
	for i, c := range s.Claims {
		if c.ProviderID != "" {
			x.byID[c.ProviderID] = i
		} else if id := c.Labels[api.LabelInstance]; id != "" {
			x.byInstance[id] = i
		}
		if c.NodeName != "" {
			x.byName[c.NodeName] = i
		}
	}
	return x
}

// claimOfNode returns the place of the node's claim.
func (s Snapshot) claimOfNode(claims claimIndex, n *Node) (int, bool) {
	j, ok := claims.byID[n.ProviderID]
	if ok && s.isAnothersID(n, s.Claims[j].NodeName) {
		ok = false
	}
	if !ok || n.ProviderID == "" {
		j, ok = claims.byName[n.Name]
	}
	if !ok && n.ProviderID != "" {
		j, ok = claims.byInstance[InstanceIDOf(n.ProviderID)]
	}
	return j, ok
}

// isAnothersID reports whether a node of another name is there that the claim with the node's provider id names as its
// own: a kubelet may write any id into a Node that it makes.
func (s Snapshot) isAnothersID(n *Node, claims string) bool {
	return claims != "" && claims != n.Name &&
		slices.ContainsFunc(s.Nodes, func(o Node) bool { return o.Name == claims && o.ProviderID == n.ProviderID })
}

func byHostName(a, b StateNode) int { return strings.Compare(a.Name(), b.Name()) }

// Name is the node's name, or the claim's while there is no node.
func (node StateNode) Name() string {
	if node.Node != nil {
		return node.Node.Name
	}
	return node.Claim.Name
}

// Pool is the name of the pool that the host counts for, empty for none. A node without a claim counts for none: its
// kubelet may write any pool into its labels.
func (node StateNode) Pool() string {
	if node.Claim == nil {
		return ""
	}
	return node.Claim.Pool
}

// Deleting reports whether the node or its claim is being deleted.
func (node StateNode) Deleting() bool {
	return node.Node != nil && !node.Node.Deleting.IsZero() || node.Claim != nil && !node.Claim.Deleting.IsZero()
}

// MarkedForDeletion reports whether the host takes no more pods and those it has need room elsewhere: it is being
// deleted, or carries the taint karpenter.sh/disrupted.
func (node StateNode) MarkedForDeletion() bool {
	return node.Deleting() || node.Node != nil && node.Node.IsTaintedDisrupted()
}

// IsTaintedDisrupted reports whether the node carries the taint karpenter.sh/disrupted, with whatever effect.
func (n *Node) IsTaintedDisrupted() bool {
	return slices.ContainsFunc(n.Taints, func(t Taint) bool { return t.Key == api.TaintDisrupted })
}

// MarkedForDisruption reports whether the host is marked by a disruption that can be taken back, and that brings its
// replacements itself: its pods may take room elsewhere, and no node is made for them.
func (node StateNode) MarkedForDisruption() bool {
	return node.MarkedForDeletion() && !node.Deleting() && node.Claim != nil &&
		node.Claim.Annotations[api.AnnotationDisruptionCommand] != ""
}

// Registered reports whether what the Node object says counts, instead of the claim.
func (node StateNode) Registered() bool {
	return node.Node != nil && (node.Claim == nil || node.Node.Labels[api.LabelRegistered] == "true" ||
		node.Claim.Is(api.ConditionRegistered))
}

// Initialized reports whether the node has been ready for pods once; a node that Joiner does not manage always is.
func (node StateNode) Initialized() bool {
	return node.Node != nil && (node.Claim == nil || node.Node.Labels[api.LabelInitialized] == "true" ||
		node.Claim.Is(api.ConditionInitialized))
}

// missesNodeAfter is the time after a registration for which its node may be missing only because nodes were listed
// before claims.
const missesNodeAfter = time.Minute

// LostNode reports whether the host's claim had a node that is not there any more: somebody took the Node object away.
func (node StateNode) LostNode(now time.Time) bool {
	return node.Node == nil && node.Claim.LostNode(now)
}

// LostNode reports whether a claim that has no node had one before.
func (c *Claim) LostNode(now time.Time) bool {
	return c.NodeName != "" && !(c.Is(api.ConditionRegistered) &&
		now.Before(c.Condition(api.ConditionRegistered).Since.Add(missesNodeAfter)))
}

// Labels returns the labels that the host has or is sure to get.
func (node StateNode) Labels() map[string]string {
	if node.Registered() {
		return node.Node.Labels
	}
	return node.Claim.Labels
}

// KnownLabels is everything that is known about the host's labels: of a registered node its labels, else the claim's
// requirements with its labels.
func (node StateNode) KnownLabels() requirements.Set {
	if node.Registered() {
		return requirements.FromLabels(node.Node.Labels)
	}
	return node.Claim.Requirements.AndSet(requirements.FromLabels(node.Claim.Labels))
}

// Taints returns the taints that pods must tolerate in this phase of the host's life. A node that is not initialized
// yet may have others that go away by themselves.
func (node StateNode) Taints() []Taint {
	switch {
	case !node.Registered():
		return node.Claim.Taints
	case node.Initialized():
		return node.Node.Taints
	}
	return slices.DeleteFunc(slices.Clone(node.Node.Taints), node.Claim.isTemporary)
}

// isTemporary reports whether the taint goes away while the claim's node starts: it is ephemeral, a startup taint, or
// one that the claim does not declare and that an agent puts on nodes.
func (c *Claim) isTemporary(t Taint) bool {
	declared := func(d Taint) bool { return d.Key == t.Key && d.Effect == t.Effect }
	return t.Ephemeral() || slices.ContainsFunc(c.StartupTaints, declared) ||
		!slices.ContainsFunc(c.Taints, declared) && (t.ofAgent() || !t.ofControlPlane())
}

// undeclaredFor is the time after its creation for which a node is not initialized because of a taint that nobody
// declared. An agent that starts takes its taint off, while that of a person stays.
const undeclaredFor = 5 * time.Minute

// AgentTaint is a taint on the claim's node that no NodePool declares and that goes away by itself: that of a known
// agent, or any other in the node's first five minutes.
func (c *Claim) AgentTaint(n Node, now time.Time) (t Taint, found bool) {
	i := slices.IndexFunc(n.Taints, func(t Taint) bool {
		return !t.Ephemeral() && !slices.ContainsFunc(c.StartupTaints, func(s Taint) bool { return s.Key == t.Key }) &&
			c.isTemporary(t) && !t.isSoft() &&
			(t.ofAgent() || now.Before(n.Created.Add(undeclaredFor)))
	})
	if i < 0 {
		return Taint{}, false
	}
	return n.Taints[i], true
}

// AwaitsAgents reports whether a node that is not initialized yet has a taint that an agent takes off, or nothing yet
// of a resource that its claim was made for and that a device plugin or a DRA driver brings. Kubernetes takes its own
// taints off a node that is ready.
func (node StateNode) AwaitsAgents() bool {
	return node.Registered() && !node.Initialized() && node.Claim != nil && (slices.ContainsFunc(node.Node.Taints,
		func(t Taint) bool { return !t.Ephemeral() && node.Claim.isTemporary(t) }) ||
		slices.ContainsFunc(node.Claim.Requests.Extended, func(e resources.Extended) bool {
			return node.Node.Capacity.Get(e.Name) == 0 && node.Node.Allocatable.Get(e.Name) == 0
		}))
}

// OfferingKey returns the offering that the host was bought as, by its claim; of a node without one its labels say.
func (node StateNode) OfferingKey() instancetypes.OfferingKey {
	if node.Claim != nil {
		return instancetypes.OfferingKeyOf(node.Claim.Labels)
	}
	return instancetypes.OfferingKeyOf(node.Node.Labels)
}

// reportTolerance is the part of the claim's figure by which the node's own may differ and count.
const reportTolerance = 10

// Capacity returns the host's part in limits and totals: what its claim's instance type has. The node's own figure
// counts instead where it differs by a tenth of that at most, or where the claim says nothing at all.
func (node StateNode) Capacity() resources.List {
	if node.Claim == nil {
		return node.Node.Capacity
	}
	out := node.Claim.Capacity
	if node.Node == nil {
		return out
	}
	if out.IsZero() {
		return node.Node.Capacity
	}
	for _, name := range out.Names() {
		told, own := node.Claim.Capacity.Get(name), node.Node.Capacity.Get(name)
		if tolerance := told / reportTolerance; own >= told-tolerance && own <= told+tolerance {
			out = out.With(name, own)
		}
	}
	return out
}

// Allocatable is the node's, with the claim's figures where an uninitialized node reports none. Devices of which it has
// published some are counted, even if all are taken.
func (node StateNode) Allocatable() resources.List {
	if node.Node == nil {
		return node.Claim.Allocatable
	}
	out := node.Node.Allocatable
	if node.Initialized() {
		return out
	}
	for _, name := range node.Claim.Allocatable.Names() {
		if out.Get(name) == 0 && !(IsClaimed(name) && node.Node.Capacity.Get(name) > 0) {
			out = out.With(name, node.Claim.Allocatable.Get(name))
		}
	}
	return out
}

// InvalidProtection reports whether the annotation karpenter.sh/do-not-disrupt is there and says nothing that protects
// a pod at any time.
func (p Pod) InvalidProtection() bool {
	d, err := time.ParseDuration(p.DoNotDisrupt)
	return p.DoNotDisrupt != "" && p.DoNotDisrupt != "true" && (err != nil || d <= 0)
}

// Protected reports whether the annotation karpenter.sh/do-not-disrupt protects the pod at the time now: "true" always,
// a positive duration until that long after the pod's start.
func (p Pod) Protected(now time.Time) bool {
	if p.DoNotDisrupt == "true" {
		return true
	}
	d, err := time.ParseDuration(p.DoNotDisrupt)
	return err == nil && d > 0 && (p.Started.IsZero() || now.Before(p.Started.Add(d)))
}

// ProtectedUntil returns the end of the annotation karpenter.sh/do-not-disrupt of a pod that has started, if it says
// for how long.
func (p Pod) ProtectedUntil() (until time.Time, limited bool) {
	d, err := time.ParseDuration(p.DoNotDisrupt)
	return p.Started.Add(d), err == nil && d > 0 && !p.Started.IsZero()
}
