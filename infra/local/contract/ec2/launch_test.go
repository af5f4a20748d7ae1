package ec2_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

func TestALaunchGivesTheInstanceThatTheOrderAsksFor(t *testing.T) {
	for _, capacityType := range []string{"spot", "on-demand"} {
		t.Run(capacityType, func(t *testing.T) {
			r := start(t, 1)
			at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			r.Now = func() time.Time { return at }
			r.LimitCapacity(awsemulator.Capacity{Zone: "us-west-2a"})
			got, marks, err := r.LaunchInstances(t.Context(), r.order(capacityType, "m5.large"), token)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(got.ID, "i-") {
				t.Errorf("id %q", got.ID)
			}
			want := cluster.Instance{ID: got.ID, State: "pending", Type: "m5.large", Zone: "us-west-2b", CapacityType: capacityType, ImageID: r.image,
				SubnetID: r.zones["us-west-2b"], Launched: at, Claim: "default-abcde", ClaimUID: "11111111-2222-3333-4444-555555555555"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("instance (-want +got):\n%s", diff)
			}
			// Zone a was asked first and refused: worth knowing although zone b served.
			refused := []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: capacityType, Type: "m5.large", Zone: "us-west-2a"}, Why: "InsufficientInstanceCapacity"}}
			if diff := cmp.Diff(refused, marks); diff != "" {
				t.Errorf("marks (-want +got):\n%s", diff)
			}
			i := r.Cloud.DescribedInstances()[0]
			if i.CapacityType != capacityType || i.ClientToken != token || i.Profile != "nodes" || i.UserData != "hello node" {
				t.Errorf("EC2 has %+v", i)
			}
			for k, v := range map[string]string{"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default", "eks:eks-cluster-name": "demo",
				"kubernetes.io/cluster/demo": "owned", "karpenter.sh/nodeclaim": "default-abcde", "joiner.sh/nodeclaim-uid": claimUID} {
				if i.Tags[k] != v {
					t.Errorf("tag %s is %q, want %q", k, i.Tags[k], v)
				}
			}
		})
	}
}

func TestTheSameTokenGivesTheSameInstance(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	first := r.launch(t, o, token)
	if again := r.launch(t, o, token); again != first {
		t.Errorf("the second launch gave %s, want %s", again, first)
	}
	r.count(t, 1)
	if other := r.launch(t, o, claimUID+"-1"); other == first {
		t.Error("another token must give another instance")
	}
}

// Prices or marks may change between a launch whose reply was lost and its repetition.
func TestTheSameTokenWithAnotherContentAdoptsTheInstanceByItsTag(t *testing.T) {
	r := start(t, 1)
	first := r.launch(t, r.order("spot", "m5.large"), token)
	got, _, err := r.LaunchInstances(t.Context(), r.order("on-demand", "c5.large"), token)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != first || got.Type != "m5.large" || got.CapacityType != "spot" || got.Claim != claimName || got.ImageID != r.image || got.Zone == "" {
		t.Errorf("adopted %+v, want the spot m5.large %s", got, first)
	}
	r.count(t, 1)
}

func TestATokenThatWasUsedInVainIsReported(t *testing.T) {
	r := start(t, 1)
	dead := r.launch(t, r.order("spot", "m5.large"), token)
	if err := r.Cloud.KillInstance(dead); err != nil {
		t.Fatal(err)
	}
	_, _, err := r.LaunchInstances(t.Context(), r.order("spot", "c5.large"), token)
	used, ok := errors.AsType[*launch.TokenUsedError](err)
	if !ok || used.Token != token {
		t.Errorf("error is %v, want a TokenUsedError: an ended instance is not adopted", err)
	}
	r.count(t, 1)
}

