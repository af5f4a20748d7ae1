package main

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/lab/bench/manifests"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	amounts "joiner.sh/pkg/model/resources"
)

// States of a node's life.
const (
	stateInitialized  = "initialized"
	stateRegistered   = "registered"   // its startup taints are still there, and it is not ready yet
	stateUnregistered = "unregistered" // the kubelet is up
	stateLaunched     = "launched"     // there is no Node yet
	stateUnlaunched   = "unlaunched"   // there is no instance yet
	stateDeleting     = "deleting"
	stateUnmanaged    = "unmanaged" // somebody else made it
	stateCordoned     = "cordoned"
	stateNotReady     = "not-ready"
)

// nodeDraw is a node in the making.
type nodeDraw struct {
	name, state string
	pods        []*groupDraw
	csiLimit    int
}

func (d *draw) addNodes(n int) {
	for range n {
		x := &nodeDraw{name: fmt.Sprintf("node-%d", len(d.nodes)),
			state: pickOne(d, stateInitialized, stateInitialized, stateInitialized, stateRegistered, stateUnregistered,
				stateLaunched, stateUnlaunched, stateDeleting, stateUnmanaged, stateCordoned, stateNotReady)}
		if d.oneIn(3) {
			x.csiLimit = 1 + d.r.IntN(3)
		}
		for i := range d.r.IntN(4) {
			g := &groupDraw{name: fmt.Sprintf("old-%s-%d", x.name, i), namespace: pickOne(d, "default", "default", "prod"),
				app: d.pickGroup().app, count: 1, cpu: pickOne(d, 50, 200, 500), memory: pickOne(d, 64, 300),
				owner: pickOne(d, "", "ReplicaSet", "StatefulSet")}
			switch d.r.IntN(8) {
			case 0:
				g.apart = []string{d.drawTerm(g)}
			case 1:
				g.ports = []string{"{containerPort: 80, hostPort: 80}"}
			case 2:
				g.terminating = true
			case 3:
				g.ownVolumes = pickOne(d, "anywhere", "zone")
			}
			x.pods = append(x.pods, g)
		}
		d.nodes = append(d.nodes, x)
	}
}

// writeNodes makes the nodes with their claims and pods.
func (d *draw) writeNodes() error {
	sold, err := d.c.SoldCatalog(d.all)
	if err != nil {
		return err
	}
	for _, x := range d.nodes {
		p := d.pickPool()
		var possible []instancetypes.Type
		for _, t := range d.c.ResolveTypes(sold, p.class) {
			if slices.Contains(p.types, t.Name) && t.Allocatable.CPU >= 1900 && t.Allocatable.Memory > 3<<30 {
				possible = append(possible, t)
			}
		}
		if len(possible) == 0 || p.static {
			continue
		}
		if err := d.writeNode(x, p, pickOne(d, possible...)); err != nil {
			return err
		}
	}
	return nil
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

// labelsOf are those of a node of the pool.
func (d *draw) labelsOf(x *nodeDraw, p *poolDraw, t instancetypes.Type) (labels map[string]string, ok bool) {
	var offerings []instancetypes.Offering
	for _, o := range t.Offerings {
		if listAllows(p.zones, o.Zone) && listAllows(p.capacities, o.CapacityType) && slices.Contains(zoneNames(), o.Zone) &&
			o.Reservation == nil && o.PriceKnown() {
			offerings = append(offerings, o)
		}
	}
	if len(offerings) == 0 {
		return nil, false
	}
	o := pickOne(d, offerings...)
	labels = t.Requirements.Labels()
	maps.Copy(labels, p.values)
	maps.Copy(labels, map[string]string{keyZone: o.Zone, keyZoneID: o.ZoneID, keyCapacity: o.CapacityType,
		keyTenancy:                       "default",
		"karpenter.k8s.aws/ec2nodeclass": p.class, keyPool: p.name, "topology.ebs.csi.aws.com/zone": o.Zone})
	if n := d.c.Settings.Partitions["pg-1"]; n > 0 && labels["karpenter.k8s.aws/placement-group-id"] != "" {
		labels[keyPartition] = fmt.Sprint(1 + d.r.Int64N(n))
	}
	return labels, true
}

func (d *draw) writeNode(x *nodeDraw, p *poolDraw, t instancetypes.Type) error {
	labels, ok := d.labelsOf(x, p, t)
	if !ok {
		return nil
	}
	claim := d.claimFor(x, p, t, labels)
	var err error
	if claim.Spec.Taints, err = taintsOf(p.taints); err != nil {
		return err
	}
	if claim.Spec.StartupTaints, err = taintsOf(p.startup); err != nil {
		return err
	}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: x.name, UID: types.UID("node-" + x.name),
		CreationTimestamp: claim.CreationTimestamp, Labels: maps.Clone(labels)}}
	node.Labels[keyHost] = x.name
	node.Spec.ProviderID, node.Spec.Taints = claim.Status.ProviderID, slices.Clone(claim.Spec.Taints)
	node.Status.Capacity, node.Status.Allocatable = resourceList(t.Capacity), resourceList(t.Allocatable)
	x.enterState(&node, &claim)
	hasNode := x.state != stateLaunched && x.state != stateUnlaunched
	if x.state == stateUnmanaged {
		for _, k := range []string{keyPool, api.LabelRegistered, api.LabelInitialized,
			"karpenter.k8s.aws/ec2nodeclass"} {
			delete(node.Labels, k)
		}
	} else {
		if hasNode && x.state != stateUnregistered {
			claim.Status.NodeName = x.name
		}
		d.c.NodeClaims = append(d.c.NodeClaims, claim)
	}
	if !hasNode {
		return nil
	}
	d.c.Nodes = append(d.c.Nodes, node)
	if x.csiLimit > 0 {
		n := int32(x.csiLimit)
		d.c.CSINodes = append(d.c.CSINodes, storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: x.name},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: driver, NodeID: x.name, TopologyKeys: []string{"topology.ebs.csi.aws.com/zone"},
				Allocatable: &storagev1.VolumeNodeResources{Count: &n}}}}})
	}
	if x.state == stateUnregistered || x.state == stateRegistered {
		return nil
	}
	return d.writeBound(x)
}

