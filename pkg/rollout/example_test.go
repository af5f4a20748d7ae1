package rollout_test

import (
	"fmt"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/rollout"
)

// An EC2NodeClass has another image. The revision that it had is trusted; the new one is tried on one node first. A
// caller stores the status and hands it in again.
func ExampleAdvance() {
	s := cluster.Snapshot{
		Now:     time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		Classes: []instancetypes.Class{{Name: "default", Ready: true, Hash: "1", Images: make([]instancetypes.Image, 1)}},
		Pools:   []cluster.Pool{{Name: "general", Class: "default", Ready: true}},
	}
	r := cluster.Rollout{Name: "images", Pools: []string{"general"}, Steps: []cluster.RolloutStep{{Nodes: 1}},
		ReadyWithin: 10 * time.Minute}
	for _, image := range []string{"ami-1", "ami-2"} {
		s.Classes[0].Images[0].ID, s.Rollouts = image, []cluster.Rollout{r}
		p := rollout.Advance(s, r)
		for _, e := range p.Events {
			fmt.Println(e.Reason)
		}
		fmt.Println(image, p.Status.Phase, "nodes:", p.Status.Allowed)
		r.Status = p.Status
	}
	// Output:
	// RevisionTrusted
	// ami-1 Healthy nodes: 0
	// RolloutStarted
	// ami-2 Progressing nodes: 1
}
