package ec2_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/launch"
)

// crowd launches so many instances.
func (r *rig) crowd(t *testing.T, n int) []string {
	t.Helper()
	o := r.order("on-demand", "m5.large")
	o.Batch = cluster.Batch{ID: "b1", Size: n}
	o.InstanceTags = slices.Concat(o.Tags, []launch.Tag{{Key: launch.TagBatch, Value: "b1"}})
	got, _, err := r.LaunchBatch(t.Context(), o, "b1-0")
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, i := range got {
		ids = append(ids, i.ID)
	}
	return ids
}

// sideBySide does something to each, at the same time. On a busy machine that may be some, and then others.
func sideBySide(t *testing.T, ids []string, do func(id string) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			if err := do(id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	wg.Wait()
}

func TestInstancesThatAreEndedSideBySideShareACall(t *testing.T) {
	r := start(t, 1)
	ids := r.crowd(t, 30)
	sideBySide(t, ids, func(id string) error { return r.TerminateInstances(t.Context(), []string{id}) })
	for _, i := range r.Cloud.DescribedInstances() {
		if i.State != "shutting-down" {
			t.Errorf("instance %s is %s", i.ID, i.State)
		}
	}
	if n := r.CallCounts()["ec2:TerminateInstances"]; n > 10 {
		t.Errorf("%d calls for 30 instances", n)
	}
}

// One that EC2 does not know spoils nothing for the others.
func TestAnUnknownInstanceAmongOthers(t *testing.T) {
	r := start(t, 1)
	ids := r.crowd(t, 3)
	with := append([]string{"i-00000000000000000"}, ids...)
	sideBySide(t, with, func(id string) error { return r.TagInstance(t.Context(), id, "node-"+id, "claim-"+id) })
	sideBySide(t, with, func(id string) error { return r.TerminateInstances(t.Context(), []string{id}) })
	for _, i := range r.Cloud.DescribedInstances() {
		if i.State != "shutting-down" || i.Tags["Name"] != "node-"+i.ID || i.Tags["karpenter.sh/nodeclaim"] != "claim-"+i.ID {
			t.Errorf("instance %s is %s with tags %v", i.ID, i.State, i.Tags)
		}
	}
}

func TestInstancesThatAreNamedSideBySideShareALook(t *testing.T) {
	r := start(t, 1)
	ids := r.crowd(t, 30)
	sideBySide(t, ids, func(id string) error { return r.TagInstance(t.Context(), id, "node-"+id, "claim") })
	if n := r.CallCounts()["ec2:DescribeInstances"]; n > 10 {
		t.Errorf("%d calls for 30 instances", n)
	}
	for _, i := range r.Cloud.DescribedInstances() {
		if i.Tags["Name"] != "node-"+i.ID {
			t.Errorf("instance %s has tags %v", i.ID, i.Tags)
		}
	}
}

// Who shares a call that fails gets its error.
func TestAnErrorOfASharedCallIsEverybodys(t *testing.T) {
	r := start(t, 1)
	ids := r.crowd(t, 3)
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "TerminateInstances", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation"})
	sideBySide(t, ids, func(id string) error {
		if err := r.TerminateInstances(t.Context(), []string{id}); err == nil {
			return fmt.Errorf("no error")
		}
		return nil
	})
}

// What a list told counts for a minute: naming an instance of it needs no look of its own, and afterwards one.
func TestListedInstancesAreNamedWithoutAnotherLook(t *testing.T) {
	r := start(t, 1)
	one, other := r.launch(t, r.order("on-demand", "m5.large"), "a"), r.launch(t, r.order("on-demand", "m5.large"), "b")
	now := time.Now()
	r.Fleet.Now = func() time.Time { return now }
	if _, err := r.Fleet.ListInstances(t.Context(), cluster.InstanceFilter{}); err != nil {
		t.Fatal(err)
	}
	named := func(id string) int {
		t.Helper()
		before := r.CallCounts()["ec2:DescribeInstances"]
		if err := r.TagInstance(t.Context(), id, "node-"+id, "claim-"+id); err != nil {
			t.Fatal(err)
		}
		for _, i := range r.Cloud.DescribedInstances() {
			if i.ID == id && i.Tags["Name"] != "node-"+id {
				t.Errorf("%s is called %q", id, i.Tags["Name"])
			}
		}
		return r.CallCounts()["ec2:DescribeInstances"] - before
	}
	now = now.Add(59 * time.Second)
	if n := named(one); n != 0 {
		t.Errorf("%d looks within a minute", n)
	}
	now = now.Add(time.Second)
	if n := named(other); n != 1 {
		t.Errorf("%d looks after a minute, want 1", n)
	}
}
