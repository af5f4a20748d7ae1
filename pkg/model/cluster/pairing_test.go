package cluster

import "testing"

// A Node with the provider id of an instance is not the claim's beside the node that the claim names.
func TestANodeWithTheIDOfAnother(t *testing.T) {
	s := Snapshot{
		Claims: []Claim{{Name: "c1", ProviderID: "aws:///a/i-1", NodeName: "ip-1"}},
		Nodes:  []Node{{Name: "evil", ProviderID: "aws:///a/i-1"}, {Name: "ip-1", ProviderID: "aws:///a/i-1"}},
	}
	for _, node := range s.StateNodes() {
		if owned := node.Claim != nil; owned != (node.Name() == "ip-1") {
			t.Errorf("%s has the claim: %t", node.Name(), owned)
		}
	}
	s.Nodes = s.Nodes[:1] // its node is gone and has come back under another name
	if all := s.StateNodes(); len(all) != 1 || all[0].Claim == nil {
		t.Errorf("%+v", all)
	}
}
