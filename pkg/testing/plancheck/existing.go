package plancheck

import (
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
)

const (
	labelRegistered  = "karpenter.sh/registered"
	labelInitialized = "karpenter.sh/initialized"
	taintDisrupted   = "karpenter.sh/disrupted"
	nominatedPods    = "joiner.sh/nominated-pods"
)

// buildPossibleNodes makes the nodes that exist or are on their way, with the pods that stay on them, and notes the
// pods that need a place.
func (t *planCheck) buildPossibleNodes() {
	s := &t.Snapshot
	taken := map[int]bool{}
	onNode := map[string]*possibleNode{}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		claim := -1
		for j := range s.Claims {
			if c := &s.Claims[j]; !taken[j] && (n.ProviderID != "" && c.ProviderID == n.ProviderID || claim < 0 &&
				c.NodeName == n.Name) {
				claim = j
			}
		}
		var c *cluster.Claim
		if claim >= 0 {
			c, taken[claim] = &s.Claims[claim], true
		}
		m := t.existingPossibleNode(n, c)
		onNode[n.Name] = m
		t.possibleNodes = append(t.possibleNodes, m)
	}
	for j := range s.Claims {
		if !taken[j] {
			t.possibleNodes = append(t.possibleNodes, t.existingPossibleNode(nil, &s.Claims[j]))
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		m := onNode[p.NodeName]
		ended := p.Phase == "Succeeded" || p.Phase == "Failed"
		switch {
		case needsNode(p), m != nil && m.closed && t.mustMove(p, m):
			t.byKey[p.Namespace+"/"+p.Name] = p
			if m != nil {
				m.leaving = append(m.leaving, p)
			}
		case m != nil && !ended:
			m.there = append(m.there, p)
		case p.NodeName == "" && !ended && p.Deleting.IsZero() && onNode[p.Nominated] != nil:
			onNode[p.Nominated].nominated = append(onNode[p.Nominated].nominated, p)
		}
	}
}

// needsNode reports whether the scheduler found no node for the pod and one has to be found or made.
func needsNode(p *cluster.Pod) bool {
	return p.Unscheduled && p.NodeName == "" && p.Nominated == "" && p.Deleting.IsZero() && p.Phase != "Succeeded" &&
		p.Phase != "Failed" &&
		p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode && !wantsOtherNodes(p)
}

// wantsOtherNodes reports whether the pod wants nodes of no pool with all its required terms.
func wantsOtherNodes(p *cluster.Pod) bool {
	away := func(w labelRequirement) bool { return w.Key == labelPool && !w.Not && len(w.Values) == 0 }
	stays := len(p.NodeAffinity) == 0
	for _, term := range p.NodeAffinity {
		stays = stays || !slices.ContainsFunc(labelRequirements(term), away)
	}
	return !stays
}

// mustMove reports whether the pod on a node that goes away needs a place. Budgets hold only pods that are evicted:
// one that tolerates the taint of disrupted nodes ends with its node.
func (t *planCheck) mustMove(p *cluster.Pod, m *possibleNode) bool {
	lasts := p.Deleting.IsZero() || p.Owner == cluster.OwnerStatefulSet
	if !lasts || p.Phase == "Succeeded" || p.Phase == "Failed" || p.Owner == cluster.OwnerDaemonSet ||
		p.Owner == cluster.OwnerNode {
		return false
	}
	under, never := 0, p.Protected(t.Snapshot.Now)
	_, evicted := keepsOut(p, []cluster.Taint{{Key: taintDisrupted, Effect: "NoSchedule"}})
	for _, b := range t.Snapshot.Budgets {
		if evicted && b.Namespace == p.Namespace && selectorMatches(b.Selector, p.Labels) {
			under, never = under+1, never || b.FullyBlocking && !(b.AlwaysAllowUnready && !p.Ready)
		}
	}
	if under < 2 && !never || !p.Deleting.IsZero() {
		return true
	}
	return t.endsSoon(p, m)
}

// endsSoon reports whether the node is being deleted, and its drain ends by force within the time that a new node
// and the pod's end take.
func (t *planCheck) endsSoon(p *cluster.Pod, m *possibleNode) bool {
	soon := t.Snapshot.Now.Add(5*time.Minute + time.Duration(p.GraceSec)*time.Second)
	return slices.ContainsFunc(t.Snapshot.Claims, func(c cluster.Claim) bool {
		if c.Name != m.name && c.NodeName != m.name && (m.id == "" || c.ProviderID != m.id) {
			return false
		}
		end, err := time.Parse(time.RFC3339, c.Annotations["karpenter.sh/nodeclaim-termination-timestamp"])
		switch {
		case err == nil:
			return t.deletingNodes(m) && !end.After(soon)
		case c.TerminationGrace == nil || c.Deleting.IsZero():
			return false
		}
		return !c.Deleting.Add(*c.TerminationGrace).After(soon)
	})
}

