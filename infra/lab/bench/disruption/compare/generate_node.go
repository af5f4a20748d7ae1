package main

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	amounts "joiner.sh/pkg/model/resources"
)

// addNode makes a node with its claim and its pods. Most are in service, some are not or not quite.
func (d *dice) addNode(i int) {
	t := d.types[d.names[d.IntN(len(d.names))]]
	node, claim := d.drawNode(fmt.Sprintf("node-%d", i), &d.s.Pools[d.IntN(len(d.s.Pools))], t)
	odds := 3 // of what keeps the node or lets it go for another reason than its price
	if d.calm {
		odds = 12
	}
	if d.oneIn(odds) {
		claim.Status.Conditions = append(claim.Status.Conditions,
			newCondition(api.ConditionDrifted, metav1.ConditionTrue, d.timeAgo(time.Hour)))
	}
	if d.oneIn(4) {
		claim.Spec.TerminationGracePeriod = &api.Duration{Duration: pickOne(d, 30*time.Second, time.Hour)}
	}
	if d.oneIn(odds) {
		d.addOddity(node, claim)
	}
	switch d.IntN(25) {
	case 0: // launched, and its node has not come
		claim.Status.NodeName = ""
		claim.Status.Conditions = claim.Status.Conditions[:1]
		d.s.Claims = append(d.s.Claims, *claim)
		return
	case 1: // of somebody else
		delete(node.Labels, api.LabelNodePool)
	default:
		d.s.Claims = append(d.s.Claims, *claim)
	}
	d.s.Nodes = append(d.s.Nodes, *node)
	d.addPods(node, t)
}

// drawNode draws a node of the pool that is in service, with its claim.
func (d *dice) drawNode(name string, p *api.NodePool, t instancetypes.Type) (*corev1.Node, *api.NodeClaim) {
	o := t.Offerings[d.IntN(len(t.Offerings))]
	born := d.timeAgo(pickOne(d, 3*time.Minute, 20*time.Minute, 6*time.Hour, 20*24*time.Hour))
	labels := t.Requirements.Labels()
	maps.Copy(labels, p.Spec.Template.Labels)
	maps.Copy(labels, map[string]string{
		corev1.LabelTopologyZone: o.Zone, instancetypes.LabelZoneID: o.ZoneID, api.LabelCapacityType: o.CapacityType,
		corev1.LabelHostname: name, api.LabelNodePool: p.Name,
	})
	claim := &api.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + name, UID: uidOf("claim", name),
		CreationTimestamp: born, Generation: 1}}
	claim.Labels, claim.Finalizers = maps.Clone(labels), []string{api.FinalizerTermination}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: p.Name,
		UID: p.UID}}
	claim.Spec = api.NodeClaimSpec{NodeClassRef: p.Spec.Template.Spec.NodeClassRef,
		Requirements: p.Spec.Template.Spec.Requirements,
		Taints:       p.Spec.Template.Spec.Taints, ExpireAfter: p.Spec.Template.Spec.ExpireAfter}
	claim.Status.ProviderID, claim.Status.NodeName = "aws:///"+o.Zone+"/i-"+name, name
	claim.Status.Capacity, claim.Status.Allocatable = resourceList(t.Capacity), resourceList(t.Allocatable)
	took := time.Duration(d.Int64N(int64(d.now.Sub(born.Time))+1)) / 8
	ready := metav1.NewTime(born.Add(took).Truncate(time.Second))
	for _, kind := range []string{api.ConditionLaunched, api.ConditionRegistered, api.ConditionInitialized} {
		claim.Status.Conditions = append(claim.Status.Conditions, newCondition(kind, metav1.ConditionTrue, ready))
	}
	if d.oneIn(2) {
		claim.Status.LastPodEventTime = d.timeAgo(max(time.Second, d.now.Sub(ready.Time)))
	}
	labels[api.LabelRegistered], labels[api.LabelInitialized] = "true", "true"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uidOf("node", name), CreationTimestamp: born,
		Labels: labels}}
	node.Finalizers = []string{api.FinalizerTermination}
	node.Spec = corev1.NodeSpec{ProviderID: claim.Status.ProviderID, Taints: p.Spec.Template.Spec.Taints}
	node.Status = corev1.NodeStatus{Capacity: resourceList(t.Capacity), Allocatable: resourceList(t.Allocatable),
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue,
			LastTransitionTime: born}}}
	return node, claim
}

