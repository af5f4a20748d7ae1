package lifecycle

import (
	"fmt"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

const (
	// of the nodes of a pool, rounded up: with more, something else is wrong than nodes
	unhealthyPercent = 20
	blockedEvery     = 15 * time.Minute // the event that says so
)

// repairPolicy is a condition of a node that repair acts on, once it has lasted so long.
type repairPolicy struct {
	condition, status string
	lasting           time.Duration
}

// repairPolicies are those of Karpenter on AWS: for what the kubelet says, and the node monitoring agent of EKS.
func repairPolicies() []repairPolicy {
	const usual = 30 * time.Minute
	return []repairPolicy{
		{"Ready", "False", usual}, {"Ready", "Unknown", usual}, {"AcceleratedHardwareReady", "False", 10 * time.Minute},
		{"StorageReady", "False", usual}, {"NetworkingReady", "False", usual}, {"KernelReady", "False", usual},
		{"ContainerRuntimeReady", "False", usual},
	}
}

// repairNode ends a claim whose node has been unhealthy for too long, by force: without regard for protected pods,
// terminationGracePeriod, and budgets that do not name the reason Unhealthy. It does nothing while more than a fifth of
// the nodes are unhealthy, or while an annotation of the node forbids it.
func (st state) repairNode(c cluster.Claim) (actions []plan.Action, doomed bool) {
	n, ill := st.illnessOf(c)
	if ill == "" {
		return nil, false
	}
	if why := st.whyUnrepaired(c, n); why != "" {
		return []plan.Action{{Do: plan.Tell, Claim: c.Name, Node: n.Name, Warning: true, Reason: "NodeRepairBlocked",
			Every: blockedEvery, Why: why}}, false
	}
	st.repairs[c.Pool]++
	return append(st.forceDeadline(c, ill), plan.Action{Do: plan.DeleteClaim, Claim: c.Name, Reason: "unhealthy",
		Why: ill}), true
}

// illnessOf says what has ailed the claim's one node for so long that repair acts on it, or nothing.
func (st state) illnessOf(c cluster.Claim) (n cluster.Node, why string) {
	nodes := st.nodes[c.ProviderID]
	if !st.s.Rules.NodeRepair || c.ProviderID == "" || len(nodes) != 1 {
		return n, ""
	}
	a, since, ill := unhealthyCondition(nodes[0])
	if !ill || st.s.Now.Before(since.Add(a.lasting)) {
		return n, ""
	}
	return nodes[0], fmt.Sprintf("its node has had %s=%s for %s", a.condition, a.status, a.lasting)
}

// whyUnrepaired says what keeps repair from the node, or nothing.
func (st state) whyUnrepaired(c cluster.Claim, n cluster.Node) string {
	if n.Annotations[v1.AnnotationDoNotRepair] == "true" {
		return fmt.Sprintf("repair is blocked through the %q annotation", v1.AnnotationDoNotRepair)
	}
	if why := st.massIllness(c); why != "" {
		return why
	}
	p, ok := st.s.PoolOf(c.Pool)
	if !ok || st.repairsAllowed(p) > st.repairs[p.Name] {
		return ""
	}
	return "the budgets of NodePool " + p.Name + " let no more nodes go now for reason Unhealthy"
}

// massIllness says that so many nodes are unhealthy that something else is wrong, or nothing.
func (st state) massIllness(c cluster.Claim) string {
	if unhealthy, all, where := st.countUnhealthy(c); unhealthy > (all*unhealthyPercent+99)/100 {
		return fmt.Sprintf("more than %d%% of the nodes %s are unhealthy", unhealthyPercent, where)
	}
	return ""
}

// repairsAllowed returns how many more nodes of the pool may be repaired now by the budgets that name the reason
// Unhealthy. Nodes that are marked for deletion count against them, nodes that are only not ready do not.
func (st state) repairsAllowed(p cluster.Pool) int {
	named := func(b cluster.NodeBudget) bool {
		return !b.Every && slices.Contains(b.Reasons, string(v1.DisruptionUnhealthy))
	}
	if !slices.ContainsFunc(p.Disruption.Budgets, named) {
		return budgets.Unlimited
	}
	p.Disruption.Budgets = slices.DeleteFunc(slices.Clone(p.Disruption.Budgets),
		func(b cluster.NodeBudget) bool { return !named(b) })
	most, err := budgets.AllowedDisruptions(p.Disruption, v1.DisruptionUnhealthy,
		budgets.CountNodes(st.s)[p.Name].Total, st.s.Now)
	if err != nil {
		return 0 // the pool's condition DisruptionValid says why
	}
	for _, node := range st.s.StateNodes() {
		if node.Claim != nil && node.Pool() == p.Name && node.Initialized() && node.MarkedForDeletion() &&
			!node.Claim.Is(v1.ConditionInstanceTerminating) {
			most--
		}
	}
	return most
}

// unhealthyCondition returns what ails the node; of several ailments the one that repair waits for the shortest.
func unhealthyCondition(n cluster.Node) (worst repairPolicy, since time.Time, ill bool) {
	for _, a := range repairPolicies() {
		for _, k := range n.Conditions {
			if k.Type != a.condition || k.Status != a.status {
				continue
			}
			if !ill || k.Since.Add(a.lasting).Before(since.Add(worst.lasting)) {
				worst, since, ill = a, k.Since, true
			}
		}
	}
	return worst, since, ill
}

// countUnhealthy counts the nodes of the claim's pool, or of the whole cluster for a claim without a pool. One that is
// starting is not unhealthy, however many of them a burst of pods has brought.
func (st state) countUnhealthy(c cluster.Claim) (unhealthy, all int, where string) {
	where = "of the cluster"
	if c.Pool != "" {
		where = "of pool " + c.Pool
	}
	for _, n := range st.s.Nodes {
		if c.Pool != "" && n.Labels[v1.LabelNodePool] != c.Pool {
			continue
		}
		all++
		if _, _, ill := unhealthyCondition(n); ill && !st.isStarting(n) {
			unhealthy++
		}
	}
	return unhealthy, all, where
}

// isStarting reports whether the node is to be initialized yet, and has the time for it.
func (st state) isStarting(n cluster.Node) bool {
	c, owned := st.owners[n.ProviderID]
	return owned && n.ProviderID != "" && !c.Is(v1.ConditionInitialized) && !st.isOverdue(c)
}