func taintsOf(entries []string) ([]corev1.Taint, error) {
	var out []corev1.Taint
	for _, text := range entries {
		var taint corev1.Taint
		if err := parseYAML(text, &taint); err != nil {
			return nil, err
		}
		out = append(out, taint)
	}
	return out, nil
}

// enterState makes node and claim, which are as those of a node that is done, what they are in its state.
func (x *nodeDraw) enterState(node *corev1.Node, claim *api.NodeClaim) {
	ready := corev1.ConditionTrue
	done := map[string]string{api.LabelRegistered: "true", api.LabelInitialized: "true"}
	reached := []string{api.ConditionLaunched, api.ConditionRegistered, api.ConditionInitialized}
	switch x.state {
	case stateRegistered:
		reached, ready = reached[:2], corev1.ConditionFalse
		delete(done, api.LabelInitialized)
		node.Spec.Taints = slices.Concat(node.Spec.Taints, claim.Spec.StartupTaints,
			[]corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}})
	case stateUnregistered:
		reached, ready, done = reached[:1], corev1.ConditionFalse, nil
		node.Labels = map[string]string{keyHost: x.name, keyArch: node.Labels[keyArch], "kubernetes.io/os": "linux",
			keyZone: node.Labels[keyZone], keyType: node.Labels[keyType]}
		node.Spec.Taints = []corev1.Taint{{Key: api.TaintUnregistered, Effect: corev1.TaintEffectNoExecute}}
	case stateLaunched:
		reached = reached[:1]
	case stateUnlaunched:
		reached = nil
	case stateDeleting:
		at := metav1.NewTime(manifests.ClusterTime().Add(-minutes(1)))
		claim.DeletionTimestamp, node.DeletionTimestamp = &at, &at
		claim.Finalizers, node.Finalizers = []string{api.FinalizerTermination}, []string{api.FinalizerTermination}
		node.Spec.Taints = append(node.Spec.Taints, api.DisruptedTaint())
	case stateCordoned:
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	case stateNotReady:
		ready = corev1.ConditionFalse
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute})
	}
	for _, k := range reached {
		claim.StatusConditions().SetTrue(k, manifests.ClusterTime().Add(-minutes(3)))
	}
	maps.Copy(node.Labels, done)
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready,
		LastTransitionTime: metav1.NewTime(manifests.ClusterTime().Add(-minutes(2)))}}
}

func (d *draw) claimFor(x *nodeDraw, p *poolDraw, t instancetypes.Type, labels map[string]string) api.NodeClaim {
	c := api.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + x.name, UID: types.UID("claim-" + x.name),
		CreationTimestamp: metav1.NewTime(manifests.ClusterTime().Add(-minutes(4))),
		Labels:            map[string]string{keyPool: p.name, "karpenter.k8s.aws/ec2nodeclass": p.class},
		Finalizers:        []string{api.FinalizerTermination},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: p.name,
			UID: types.UID("pool-" + p.name)}}}}
	c.Spec.NodeClassRef = &api.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: p.class}
	maps.Copy(c.Labels, p.values)
	for _, key := range []string{keyType, keyZone, keyCapacity} {
		c.Spec.Requirements = append(c.Spec.Requirements,
			api.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]}})
	}
	for _, key := range slices.Sorted(maps.Keys(p.values)) {
		c.Spec.Requirements = append(c.Spec.Requirements,
			api.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{p.values[key]}})
	}
	c.StatusConditions().Initialize()
	if x.state == stateUnlaunched {
		return c
	}
	maps.Copy(c.Labels, labels)
	c.Status.ProviderID = "aws:///" + labels[keyZone] + "/i-" + x.name
	c.Status.Capacity, c.Status.Allocatable = resourceList(t.Capacity), resourceList(t.Allocatable)
	return c
}

// writeBound adds the pods on a node.
func (d *draw) writeBound(x *nodeDraw) error {
	for _, g := range x.pods {
		p, err := g.newPod(g.name)
		if err != nil {
			return err
		}
		p.Spec.NodeName, p.Status.Phase = x.name, corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		if g.terminating {
			at := metav1.NewTime(manifests.ClusterTime().Add(minutes(1)))
			p.DeletionTimestamp = &at
		}
		if g.ownVolumes != "" {
			if err := d.addOwnVolume(g, &p); err != nil {
				return err
			}
		}
		d.c.Pods = append(d.c.Pods, p)
	}
	return nil
}
