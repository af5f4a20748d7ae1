package ec2_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
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

// Instances that are protected, or that a policy spares, keep no others running: neither those of their zone, nor those
// of the same call.
func TestProtectedInstancesAmongOthers(t *testing.T) {
	r := start(t, 1)
	ids := r.crowd(t, 12)
	for _, id := range []string{ids[2], ids[7]} {
		r.protect(t, id, true)
	}
	var mu sync.Mutex
	refused := map[string]string{}
	end := func(ids []string) {
		t.Helper()
		sideBySide(t, ids, func(id string) error {
			err := r.TerminateInstances(t.Context(), []string{id})
			if no, ok := errors.AsType[*fleet.RefusedError](err); ok {
				mu.Lock()
				defer mu.Unlock()
				refused[no.ID], _ = no.Refusal()
				return nil
			}
			return err
		})
	}
	end(ids)
	if d := cmp.Diff(map[string]string{ids[2]: "InstanceProtected", ids[7]: "InstanceProtected"}, refused); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
	for _, i := range r.Cloud.DescribedInstances() {
		if _, spared := refused[i.ID]; (i.State == "shutting-down") == spared {
			t.Errorf("instance %s is %s", i.ID, i.State)
		}
	}
	r.protect(t, ids[2], false)
	clear(refused)
	end(ids)
	if d := cmp.Diff(map[string]string{ids[7]: "InstanceProtected"}, refused); d != "" {
		t.Errorf("refused (-want +got):\n%s", d)
	}
}

// A protected instance among others that are stopped is refused alone.
func TestAProtectedInstanceAmongOthersThatStop(t *testing.T) {
	r := start(t, 1)
	ids := r.crowd(t, 3)
	for _, id := range ids {
		r.stateOf(t, id, "running")
	}
	_, err := r.ec2.ModifyInstanceAttribute(t.Context(), &ec2.ModifyInstanceAttributeInput{InstanceId: &ids[1],
		DisableApiStop: &types.AttributeBooleanValue{Value: aws.Bool(true)}})
	if err != nil {
		t.Fatal(err)
	}
	err = r.StopInstances(t.Context(), ids)
	if no, ok := errors.AsType[*fleet.RefusedError](err); !ok || no.ID != ids[1] {
		t.Errorf("stopping all: %v", err)
	}
	for n, i := range r.Cloud.DescribedInstances() {
		if stays := i.ID == ids[1]; (i.State == "running") != stays {
			t.Errorf("instance %d is %s", n, i.State)
		}
	}
	err = r.TerminateInstances(t.Context(), ids[1:2])
	if no, ok := errors.AsType[*fleet.RefusedError](err); !ok || no.ID != ids[1] {
		t.Errorf("ending one with stop protection: %v", err)
	}
}

// protect gives an instance termination protection, or takes it.
func (r *rig) protect(t *testing.T, id string, on bool) {
	t.Helper()
	_, err := r.ec2.ModifyInstanceAttribute(t.Context(), &ec2.ModifyInstanceAttributeInput{InstanceId: &id,
		DisableApiTermination: &types.AttributeBooleanValue{Value: &on}})
	if err != nil {
		t.Fatal(err)
	}
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
