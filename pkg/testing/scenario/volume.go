package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// addVolumeLimit reads "DRIVER COUNT".
func addVolumeLimit(n *cluster.Node, text string) error {
	driver, count, _ := strings.Cut(text, " ")
	most, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		return fmt.Errorf("node %s: attaches %q: %w", n.Name, text, err)
	}
	if n.VolumeLimits == nil {
		n.VolumeLimits = map[string]int64{}
	}
	n.VolumeLimits[driver] = most
	return nil
}

// Unread is the snapshot before anybody has read volumes.
func Unread(s cluster.Snapshot) cluster.Snapshot {
	s.Pods, s.Nodes = slices.Clone(s.Pods), slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].VolumeLimits = nil
	}
	for i := range s.Pods {
		s.Pods[i] = UnreadPod(s.Pods[i])
	}
	return s
}

// UnreadPod is the pod before anybody has read its volumes.
func UnreadPod(p cluster.Pod) cluster.Pod {
	if len(p.VolumeZones)+len(p.Volumes) == 0 {
		return p
	}
	p.UnreadClaims = []string{"data"}
	for _, v := range p.Volumes {
		p.UnreadClaims = append(p.UnreadClaims, v.Driver+"-"+v.ID)
	}
	p.VolumeZones, p.Volumes = nil, nil
	return p
}

// AsRead is the snapshot as a decision gets it that may empty these nodes: volumes are read where they matter to it.
func AsRead(s cluster.Snapshot, mayEmpty func(cluster.Snapshot) map[string]bool) cluster.Snapshot {
	unread := Unread(s)
	if unread.VolumesMatter(mayEmpty(unread)) {
		return s
	}
	return unread
}
