package whatif

import (
	"slices"
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/scenario"
)

// A pod that writes more than any node has room for gets a node by a smaller request, or by the smallest volume of the
// EC2NodeClass that the decision takes it with: the kubelet keeps 1 GiB and a tenth. What volumes cost is in the price.
func TestAPodThatWritesMoreThanTheVolumeHolds(t *testing.T) {
	for family, device := range map[string]string{instancetypes.AL2023: "/dev/xvda", instancetypes.Bottlerocket: "/dev/xvdb"} {
		s := scenario.Scripted(t, "pool p", "pods x cpu=500 mem=512").Snapshot
		s.Catalog = objects.FewTypes()
		class := instancetypes.DefaultClass(s.Catalog)
		class.Family, class.Disks = family, instancetypes.FamilyDisks(family)
		s.Classes, s.Pools[0].Class = []instancetypes.Class{class}, class.Name
		s.Pods[0].Need = s.Pods[0].Need.With(resources.Ephemeral, 100<<30)
		a := ForPod(s, binpack.ResolveOfferings(s), "default/x-1", Limits{})
		said := lists.Of(a.Changes, func(c Change) string { return c.Edits[0].String() })
		want := []string{"change spec.containers[*].resources.requests.ephemeral-storage of Pod default/x-1 from 102400Mi to 17408Mi",
			"change spec.blockDeviceMappings[deviceName=" + device + "].ebs.volumeSize of EC2NodeClass default from 20Gi to 113Gi"}
		if !slices.Equal(said, want) || a.Unasked > 0 {
			t.Fatalf("%s: %q, %d unasked", family, said, a.Unasked)
		}
		if usd := a.Changes[1].AddsUSD - a.Changes[0].AddsUSD; usd < 0.0100 || usd > 0.0103 {
			t.Errorf("%s: 93 GiB of gp3 are %.4f USD/h more, want 93*0.08/730", family, usd)
		}
		if still := instancetypes.FamilyDisks(family); !slices.Equal(s.Classes[0].Disks, still) {
			t.Errorf("the snapshot was changed: %v", s.Classes[0].Disks)
		}
	}
}

// The cheapest change is first. Of those that cost the same, whatever the last digits of a sum say, it is that which
// touches the fewest pods.
func TestChangesAreInOrderOfTheirCost(t *testing.T) {
	tenth := 0.1
	change := func(name string, usd float64, others ...string) Change {
		return Change{[]Edit{{Kind: "Pod", Name: name, Field: "x"}}, ChangeEffect{AddsUSD: usd, Others: others}}
	}
	all := []Change{change("dear", 0.4), change("two", 0.3, "a", "b"), change("one", tenth+0.2, "a"), change("cheap", -1, "a", "b", "c")}
	slices.SortStableFunc(all, compareChanges)
	got := lists.Of(all, func(c Change) string { return c.Edits[0].Name })
	if want := []string{"cheap", "one", "two", "dear"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
