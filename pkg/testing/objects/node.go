package objects

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/nodeclaim/launch"
)

// NewInstance returns the instance that EC2 starts for an order with the override that it chose. The number is that of
// no other instance.
func NewInstance(o launch.Order, v launch.Override, number int, now time.Time) cluster.Instance {
	return cluster.Instance{ID: fmt.Sprintf("i-%06d", number), State: "pending", Type: v.Type, Zone: v.Zone,
		CapacityType: v.CapacityType, ImageID: v.ImageID, SubnetID: v.SubnetID, Launched: now, Claim: o.ClaimName,
		ClaimUID: o.ClaimUID, Batch: o.Batch.ID}
}

// BootConfig returns what user data gives the kubelet of an instance that was launched for the claim, nil for none.
func BootConfig(c *cluster.Claim, i cluster.Instance) (labels map[string]string, taints []cluster.Taint) {
	labels = map[string]string{instancetypes.LabelType: i.Type, instancetypes.LabelZone: i.Zone,
		instancetypes.LabelCapacityType: i.CapacityType}
	if c == nil {
		return labels, nil
	}
	taints = nomination.AtBoot(slices.Concat(c.Taints, c.StartupTaints))
	if c.Standby() {
		taints = append(taints, cluster.Taint{Key: v1.TaintStoppedCapacity, Effect: "NoSchedule"})
	}
	return Merge(c.Labels, labels), taints
}

// NewNode is the node that the kubelet of an instance makes. It is not ready yet.
func NewNode(i cluster.Instance, t instancetypes.Type, labels map[string]string, taints []cluster.Taint,
	now time.Time) cluster.Node {
	name := "node-" + strings.TrimPrefix(i.ID, "i-")
	return cluster.Node{Name: name, UID: "uid-" + name, ProviderID: i.ProviderID(), Created: now, ReadySince: now,
		Labels: Merge(labels, map[string]string{"kubernetes.io/hostname": name}), Taints: slices.Clone(taints),
		Capacity: t.Capacity, Allocatable: t.Allocatable}
}

// Registration returns what a registration leaves on the node: labels and taints.
func Registration(n cluster.Node, c cluster.Claim) (labels map[string]string, taints []cluster.Taint) {
	labels = Merge(c.Labels, map[string]string{v1.LabelRegistered: "true"})
	taints = slices.DeleteFunc(nomination.TaintsOnRegistration(n.Taints, c),
		func(t cluster.Taint) bool { return t.Key == v1.TaintUnregistered || t.Key == v1.TaintStoppedCapacity })
	if cordon := (cluster.Taint{Key: "node.kubernetes.io/unschedulable", Effect: "NoSchedule"}); c.Standby() &&
		!slices.Contains(taints, cordon) {
		taints = append(taints, cordon)
	}
	return labels, taints
}

// DisruptedTaint keeps new pods off a node that leaves.
func DisruptedTaint() cluster.Taint {
	return cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"}
}

// RevisionTaint keeps new pods off a node because of a NodeRollout.
func RevisionTaint(key string) cluster.Taint { return cluster.Taint{Key: key, Effect: "NoSchedule"} }

// TaintForTermination taints the node and takes it out of load balancers.
func TaintForTermination(n *cluster.Node) {
	if !slices.Contains(n.Taints, DisruptedTaint()) {
		n.Taints = append(slices.Clone(n.Taints), DisruptedTaint())
	}
	n.Labels = Merge(n.Labels, map[string]string{v1.LabelExcludeBalancers: v1.ExcludeBalancersValue})
}
