package main

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/lab/bench/karpenter"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/plan"
)

// easing is a change to what Karpenter is shown, by which one way in which both differ is no more.
type easing struct {
	name   string
	change func(c karpenter.Cluster, placed plan.Plan) karpenter.Cluster
}

// The names of differences that an easing shows.
const (
	taintOfNobody  = "taint of a disruption that nobody began"
	nodeAlone      = "node deleted without its claim"
	labelTaken     = "label taken off a node"
	typeOfLabel    = "node whose label names another type than its claim"
	unknownReady   = "pod that says nothing of its readiness"
	endingAnti     = "anti-affinity of pods that are being deleted"
	poolLeaving    = "young nodes of a NodePool that is being deleted"
	nothingToMake  = "no NodePool that may launch"
	severalOfThese = "several of these"
	othersPending  = "pods of others without a node"
	waitingFirst   = "room that pods which wait take"
)

func allEasings() []easing {
	return []easing{
		{taintOfNobody, deleteClaimsOf(func(n *corev1.Node) bool {
			return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == api.TaintDisrupted })
		})},
		{nodeAlone, deleteClaimsOf(func(n *corev1.Node) bool { return n.DeletionTimestamp != nil })},
		{typeOfLabel, nameTypes},
		{labelTaken, relabelNodes},
		{unknownReady, markUnready},
		{endingAnti, dropAntiAffinity},
		{poolLeaving, poolsKept},
		{nothingToMake, func(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster { c.Spare = true; return c }},
		{poolLeaving, youngClosed},
		{waitingFirst, waitingBound},
		{othersPending, func(c karpenter.Cluster, placed plan.Plan) karpenter.Cluster {
			gone := pendingPods(placed)
			c.Pods = slices.DeleteFunc(slices.Clone(c.Pods),
				func(p corev1.Pod) bool { return slices.Contains(gone, p.Namespace+"/"+p.Name) })
			return c
		}},
	}
}

// variant is a cluster to show to Karpenter: as it is, with one easing, or with all.
type variant struct {
	name    string // of the difference, empty for none
	cluster karpenter.Cluster
}

func clusterVariants(c karpenter.Cluster, placed plan.Plan) []variant {
	out, all := []variant{{"", c}}, variant{severalOfThese, c}
	for _, e := range allEasings() {
		out = append(out, variant{e.name, e.change(c, placed)})
		all.cluster = e.change(all.cluster, placed)
	}
	return append(out, all)
}

// deleteClaimsOf lets the claims go whose nodes are such.
func deleteClaimsOf(such func(*corev1.Node) bool) func(karpenter.Cluster, plan.Plan) karpenter.Cluster {
	return func(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
		c.Claims = slices.Clone(c.Claims)
		for i := range c.Nodes {
			n := claimOf(c, &c.Nodes[i])
			if n != nil && n.DeletionTimestamp == nil && such(&c.Nodes[i]) {
				n.DeletionTimestamp = c.Nodes[i].CreationTimestamp.DeepCopy()
			}
		}
		return c
	}
}

// nameTypes gives nodes the instance type, zone and capacity type of their claims, by which Joiner goes: a kubelet may
// say what it likes.
func nameTypes(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		node := c.Nodes[i].DeepCopy()
		n := claimOf(c, node)
		for _, label := range []string{corev1.LabelInstanceTypeStable, corev1.LabelTopologyZone,
			api.LabelCapacityType} {
			if n != nil && n.Labels[label] != "" {
				node.Labels[label] = n.Labels[label]
			}
		}
		c.Nodes[i] = *node
	}
	return c
}

// relabelNodes gives nodes the labels that their claims say they had when they came, and claims those by which their
// nodes have a price.
func relabelNodes(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
	c.Nodes, c.Claims = slices.Clone(c.Nodes), slices.Clone(c.Claims)
	for i := range c.Nodes {
		node := c.Nodes[i].DeepCopy()
		n := claimOf(c, node)
		if n == nil {
			continue
		}
		node.Labels[api.LabelNodePool] = n.Labels[api.LabelNodePool]
		for label, kind := range map[string]string{api.LabelInitialized: api.ConditionInitialized,
			api.LabelRegistered: api.ConditionRegistered} {
			if slices.ContainsFunc(n.Status.Conditions,
				func(k metav1.Condition) bool { return k.Type == kind && k.Status == "True" }) {
				node.Labels[label] = "true"
			}
		}
		n.Labels = node.Labels
		c.Nodes[i] = *node
	}
	return c
}

