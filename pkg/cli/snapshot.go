package cli

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/workload"
)

const labelHost = "kubernetes.io/hostname"

// WorkloadSnapshot is the cluster that the workload describes, with what c sells. Every class that a NodePool names is
// a plain EC2NodeClass. Pods of one group share everything but name and UID. An error names the node that cannot be.
//
// Pods of DaemonSets on existing nodes are left out: the packer keeps their room free by itself.
func WorkloadSnapshot(f workload.File, c instancetypes.Catalog) (cluster.Snapshot, error) {
	s := cluster.Snapshot{Now: workload.CreationTime(), Catalog: c, Classes: plainClasses(f, c)}
	for _, p := range f.Pools {
		s.Pools = append(s.Pools, filePool(f, p, s.Classes))
	}
	for i := range f.Overlays {
		s.Overlays = append(s.Overlays, translate.Overlay(&f.Overlays[i]))
	}
	for _, d := range f.DaemonSets {
		s.Daemons = append(s.Daemons, translate.DaemonPod(daemonSet(d)))
	}
	s.Pods = make([]cluster.Pod, 0, f.Pending())
	var storage *translate.Storage
	if f.Storage != nil {
		known := fileStorage(*f.Storage)
		storage = &known
	}
	for _, g := range f.Groups {
		s.Pods = append(s.Pods, pendingPods(g, storage)...)
	}
	for i := range f.Pods {
		s.Pods = append(s.Pods, withVolumes(waitingPod(&f.Pods[i]), f.Pods[i].Spec, nil, 0, storage))
	}
	s.Pods = append(s.Pods, buffers.VirtualPods(fileBuffers(f))...)
	if err := addNodes(&s, f); err != nil {
		return s, err
	}
	fillDevices(&s, f.Devices)
	s.Namespaces = workloadNamespaces(f.Namespaces, slices.Concat(s.Pods, s.Daemons))
	slices.SortFunc(s.Pods, byKey)
	slices.SortFunc(s.Pools, func(a, b cluster.Pool) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Daemons, byKey)
	slices.SortFunc(s.Nodes, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	return s, nil
}

func byKey(a, b cluster.Pod) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// filePool is a NodePool of a file. One that the API server would refuse, or whose class is none of ours, is not used.
func filePool(f workload.File, given api.NodePool, classes []instancetypes.Class) cluster.Pool {
	given.Status = api.NodePoolStatus{} // of the cluster that it was exported from
	out := translate.Pool(&given, classes)
	why := nodeclass.PoolProblems(&given)
	ref := given.Spec.Template.Spec.NodeClassRef
	if !isOurClass(*ref) {
		why = []string{fmt.Sprintf("its class is %s %s of %s, and no EC2NodeClass of %s", ref.Kind, ref.Name, ref.Group,
			awsv1.Group)}
	}
	for _, key := range []string{"NodePool " + given.Name, "EC2NodeClass " + ref.Name} {
		if refused := f.Refused[key]; refused != "" {
			why = append(why, "the API server refuses "+key+": "+refused)
		}
	}
	if len(why) > 0 {
		out.Ready, out.Message = false, strings.Join(why, "; ")
	}
	return out
}

// fileBuffers are the CapacityBuffers of the workload with what they refer to.
func fileBuffers(f workload.File) []buffers.Buffer {
	var all []buffers.Buffer
	for i := range f.Buffers {
		b := buffers.Buffer{Object: f.Buffers[i].DeepCopy()}
		b.Object.UID = types.UID(workload.PodUID(b.Object.Namespace, b.Object.Name))
		b.Object.CreationTimestamp = metav1.NewTime(workload.CreationTime())
		if t, scale := f.BufferTemplate(b.Object); t != nil {
			b.Template, b.Scale = translate.Template(b.Object.Namespace, *t), int32(min(scale, workload.MostPods))
			if why := workload.SpecRefusals(t.Spec); len(why) > 0 {
				b.Template.Unmodelled, b.Template.Need = append(b.Template.Unmodelled, why...), b.Template.Need.Times(0)
			}
		}
		all = append(all, b)
	}
	buffers.ShareOut(all)
	return all
}

// bufferWarnings tell which CapacityBuffers the plan keeps no room for, and why.
func bufferWarnings(f workload.File) (out []string) {
	for _, b := range fileBuffers(f) {
		why := b.Refusal()
		if why == "" && b.Object.Strategy() == v1beta1.StrategyStopped {
			why = "it keeps stopped instances, which a plan of files does not have"
		}
		if why != "" {
			out = append(out, fmt.Sprintf("CapacityBuffer %s/%s is left out: %s", b.Object.Namespace, b.Object.Name, why))
		}
	}
	return out
}

// manifestWarnings tell what of the workload's manifests is not applied, and why.
func manifestWarnings(f workload.File, c instancetypes.Catalog) []string {
	out := bufferWarnings(f)
	f = workload.File{Manifests: f.Manifests}
	f.Buffers = nil
	s, err := WorkloadSnapshot(f, c)
	if err != nil {
		return out // packing says so
	}
	for _, v := range overlays.JudgeOverlays(s.Overlays,
		overlays.OfferingsByPool(s, func(class string) []instancetypes.Type {
			k, _ := s.ClassOf(class)
			return instancetypes.ResolveTypes(c, k, nil, s.Now)
		})) {
		if !v.InForce() {
			out = append(out, fmt.Sprintf("NodeOverlay %s is not applied: %s", v.Overlay,
				cmp.Or(v.Invalid, v.Conflict)))
		}
	}
	for _, p := range s.Pools {
		if !p.Ready {
			out = append(out, fmt.Sprintf("NodePool %s is not used: %s", p.Name, p.Message))
		}
		if why := p.Disruption.Message; why != "" {
			out = append(out, fmt.Sprintf("NodePool %s: none of its nodes would be disrupted by choice: %s", p.Name, why))
		}
	}
	return out
}

// plainClasses makes a plain class of every name that a pool refers to.
func plainClasses(f workload.File, c instancetypes.Catalog) []instancetypes.Class {
	names := lists.Of(f.Pools, func(p api.NodePool) string { return p.Spec.Template.Spec.NodeClassRef.Name })
	slices.Sort(names)
	return lists.Of(slices.Compact(names),
		func(n string) instancetypes.Class { return plainClass(f, n, instancetypes.DefaultClass(c)) })
}

// plainClass is the class of that name as far as its spec says; what AWS would have to be asked for is as in the
// default class.
func plainClass(f workload.File, name string, like instancetypes.Class) instancetypes.Class {
	class := like
	for i := range f.Classes {
		if f.Classes[i].Name == name {
			given := f.Classes[i]
			given.Status = awsv1.EC2NodeClassStatus{} // of the cluster that it was exported from
			class = resolvedLike(nodeclass.DescribeClass(&given), like)
		}
	}
	class.Name = name
	return class
}

// resolvedLike gives a class what another is known to have found in AWS.
func resolvedLike(class, like instancetypes.Class) instancetypes.Class {
	class.Ready, class.Message, class.Unseen = like.Ready, like.Message, like.Unseen
	class.Images, class.ZoneIDs, class.Reservations = like.Images, like.ZoneIDs, like.Reservations
	class.ApplySettings(like.MemoryOverhead, like.ReservedENIs, like.OpenReservations, like.IPv6)
	class.LearnedMemoryMiB = like.LearnedMemoryMiB
	return class
}

func daemonSet(g workload.PodGroup) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace(), Name: g.Name, UID: types.UID(workload.PodUID(g.Namespace(), g.Name)),
			CreationTimestamp: metav1.NewTime(workload.CreationTime()),
		},
		Spec: appsv1.DaemonSetSpec{Template: g.Pod},
	}
}

