package karpenter

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"

	"joiner.sh/pkg/model/instancetypes"
	amounts "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/workload"
)

// instanceTypes are what a plain EC2NodeClass gives.
func instanceTypes(c instancetypes.Catalog) []*cloudprovider.InstanceType {
	return translateTypes(instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, workload.CreationTime()))
}

// translateTypes returns the types in Karpenter's terms.
func translateTypes(types []instancetypes.Type) []*cloudprovider.InstanceType {
	var out []*cloudprovider.InstanceType
	for _, t := range types {
		it := &cloudprovider.InstanceType{
			Name: t.Name, Requirements: scheduling.NewRequirements(), Capacity: resourceList(t.Capacity),
			Overhead: &cloudprovider.InstanceTypeOverhead{KubeReserved: resourceList(t.Capacity.Sub(t.Allocatable))},
		}
		for _, r := range t.Requirements.All() {
			it.Requirements.Add(scheduling.NewRequirement(r.Key, corev1.NodeSelectorOperator(r.Operator()),
				r.Values...))
		}
		for _, o := range t.Offerings {
			it.Offerings = append(it.Offerings, offeringOf(o))
		}
		out = append(out, it)
	}
	return out
}

// offeringOf says of which reservation the offering is, or that it is of none.
func offeringOf(o instancetypes.Offering) *cloudprovider.Offering {
	out := &cloudprovider.Offering{Price: o.Price, Available: o.Available,
		Requirements: scheduling.NewLabelRequirements(map[string]string{
			corev1.LabelTopologyZone: o.Zone, karpv1.CapacityTypeLabelKey: o.CapacityType,
		})}
	if o.ZoneID != "" {
		out.Requirements.Add(scheduling.NewRequirement(instancetypes.LabelZoneID, corev1.NodeSelectorOpIn, o.ZoneID))
	}
	for _, key := range []string{instancetypes.LabelReservationID, instancetypes.LabelReservation,
		instancetypes.LabelInterruptible} {
		if value, _ := o.Label(key); value != "" {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value))
		} else {
			out.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpDoesNotExist))
		}
	}
	if o.Reservation != nil {
		out.ReservationCapacity = int(o.Reservation.Remaining)
	}
	return out
}

func resourceList(l amounts.List) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range l.Names() {
		if name == amounts.CPU {
			out[corev1.ResourceCPU] = *resource.NewMilliQuantity(l.CPU, resource.DecimalSI)
			continue
		}
		out[corev1.ResourceName(name)] = *resource.NewQuantity(l.Get(name), resource.BinarySI)
	}
	return out
}

// addPods makes the pods that wait and those of the DaemonSets.
func (in *Input) addPods() {
	for _, g := range in.file.Groups {
		if why := workload.PodRefusals(g.Pod.Spec); len(why) > 0 {
			in.refused[g.Name] = why
			continue
		}
		for i := range g.Count {
			in.pods = append(in.pods, markUnschedulable(podOf(g, g.PodName(i))))
		}
	}
	for i := range in.file.Pods {
		p := in.file.Pods[i].DeepCopy()
		if p.Namespace == "" {
			p.Namespace = workload.DefaultNamespace
		}
		if why := workload.PodRefusals(p.Spec); len(why) > 0 {
			in.refused[workload.PodKey(p)] = why
			continue
		}
		p.UID = types.UID(workload.PodUID(p.Namespace, p.Name))
		p.CreationTimestamp = metav1.NewTime(workload.CreationTime())
		in.pods = append(in.pods, markUnschedulable(p))
	}
	for _, d := range in.file.DaemonSets {
		in.daemons = append(in.daemons, daemonPod(d))
	}
	for _, p := range in.pods {
		in.store.addPod(*p)
	}
}

// daemonPod is the pod a DaemonSet makes: limits stand in for requests, and it bears what the controller lets it bear.
func daemonPod(d workload.PodGroup) *corev1.Pod {
	p := podOf(d, d.Name)
	p.Spec = *d.Pod.Spec.DeepCopy()
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			merged := maps.Clone(r.Limits)
			if merged == nil {
				merged = corev1.ResourceList{}
			}
			maps.Copy(merged, r.Requests)
			r.Requests = merged
		}
	}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: d.Name, UID: p.UID}}
	return p
}

