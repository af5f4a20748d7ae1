package disruption

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// A pool for which no instance type is known loses no node, drifted or not: nobody can tell what its nodes are.
func TestAPoolWithoutInstanceTypesIsLeftAlone(t *testing.T) {
	s := cluster.Snapshot{Pools: []cluster.Pool{{Name: "default", Ready: true}}}
	for _, name := range []string{"a", "b"} {
		s.Nodes = append(s.Nodes, cluster.Node{Name: name, ProviderID: name, Ready: true, Labels: map[string]string{v1.LabelInitialized: "true", v1.LabelRegistered: "true"}})
		s.Claims = append(s.Claims, cluster.Claim{Name: name, Pool: "default", ProviderID: name, NodeName: name})
	}
	s.Claims[0].Conditions = []cluster.Condition{{Type: v1.ConditionDrifted, Status: "True"}}
	for _, x := range []struct {
		sold int
		want []string
	}{
		{1, []string{"propose Empty: a,b without replacement, saves 0.0000 USD/h, moves 0 pods"}},
		{0, []string{"not disrupting a: its NodePool default has no instance types", "not disrupting b: its NodePool default has no instance types"}},
	} {
		p, _ := Next(s, Memory{}, func(string) []instancetypes.Type { return make([]instancetypes.Type, x.sold) })
		if diff := cmp.Diff(x.want, p.Lines()); diff != "" {
			t.Errorf("%d types (-want +got):\n%s", x.sold, diff)
		}
	}
}
