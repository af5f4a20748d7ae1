package verify

import (
	"fmt"
	api "joiner.sh/pkg/api/v1"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/workload"
)

const (
	kwokKey     = "kwok.x-k8s.io/node" // kwok plays the kubelet of nodes with this annotation
	daemonLabel = "joiner.sh/verified-daemon"
)

// nodeName names the i-th node that the plan of a round wants.
func nodeName(round, i int) string { return fmt.Sprintf("planned-%d-%04d", round, i+1) }

// plannedNodes says of each launch the node it becomes when EC2 gives what the plan chose.
func plannedNodes(round int, list []plan.Launch) []planned {
	var out []planned
	for i, l := range list {
		out = append(out, planned{startup: l.Startup, nominated: l.Annotations[api.AnnotationNominatedPods],
			Node: workload.Node{
				Name: nodeName(round, i), NodePool: l.Pool, InstanceType: l.Choice.Type, Zone: l.Choice.Zone,
				CapacityType: l.Choice.CapacityType, Labels: l.Labels,
			}})
	}
	return out
}

func withoutPods(list []workload.Node) []workload.Node {
	out := slices.Clone(list)
	for i := range out {
		out[i].Pods = nil
	}
	return out
}

// nodeObject is the node, closed for all pods but those of DaemonSets until openNodes.
func nodeObject(n cluster.Node) *corev1.Node {
	out := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels, Annotations: map[string]string{kwokKey: "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: n.ProviderID, Unschedulable: true},
		Status:     corev1.NodeStatus{Capacity: resourceList(n.Capacity), Allocatable: resourceList(n.Allocatable)},
	}
	for _, t := range n.Taints {
		out.Spec.Taints = append(out.Spec.Taints, corev1.Taint{Key: t.Key, Value: t.Value,
			Effect: corev1.TaintEffect(t.Effect)})
	}
	return out
}

func resourceList(l resources.List) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range l.Names() {
		if name == resources.CPU {
			out[corev1.ResourceCPU] = *quantity.NewMilliQuantity(l.Get(name), quantity.DecimalSI)
			continue
		}
		out[corev1.ResourceName(name)] = *quantity.NewQuantity(l.Get(name), quantity.DecimalSI)
	}
	return out
}

// pendingPods are the pods that want a node, in the order of the workload.
func pendingPods(f workload.File) []*corev1.Pod {
	var out []*corev1.Pod
	for _, g := range f.Groups {
		for i := range g.Count {
			out = append(out, podObject(g, g.PodName(i)))
		}
	}
	for i := range f.Pods {
		p := f.Pods[i].DeepCopy()
		p.Namespace, p.UID, p.ResourceVersion, p.CreationTimestamp = namespaceOf(p), "", "", metav1.Time{}
		p.Status, p.OwnerReferences = corev1.PodStatus{}, nil
		completeSpec(&p.Spec)
		out = append(out, p)
	}
	return out
}

// boundPods are the pods that run already, each with its node.
func boundPods(f workload.File) ([]*corev1.Pod, error) {
	groups := map[string]workload.PodGroup{}
	for _, g := range f.BoundGroups {
		groups[g.Name] = g
	}
	var out []*corev1.Pod
	for _, n := range f.Nodes {
		for _, name := range slices.Sorted(maps.Keys(n.Pods)) {
			g, ok := groups[name]
			if !ok {
				return nil, fmt.Errorf("node %s: no boundGroup is named %s", n.Name, name)
			}
			for i := range n.Pods[name] {
				p := podObject(g, g.BoundName(n.Name, i))
				p.Spec.NodeName = n.Name
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func podObject(g workload.PodGroup, name string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace(), Name: name, Labels: g.Pod.Labels, Annotations: g.Pod.Annotations,
		},
		Spec: *g.Pod.Spec.DeepCopy(),
	}
	completeSpec(&p.Spec)
	return p
}

func namespaceOf(p *corev1.Pod) string {
	if p.Namespace == "" {
		return workload.DefaultNamespace
	}
	return p.Namespace
}

// completeSpec fills in what the API server insists on and no scheduler looks at.
func completeSpec(s *corev1.PodSpec) {
	for i := range s.InitContainers {
		completeContainer(&s.InitContainers[i], fmt.Sprintf("init-%d", i))
	}
	for i := range s.Containers {
		completeContainer(&s.Containers[i], fmt.Sprintf("container-%d", i))
	}
	if s.AutomountServiceAccountToken == nil {
		s.AutomountServiceAccountToken = new(bool)
	}
	if s.Priority != nil && s.PriorityClassName == "" { // admission allows no priority without its class
		s.PriorityClassName = priorityClass(*s.Priority)
	}
}

func completeContainer(c *corev1.Container, called string) {
	if c.Name == "" {
		c.Name = called
	}
	if c.Image == "" {
		c.Image = "app"
	}
	for name, amount := range c.Resources.Requests { // of devices and huge pages the limit has to be the request
		if _, ok := c.Resources.Limits[name]; ok || !strings.Contains(string(name), "/") &&
			!strings.HasPrefix(string(name), "hugepages-") {
			continue
		}
		if c.Resources.Limits == nil {
			c.Resources.Limits = corev1.ResourceList{}
		}
		c.Resources.Limits[name] = amount
	}
}

// priorityClass names the class of pods that have a priority and no class. A name cannot begin with a minus.
func priorityClass(value int32) string {
	if value < 0 {
		return fmt.Sprintf("priority-minus-%d", -int64(value))
	}
	return fmt.Sprintf("priority-%d", value)
}

// daemonSets are the workload's DaemonSets, with a label of our own so that they find their pods.
func daemonSets(f workload.File) []*appsv1.DaemonSet {
	var out []*appsv1.DaemonSet
	for _, g := range f.DaemonSets {
		template := *g.Pod.DeepCopy()
		mine := map[string]string{daemonLabel: g.Name}
		labels := maps.Clone(template.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, mine)
		template.ObjectMeta = metav1.ObjectMeta{Labels: labels, Annotations: template.Annotations}
		completeSpec(&template.Spec)
		out = append(out, &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace(), Name: g.Name},
			Spec:       appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: mine}, Template: template},
		})
	}
	return out
}
