package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/lab/bench/compare/filter"
	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// placeBeside asks Karpenter about the pods that Joiner leaves, when what Joiner decides has come true. It keeps those
// for which Karpenter has a place that kube-scheduler accepts, that no limit of a NodePool forbids, and that Joiner
// could know of.
func (t *trial) placeBeside(ctx context.Context, s cluster.Snapshot, sold instancetypes.Catalog) error {
	c := t.carriedOut(s)
	o, err := karpenter.DecideProvisioning(ctx, c, sold)
	if err != nil {
		return fmt.Errorf("karpenter beside Joiner's plan: %w", err)
	}
	refused, err := filter.RefusedPods(ctx, c, o, nil)
	if err != nil {
		return err
	}
	after := &trial{c: c, theirs: o, capacityOf: t.capacityOf}
	t.beside = map[string]bool{}
	for _, pod := range slices.Sorted(maps.Keys(o.PlacedPods())) {
		if refused[pod] == "" && len(after.exceededLimits(pod)) == 0 && !t.onOpenClaim(pod, o.Existing[pod]) {
			t.beside[groupOf(pod)] = true
		}
	}
	return nil
}

// onOpenClaim reports whether the node is one of a claim that was not launched yet, and the pod asks for a label, or is
// spread or counted by one, of which the claim says nothing: only the launch tells.
func (t *trial) onOpenClaim(pod, node string) bool {
	i := slices.IndexFunc(t.c.NodeClaims,
		func(c api.NodeClaim) bool { return c.Name == node && c.Status.ProviderID == "" })
	if i < 0 {
		return false
	}
	open := func(key string) bool {
		_, given := t.c.NodeClaims[i].Labels[key]
		return !given && !slices.ContainsFunc(t.c.NodeClaims[i].Spec.Requirements,
			func(r api.Requirement) bool { return r.Key == key })
	}
	p := t.pods[pod]
	for _, o := range t.pods {
		for _, c := range o.Spec.TopologySpreadConstraints {
			if open(c.TopologyKey) && t.hasRuleOver(p, c.TopologyKey) {
				return true
			}
		}
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(p.Spec.NodeSelector)), open) ||
		asksNodes(p, func(r corev1.NodeSelectorRequirement) bool { return open(r.Key) })
}

// carriedOut is the cluster in which Joiner's plan has come true: its nodes are there, the pods that it places run, and
// of the others those wait that nobody deletes.
func (t *trial) carriedOut(s cluster.Snapshot) *manifests.Cluster {
	c := *t.c
	c.Nodes, c.NodeClaims = slices.Clone(c.Nodes), slices.Clone(c.NodeClaims)
	c.Settings.Reserved = maps.Clone(c.Settings.Reserved)
	at := t.makeNodes(&c, s)
	for _, x := range t.ours.New {
		claim := api.NodeClaim{}
		claim.Name, claim.UID = "claim-"+x.Name, types.UID("claim-"+x.Name)
		claim.CreationTimestamp.Time = manifests.ClusterTime()
		i := slices.IndexFunc(c.NodePools, func(p api.NodePool) bool { return p.Name == x.NodePool })
		claim.Spec.NodeClassRef = c.NodePools[i].Spec.Template.Spec.NodeClassRef
		c.NodeClaims = append(c.NodeClaims, claim)
		t.setInstance(&c.NodeClaims[len(c.NodeClaims)-1], x)
		t.limitFlexibleClaim(&c.NodeClaims[len(c.NodeClaims)-1], c.NodePools[i], x)
		c.Nodes = append(c.Nodes, initializedNode(x.Name, &c.NodeClaims[len(c.NodeClaims)-1]))
		if id := x.Labels[instancetypes.LabelReservationID]; id != "" {
			c.Settings.Reserved[id]--
		}
	}
	c.Pods = nil
	for _, p := range t.c.Pods {
		place := t.ours.PlacedPods()[p.Namespace+"/"+p.Name]
		switch {
		case place != "":
			p = *p.DeepCopy()
			if name := at[place]; name != "" {
				place = name
			}
			p.Spec.NodeName, p.Status.NominatedNodeName = place, ""
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
		case p.Spec.NodeName == "" && p.DeletionTimestamp != nil:
			continue
		}
		c.Pods = append(c.Pods, p)
	}
	return &c
}