// markUnready says of pods that do not say whether they are ready that they are not.
func markUnready(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
	c.Pods = slices.Clone(c.Pods)
	for i := range c.Pods {
		p := c.Pods[i].DeepCopy()
		is := slices.IndexFunc(p.Status.Conditions,
			func(k corev1.PodCondition) bool { return k.Type == corev1.PodReady })
		if is < 0 {
			p.Status.Conditions = append(p.Status.Conditions,
				corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse})
		} else if p.Status.Conditions[is].Status != corev1.ConditionTrue {
			p.Status.Conditions[is].Status = corev1.ConditionFalse
		}
		c.Pods[i] = *p
	}
	return c
}

// dropAntiAffinity takes anti-affinity from pods that are being deleted.
func dropAntiAffinity(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
	c.Pods = slices.Clone(c.Pods)
	for i := range c.Pods {
		if c.Pods[i].DeletionTimestamp != nil && c.Pods[i].Spec.Affinity != nil {
			c.Pods[i] = *c.Pods[i].DeepCopy()
			c.Pods[i].Spec.Affinity.PodAntiAffinity = nil
		}
	}
	return c
}

// poolsKept takes back that NodePools are being deleted.
func poolsKept(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
	c.Pools = slices.Clone(c.Pools)
	for i := range c.Pools {
		c.Pools[i].DeletionTimestamp = nil
	}
	return c
}

// youngClosed closes nodes of NodePools that are being deleted as long as consolidation leaves them alone for their
// age.
func youngClosed(c karpenter.Cluster, _ plan.Plan) karpenter.Cluster {
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		claim := claimOf(c, &c.Nodes[i])
		if claim == nil || !slices.ContainsFunc(c.Pools, func(p api.NodePool) bool {
			after := p.Spec.Disruption.ConsolidateAfter.Duration
			return p.Name == claim.Labels[api.LabelNodePool] && p.DeletionTimestamp != nil && after != nil &&
				c.Now.Before(quietSince(claim).Add(*after))
		}) {
			continue
		}
		node := c.Nodes[i].DeepCopy()
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "young", Effect: corev1.TaintEffectNoSchedule})
		c.Nodes[i] = *node
	}
	return c
}

// quietSince is since when the claim's node is in service and no pod came or went.
func quietSince(claim *api.NodeClaim) time.Time {
	since := claim.Status.LastPodEventTime.Time
	for _, k := range claim.Status.Conditions {
		if k.Type == api.ConditionInitialized && k.LastTransitionTime.After(since) {
			since = k.LastTransitionTime.Time
		}
	}
	return since
}

// waitingBound binds the pods that wait to the nodes that have room for them.
func waitingBound(c karpenter.Cluster, placed plan.Plan) karpenter.Cluster {
	c.Pods = slices.Clone(c.Pods)
	for i := range c.Pods {
		for _, x := range placed.Existing {
			isNode := slices.ContainsFunc(c.Nodes, func(n corev1.Node) bool { return n.Name == x.Node })
			if p := &c.Pods[i]; isNode && p.Spec.NodeName == "" && x.Pod == p.Namespace+"/"+p.Name {
				bound := p.DeepCopy()
				bound.Spec.NodeName, bound.Status.Conditions = x.Node, nil
				c.Pods[i] = *bound
			}
		}
	}
	return c
}

// claimOf is the node's claim, nil for none.
func claimOf(c karpenter.Cluster, n *corev1.Node) *api.NodeClaim {
	for i := range c.Claims {
		if c.Claims[i].Status.ProviderID == n.Spec.ProviderID {
			return &c.Claims[i]
		}
	}
	return nil
}

// withoutNodes is the cluster without those claims, their nodes and what runs there.
func withoutNodes(c karpenter.Cluster, claims []string) karpenter.Cluster {
	gone := map[string]bool{} // nodes
	for i := range c.Nodes {
		if n := claimOf(c, &c.Nodes[i]); n != nil && slices.Contains(claims, n.Name) {
			gone[c.Nodes[i].Name] = true
		}
	}
	c.Claims = slices.DeleteFunc(slices.Clone(c.Claims),
		func(n api.NodeClaim) bool { return slices.Contains(claims, n.Name) })
	c.Nodes = slices.DeleteFunc(slices.Clone(c.Nodes), func(n corev1.Node) bool { return gone[n.Name] })
	c.Pods = slices.DeleteFunc(slices.Clone(c.Pods), func(p corev1.Pod) bool { return gone[p.Spec.NodeName] })
	return c
}
