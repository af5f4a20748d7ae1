package ec2_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"joiner.sh/infra/local/awsemulator"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/providers/fleet"
)

// What follows happened to users of Karpenter, and is an issue of aws/karpenter-provider-aws. Each is a fault of the
// emulator's. Instances that keep others running, which its batcher of TerminateInstances tells of, are in
// together_test.go.

// everywhere is a class with a subnet in each zone.
func (r *rig) everywhere() *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{}
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	for _, zone := range slices.Sorted(maps.Keys(r.zones)) {
		c.Status.Subnets = append(c.Status.Subnets, awsv1.Subnet{ID: r.zones[zone], Zone: zone})
	}
	return c
}

// claimFor is a claim for one of these capacity types that may be anything else.
func claimFor(capacityTypes ...string) cluster.Claim {
	return cluster.Claim{Name: claimName, UID: claimUID, Pool: "default", Class: "default", Labels: map[string]string{"karpenter.sh/nodepool": "default"},
		Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelCapacityType, capacityTypes...))}
}

// Issue 5776: requests of 100 types in each zone were too large for EC2, so that no launch of a claim that might be
// anything worked.
func TestALaunchOfAnythingIsSmallEnough(t *testing.T) {
	for _, capacityType := range []string{instancetypes.Spot, instancetypes.OnDemand} {
		t.Run(capacityType, func(t *testing.T) {
			r := start(t, 1)
			o := r.choose(t, r.everywhere(), claimFor(capacityType))
			n := 0
			for _, template := range o.Templates {
				n += len(template.Overrides)
			}
			if r.launch(t, o, token); n < 100 {
				t.Errorf("it had %d offerings alone", n)
			}
		})
	}
}

// Issue 5850: launch templates with tags of spot requests were used for on-demand instances, which EC2 refuses. A claim
// that may be both is launched on demand when spot is unavailable.
func TestALaunchOnDemandTagsNoSpotRequest(t *testing.T) {
	r := start(t, 1)
	claim := claimFor(instancetypes.Spot, instancetypes.OnDemand)
	claim.Requirements = claim.Requirements.And(requirements.Of(instancetypes.LabelType, "m5.large"))
	r.LimitCapacity(awsemulator.Capacity{CapacityType: instancetypes.Spot})
	_, _, err := r.LaunchInstances(t.Context(), r.choose(t, r.everywhere(), claim), token)
	full, ok := errors.AsType[*instancetypes.NoCapacityError](err)
	if !ok {
		t.Fatalf("spot: %v", err)
	}
	for i := range full.Unavailable {
		full.Unavailable[i].Until = time.Now().AddDate(10, 0, 0)
	}
	o := r.choose(t, r.everywhere(), claim, full.Unavailable...)
	r.launch(t, o, claimUID+"-1")
	if err := r.DryRun(t.Context(), o); err != nil {
		t.Errorf("rehearsed: %v", err)
	}
	if i := r.Cloud.DescribedInstances()[0]; i.CapacityType != instancetypes.OnDemand {
		t.Errorf("it is %s", i.CapacityType)
	}
}

