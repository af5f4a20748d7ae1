package refresh_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
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
	for i, hashes := range [][]string{{pool, "v3", class, "v6"}, {"1", "v3", "1", "v6"}, {"1", "v2", "1", "v4"}} {
		a := s.Claims[i].Annotations
		got := []string{a["karpenter.sh/nodepool-hash"], a["karpenter.sh/nodepool-hash-version"],
			a["karpenter.k8s.aws/ec2nodeclass-hash"], a["karpenter.k8s.aws/ec2nodeclass-hash-version"]}
		if diff := cmp.Diff(hashes, got); diff != "" {
			t.Errorf("claim %s (-want +got):\n%s", s.Claims[i].Name, diff)
		}
	}
}

// A claim that may not be changed keeps its old hash, and neither its neighbours nor class and pool from getting the new
// one. It gets it once it may be changed.
func TestARefusedClaimKeepsNoOtherHash(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	s.AddClass("default").Annotations = map[string]string{"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"}
	s.AddPool("general", "default")
	s.Pools["general"].Annotations = map[string]string{"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2"}
	for _, name := range []string{"a", "b"} {
		s.Claims = append(s.Claims, cluster.Claim{Name: name, Pool: "general", Class: "default", Annotations: map[string]string{
			"karpenter.sh/nodepool-hash": "1", "karpenter.sh/nodepool-hash-version": "v2",
			"karpenter.k8s.aws/ec2nodeclass-hash": "1", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v4"}})
	}
	versions := func() string {
		out := s.Classes["default"].Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] + s.Pools["general"].Annotations["karpenter.sh/nodepool-hash-version"]
		for _, c := range s.Claims {
			out += " " + c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] + c.Annotations["karpenter.sh/nodepool-hash-version"]
		}
		return out
	}
	s.Denied = "a"
	if _, err := s.Run(t); err == nil {
		t.Error("nobody is told that a claim could not be changed")
	}
	if got, want := versions(), "v6v3 v4v2 v6v3"; got != want {
		t.Errorf("versions of class, pool and claims are %s, want %s", got, want)
	}
	s.Denied = ""
	if _, err := s.Run(t); err != nil {
		t.Error(err)
	}
	if got, want := versions(), "v6v3 v6v3 v6v3"; got != want {
		t.Errorf("versions of class, pool and claims are %s, want %s", got, want)
	}
}

// A take-over from a Karpenter that knows the same CA in other bytes, and an exchange of the CA, make no node drift; an
// edited class does.
func TestOtherBytesOfTheCAAreNoDrift(t *testing.T) {
	const version = "karpenter.k8s.aws/ec2nodeclass-hash-version"
	s := controllertest.NewRefreshWorld()
	c := s.AddClass("default")
	theirs := c.Hash("ca\n")
	c.Generation = 4
	c.Annotations = map[string]string{"karpenter.k8s.aws/ec2nodeclass-hash": theirs, version: "v5"}
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 4}}
	for _, when := range []string{"at the take-over", "later"} {
		if _, err := s.Run(t); err != nil {
			t.Fatal(err)
		}
		if got := s.Classes["default"].Annotations["karpenter.k8s.aws/ec2nodeclass-hash"]; got != theirs {
			t.Errorf("%s the hash is %s, Karpenter's is %s", when, got, theirs)
		}
	}
	s.Classes["default"].Spec.Tags = map[string]string{"team": "red"}
	if _, err := s.Run(t); err != nil {
		t.Fatal(err)
	}
	c = s.Classes["default"]
	if got := c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"]; got != c.Hash("ca") || got == theirs {
		t.Errorf("after an edit the hash is %s", got)
	}
}

// What was edited after Karpenter has looked at it last, and before Joiner did, makes its nodes drift.
func TestAnEditBetweenKarpenterAndJoinerIsDrift(t *testing.T) {
	s := controllertest.NewRefreshWorld()
	c := s.AddClass("default")
	c.Generation = 5
	c.Annotations = map[string]string{"karpenter.k8s.aws/ec2nodeclass-hash": "7", "karpenter.k8s.aws/ec2nodeclass-hash-version": "v5"}
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 4}}
	if _, err := s.Run(t); err != nil {
		t.Fatal(err)
	}
	c = s.Classes["default"]
	if got := c.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"]; got != c.Hash("ca") {
		t.Errorf("the hash is %s", got)
	}
}

// A class that Karpenter 1.14 or 1.15 hashed keeps its hash and version, and so do its claims; an edit under Joiner is
// of the same version, so that it is drift.
func TestHashesOfBothVersionsStay(t *testing.T) {
	const hash, version = "karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version"
	for _, of := range []string{"v5", "v6"} {
		s := controllertest.NewRefreshWorld()
		c := s.AddClass("default")
		c.Generation = 4
		c.Annotations = map[string]string{hash: "7", version: of}
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", ObservedGeneration: 4}}
		s.Claims = []cluster.Claim{{Name: "a", Class: "default", Annotations: map[string]string{hash: "7", version: of}}}
		if _, err := s.Run(t); err != nil {
			t.Fatal(err)
		}
		if a := s.Classes["default"].Annotations; a[hash] != "7" || a[version] != of {
			t.Errorf("hash 7 of version %s became %s of %s", of, a[hash], a[version])
		}
		s.Classes["default"].Spec.Tags = map[string]string{"team": "red"}
		if _, err := s.Run(t); err != nil {
			t.Fatal(err)
		}
		c = s.Classes["default"]
		if a := c.Annotations; a[hash] != c.Hash("ca") || a[version] != of {
			t.Errorf("after an edit the hash is %s of version %s, want %s of %s", a[hash], a[version], c.Hash("ca"), of)
		}
		if a := s.Claims[0].Annotations; a[hash] != "7" || a[version] != of {
			t.Errorf("the claim of version %s has hash %s of version %s", of, a[hash], a[version])
		}
	}
}