func (t *planCheck) deletingNodes(m *possibleNode) bool {
	return slices.ContainsFunc(t.Snapshot.Nodes, func(n cluster.Node) bool {
		return n.Name == m.name &&
			!n.Deleting.IsZero()
	}) ||
		slices.ContainsFunc(t.Snapshot.Claims, func(c cluster.Claim) bool {
			return (c.Name == m.name || c.NodeName == m.name || m.id != "" && c.ProviderID == m.id) &&
				!c.Deleting.IsZero()
		})
}

// existingPossibleNode returns what a node, a node with its claim, or a claim alone may turn out to be.
func (t *planCheck) existingPossibleNode(n *cluster.Node, c *cluster.Claim) *possibleNode {
	m := &possibleNode{own: map[string]bool{}}
	if c != nil {
		m.pool, m.id, m.closed = c.Pool, c.ProviderID, !c.Deleting.IsZero()
		for name := range strings.SplitSeq(c.Annotations[nominatedPods], ",") {
			m.own[name] = name != ""
		}
	}
	if n == nil {
		m.name, m.taints, m.shapes, m.class = c.Name, c.Taints, t.onTheWay(c), c.ClassKey()
		return m
	}
	m.name, m.limits = n.Name, n.VolumeLimits
	m.closed = m.closed || !n.Deleting.IsZero() ||
		slices.ContainsFunc(n.Taints, func(x cluster.Taint) bool { return x.Key == taintDisrupted })
	is := func(condition string) bool {
		return c == nil || slices.ContainsFunc(c.Conditions,
			func(x cluster.Condition) bool { return x.Type == condition && x.Status == "True" })
	}
	registered := n.Labels[labelRegistered] == "true" || is("Registered")
	initialized := n.Labels[labelInitialized] == "true" || is("Initialized")
	if n.Ready || c == nil {
		m.node = n
	} else {
		m.class = c.ClassKey()
	}
	m.served = c == nil || initialized && t.Snapshot.Now.Sub(n.ReadySince) >= 2*time.Minute
	s := possibleShape{labels: maps.Clone(n.Labels), room: amountsOf(n.Allocatable), capacity: amountsOf(n.Capacity)}
	if s.labels == nil {
		s.labels = map[string]string{}
	}
	m.taints = n.Taints
	if c != nil && !initialized {
		fillAmounts(s.room, amountsOf(c.Allocatable))
		fillAmounts(s.capacity, amountsOf(c.Capacity))
		m.taints = slices.DeleteFunc(slices.Clone(n.Taints),
			func(x cluster.Taint) bool { return isTemporary(x, c) })
	}
	if !registered {
		m.taints, s.labels = c.Taints, certainLabels(c)
	}
	if s.labels[labelHost] == "" {
		s.labels[labelHost] = n.Name
	}
	addBetaLabels(s.labels)
	m.shapes = []possibleShape{s}
	return m
}

// certainLabels are the labels that a claim's node will have for certain.
func certainLabels(c *cluster.Claim) map[string]string {
	out := maps.Clone(c.Labels)
	if out == nil {
		out = map[string]string{}
	}
	for _, w := range labelRequirements(c.Requirements.All()) {
		if v, single := w.singleValue(); single && out[w.Key] == "" {
			out[w.Key] = v
		}
	}
	return out
}

// onTheWay returns what a claim without a node may become: what it was launched as, else all that its requirements
// leave.
func (t *planCheck) onTheWay(c *cluster.Claim) []possibleShape {
	if c.ProviderID != "" {
		l := certainLabels(c)
		addBetaLabels(l)
		return []possibleShape{{labels: l, room: amountsOf(c.Allocatable), capacity: amountsOf(c.Capacity)}}
	}
	pool, _ := t.Snapshot.PoolOf(c.Pool)
	out := t.possibleShapes(pool, c.Labels, labelRequirements(c.Requirements.All()), false)
	if len(out) == 0 {
		out = t.possibleShapes(pool, c.Labels, labelRequirements(c.Requirements.All()), true)
	}
	return out
}

func fillAmounts(into, from resourceAmounts) {
	for k, v := range from { // each key on its own
		if into[k] == 0 {
			into[k] = v
		}
	}
}

// isTemporary reports whether the taint goes away while the claim's node starts.
func isTemporary(t cluster.Taint, c *cluster.Claim) bool {
	same := func(s cluster.Taint) bool { return s.Key == t.Key && s.Effect == t.Effect }
	if slices.ContainsFunc(c.StartupTaints, same) {
		return true
	}
	switch t.Key + ":" + t.Effect {
	case "node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute",
		"node.kubernetes.io/unreachable:NoSchedule", "node.kubernetes.io/network-unavailable:NoSchedule",
		"node.cloudprovider.kubernetes.io/uninitialized:NoSchedule", "karpenter.sh/unregistered:NoExecute":
		return true
	}
	own := strings.Contains(t.Key, "kubernetes.io/") || strings.Contains(t.Key, "karpenter.") ||
		strings.Contains(t.Key, "joiner.sh/")
	return strings.HasPrefix(t.Key, "readiness.k8s.io/") || !slices.ContainsFunc(c.Taints, same) && !own
}
