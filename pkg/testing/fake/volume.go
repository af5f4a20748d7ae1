package fake

import (
	"context"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// WithVolumes is the snapshot with what the volumes of its pods allow, which Snapshot does not say.
func (p ReadPorts) WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	return doCall(ctx, p.invocation, "read volumes", func() (cluster.Snapshot, error) {
		s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes)
		for i := range s.Pods {
			pod := &s.Pods[i]
			if have := p.w.pods[pod.Name]; have != nil && len(pod.UnreadClaims) > 0 {
				pod.VolumeZones, pod.Volumes, pod.UnreadClaims = have.VolumeZones, have.Volumes, nil
			}
		}
		for i := range s.Nodes {
			if have := p.w.nodes[s.Nodes[i].Name]; have != nil {
				s.Nodes[i].VolumeLimits = have.VolumeLimits
			}
		}
		return s, nil
	})
}
