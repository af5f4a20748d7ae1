package refresh_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner/pkg/model/cluster"
	"joiner/pkg/testing/controllertest"
)

// TestANewHashVersionCarriesTheClaimsAlong has pool and class of an older way of hashing, and a claim that drifted
// under it.
func TestANewHashVersionCarriesTheClaimsAlong(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	s.AddClass("default").Annotations = map[string]string{"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"}
	s.AddPool("general", "default")
	s.Pools["general"].Annotations = map[string]string{"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2"}
	old := func() map[string]string {
		return map[string]string{"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2",
			"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"}
	}
	s.Claims = []cluster.Claim{{Name: "a", Pool: "general", Class: "default", Annotations: old()},
		{Name: "b", Pool: "general", Class: "default", Annotations: old(), Conditions: []cluster.Condition{{Type: "Drifted", Status: "True"}}},
		{Name: "c", Pool: "other", Class: "other", Annotations: old()}}
	did, err := s.Run(t)
	want := []string{"annotate claim a", "annotate claim b", "mark class default", "find for default", "status of class default",
		"status of pool general", "annotate claim a", "annotate claim b", "mark pool general", "market"}
	if diff := cmp.Diff(want, did); diff != "" || err != nil {
		t.Errorf("error %v, done (-want +got):\n%s", err, diff)
	}
	class, pool := s.Classes["default"].Hash("ca"), s.Pools["general"].Hash()
	for i, hashes := range [][]string{{pool, "v3", class, "v5"}, {"1", "v3", "1", "v5"}, {"1", "v2", "1", "v4"}} {
		a := s.Claims[i].Annotations
		got := []string{a["karpenter.sh/nodepool-hash"], a["karpenter.sh/nodepool-hash-version"],
			a["karpenter.k8s.aws/ec2nodeclass-hash"], a["karpenter.k8s.aws/ec2nodeclass-hash-version"]}
		if diff := cmp.Diff(hashes, got); diff != "" {
			t.Errorf("claim %s (-want +got):\n%s", s.Claims[i].Name, diff)
		}
	}
}
