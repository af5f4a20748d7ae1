package binpack

import (
	"fmt"
	"slices"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/manypods"
)

// What pods do not want of labels that no node has is not asked of the NodeClaim where it is much: the API server takes
// 100 requirements, and others are to be on the node.
func TestMostRequirementsOfANodeClaim(t *testing.T) {
	for n, want := range map[int]bool{10: true, 150: false} {
		s := manypods.Services(t, 0)
		s.Rules.PackingIterations = cluster.NoIterations
		s.Pods = slices.Concat(manypods.Services(t, 3).Pods, manypods.Hostile("sizes", 1))
		var term []requirements.Requirement
		for i := range n {
			r, err := requirements.NewRequirement(fmt.Sprintf("example.com/k%d", i), requirements.NotIn, "x")
			if err != nil {
				t.Fatal(err)
			}
			term = append(term, r)
		}
		s.Pods[len(s.Pods)-1].NodeAffinity = [][]requirements.Requirement{term}
		p := PodsFrom(s, ResolveOfferings(s))
		if len(p.Unplaced) > 0 || len(p.Launches) == 0 {
			t.Fatalf("%d keys: %v", n, p)
		}
		asked := false
		for _, l := range p.Launches {
			_, has := l.Requirements.Get("example.com/k0")
			if asked = asked || has; len(l.Requirements.All()) > 100 {
				t.Errorf("%d keys: %d requirements", n, len(l.Requirements.All()))
			}
		}
		if asked != want {
			t.Errorf("%d keys: asked of the NodeClaim is %t", n, asked)
		}
	}
}
