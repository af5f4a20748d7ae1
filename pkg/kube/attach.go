package kube

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
)

// addVolumes fills in what the volumes of pods allow, and how many a node can have. withVolumes has the claims of each pod that
// uses any. Nothing is read unless one of these pods needs a node, now or because its own is going away.
func (c *Client) addVolumes(ctx context.Context, s cluster.Snapshot, withVolumes map[string][]string) error {
	going := map[string]bool{}
	for _, n := range s.Nodes {
		going[n.Name] = !n.Deleting.IsZero() ||
			slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == karpv1.TaintDisrupted })
	}
	matters := func(p cluster.Pod) bool {
		return len(withVolumes[p.Key()]) > 0 && (p.Provisionable() || going[p.NodeName])
	}
	if !slices.ContainsFunc(s.Pods, matters) {
		return nil
	}
	st, err := c.storage(ctx)
	if err != nil {
		return err
	}
	if err := c.addVolumeLimits(ctx, s.Nodes); err != nil {
		return err
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		names := withVolumes[p.Key()]
		if len(names) == 0 {
			continue
		}
		var problems []string
		p.VolumeZones, problems = st.alternatives(p.Namespace, names)
		p.Volumes = st.attached(p.Namespace, names)
		if p.Provisionable() { // a pod that has run before is not judged again (spec core.md §2.3)
			p.Unmodelled = append(p.Unmodelled, problems...)
		}
	}
	return nil
}

// addVolumeLimits fills in how many volumes the CSI drivers of each node say they can attach to it.
func (c *Client) addVolumeLimits(ctx context.Context, nodes []cluster.Node) error {
	type limits struct {
		node string
		most map[string]int64
	}
	all, _, err := list(ctx, c, query{place: csiNodes()}, func() *storagev1.CSINodeList { return &storagev1.CSINodeList{} },
		func(l *storagev1.CSINodeList) []limits {
			return translated(l.Items, func(n *storagev1.CSINode) limits { return limits{n.Name, volumeLimits(n)} })
		})
	if err != nil {
		return err
	}
	byNode := make(map[string]map[string]int64, len(all))
	for _, l := range all {
		byNode[l.node] = l.most
	}
	for i := range nodes {
		nodes[i].VolumeLimits = byNode[nodes[i].Name]
	}
	return nil
}

func volumeLimits(n *storagev1.CSINode) map[string]int64 {
	var out map[string]int64
	for _, d := range n.Spec.Drivers {
		if d.Allocatable == nil || d.Allocatable.Count == nil {
			continue
		}
		if out == nil {
			out = map[string]int64{}
		}
		name := d.Name
		if name == inTreeEBS {
			name = driverEBS
		}
		out[name] = int64(*d.Allocatable.Count)
	}
	return out
}

// storage reads claims, volumes and storage classes, of which only the parts that matter are kept.
func (c *Client) storage(ctx context.Context) (storage, error) {
	out := storage{
		claims:  map[string]corev1.PersistentVolumeClaim{},
		volumes: map[string]corev1.PersistentVolume{},
		classes: map[string]storagev1.StorageClass{},
	}
	pvcs, _, err := list(ctx, c, query{place: volumeClaims()},
		func() *corev1.PersistentVolumeClaimList { return &corev1.PersistentVolumeClaimList{} },
		func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim {
			return translated(l.Items, slimClaim)
		})
	if err != nil {
		return storage{}, err
	}
	pvs, _, err := list(ctx, c, query{place: volumes()},
		func() *corev1.PersistentVolumeList { return &corev1.PersistentVolumeList{} },
		func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume { return translated(l.Items, slimVolume) })
	if err != nil {
		return storage{}, err
	}
	scs, _, err := list(ctx, c, query{place: storageTypes()},
		func() *storagev1.StorageClassList { return &storagev1.StorageClassList{} },
		func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
	if err != nil {
		return storage{}, err
	}
	for _, v := range pvcs {
		out.claims[v.Namespace+"/"+v.Name] = v
	}
	for _, v := range pvs {
		out.volumes[v.Name] = v
	}
	for _, v := range scs {
		out.classes[v.Name] = v
	}
	return out, nil
}

func slimClaim(in *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	out := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: in.Namespace, Name: in.Name, DeletionTimestamp: in.DeletionTimestamp,
	}}
	if v, ok := in.Annotations[bindCompleted]; ok {
		out.Annotations = map[string]string{bindCompleted: v}
	}
	out.Spec.VolumeName, out.Spec.StorageClassName = in.Spec.VolumeName, in.Spec.StorageClassName
	out.Status.Phase = in.Status.Phase
	return out
}

func slimVolume(in *corev1.PersistentVolume) corev1.PersistentVolume {
	out := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: in.Name, DeletionTimestamp: in.DeletionTimestamp}}
	out.Spec.NodeAffinity, out.Spec.Local, out.Spec.HostPath = in.Spec.NodeAffinity, in.Spec.Local, in.Spec.HostPath
	out.Spec.AWSElasticBlockStore = in.Spec.AWSElasticBlockStore
	if in.Spec.CSI != nil {
		out.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: in.Spec.CSI.Driver}
	}
	return out
}
