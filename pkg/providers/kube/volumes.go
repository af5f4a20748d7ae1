package kube

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass/translate"
)

// Volumes reads what is about persistent volumes.
type Volumes struct{ *connection }

// ListAttachments lists the persistent volumes that are attached to one of these nodes, sorted by node and volume.
// Volumes are read only if there are any.
func (v Volumes) ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error) {
	out, _, err := listAll(ctx, v.connection, listQuery{place: attachmentPath()},
		func(l *storagev1.VolumeAttachmentList) []cluster.Attachment {
			var kept []cluster.Attachment
			for _, a := range l.Items {
				if name := a.Spec.Source.PersistentVolumeName; name != nil && slices.Contains(nodes, a.Spec.NodeName) {
					kept = append(kept, cluster.Attachment{Node: a.Spec.NodeName, Volume: *name})
				}
			}
			return kept
		})
	if err != nil || len(out) == 0 {
		return nil, err
	}
	about, err := v.boundVolumes(ctx)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Claim, out[i].Shared = about[out[i].Volume].Claim, about[out[i].Volume].Shared
	}
	slices.SortFunc(out, func(a, b cluster.Attachment) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Volume, b.Volume))
	})
	return out, nil
}

// boundVolumes says of every persistent volume who claims it and whether several nodes may attach it.
func (v Volumes) boundVolumes(ctx context.Context) (map[string]cluster.Attachment, error) {
	all, _, err := listAll(ctx, v.connection, listQuery{place: volumePath()},
		func(l *corev1.PersistentVolumeList) []cluster.Attachment {
			return translatePage(l.Items, func(pv *corev1.PersistentVolume) cluster.Attachment {
				out := cluster.Attachment{Volume: pv.Name,
					Shared: slices.ContainsFunc(pv.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
						return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
					})}
				if r := pv.Spec.ClaimRef; r != nil {
					out.Claim = r.Namespace + "/" + r.Name
				}
				return out
			})
		})
	return lists.Index(all, func(a cluster.Attachment) string { return a.Volume }), err
}

// WithVolumes is the snapshot with what the volumes of its pods allow, and how many of them nodes can have attached.
// The snapshot given is not changed. Nothing is read if no pod uses any.
func (v Volumes) WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if !s.HasUnreadVolumes() {
		return s, nil
	}
	var known translate.Storage
	var said map[string]csiNode
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { known, err = v.readStorage(gctx); return err })
	g.Go(func() (err error) { said, err = v.csiNodes(gctx); return err })
	if err := g.Wait(); err != nil {
		return cluster.Snapshot{}, err
	}
	s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].VolumeLimits = said[s.Nodes[i].Name].limits
		known.AddDrivers(&s.Nodes[i], said[s.Nodes[i].Name].drivers)
	}
	known.AddVolumes(s.Nodes)
	known.NoteUsers(s.Pods)
	for i := range s.Pods {
		if p := &s.Pods[i]; len(p.UnreadClaims) > 0 {
			known.FillPod(p)
		}
	}
	return s, nil
}

// csiNode holds what the CSI drivers of a node say: which have registered, and how many volumes each can attach to it.
type csiNode struct {
	name    string
	drivers []string
	limits  map[string]int64
}

// csiNodes returns the drivers of all nodes, by name.
func (v Volumes) csiNodes(ctx context.Context) (map[string]csiNode, error) {
	all, _, err := listAll(ctx, v.connection, listQuery{place: csiNodes()},
		func(l *storagev1.CSINodeList) []csiNode {
			return translatePage(l.Items, func(n *storagev1.CSINode) csiNode {
				return csiNode{name: n.Name, limits: translate.VolumeLimits(n),
					drivers: lists.Of(n.Spec.Drivers, func(d storagev1.CSINodeDriver) string { return d.Name })}
			})
		})
	return lists.Index(all, func(n csiNode) string { return n.name }), err
}

// readStorage reads claims, volumes, storage classes and CSI drivers side by side, of which only the parts that matter
// are kept. Whoever may not read drivers takes them for drivers that do not opt in.
func (v Volumes) readStorage(ctx context.Context) (translate.Storage, error) {
	out := translate.Storage{OptIn: map[string]bool{}}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		all, _, err := listAll(gctx, v.connection, listQuery{place: volumeClaims()},
			func(l *corev1.PersistentVolumeClaimList) []corev1.PersistentVolumeClaim {
				return translatePage(l.Items, translate.SlimClaim)
			})
		out.Claims = lists.Index(all, func(c corev1.PersistentVolumeClaim) string { return c.Namespace + "/" + c.Name })
		return err
	})
	g.Go(func() error {
		all, _, err := listAll(gctx, v.connection, listQuery{place: volumePath()},
			func(l *corev1.PersistentVolumeList) []corev1.PersistentVolume {
				return translatePage(l.Items, translate.SlimVolume)
			})
		out.Volumes = lists.Index(all, func(pv corev1.PersistentVolume) string { return pv.Name })
		return err
	})
	g.Go(func() error {
		all, _, err := listAll(gctx, v.connection, listQuery{place: storageTypes()},
			func(l *storagev1.StorageClassList) []storagev1.StorageClass { return l.Items })
		out.Classes = lists.Index(all, func(c storagev1.StorageClass) string { return c.Name })
		return err
	})
	g.Go(func() error {
		all, _, err := listAll(gctx, v.connection, listQuery{place: csiDrivers()},
			func(l *storagev1.CSIDriverList) []storagev1.CSIDriver { return l.Items })
		for _, d := range all {
			out.OptIn[d.Name] = d.Spec.PreventPodSchedulingIfMissing != nil && *d.Spec.PreventPodSchedulingIfMissing
		}
		if apierrors.IsForbidden(err) {
			return nil
		}
		return err
	})
	return out, g.Wait()
}
