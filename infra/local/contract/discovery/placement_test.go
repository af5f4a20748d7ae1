package discovery

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/discovery"
)

func TestThePlacementGroupOfAClass(t *testing.T) {
	r := start(t)
	r.PutPlacementGroup(awsemulator.PlacementGroup{ID: "pg-0a", Name: "ours", Strategy: "partition", Partitions: 3})
	want := &instancetypes.Placement{ID: "pg-0a", Name: "ours", Strategy: "partition", Partitions: 3}
	for _, by := range []instancetypes.Placement{{ID: "pg-0a"}, {Name: "ours"}} {
		k := class()
		k.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{ID: by.ID, Name: by.Name}
		if err := r.look(t, k); err != nil {
			t.Fatal(err)
		}
		if got := condition(k, awsv1.ConditionPlacementGroupReady); !strings.HasPrefix(got, "True") {
			t.Errorf("%v: %s", by, got)
		}
		got, err := discovery.RemainingCapacity{EC2: r.finder.EC2}.FindGroup(t.Context(), by)
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("%v: %v\n%s", by, err, d)
		}
	}
	k := class()
	k.Spec.PlacementGroupSelector = &awsv1.PlacementGroupSelector{Name: "theirs"}
	if err := r.look(t, k); err != nil {
		t.Errorf("what was not found is an error: %v", err)
	}
	says := "False PlacementGroupNotFound: no placement group theirs is available in us-west-2: make it or change placementGroupSelector"
	if got := condition(k, awsv1.ConditionPlacementGroupReady); got != says {
		t.Errorf("%s, want %s", got, says)
	}
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "DescribePlacementGroups", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation", Times: 1})
	if err := r.look(t, k); err == nil || !strings.HasPrefix(condition(k, awsv1.ConditionPlacementGroupReady), "False PlacementGroupResolutionFailed") {
		t.Errorf("%v: %s", err, condition(k, awsv1.ConditionPlacementGroupReady))
	}
}