// addOddity adds something about a node that keeps it, or may be mistaken for such.
func (d *dice) addOddity(node *corev1.Node, claim *api.NodeClaim) {
	disrupted := api.DisruptedTaint()
	drop := func(label string) { delete(node.Labels, label) }
	oddities := []func(){
		func() {
			setAnnotation(&node.ObjectMeta, api.AnnotationDoNotDisrupt, pickOne(d, "true", "true", "false", "1h", ""))
		},
		func() { setAnnotation(&node.ObjectMeta, annotationLate+api.AnnotationDoNotDisrupt, "true") },
		func() { setAnnotation(&claim.ObjectMeta, api.AnnotationDoNotDisrupt, "true") },
		func() { claim.DeletionTimestamp = new(d.timeAgo(5 * time.Minute)) },
		func() { node.DeletionTimestamp = new(d.timeAgo(5 * time.Minute)) },
		func() {
			node.DeletionTimestamp = new(d.timeAgo(5 * time.Minute))
			claim.DeletionTimestamp = node.DeletionTimestamp
			node.Spec.Taints = append(node.Spec.Taints[:len(node.Spec.Taints):len(node.Spec.Taints)], disrupted)
		},
		func() {
			claim.DeletionTimestamp = new(d.timeAgo(5 * time.Minute))
			claim.Status.Conditions = append(claim.Status.Conditions,
				newCondition(api.ConditionInstanceTerminating, metav1.ConditionTrue, d.timeAgo(time.Minute)))
		},
		func() {
			node.Spec.Taints = append(node.Spec.Taints[:len(node.Spec.Taints):len(node.Spec.Taints)], disrupted)
		},
		func() { node.Spec.Unschedulable = true },
		func() { node.Status.Conditions[0].Status = pickOne(d, corev1.ConditionFalse, corev1.ConditionUnknown) },
		func() { node.Status.Conditions = nil },
		func() { drop(api.LabelInitialized); claim.Status.Conditions = claim.Status.Conditions[:2] },
		func() { drop(api.LabelInitialized) },
		func() {
			drop(api.LabelInitialized)
			drop(api.LabelRegistered)
			claim.Status.Conditions = claim.Status.Conditions[:1]
		},
		func() { drop(api.LabelCapacityType) },
		func() { drop(corev1.LabelTopologyZone) },
		func() { drop(corev1.LabelInstanceTypeStable) },
		func() { drop(api.LabelNodePool) },
		func() { node.Labels[corev1.LabelInstanceTypeStable] = "x9.large" },
		func() { node.Labels[api.LabelCapacityType] = "reserved" },
		func() { node.Labels[api.LabelNodePool], claim.Labels[api.LabelNodePool] = "gone", "gone" },
		func() { claim.Status.LastPodEventTime = metav1.NewTime(claim.CreationTimestamp.Add(time.Second)) },
		func() { claim.Status.NodeName = "" },
		func() {
			setAnnotation(&node.ObjectMeta, annotationLate+"initialized", "true")
			claim.Status.Conditions[2].LastTransitionTime = metav1.NewTime(d.now.Add(10 * time.Second))
		},
	}
	oddities[d.IntN(len(oddities))]()
}

// newCondition is a condition of an object of generation 1.
func newCondition(kind string, is metav1.ConditionStatus, since metav1.Time) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: kind, LastTransitionTime: since, ObservedGeneration: 1}
}

func uidOf(kind, name string) types.UID { return types.UID(kind + "-" + name) }

func setAnnotation(m *metav1.ObjectMeta, name, value string) {
	if m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	m.Annotations[name] = value
}

func inRequirement(key string, values ...string) api.Requirement {
	return api.Requirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}
}

// nillableDuration is a duration or Never.
func nillableDuration(text string) (out api.NillableDuration) {
	if err := out.UnmarshalJSON([]byte(`"` + text + `"`)); err != nil {
		panic(err) // the texts are constants
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
