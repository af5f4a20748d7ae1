package simulator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Pods are of two classes, and their spreads count other nodes, whose node affinity differs in the last of many values.
func TestClassesTellLongListsOfValuesApart(t *testing.T) {
	asks := func(name, last string) *cluster.Pod {
		return &cluster.Pod{Name: name, Need: resources.List{CPU: 100, Pods: 1}, NodeAffinity: [][]requirements.Requirement{
			{requirements.Of("type", "a", "b", "c", "d", "e", "f", last)}}}
	}
	room := resources.List{CPU: 1000, Pods: 10}
	sim := New(cluster.Snapshot{}, nil)
	sim.AddNode(NewNode("one", map[string]string{"type": "g", "zone": "1"}, nil, room, room))
	sim.AddNode(NewNode("two", map[string]string{"type": "h", "zone": "2"}, nil, room, room))
	sim.AddNode(NewNode("three", map[string]string{"type": "a", "zone": "3"}, nil, room, room))
	sim.Node("three").SetHeld(true)
	got := map[string]string{}
	for _, p := range []*cluster.Pod{asks("g", "g"), asks("h", "h")} {
		p.Spread = []cluster.Spread{{Key: "zone", MaxSkew: 1, MinDomains: 2, Selector: &cluster.Selector{}}}
		sim.Bind([]*cluster.Pod{p}, nil)
		got[p.Name] = sim.LastPlaced()
	}
	if diff := cmp.Diff(map[string]string{"g": "one", "h": "two"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