// groupTemplate is the pod of a group, without name.
func groupTemplate(g workload.PodGroup) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.Namespace(), Labels: g.Pod.Labels, Annotations: g.Pod.Annotations,
			CreationTimestamp: metav1.NewTime(workload.CreationTime()),
		},
		Spec: g.Pod.Spec,
	}
}

func pendingPods(g workload.PodGroup, storage *translate.Storage) []cluster.Pod {
	if g.Count == 0 {
		return nil
	}
	one := waitingPod(groupTemplate(g))
	out := make([]cluster.Pod, g.Count)
	for i := range out {
		out[i] = one
		out[i].Name = g.PodName(i)
		out[i].UID = workload.PodUID(one.Namespace, out[i].Name)
		out[i] = withVolumes(out[i], g.Pod.Spec, g.Claims, g.First+i, storage)
	}
	return out
}

// waitingPod is the pod as the scheduler leaves it that found no node for it.
func waitingPod(p *corev1.Pod) cluster.Pod {
	q := *p
	if q.Namespace == "" {
		q.Namespace = workload.DefaultNamespace
	}
	out := translate.Pod(&q)
	out.Created = workload.CreationTime()
	out.UID = workload.PodUID(q.Namespace, q.Name)
	if out.Phase == "" {
		out.Phase = string(corev1.PodPending)
	}
	out.Unscheduled = true
	if why := workload.SpecRefusals(p.Spec); len(why) > 0 {
		out.Unmodelled = append(out.Unmodelled, why...)
		out.Need = out.Need.Times(0) // amounts that make no sense must not meet arithmetic
	}
	return out
}

