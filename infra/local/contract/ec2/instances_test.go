package ec2_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

// start2 is another process of the same cluster.
func start2(t *testing.T, r *rig) *rig {
	t.Helper()
	other := *r
	other.Fleet = &fleet.Fleet{EC2: r.Fleet.EC2, Cluster: r.Fleet.Cluster, Now: r.Fleet.Now}
	return &other
}

func TestInstancesAreListedOverManyPagesAndOnlyOurs(t *testing.T) {
	r := start(t, 10)
	id := r.launch(t, r.order("spot", "m5.large"), token)
	bulk := func(cluster string, n int32) {
		t.Helper()
		_, err := r.ec2.RunInstances(t.Context(), &ec2.RunInstancesInput{ImageId: aws.String(r.image), InstanceType: "m5.large", SubnetId: aws.String(r.zones["us-west-2a"]),
			MinCount: aws.Int32(n), MaxCount: aws.Int32(n), TagSpecifications: []types.TagSpecification{{ResourceType: "instance",
				Tags: []types.Tag{tag("eks:eks-cluster-name", cluster), tag("karpenter.sh/nodepool", "p"), tag("karpenter.k8s.aws/ec2nodeclass", "c")}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	bulk("demo", 1500)
	bulk("other", 3)
	if _, err := r.ec2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{tag("a", "b")}}); err != nil {
		t.Fatal(err)
	}
	if err := r.TerminateInstances(t.Context(), []string{id}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Fleet.ListInstances(t.Context(), cluster.InstanceFilter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1501 || !slices.IsSortedFunc(got, func(a, b cluster.Instance) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("%d instances, want 1501 sorted by id", len(got))
	}
	if n := r.CallCounts()["ec2:DescribeInstances"]; n != 2 {
		t.Errorf("%d pages read, want 2", n)
	}
	i := slices.IndexFunc(got, func(i cluster.Instance) bool { return i.ID == id })
	if i < 0 {
		t.Fatal("the instance that is shutting down is not listed")
	}
	have := r.Cloud.DescribedInstances()[0]
	want := cluster.Instance{ID: id, State: "shutting-down", StateReason: "Client.UserInitiatedShutdown: User initiated shutdown", Type: "m5.large", Zone: have.Zone, CapacityType: "spot", ImageID: r.image, SubnetID: have.SubnetID, SecurityGroups: have.SecurityGroups,
		NodeName: have.PrivateDNSName, Claim: claimName, ClaimUID: claimUID, Tags: []string{"a", "aws:ec2launchtemplate:id", "aws:ec2launchtemplate:version",
			"eks:eks-cluster-name", "joiner.sh/nodeclaim-uid", "karpenter.k8s.aws/ec2nodeclass", "karpenter.sh/nodeclaim", "karpenter.sh/nodepool", "kubernetes.io/cluster/demo"}}
	if diff := cmp.Diff(want, got[i], cmpopts.IgnoreFields(cluster.Instance{}, "Launched")); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
	if d := got[i].Launched.Sub(have.Launched); d > 0 || d < -1e9 {
		t.Errorf("launched %s, EC2 says %s", got[i].Launched, have.Launched)
	}
}

func TestTerminateSkipsIdsThatEC2DoesNotKnow(t *testing.T) {
	r := start(t, 10)
	var ids []string
	for _, token := range []string{"a", "b"} {
		ids = append(ids, r.launch(t, r.order("on-demand", "m5.large"), token))
	}
	if err := r.TerminateInstances(t.Context(), []string{ids[0], "i-0123456789abcdef0", ids[1]}); err != nil {
		t.Fatal(err)
	}
	for _, i := range r.Cloud.DescribedInstances() {
		if i.State != "shutting-down" {
			t.Errorf("instance %s is %s", i.ID, i.State)
		}
	}
	if err := r.TerminateInstances(t.Context(), ids); err != nil {
		t.Errorf("repeating it: %v", err)
	}
	if err := r.TerminateInstances(t.Context(), nil); err != nil {
		t.Errorf("nothing to end: %v", err)
	}
}

// One call that fails does not keep the other instances running.
func TestTerminateGoesOnAfterAFailure(t *testing.T) {
	r := start(t, 1)
	id := r.launch(t, r.order("on-demand", "m5.large"), token)
	many := make([]string, 500)
	for i := range many {
		many[i] = "i-0123456789abcdef0"
	}
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "TerminateInstances", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation", Times: 1})
	if err := r.TerminateInstances(t.Context(), append(many, id)); err == nil {
		t.Error("the failure of the first call is not told")
	}
	if s := r.Cloud.DescribedInstances()[0].State; s != "shutting-down" {
		t.Errorf("the instance of the second call is %s", s)
	}
}

func TestAnInstanceIsNamedUnlessTheUserNamedIt(t *testing.T) {
	r := start(t, 10)
	plain := r.launch(t, r.order("on-demand", "m5.large"), "a")
	o := r.order("on-demand", "m5.large")
	o.InstanceTags = append(o.InstanceTags, launch.Tag{Key: "Name", Value: "web"})
	named := r.launch(t, o, "b")
	for _, id := range []string{plain, named, plain, "i-0123456789abcdef0"} { // the last is gone, which is no error
		if err := r.TagInstance(t.Context(), id, "ip-10-0-0-4", claimName); err != nil {
			t.Fatal(err)
		}
	}
	if all := r.Cloud.DescribedInstances(); all[0].Tags["Name"] != "ip-10-0-0-4" || all[1].Tags["Name"] != "web" {
		t.Errorf("names %q and %q, want ip-10-0-0-4 and web", all[0].Tags["Name"], all[1].Tags["Name"])
	}
	if n := r.CallCounts()["ec2:CreateTags"]; n != 1 {
		t.Errorf("%d calls of CreateTags, want 1", n)
	}
}

// An instance that Karpenter launched learns its claim's name and the cluster's only now.
func TestAnInstanceLearnsTheTagsThatItLacks(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	o.InstanceTags = slices.DeleteFunc(slices.Clone(o.InstanceTags), func(g launch.Tag) bool { return g.Key == "karpenter.sh/nodeclaim" })
	id := r.launch(t, o, "a")
	if err := r.TagInstance(t.Context(), id, "ip-10-0-0-4", "default-abcde"); err != nil {
		t.Fatal(err)
	}
	if tags := r.Cloud.DescribedInstances()[0].Tags; tags["karpenter.sh/nodeclaim"] != "default-abcde" || tags["eks:eks-cluster-name"] != "demo" || tags["Name"] != "ip-10-0-0-4" {
		t.Errorf("tags %v", tags)
	}
}

// running waits until EC2 says that the instance runs.
func (r *rig) running(t *testing.T, id string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; {
		for _, i := range r.Cloud.DescribedInstances() {
			if i.ID == id && i.State == "running" {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not run", id)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
