package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"joiner/pkg/model/cluster"
)

// ListAttachments lists the persistent volumes that are attached to one of these nodes, sorted by node and volume.
// Volumes are read only if there are any.
func (c *Client) ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error) {
	out, _, err := listAll(ctx, c, listQuery{place: attachmentPath()},
		func() *storagev1.VolumeAttachmentList { return &storagev1.VolumeAttachmentList{} },
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
	about, err := c.boundVolumes(ctx)
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
func (c *Client) boundVolumes(ctx context.Context) (map[string]cluster.Attachment, error) {
	all, _, err := listAll(ctx, c, listQuery{place: volumePath()},
		func() *corev1.PersistentVolumeList { return &corev1.PersistentVolumeList{} },
		func(l *corev1.PersistentVolumeList) []cluster.Attachment {
			return translatePage(l.Items, func(v *corev1.PersistentVolume) cluster.Attachment {
				out := cluster.Attachment{Volume: v.Name,
					Shared: slices.ContainsFunc(v.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
						return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
					})}
				if r := v.Spec.ClaimRef; r != nil {
					out.Claim = r.Namespace + "/" + r.Name
				}
				return out
			})
		})
	out := make(map[string]cluster.Attachment, len(all))
	for _, a := range all {
		out[a.Volume] = a
	}
	return out, err
}
