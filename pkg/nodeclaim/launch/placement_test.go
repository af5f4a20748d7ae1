package launch

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// A partition that the group does not have is left to EC2.
func TestThePartitionOfATemplate(t *testing.T) {
	for want, requirement := range map[int32]requirements.Requirement{2: requirements.Of(instancetypes.LabelPartition, "2", "3"), 0: requirements.Of(instancetypes.LabelPartition, "4")} {
		in := Input{Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}, Claim: cluster.Claim{Requirements: requirements.NewSet(requirement)}}
		if got := placementPartition(in); got != want {
			t.Errorf("of %s it is %d, want %d", requirement, got, want)
		}
	}
	for what, in := range map[string]Input{
		"no group":       {Claim: cluster.Claim{Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelPartition, "2"))}},
		"no requirement": {Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}},
		"partition 0":    {Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}, Claim: cluster.Claim{Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelPartition, "0"))}},
		"no number":      {Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}, Claim: cluster.Claim{Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelPartition, "x"))}},
	} {
		if got := placementPartition(in); got != 0 {
			t.Errorf("%s: it is %d", what, got)
		}
	}
}
