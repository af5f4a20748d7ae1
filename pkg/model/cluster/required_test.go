package cluster

import (
	"testing"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// New nodes of a class have the features of its images, unless its nodes show something else.
func TestFeaturesOfNewNodes(t *testing.T) {
	const restarts, own = "feature RestartAllContainersOnContainerExits", "feature SomethingElse"
	node := func(name, image string, ready bool, provides ...string) (Node, Claim) {
		return Node{Name: name, ProviderID: name, Ready: ready, Provides: provides}, Claim{Name: name, ProviderID: name, ImageID: image}
	}
	for name, c := range map[string]struct {
		kubelet int64
		add     func() (Node, Claim)
		part    string
		want    bool
	}{
		"old images":                  {35, nil, restarts, false},
		"images as old as it":         {36, nil, restarts, true},
		"images that tell no version": {0, nil, restarts, true},
		"one that is off by default":  {37, nil, own, false},
		"off by default, turned on":   {36, func() (Node, Claim) { return node("n", "ami", true, own) }, own, true},
		"turned off":                  {36, func() (Node, Claim) { return node("n", "ami", true) }, restarts, false},
		"unknown version, shown":      {0, func() (Node, Claim) { return node("n", "ami", true) }, restarts, false},
		"a node that is not ready":    {0, func() (Node, Claim) { return node("n", "ami", false) }, restarts, true},
		"a node of another image":     {36, func() (Node, Claim) { return node("n", "ami-old", true) }, restarts, true},
		"a driver":                    {35, nil, "CSI driver x", true},
		"a volume":                    {35, nil, "free volume of StorageClass x", true},
	} {
		class := instancetypes.Class{Name: "c", KubeletMinor: c.kubelet, Images: []instancetypes.Image{{ID: "ami"}}}
		s := Snapshot{Classes: []instancetypes.Class{class}}
		if c.add != nil {
			n, claim := c.add()
			s.Nodes, s.Claims = []Node{n}, []Claim{claim}
		}
		if got := s.NewNodeProvides(class, c.part); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		if got := s.Provides(StateNode{Claim: &Claim{Class: "c"}}, c.part); got != c.want {
			t.Errorf("%s, of a claim without a node: %t, want %t", name, got, c.want)
		}
	}
}

// A CSI driver may register some time after its node is ready, on a node of ours; what a kubelet does not declare it
// never will.
func TestDriversRegisterLate(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := Snapshot{Now: now, Classes: []instancetypes.Class{{Name: "c", KubeletMinor: 36}}}
	const feature = "RestartAllContainersOnContainerExits"
	done := []Condition{{Type: api.ConditionInitialized, Status: "True"}}
	for name, c := range map[string]struct {
		since    time.Duration
		claim    *Claim
		provides []string
		want     [2]bool // the driver and a volume, the feature
	}{
		"just ready":           {time.Minute, &Claim{Conditions: done}, nil, [2]bool{true, false}},
		"ready for long":       {2 * time.Minute, &Claim{Conditions: done}, nil, [2]bool{}},
		"not initialized":      {time.Hour, &Claim{}, nil, [2]bool{true, false}},
		"somebody else's node": {time.Second, nil, nil, [2]bool{}},
		"not ready yet":        {-time.Second, &Claim{Class: "c"}, nil, [2]bool{true, true}},
		"has both":             {time.Hour, nil, []string{"CSI driver d", "feature " + feature}, [2]bool{true, true}},
	} {
		node := StateNode{Node: &Node{Ready: c.since > 0, ReadySince: now.Add(-c.since), Provides: c.provides}, Claim: c.claim}
		if got := s.Provides(node, RequiredVolume("d")); got != (c.want[0] && len(c.provides) == 0) {
			t.Errorf("%s: a volume %t", name, got)
		}
		if got := [2]bool{s.Provides(node, RequiredDriver("d")), s.Provides(node, RequiredFeature(feature))}; got != c.want {
			t.Errorf("%s: driver and feature %v, want %v", name, got, c.want)
		}
	}
}
