// Package world is a cluster that the bench lets both sides disrupt: nodes, pods, and a scheduler that binds pods as
// kube-scheduler does. It knows nothing of who decides; what goes and what comes it is told.
package world

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/workload"
)

// World is a cluster.
type World struct {
	Name    string
	Now     time.Time
	Catalog instancetypes.Catalog
	Pools   []api.NodePool
	Budgets []policyv1.PodDisruptionBudget
	Daemon  workload.PodGroup // runs on every node; its pods are not made, their room is kept
	Nodes   map[string]*Node
	Pods    []*Pod // by name
	Moved   int    // pods that were evicted so far
	Faults  []string

	types  map[string]instancetypes.Type
	kept   resources.List
	on     map[string][]*Pod         // by node
	zones  map[string]map[string]int // pods by app and zone
	sorted []*Node                   // by name, nil when not known
	number int
}

// Node is a node that runs.
type Node struct {
	Name, Pool  string
	OfferingKey instancetypes.OfferingKey
	Price       float64 // USD per hour
	Closed      bool    // takes no new pods
	Kept        bool    // takes only pods that are placed there
	Marks       map[string]string

	labels map[string]string
	free   resources.List
}

// Pod is a pod with its node, if it has one.
type Pod struct {
	Object *corev1.Pod // Spec.NodeName is its node
	Need   resources.List
	App    string
	Held   bool // nobody may evict it
}

// New is an empty cluster with what c sells and those NodePools.
func New(name string, c instancetypes.Catalog, pools []api.NodePool, daemon workload.PodGroup) *World {
	w := &World{Name: name, Now: workload.CreationTime().Add(24 * time.Hour), Catalog: c, Pools: pools, Daemon: daemon,
		Nodes: map[string]*Node{},
		types: map[string]instancetypes.Type{}, on: map[string][]*Pod{}, zones: map[string]map[string]int{}}
	for _, t := range instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, w.Now) {
		w.types[t.Name] = t
	}
	w.kept = needOf(daemon.Pod.Spec)
	return w
}

func needOf(s corev1.PodSpec) resources.List {
	out := resources.List{Pods: 1}
	for i := range s.Containers {
		r := s.Containers[i].Resources.Requests
		out.CPU += r.Cpu().MilliValue()
		out.Memory += r.Memory().Value()
	}
	return out
}

// InstanceType is the instance type of that name.
func (w *World) InstanceType(name string) instancetypes.Type { return w.types[name] }

// NodeLabels are those of the node.
func (w *World) NodeLabels(n *Node) map[string]string { return n.labels }

// PodsOn are the pods on the node, by name.
func (w *World) PodsOn(node string) []*Pod { return w.on[node] }

// SortedNodes are the nodes by name.
func (w *World) SortedNodes() []*Node {
	if w.sorted == nil {
		for _, name := range slices.Sorted(maps.Keys(w.Nodes)) {
			w.sorted = append(w.sorted, w.Nodes[name])
		}
	}
	return w.sorted
}

// TotalPrice is what all nodes cost, USD per hour.
func (w *World) TotalPrice() (usd float64) {
	for _, n := range w.SortedNodes() {
		usd += n.Price
	}
	return usd
}

// PriceOf returns the USD per hour of the offering, and false when nobody sells it.
func (w *World) PriceOf(o instancetypes.OfferingKey) (usd float64, sold bool) {
	for _, x := range w.types[o.Type].Offerings {
		if x.OfferingKey == o && x.Price > 0 {
			return x.Price, true
		}
	}
	return 0, false
}

// LaunchNode adds a node of the offering, ready for pods.
func (w *World) LaunchNode(pool string, o instancetypes.OfferingKey) (*Node, error) {
	t, ok := w.types[o.Type]
	if !ok {
		return nil, fmt.Errorf("launch %s: the catalog has no such type", o)
	}
	w.number++
	n := &Node{Name: fmt.Sprintf("node-%05d", w.number), Pool: pool, OfferingKey: o, Marks: map[string]string{},
		free: t.Allocatable.Sub(w.kept)}
	if n.Price, ok = w.PriceOf(o); !ok {
		return nil, fmt.Errorf("launch %s: nobody sells it", o)
	}
	n.labels = t.Requirements.Labels()
	for i := range w.Pools {
		if w.Pools[i].Name == pool {
			maps.Copy(n.labels, w.Pools[i].Spec.Template.Labels)
		}
	}
	maps.Copy(n.labels, map[string]string{
		corev1.LabelTopologyZone: o.Zone, instancetypes.LabelZoneID: w.Catalog.Zones[o.Zone],
		api.LabelCapacityType: o.CapacityType, corev1.LabelHostname: n.Name,
		api.LabelRegistered: "true", api.LabelInitialized: "true", api.LabelNodePool: pool,
	})
	w.Nodes[n.Name], w.sorted = n, nil
	return n, nil
}

// RemoveNode ends the node. Its pods are pending again; those that nobody may evict are a fault.
func (w *World) RemoveNode(name string) []*Pod {
	pods := w.on[name]
	for _, p := range pods {
		if p.Held {
			w.Faults = append(w.Faults, fmt.Sprintf("pod %s was evicted from %s, which it forbids", p.Object.Name,
				name))
		}
		p.Object.Spec.NodeName = ""
		w.zones[p.App][w.Nodes[name].OfferingKey.Zone]--
		w.Moved++
	}
	delete(w.on, name)
	delete(w.Nodes, name)
	w.sorted = nil
	return pods
}

// AddPod adds a pod on a node, or without one when there is none of that name.
func (w *World) AddPod(p *Pod, node string) {
	w.Pods = append(w.Pods, p)
	if n := w.Nodes[node]; n != nil {
		w.putPod(p, n)
	}
}

// DeletePods takes the pods away for which drop is true.
func (w *World) DeletePods(drop func(*Pod) bool) {
	var kept []*Pod
	for _, p := range w.Pods {
		if !drop(p) {
			kept = append(kept, p)
			continue
		}
		if n := w.Nodes[p.Object.Spec.NodeName]; n != nil {
			n.free = n.free.Add(p.Need)
			w.zones[p.App][n.OfferingKey.Zone]--
			w.on[n.Name] = slices.DeleteFunc(w.on[n.Name], func(x *Pod) bool { return x == p })
		}
	}
	w.Pods = kept
}

func (w *World) putPod(p *Pod, n *Node) {
	p.Object.Spec.NodeName = n.Name
	n.free = n.free.Sub(p.Need)
	if w.zones[p.App] == nil {
		w.zones[p.App] = map[string]int{}
	}
	w.zones[p.App][n.OfferingKey.Zone]++
	i, _ := slices.BinarySearchFunc(w.on[n.Name], p,
		func(a, b *Pod) int { return strings.Compare(a.Object.Name, b.Object.Name) })
	w.on[n.Name] = slices.Insert(w.on[n.Name], i, p)
}

// WaitingPods are the pods without a node.
func (w *World) WaitingPods() []*Pod {
	var out []*Pod
	for _, p := range w.Pods {
		if p.Object.Spec.NodeName == "" {
			out = append(out, p)
		}
	}
	return out
}