func TestNoCapacityNamesEveryOfferingThatWasRefused(t *testing.T) {
	r := start(t, 1)
	r.LimitCapacity(awsemulator.Capacity{InstanceType: "m5.large"})
	r.LimitCapacity(awsemulator.Capacity{InstanceType: "c5.large", Code: "UnfulfillableCapacity"})
	_, marks, err := r.LaunchInstances(t.Context(), r.order("on-demand", "m5.large", "c5.large"), token)
	if len(marks) != 0 {
		t.Errorf("marks %v beside the error", marks)
	}
	want := []string{
		"on-demand c5.large us-west-2a UnfulfillableCapacity", "on-demand c5.large us-west-2b UnfulfillableCapacity",
		"on-demand m5.large us-west-2a InsufficientInstanceCapacity", "on-demand m5.large us-west-2b InsufficientInstanceCapacity",
	}
	if diff := cmp.Diff(want, refusals(t, err)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	r.count(t, 0)
}

func refusals(t *testing.T, err error) []string {
	t.Helper()
	no, ok := errors.AsType[*instancetypes.NoCapacityError](err)
	if !ok {
		t.Fatalf("error is %v, want a NoCapacityError", err)
	}
	var out []string
	for _, m := range no.Unavailable {
		out = append(out, m.CapacityType+" "+m.Type+" "+m.Zone+" "+m.Why)
	}
	slices.Sort(out)
	return out
}

// A subnet that is full says nothing about offerings: another subnet of the zone may have addresses.
func TestASubnetWithoutAddressesIsMarkedItself(t *testing.T) {
	r := start(t, 1)
	r.LimitAddresses(r.zones["us-west-2a"], 0)
	_, marks, err := r.LaunchInstances(t.Context(), r.order("on-demand", "m5.large"), token)
	want := []instancetypes.UnavailableOffering{{Scope: r.zones["us-west-2a"], Why: "InsufficientFreeAddressesInSubnet"}}
	if diff := cmp.Diff(want, marks); diff != "" || err != nil {
		t.Errorf("%v, marks (-want +got):\n%s", err, diff)
	}
}

// A quota may refuse the whole request instead of each offering.
func TestAQuotaThatRefusesTheRequestIsNoCapacity(t *testing.T) {
	r := start(t, 1)
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: awsemulator.FailBefore, Code: "MaxSpotInstanceCountExceeded", Times: 1})
	_, _, err := r.LaunchInstances(t.Context(), r.order("spot", "m5.large"), token)
	want := []string{"spot m5.large us-west-2a MaxSpotInstanceCountExceeded", "spot m5.large us-west-2b MaxSpotInstanceCountExceeded"}
	if diff := cmp.Diff(want, refusals(t, err)); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestWithoutTheServiceLinkedRoleAllOfSpotIsRefused(t *testing.T) {
	r := start(t, 1)
	r.LimitCapacity(awsemulator.Capacity{CapacityType: "spot", Code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted"})
	_, _, err := r.LaunchInstances(t.Context(), r.order("spot", "m5.large"), token)
	for _, got := range refusals(t, err) {
		if got != "spot   AuthFailure.ServiceLinkedRoleCreationNotPermitted" {
			t.Errorf("refused %q, want all of spot", got)
		}
	}
}

func TestALostReplyIsNoSecondInstance(t *testing.T) {
	for _, kind := range []awsemulator.FaultKind{awsemulator.LoseReply, awsemulator.FailAfter} {
		t.Run(string(kind), func(t *testing.T) {
			r := start(t, 1)
			o := r.order("spot", "m5.large")
			r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: kind, Times: 1})
			_, _, err := r.LaunchInstances(t.Context(), o, token)
			if err == nil || !strings.HasPrefix(err.Error(), "create fleet: ") {
				t.Fatalf("error is %v, want one that names the call", err)
			}
			r.count(t, 1)
			if got := r.launch(t, o, token); got != r.Cloud.DescribedInstances()[0].ID {
				t.Errorf("the repetition gave %s, want %s", got, r.Cloud.DescribedInstances()[0].ID)
			}
			r.count(t, 1)
		})
		t.Run(string(kind)+" seen by the SDK", func(t *testing.T) {
			r := start(t, 3)
			r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: kind, Times: 1})
			r.launch(t, r.order("spot", "m5.large"), token)
			r.count(t, 1)
			if n := r.CallCounts()["ec2:CreateFleet"]; n != 2 {
				t.Errorf("%d calls, want 2", n)
			}
		})
	}
}

