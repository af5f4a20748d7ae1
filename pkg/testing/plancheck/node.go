package plancheck

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/workload"
)

// Labels that a node has beside those of its type.
const (
	labelHost     = "kubernetes.io/hostname"
	labelZone     = "topology.kubernetes.io/zone"
	labelZoneID   = "topology.k8s.aws/zone-id"
	labelCapacity = "karpenter.sh/capacity-type"
	labelPool     = "karpenter.sh/nodepool"
	labelClass    = "karpenter.k8s.aws/ec2nodeclass"
	labelTenancy  = "karpenter.k8s.aws/instance-tenancy"
)

// newNode marks the objects of new nodes.
const newNode = "new"

// mostChoices bounds the label values that are tried on a new node whose pool leaves them open.
const mostChoices = 256

type nodeRule = nodeaffinity.RequiredNodeAffinity

func newKind(name string, count int, pod *corev1.Pod, bound bool) *podGroup {
	k := &podGroup{name: name, count: count, pod: pod, bound: bound, match: nodeaffinity.GetRequiredNodeAffinity(pod),
		need: resourceAmounts{"pods": 1}}
	for r, q := range resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}) { // each on its own
		k.need[string(r)] = q.Value()
		if r == corev1.ResourceCPU {
			k.need[string(r)] = q.MilliValue()
		}
	}
	k.refused = workload.PodRefusals(pod.Spec)
	return k
}

func podOf(g workload.PodGroup) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace(), Name: g.Name, Labels: g.Pod.Labels},
		Spec:       *g.Pod.Spec.DeepCopy(),
	}
}

// limitsStandIn does what the API server does to pods: a limit is the request where none is given.
func limitsStandIn(p *corev1.Pod) {
	for _, list := range [][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			r := &list[i].Resources
			merged := corev1.ResourceList{}
			maps.Copy(merged, r.Limits)
			maps.Copy(merged, r.Requests)
			r.Requests = merged
		}
	}
}

// existingNodes makes the nodes that exist.
func (j *workloadCheck) existingNodes() {
	groups := map[string]*podGroup{}
	for _, g := range j.file.BoundGroups {
		groups[g.Name] = newKind(g.Name, 0, podOf(g), true)
		j.kinds = append(j.kinds, groups[g.Name])
	}
	for _, w := range j.file.Nodes {
		t := j.market.types[w.InstanceType]
		if t == nil {
			j.addViolation("node %s: nobody sells %s", w.Name, w.InstanceType)
			continue
		}
		n := &plannedNode{name: w.Name, typ: t, pool: w.NodePool, taints: w.Taints}
		labels := j.nodeLabels(t, w.NodePool, w.Zone, w.CapacityType)
		if p := j.pools[w.NodePool]; p != nil {
			n.taints = slices.Concat(p.Spec.Template.Spec.Taints, w.Taints)
		}
		labels[labelHost] = w.Name
		maps.Copy(labels, w.Labels)
		n.object = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.Name, Labels: labels}}
		for _, g := range slices.Sorted(maps.Keys(w.Pods)) {
			if groups[g] != nil && w.Pods[g] > 0 {
				n.there = append(n.there, podShare{groups[g], w.Pods[g]})
			}
		}
		j.nodes = append(j.nodes, n)
	}
}

// nodeLabels returns the labels of a node of the type in the pool (rule 2).
func (j *workloadCheck) nodeLabels(t *soldType, pool, zone, capacity string) map[string]string {
	out := maps.Clone(t.labels)
	if p := j.pools[pool]; p != nil {
		maps.Copy(out, p.Spec.Template.Labels)
		out[labelPool] = pool
		out[labelClass] = p.Spec.Template.Spec.NodeClassRef.Name
		for _, r := range p.Spec.Template.Spec.Requirements {
			if !decidedByType(r.Key) && r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
				out[r.Key] = r.Values[0]
			}
		}
	}
	out[labelZone], out[labelZoneID], out[labelCapacity] = zone, j.market.zoneIDs[zone], capacity
	out["karpenter.sh/registered"], out["karpenter.sh/initialized"] = "true", "true"
	return out
}

