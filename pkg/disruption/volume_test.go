package disruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/scenario"
)

// Whatever the cluster looks like: what a pass decides is the same whether it was told of all volumes or of none, where
// its rule says that no pod that it may move uses any. Both kinds of worlds come.
func TestRandomVolumes(t *testing.T) {
	read, unread := 0, 0
	for i := range worlds.N() {
		seed := *firstWorld + uint64(i)
		w := grown(t, seed)
		w.furnish(int(seed))
		s := scenario.AsRead(w.Snapshot, MayEmpty)
		if cmp.Equal(s.Pods, w.Snapshot.Pods) {
			read++
			continue
		}
		unread++
		all, _ := Next(w.Snapshot, Memory{}, w.Market)
		some, _ := Next(s, Memory{}, w.Market)
		all.NotDisrupted, some.NotDisrupted = nil, nil // a search that takes another course may give another reason
		if d := cmp.Diff(all.Lines(), some.Lines()); d != "" {
			t.Errorf("seed %d (-with all volumes +without):\n%s", seed, d)
		}
	}
	if read == 0 || unread == 0 {
		t.Errorf("%d worlds need their volumes and %d do not: both are wanted", read, unread)
	}
}

// furnish gives the pods of one node volumes of its zone, and nodes reasons to go and to stay.
func (w *world) furnish(seed int) {
	s := &w.Snapshot
	if len(s.Nodes) == 0 {
		return
	}
	n := s.Nodes[seed%len(s.Nodes)]
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName == n.Name {
			p.VolumeZones = [][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", n.Labels["topology.kubernetes.io/zone"])}}
			p.Volumes = []cluster.Volume{{Driver: "ebs", ID: p.Name}}
			if seed%3 == 0 {
				p.DoNotDisrupt = "true"
			}
		}
	}
	for i := range s.Pools {
		d := &s.Pools[i].Disruption
		switch (i + seed/6) % 5 {
		case 0:
			d.Policy = "WhenEmpty"
		case 1:
			d.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "0"}}
		case 2:
			d.Never = true
		}
	}
	for i := range s.Claims {
		c := &s.Claims[i]
		if c.NodeName == n.Name && seed%2 == 0 {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionDrifted, Status: "True", Since: s.Now.Add(-time.Minute)})
		}
		if grace := time.Minute; c.NodeName == n.Name && seed%6 == 0 {
			c.TerminationGrace = &grace
		}
	}
}

// Nodes whose pods stay because of what their pool says of disruption need no volumes read.
func TestMayEmptyLeavesOutPoolsThatMoveNoPods(t *testing.T) {
	never := func(d *cluster.Disruption) { d.Never = true }
	whenEmpty := func(d *cluster.Disruption) { d.Policy = string(v1.ConsolidationWhenEmpty) }
	noBudget := func(d *cluster.Disruption) { d.Budgets = []cluster.NodeBudget{{Every: true, Nodes: "0"}} }
	for what, change := range map[string]func(*cluster.Disruption){
		"it consolidates never": never, "it consolidates empty nodes": whenEmpty, "its budget is used up": noBudget,
	} {
		s := grown(t, 1).Snapshot
		if len(MayEmpty(s)) == 0 {
			t.Fatal("no node of the world may be emptied, which tests nothing")
		}
		for i := range s.Pools {
			change(&s.Pools[i].Disruption)
		}
		if names := MayEmpty(s); len(names) > 0 {
			t.Errorf("%s: %v", what, names)
		}
	}
}
