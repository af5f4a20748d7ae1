package kube

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner/pkg/model/cluster"
)

// WithVolumes is the snapshot with what the volumes of its pods allow, and how many of them nodes can have attached.
// The snapshot given is not changed. Nothing is read if no pod uses any.
func (c *Client) WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if !slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool { return len(p.UnreadClaims) > 0 }) {
		return s, nil
	}
	var known storage
	var limits map[string]map[string]int64
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { known, err = c.readStorage(gctx); return err })
	g.Go(func() (err error) { limits, err = c.volumeLimits(gctx); return err })
	if err := g.Wait(); err != nil {
		return cluster.Snapshot{}, err
	}
	s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].VolumeLimits = limits[s.Nodes[i].Name]
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; len(p.UnreadClaims) > 0 {
			known.tell(p)
		}
	}
	return s, nil
}

// tell fills in what the volumes of the pod allow. A pod that has run before is not judged again: problems of its
// volumes are left out.
func (s storage) tell(p *cluster.Pod) {
	var problems []string
	p.VolumeZones, problems = s.alternatives(p.Namespace, p.UnreadClaims)
	p.Volumes = s.attached(p.Namespace, p.UnreadClaims)
	p.UnreadClaims = nil
	if p.Provisionable() {
		p.Unmodelled = slices.Concat(p.Unmodelled, problems)
	}
}

// volumeLimits are how many volumes the CSI drivers of each node say they can attach to it, by node and driver.
func (c *Client) volumeLimits(ctx context.Context) (map[string]map[string]int64, error) {
	all, _, err := listAll(ctx, c, listQuery{place: csiNodes()},
		func() *storagev1.CSINodeList { return &storagev1.CSINodeList{} },
		func(l *storagev1.CSINodeList) []cluster.Node {
			return translatePage(l.Items, func(n *storagev1.CSINode) cluster.Node {
				return cluster.Node{Name: n.Name,
					VolumeLimits: limitsOf(n)}
			})
		})
	out := make(map[string]map[string]int64, len(all))
	for _, n := range all {
		out[n.Name] = n.VolumeLimits
	}
	return out, err
}

func limitsOf(n *storagev1.CSINode) map[string]int64 {
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

// readStorage reads claims, volumes and storage classes side by side, of which only the parts that matter are kept.
func (c *Client) readStorage(ctx context.Context) (storage, error) {
	out := storage{
		claims:  map[string]corev1.PersistentVolumeClaim{},
		volumes: map[string]corev1.PersistentVolume{},
		classes: map[string]storagev1.StorageClass{},
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		all, _, err := listAll(gctx, c, listQuery{place: volumeClaims()},
			func() *corev1.PersistentVolumeClaimList { return &corev1.PersistentVolumeClaimList{} },
			func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim {
				return translatePage(l.Items, slimClaim)
			})
		for _, v := range all {
			out.claims[v.Namespace+"/"+v.Name] = v
		}
		return err
	})
	g.Go(func() error {
		all, _, err := listAll(gctx, c, listQuery{place: volumePath()},
			func() *corev1.PersistentVolumeList { return &corev1.PersistentVolumeList{} },
			func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume {
				return translatePage(l.Items, slimVolume)
			})
		for _, v := range all {
			out.volumes[v.Name] = v
		}
		return err
	})
	g.Go(func() error {
		all, _, err := listAll(gctx, c, listQuery{place: storageTypes()},
			func() *storagev1.StorageClassList { return &storagev1.StorageClassList{} },
			func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
		for _, v := range all {
			out.classes[v.Name] = v
		}
		return err
	})
	return out, g.Wait()
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
	out := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: in.Name,
		DeletionTimestamp: in.DeletionTimestamp}}
	out.Spec.NodeAffinity, out.Spec.Local, out.Spec.HostPath = in.Spec.NodeAffinity, in.Spec.Local, in.Spec.HostPath
	out.Spec.AWSElasticBlockStore = in.Spec.AWSElasticBlockStore
	if in.Spec.CSI != nil {
		out.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: in.Spec.CSI.Driver}
	}
	return out
}