// makeNodes makes nodes of the claims that have none and that Joiner uses. It returns the nodes' names by claim.
func (t *trial) makeNodes(c *manifests.Cluster, s cluster.Snapshot) map[string]string {
	out, used := map[string]string{}, map[string]bool{}
	for _, place := range t.ours.Existing {
		used[place] = true
	}
	nodes := map[string]string{}
	for _, n := range c.Nodes {
		nodes[n.Spec.ProviderID] = n.Name
	}
	expected := comingNodes(s)
	for i := range c.NodeClaims {
		claim := c.NodeClaims[i].DeepCopy()
		if name := nodes[claim.Status.ProviderID]; name != "" && claim.Status.ProviderID != "" {
			out[claim.Name] = name
			continue
		}
		if !used[claim.Name] {
			continue
		}
		if j := slices.IndexFunc(expected, func(x manifests.NewNode) bool { return x.Name == claim.Name }); j >= 0 {
			t.setInstance(claim, expected[j])
		}
		c.NodeClaims[i] = *claim
		c.Nodes = append(c.Nodes, initializedNode(claim.Name, &c.NodeClaims[i]))
	}
	return out
}

// setInstance gives the claim the instance that the node says.
func (t *trial) setInstance(claim *api.NodeClaim, x manifests.NewNode) {
	claim.Labels = maps.Clone(x.Labels)
	claim.Labels[api.LabelNodePool] = x.NodePool
	claim.Spec.Taints = slices.DeleteFunc(slices.Clone(x.Taints),
		func(t corev1.Taint) bool { return t.Key == api.TaintHold })
	claim.Status.ProviderID = "aws:///" + x.Zone + "/i-" + claim.Name
	claim.Status.Capacity, claim.Status.Allocatable = t.capacityOf[x.InstanceType], x.Allocatable
}

// limitFlexibleClaim leaves of a claim of a NodePool with minValues the room that all types have which it may become,
// and counts it as the largest of them, as Joiner does: it must stay able to become each.
func (t *trial) limitFlexibleClaim(claim *api.NodeClaim, p api.NodePool, x manifests.NewNode) {
	if !slices.ContainsFunc(p.Spec.Template.Spec.Requirements,
		func(r api.Requirement) bool { return r.MinValues != nil }) {
		return
	}
	least, most := maps.Clone(claim.Status.Allocatable), maps.Clone(claim.Status.Capacity)
	for _, name := range t.typesOf[x.Name] {
		for of, q := range least {
			if other := t.roomOf[name][of]; other.Cmp(q) < 0 {
				least[of] = other
			}
		}
		for of, q := range most {
			if other := t.capacityOf[name][of]; other.Cmp(q) > 0 {
				most[of] = other
			}
		}
	}
	claim.Status.Allocatable, claim.Status.Capacity = least, most
}

// initializedNode is the node of the claim once it is initialized, which it notes on the claim.
func initializedNode(name string, claim *api.NodeClaim) corev1.Node {
	for _, k := range []string{api.ConditionLaunched, api.ConditionRegistered, api.ConditionInitialized} {
		claim.StatusConditions().SetTrue(k, manifests.ClusterTime())
	}
	claim.Status.NodeName = name
	n := corev1.Node{}
	n.Name, n.UID, n.Labels = name, types.UID(name), maps.Clone(claim.Labels)
	maps.Copy(n.Labels, map[string]string{corev1.LabelHostname: name, api.LabelRegistered: "true",
		api.LabelInitialized: "true", "topology.ebs.csi.aws.com/zone": claim.Labels[corev1.LabelTopologyZone]})
	n.Spec.ProviderID, n.Spec.Taints = claim.Status.ProviderID, slices.Clone(claim.Spec.Taints)
	n.Status.Capacity, n.Status.Allocatable = claim.Status.Capacity, claim.Status.Allocatable
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}

// roomBeside reports whether Karpenter has a place for a pod like that of the fault beside all that Joiner places.
func (t *trial) roomBeside(f fault) bool { return t.beside[groupOf(f.Pod)] }