func podOf(g workload.PodGroup, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace(), Name: name, Labels: g.Pod.Labels, Annotations: g.Pod.Annotations,
			UID:               types.UID(workload.PodUID(g.Namespace(), name)),
			CreationTimestamp: metav1.NewTime(workload.CreationTime()),
		},
		Spec: g.Pod.Spec,
	}
}

func markUnschedulable(p *corev1.Pod) *corev1.Pod {
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	return p
}

// addNodes makes the nodes that exist, with a NodeClaim each where a pool made them, and the pods on them.
func (in *Input) addNodes(ctx context.Context, c instancetypes.Catalog) error {
	sold := map[string]instancetypes.Type{}
	for _, t := range instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, workload.CreationTime()) {
		sold[t.Name] = t
	}
	pools := map[string]*karpv1.NodePool{}
	for _, p := range in.pools {
		pools[p.Name] = p
	}
	groups := map[string]workload.PodGroup{}
	for _, g := range in.file.BoundGroups {
		groups[g.Name] = g
	}
	for _, n := range in.file.Nodes {
		t, ok := sold[n.InstanceType]
		if !ok {
			return fmt.Errorf("node %s: the catalog has no %s", n.Name, n.InstanceType)
		}
		node := nodeOf(n, t, pools[n.NodePool], c.Zones[n.Zone])
		in.store.nodes[n.Name] = node
		var apart []*corev1.Pod
		for _, name := range slices.Sorted(maps.Keys(n.Pods)) {
			for i := range n.Pods[name] {
				p := podOf(groups[name], groups[name].BoundName(n.Name, i))
				p.Spec.NodeName = n.Name
				p.Status.Phase = corev1.PodRunning
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
				in.store.addPod(*p)
				if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
					apart = append(apart, p)
				}
			}
		}
		if n.NodePool != "" {
			in.cluster.UpdateNodeClaim(claimOf(node, t))
		}
		if err := in.cluster.UpdateNode(ctx, node); err != nil {
			return fmt.Errorf("node %s: %w", n.Name, err)
		}
		for _, p := range apart {
			if err := in.cluster.UpdatePod(ctx, p); err != nil {
				return fmt.Errorf("pod %s: %w", p.Name, err)
			}
		}
	}
	return nil
}

func nodeOf(n workload.Node, t instancetypes.Type, pool *karpv1.NodePool, zoneID string) *corev1.Node {
	labels := t.Requirements.Labels()
	taints := n.Taints
	if pool != nil {
		maps.Copy(labels, pool.Spec.Template.Labels)
		taints = slices.Concat(pool.Spec.Template.Spec.Taints, taints)
		labels[karpv1.NodePoolLabelKey] = pool.Name
	}
	maps.Copy(labels, map[string]string{
		corev1.LabelTopologyZone: n.Zone, instancetypes.LabelZoneID: zoneID,
		karpv1.CapacityTypeLabelKey: n.CapacityType,
		corev1.LabelHostname:        n.Name, karpv1.NodeRegisteredLabelKey: "true",
		karpv1.NodeInitializedLabelKey: "true",
	})
	maps.Copy(labels, n.Labels)
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("node-" + n.Name), Labels: labels,
			CreationTimestamp: metav1.NewTime(workload.CreationTime())},
		Spec: corev1.NodeSpec{ProviderID: "aws:///" + n.Zone + "/" + n.Name, Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: resourceList(t.Capacity), Allocatable: resourceList(t.Allocatable),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func claimOf(n *corev1.Node, t instancetypes.Type) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "claim-" + n.Name, UID: types.UID("claim-" + n.Name), Labels: n.Labels,
			CreationTimestamp: n.CreationTimestamp},
		Spec: karpv1.NodeClaimSpec{Taints: n.Spec.Taints},
	}
	c.Status.ProviderID, c.Status.NodeName = n.Spec.ProviderID, n.Name
	c.Status.Capacity, c.Status.Allocatable = resourceList(t.Capacity), resourceList(t.Allocatable)
	for _, k := range []string{karpv1.ConditionTypeLaunched, karpv1.ConditionTypeRegistered,
		karpv1.ConditionTypeInitialized} {
		c.StatusConditions().SetTrue(k)
	}
	return c
}
