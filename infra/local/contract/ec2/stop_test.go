package ec2_test

import (
	"errors"
	"testing"
	"time"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/fleet"
)

// stateOf waits until the instance is in the state.
func (r *rig) stateOf(t *testing.T, id, want string) {
	t.Helper()
	have := ""
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, i := range r.Cloud.DescribedInstances() {
			if i.ID == id {
				have = i.State
			}
		}
		if have == want {
			return
		}
	}
	t.Fatalf("instance %s is %s, want %s", id, have, want)
}

func isNotStartable(err error) bool {
	_, ok := errors.AsType[*fleet.NotStartableError](err)
	return ok
}

// Stopping and starting may be repeated, and an instance that is gone is no error of a stop.
func TestInstancesStopAndStart(t *testing.T) {
	r := start(t, 10)
	id := r.launch(t, r.order("on-demand", "m5.large"), token)
	other := r.launch(t, r.order("on-demand", "m5.large"), "other")
	r.stateOf(t, id, "running")
	for range 2 {
		if err := r.StopInstances(t.Context(), []string{"i-0123456789abcdef0", id}); err != nil {
			t.Fatal(err)
		}
	}
	offering := instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "us-west-2a"}
	if err := r.StartInstance(t.Context(), id, offering); !isNotStartable(err) {
		t.Errorf("start of an instance that is stopping: %v", err)
	}
	r.stateOf(t, other, "running")
	if err := r.StartInstance(t.Context(), other, offering); err != nil {
		t.Errorf("start of an instance that runs: %v", err)
	}
	if err := r.StartInstance(t.Context(), "i-0123456789abcdef0", offering); !isNotStartable(err) {
		t.Errorf("start of an instance that EC2 does not know: %v", err)
	}
	if err := r.TerminateInstances(t.Context(), []string{other}); err != nil {
		t.Fatal(err)
	}
	if err := r.StartInstance(t.Context(), other, offering); !isNotStartable(err) {
		t.Errorf("start of an instance that ends: %v", err)
	}
	if err := r.StopInstances(t.Context(), []string{other}); err != nil {
		t.Errorf("stop of an instance that ends: %v", err)
	}
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "StopInstances", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation"})
	if err := r.StopInstances(t.Context(), []string{id}); err == nil {
		t.Error("a stop that is not allowed is no error")
	}
}

// Lack of capacity and of quota are outcomes that name the offering. A call that is not allowed starts nothing, and
// after any other error nobody knows.
func TestARefusedStartNamesTheOffering(t *testing.T) {
	r := start(t, 10)
	offering := instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "us-west-2a"}
	for code, sold := range map[string]bool{"InsufficientInstanceCapacity": true, "VcpuLimitExceeded": true, "UnauthorizedOperation": false, "InvalidParameterValue": false} {
		r.AddFault(awsemulator.Fault{Service: "ec2", Action: "StartInstances", Kind: awsemulator.FailBefore, Code: code, Times: 1})
		err := r.StartInstance(t.Context(), "i-0123456789abcdef0", offering)
		no, ok := errors.AsType[*instancetypes.NoCapacityError](err)
		if ok != sold || sold && (len(no.Unavailable) != 1 || no.Unavailable[0].OfferingKey != offering || no.Unavailable[0].Why != code) || err == nil || isNotStartable(err) != (code == "UnauthorizedOperation") {
			t.Errorf("%s: %v", code, err)
		}
	}
}