// Issue 8114: EC2 learned of a role's new policy a minute late, and the refusal was believed for half an hour. A class
// is asked about every 30 s here, as refresh asks: it is usable two minutes after EC2 allows it at the latest; after a
// deployment, which gave the policy, it never was unusable.
func TestANewPolicyIsSoonBelieved(t *testing.T) {
	const known = 70 * time.Second // after the policy
	for what, deployed := range map[string]bool{"given by somebody": false, "given by a deployment": true} {
		t.Run(what, func(t *testing.T) {
			r := start(t, 1)
			r.AddFault(awsemulator.Fault{Service: "ec2", Action: "RunInstances", Kind: awsemulator.FailBefore, Status: 403, Code: "UnauthorizedOperation"})
			class, begun := r.everywhere(), time.Now()
			o := r.choose(t, class, claimFor(instancetypes.OnDemand))
			usable := map[bool]int{} // looks, by what they said
			for after := time.Duration(0); after <= known+2*time.Minute; after += 30 * time.Second {
				now, at := begun.Add(after), time.Time{}
				if deployed {
					at = begun
				}
				if after > known {
					r.ClearFaults()
				}
				v, kept := nodeclass.RecallVerdict(class, at, now)
				if !kept {
					v = nodeclass.JudgeDryRun(class, r.DryRun(t.Context(), o), now).AfterDeployment(at, now)
					if v.Keep {
						class.Annotations = map[string]string{v1.AnnotationDryRunResult: nodeclass.VerdictAnnotation(class, v, now)}
					}
				}
				usable[v.Reason == ""]++
				if last := after+30*time.Second > known+2*time.Minute; last && v.Reason != "" {
					t.Errorf("%s after EC2 allows it: %s", after-known, v.Reason)
				}
			}
			if deployed != (usable[false] == 0) {
				t.Errorf("the class was unusable at %d of %d looks", usable[false], usable[false]+usable[true])
			}
		})
	}
}

// Issues 8184 and 7967: a fleet started some of its instances, for whatever reason. What there is is used, the reason
// is told for the rest, and asked again with the same token EC2 starts no more.
func TestAPartOfAFleetIsUsed(t *testing.T) {
	for _, code := range []string{"InsufficientInstanceCapacity", "InternalError", ""} {
		t.Run("because of "+code, func(t *testing.T) {
			r := start(t, 1)
			o := r.order("on-demand", "m5.large")
			o.Batch = cluster.Batch{ID: "b1", Size: 3}
			o.InstanceTags = slices.Concat(o.Tags, []launch.Tag{{Key: launch.TagBatch, Value: "b1"}})
			if code == "" { // and no error
				r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: awsemulator.Curtail})
			} else {
				r.LimitCapacity(awsemulator.Capacity{Limit: 1, Code: code})
			}
			var first []string
			for range 2 {
				got, _, err := r.LaunchBatch(t.Context(), o, "b1-0")
				failed, other := errors.AsType[*fleet.LaunchError](err)
				_, full := errors.AsType[*instancetypes.NoCapacityError](err)
				want := map[string]bool{"InsufficientInstanceCapacity": full, "InternalError": other && failed.Code == code, "": other && failed.Code == "TooFewInstances"}
				if len(got) != 2 || !want[code] {
					t.Fatalf("%d instances, %v", len(got), err)
				}
				ids := []string{got[0].ID, got[1].ID}
				if first == nil {
					first = ids
				}
				if !slices.Equal(first, ids) {
					t.Errorf("%v, and again %v", first, ids)
				}
			}
		})
	}
}

// Issue 8686: in an outage of EC2 each attempt made another launch template, until the account had as many as it may
// have. Attempts with one content share one, and at the quota launches whose template is there go on.
func TestAnOutageMakesNoTemplates(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: awsemulator.FailBefore})
	for i := range 20 {
		other := start2(t, r) // each in a new process
		if _, _, err := other.LaunchInstances(t.Context(), o, fmt.Sprint(claimUID, "-", i)); err == nil {
			t.Fatal("EC2 is out of order, and the launch worked")
		}
	}
	r.ClearFaults()
	if n := len(r.templates(t)); n != 1 {
		t.Errorf("%d templates", n)
	}
	r.LimitTemplates(1)
	another := r.order("on-demand", "m5.large")
	another.Templates[0].Name = "joiner/demo/2"
	if _, _, err := r.LaunchInstances(t.Context(), another, claimUID+"-20"); awserrors.CodeOf(err) != "MaxTemplateLimitExceeded" {
		t.Errorf("at the quota: %v", err)
	}
	r.launch(t, o, claimUID+"-21")
	r.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, err := r.SweepTemplates(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	r.launch(t, another, claimUID+"-22")
}
