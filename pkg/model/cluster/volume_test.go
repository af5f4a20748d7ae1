package cluster_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// Volumes matter where a pod that uses some needs a node, now or because its own goes away or may be emptied. What its
// node's claim says counts before the node says it too.
func TestVolumesMatter(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	uses := func(p cluster.Pod) cluster.Pod { p.UnreadClaims = []string{"data"}; return p }
	runs := cluster.Pod{Name: "db", NodeName: "n1", Phase: "Running"}
	waits := cluster.Pod{Name: "db", Phase: "Pending", Unscheduled: true}
	daemon := cluster.Pod{Name: "db", NodeName: "n1", Owner: cluster.OwnerDaemonSet}
	disrupted := []cluster.Taint{{Key: "karpenter.sh/disrupted", Effect: "NoSchedule"}}
	for name, c := range map[string]struct {
		pod     cluster.Pod
		node    cluster.Node
		claim   cluster.Claim
		emptied map[string]bool
		want    bool
	}{
		"at rest":                    {pod: uses(runs)},
		"waiting":                    {pod: uses(waits), want: true},
		"waiting without volumes":    {pod: waits},
		"on a node that is tainted":  {pod: uses(runs), node: cluster.Node{Taints: disrupted}, want: true},
		"on a node that is deleted":  {pod: uses(runs), node: cluster.Node{Deleting: at}, want: true},
		"on one whose claim is":      {pod: uses(runs), claim: cluster.Claim{Deleting: at}, want: true},
		"on a candidate":             {pod: uses(runs), emptied: map[string]bool{"n1": true}, want: true},
		"beside a candidate":         {pod: uses(runs), emptied: map[string]bool{"n2": true}},
		"no volumes on a candidate":  {pod: runs, emptied: map[string]bool{"n1": true}},
		"of a DaemonSet on a leaver": {pod: uses(daemon), node: cluster.Node{Deleting: at}, emptied: map[string]bool{"n1": true}},
	} {
		c.node.Name, c.claim.Name, c.claim.NodeName = "n1", "c1", "n1"
		s := cluster.Snapshot{Pods: []cluster.Pod{{Name: "web", NodeName: "n1"}, c.pod}, Nodes: []cluster.Node{c.node}, Claims: []cluster.Claim{c.claim}}
		if got := s.VolumesMatter(c.emptied); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
