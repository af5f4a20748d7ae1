package nodeclass_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
)

func TestClaimsFollowANewWayOfHashing(t *testing.T) {
	owner := map[string]string{"karpenter.sh/nodepool-hash": "2", "karpenter.sh/nodepool-hash-version": "v3"}
	with := func(version string, conditions ...cluster.Condition) cluster.Claim {
		c := cluster.Claim{Annotations: map[string]string{"karpenter.sh/nodepool-hash": "1"}, Conditions: conditions}
		if version != "" {
			c.Annotations["karpenter.sh/nodepool-hash-version"] = version
		}
		return c
	}
	for _, test := range []struct {
		name  string
		claim cluster.Claim
		want  map[string]string
	}{
		{"of the same version, hash and all", with("v3"), nil},
		{"of an older version", with("v2"), owner},
		{"without a version", with(""), owner},
		{"drifted already", with("v2", cluster.Condition{Type: "Drifted", Status: "True"}), map[string]string{"karpenter.sh/nodepool-hash-version": "v3"}},
	} {
		if diff := cmp.Diff(test.want, nodeclass.RehashAnnotations(test.claim, owner)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