func TestAThrottledCallIsRepeatedByTheSDK(t *testing.T) {
	r := start(t, 4)
	for _, action := range []string{"DescribeLaunchTemplates", "CreateLaunchTemplate", "CreateFleet"} {
		r.AddFault(awsemulator.Fault{Service: "ec2", Action: action, Kind: awsemulator.Throttle, Times: 2})
	}
	r.launch(t, r.order("spot", "m5.large"), token)
	r.count(t, 1)
	if n := r.CallCounts()["ec2:CreateFleet"]; n != 3 {
		t.Errorf("%d calls of CreateFleet, want 3", n)
	}
}

// EC2 answers, so the token is spent: the same answer comes for it even when the cause is gone, and the next token
// works.
func TestAnAnswerWithAnotherErrorSpendsTheToken(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	o.Templates[0].InstanceProfile = "not-yet"
	for range 2 {
		_, _, err := r.LaunchInstances(t.Context(), o, token)
		failed, ok := errors.AsType[*fleet.LaunchError](err)
		if !ok || failed.Code != "InvalidParameterValue" || !strings.Contains(failed.Message, "Invalid IAM Instance Profile name") || !failed.TokenSpent() {
			t.Fatalf("error is %v, want a LaunchError with the words of EC2", err)
		}
		r.PutInstanceProfile("not-yet", "KarpenterNodeRole-demo")
	}
	r.launch(t, o, claimUID+"-1")
	r.count(t, 1)
}

// A refusal for capacity beside another error is not the offerings' fault alone, so it is no NoCapacityError, but still
// teaches.
func TestMarksComeWithOtherErrorsToo(t *testing.T) {
	r := start(t, 1)
	r.LimitCapacity(awsemulator.Capacity{Zone: "us-west-2a"})
	r.LimitCapacity(awsemulator.Capacity{Zone: "us-west-2b", Code: "InternalError"})
	_, marks, err := r.LaunchInstances(t.Context(), r.order("on-demand", "m5.large"), token)
	if failed, ok := errors.AsType[*fleet.LaunchError](err); !ok || failed.Code != "InternalError" {
		t.Errorf("error is %v, want a LaunchError", err)
	}
	if len(marks) != 1 || marks[0].Zone != "us-west-2a" {
		t.Errorf("marks %v, want the offering in zone a", marks)
	}
}

// A batch is one request: the same token brings the same instances, another content finds them by the batch's tag.
func TestABatchIsOneRequest(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	o.Batch, o.ClaimName, o.ClaimUID = cluster.Batch{ID: "b1", Size: 3}, "", ""
	o.InstanceTags = slices.Concat(o.Tags, []launch.Tag{{Key: launch.TagBatch, Value: "b1"}})
	ids := func(o launch.Order) (out []string) {
		got, _, err := r.LaunchBatch(t.Context(), o, "b1-0")
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range got {
			if i.Batch != "b1" || i.ClaimUID != "" || i.SubnetID == "" || i.ImageID == "" {
				t.Errorf("launched %+v", i)
			}
			out = append(out, i.ID)
		}
		slices.Sort(out)
		return out
	}
	first := ids(o)
	if again := ids(o); len(first) != 3 || !slices.Equal(first, again) {
		t.Errorf("%v, and again %v", first, again)
	}
	o.Context = "another"
	if adopted := ids(o); !slices.Equal(first, adopted) {
		t.Errorf("%v, adopted %v", first, adopted)
	}
	r.count(t, 3)
	if n := r.CallCounts()["ec2:CreateFleet"]; n != 3 {
		t.Errorf("%d calls of CreateFleet, want 3", n)
	}
}

// What there is of a batch is taken, and the rest is refused by name.
func TestHalfABatch(t *testing.T) {
	r := start(t, 1)
	r.LimitCapacity(awsemulator.Capacity{Limit: 1})
	o := r.order("spot", "m5.large")
	o.Batch = cluster.Batch{ID: "b1", Size: 3}
	got, marks, err := r.LaunchBatch(t.Context(), o, "b1-0")
	want := []string{"spot m5.large us-west-2a InsufficientInstanceCapacity", "spot m5.large us-west-2b InsufficientInstanceCapacity"}
	if diff := cmp.Diff(want, refusals(t, err)); diff != "" || len(got) != 2 || len(marks) != 0 {
		t.Errorf("%d instances, marks %v, refused (-want +got):\n%s", len(got), marks, diff)
	}
	r.count(t, 2)
}
