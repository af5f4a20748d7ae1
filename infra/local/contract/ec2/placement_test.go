package ec2_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// grouped asks for a type in a placement group.
func (r *rig) grouped(id string, partition int32) launch.Order {
	o := r.order("on-demand", "m5.large")
	o.Group, o.Templates[0].Group, o.Templates[0].Partition = id, id, partition
	o.Templates[0].Name += "-" + id + fmt.Sprint(partition)
	return o
}

func TestALaunchIntoAPlacementGroup(t *testing.T) {
	r := start(t, 1)
	r.PutPlacementGroup(awsemulator.PlacementGroup{ID: "pg-1", Name: "ours", Strategy: "partition", Partitions: 3})
	r.launch(t, r.grouped("pg-1", 3), token)
	if i := r.Cloud.DescribedInstances()[0]; i.Group != "pg-1" {
		t.Errorf("the instance is in group %q", i.Group)
	}
	if all, err := r.Fleet.ListInstances(t.Context(), cluster.InstanceFilter{}); err != nil || len(all) != 1 || all[0].Partition != 3 {
		t.Errorf("instances %v, %v, want one in partition 3", all, err)
	}
	for name, o := range map[string]launch.Order{"no such partition": r.grouped("pg-1", 4), "no such group": r.grouped("pg-2", 0)} {
		if _, _, err := r.LaunchInstances(t.Context(), o, claimUID+name[:9]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	r.count(t, 1)
}

// A spread group takes seven instances in a zone, of whatever type: the zone is out for the group, and for nobody else.
func TestASpreadGroupThatIsFull(t *testing.T) {
	r := start(t, 1)
	r.PutPlacementGroup(awsemulator.PlacementGroup{ID: "pg-1", Name: "ours", Strategy: "spread"})
	r.LimitCapacity(awsemulator.Capacity{Zone: "us-west-2b"})
	for n := range 7 {
		r.launch(t, r.grouped("pg-1", 0), fmt.Sprint(claimUID, "-", n))
	}
	_, _, err := r.LaunchInstances(t.Context(), r.grouped("pg-1", 0), claimUID+"-7")
	want := []instancetypes.UnavailableOffering{
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Zone: "us-west-2a"}, Scope: "pg-1", Why: "InsufficientInstanceCapacity"},
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "us-west-2b"}, Scope: "pg-1", Why: "InsufficientInstanceCapacity"},
	}
	if d := cmp.Diff(want, marked(err)); d != "" {
		t.Errorf("marks (-want +got):\n%s", d)
	}
	r.launch(t, r.order("on-demand", "m5.large"), claimUID+"-8")
}