// decidedByType reports whether what is launched, and not the pool's author, decides the label's value.
func decidedByType(key string) bool {
	switch key {
	case labelZone, labelZoneID, labelCapacity, labelPool, "kubernetes.io/arch", "kubernetes.io/os",
		"node.kubernetes.io/instance-type", "topology.kubernetes.io/region", "node.kubernetes.io/windows-build":
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/") && key != labelTenancy && key != labelClass
}

// launchedNode makes a new node of the claim and checks that it can be bought (rule 2).
func (j *workloadCheck) launchedNode(name string, c workload.NodeClaim) {
	t, p := j.market.types[c.InstanceType], j.pools[c.NodePool]
	came := j.readShares(c.Pods, name)
	if t == nil || p == nil {
		j.addViolation("%s: no type %q or no pool %q", name, c.InstanceType, c.NodePool)
		return
	}
	price, sells := t.priceAt(c.Zone, c.CapacityType)
	price += c.NodeUSD
	switch {
	case !sells:
		j.addViolation("%s: it is not sold as %s in %s", name, c.CapacityType, c.Zone)
	case price-c.HourlyUSD > 1e-9 || c.HourlyUSD-price > 1e-9:
		j.addViolation("%s: it costs %g USD/h, not %g", name, price, c.HourlyUSD)
	}
	j.report.HourlyUSD += price
	if p.Spec.Replicas != nil {
		j.addViolation("%s: pool %s is static", name, p.Name)
	}
	if len(came) == 0 {
		j.addViolation("%s: it has no pods", name)
	}
	n := &plannedNode{name: name, typ: t, pool: p.Name, taints: p.Spec.Template.Spec.Taints, came: came}
	n.object = j.nodeObject(name, p, t, c.Zone, c.CapacityType)
	if why := firstRefusal(p, n.object.Labels); why != "" {
		j.addViolation("%s: pool %s wants %s", name, p.Name, why)
	}
	j.chooseLabels(n, p)
	j.nodes = append(j.nodes, n)
	j.checkTypes(n, p, c)
}

func (j *workloadCheck) nodeObject(name string, p *api.NodePool, t *soldType, zone, capacity string) *corev1.Node {
	labels := j.nodeLabels(t, p.Name, zone, capacity)
	labels[labelHost] = name
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: newNode, Labels: labels}}
}

// firstRefusal names the first requirement of the pool that the labels do not meet, of those that the type decides.
func firstRefusal(p *api.NodePool, labels map[string]string) string {
	for _, r := range p.Spec.Template.Spec.Requirements {
		value, ok := labels[r.Key]
		if decidedByType(r.Key) && !requirementHolds(string(r.Operator), r.Values, value, ok) {
			return fmt.Sprintf("%s %s %v, it is %q", r.Key, r.Operator, r.Values, value)
		}
	}
	return ""
}

func requirementHolds(op string, values []string, value string, exists bool) bool {
	switch op {
	case "In":
		return exists && slices.Contains(values, value)
	case "NotIn":
		return !exists || !slices.Contains(values, value)
	case "Exists":
		return exists
	case "DoesNotExist":
		return !exists
	}
	if !exists || len(values) != 1 {
		return false
	}
	have, err1 := strconv.ParseInt(value, 10, 64)
	want, err2 := strconv.ParseInt(values[0], 10, 64)
	if err1 != nil || err2 != nil {
		return false
	}
	switch op {
	case "Gt":
		return have > want
	case "Gte":
		return have >= want
	case "Lt":
		return have < want
	case "Lte":
		return have <= want
	}
	return false
}

// chooseLabels gives labels whose value the pool leaves to pods a value that suits all pods of the node, if there is
// one.
func (j *workloadCheck) chooseLabels(n *plannedNode, p *api.NodePool) {
	choices := []map[string]string{{}}
	for _, r := range p.Spec.Template.Spec.Requirements {
		if _, set := n.object.Labels[r.Key]; set || decidedByType(r.Key) {
			continue
		}
		var next []map[string]string
		for _, v := range append(j.namedValues(n, r), "") {
			for _, c := range choices {
				if with := maps.Clone(c); len(next) < mostChoices {
					if v != "" {
						with[r.Key] = v
					}
					next = append(next, with)
				}
			}
		}
		choices = next
	}
	before := n.object.Labels
	for _, c := range choices {
		n.object.Labels = maps.Clone(before)
		maps.Copy(n.object.Labels, c)
		if !slices.ContainsFunc(n.came, func(s podShare) bool { return !s.kind.admitsNode(n.object) }) {
			return
		}
	}
	n.object.Labels = before
}

// namedValues returns the values that pods of the node name for the key and the requirement allows, and those it lists
// itself.
func (j *workloadCheck) namedValues(n *plannedNode, r api.Requirement) []string {
	var out []string
	add := func(v ...string) {
		for _, x := range v {
			if requirementHolds(string(r.Operator), r.Values, x, true) && !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	for _, s := range n.came {
		if v, ok := s.kind.pod.Spec.NodeSelector[r.Key]; ok {
			add(v)
		}
		if a := s.kind.pod.Spec.Affinity; a != nil && a.NodeAffinity != nil &&
			a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
			for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
				for _, e := range t.MatchExpressions {
					if e.Key == r.Key && e.Operator == corev1.NodeSelectorOpIn {
						add(e.Values...)
					}
				}
			}
		}
	}
	if r.Key == labelTenancy {
		add("default", "dedicated")
	}
	if r.Operator == corev1.NodeSelectorOpIn {
		add(r.Values...)
	}
	if r.Operator == corev1.NodeSelectorOpExists {
		add("any")
	}
	return out
}