// addNodes adds the nodes that exist with the pods on them.
func addNodes(s *cluster.Snapshot, f workload.File) error {
	if len(f.Nodes) == 0 {
		return nil
	}
	sold := lists.Index(instancetypes.ResolveTypes(s.Catalog, instancetypes.DefaultClass(s.Catalog), nil, s.Now),
		func(t instancetypes.Type) string { return t.Name })
	running := map[string]cluster.Pod{}
	for _, g := range f.BoundGroups {
		p := waitingPod(groupTemplate(g))
		p.Phase, p.Unscheduled, p.Ready, p.Unmodelled = string(corev1.PodRunning), false, true, nil
		running[g.Name] = p
	}
	groups := lists.Index(f.BoundGroups, func(g workload.PodGroup) string { return g.Name })
	for i, n := range f.Nodes {
		t, ok := sold[n.InstanceType]
		if !ok {
			return fmt.Errorf("nodes[%d] (%s).instanceType: the catalog has no %s", i, n.Name, n.InstanceType)
		}
		pool, _ := s.PoolOf(n.NodePool)
		s.Nodes = append(s.Nodes, workloadNode(n, t, pool, s.Catalog.Zones[n.Zone]))
		for _, name := range slices.Sorted(maps.Keys(n.Pods)) {
			for j := range n.Pods[name] {
				p := running[name]
				p.Name = groups[name].BoundName(n.Name, j)
				p.UID, p.NodeName = workload.PodUID(p.Namespace, p.Name), n.Name
				s.Pods = append(s.Pods, p)
			}
		}
	}
	return nil
}

func workloadNode(n workload.Node, t instancetypes.Type, pool cluster.Pool, zoneID string) cluster.Node {
	labels := t.Requirements.Labels()
	delete(labels, instancetypes.LabelZone)
	maps.Copy(labels, pool.Labels)
	maps.Copy(labels, map[string]string{
		instancetypes.LabelZone: n.Zone, instancetypes.LabelZoneID: zoneID,
		instancetypes.LabelCapacityType: n.CapacityType, labelHost: n.Name,
		api.LabelRegistered: "true", api.LabelInitialized: "true",
	})
	if n.NodePool != "" {
		labels[api.LabelNodePool] = n.NodePool
	}
	maps.Copy(labels, n.Labels)
	id := sha256.Sum256([]byte("node/" + n.Name))
	return cluster.Node{
		Name: n.Name, ProviderID: fmt.Sprintf("aws:///%s/i-%x", n.Zone, id[:8]), Created: workload.CreationTime(),
		Labels: labels, Taints: slices.Concat(pool.Taints, translate.Taints(n.Taints)),
		Capacity: t.Capacity, Allocatable: t.Allocatable, Ready: true, ReadySince: workload.CreationTime(),
		Finalizer: n.NodePool != "",
	}
}

// workloadNamespaces are the namespaces that are given and those of the pods, each with the label that the API server
// gives it.
func workloadNamespaces(given []corev1.Namespace, pods []cluster.Pod) []cluster.Namespace {
	labels := map[string]map[string]string{}
	for _, p := range pods {
		labels[p.Namespace] = nil
	}
	for _, n := range given {
		labels[n.Name] = n.Labels
	}
	var out []cluster.Namespace
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		n := cluster.Namespace{Name: name, Labels: map[string]string{}}
		maps.Copy(n.Labels, labels[name])
		n.Labels[corev1.LabelMetadataName] = name
		out = append(out, n)
	}
	return out
}
