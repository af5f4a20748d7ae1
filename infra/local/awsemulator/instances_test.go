package awsemulator_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
)

// told is the part of an event that tests look at.
type told struct {
	Version, ID, Source, Account, Region, Time string
	Type                                       string `json:"detail-type"`
	Resources                                  []string
	Detail                                     map[string]string
}

func (e told) String() string {
	return fmt.Sprintf("%s %s %s", e.Type, e.Resources[0][:len("arn:aws:ec2:us-west-2b")], e.Detail["state"]+e.Detail["instance-action"])
}

// listen returns the option that fills the channel with events.
func listen(t *testing.T, o *awsemulator.Options) <-chan told {
	t.Helper()
	events := make(chan told, 1000)
	o.Events = func(text []byte) {
		var e told
		if err := json.Unmarshal(text, &e); err != nil {
			t.Errorf("event %s: %v", text, err)
		}
		events <- e
	}
	return events
}

func TestASpotInstanceIsWarnedAndReclaimed(t *testing.T) {
	o := awsemulator.Options{SpotNotice: time.Millisecond}
	events := listen(t, &o)
	r := start(t, o)
	r.template(t, "nodes-v1")
	id := r.launch(t, r.fleet(t, "spot", "c5.large")) // cheapest in us-west-2b
	var got []string
	for len(got) < 2 {
		got = append(got, next(t, events).String())
	}
	if err := r.InterruptSpot(id, true); err != nil {
		t.Fatal(err)
	}
	for len(got) < 6 {
		e := next(t, events)
		got = append(got, e.String())
		if e.Detail["instance-id"] != id || e.Version != "0" || e.Source != "aws.ec2" || e.Account != account || e.Region != "us-west-2" {
			t.Errorf("envelope %+v", e)
		}
	}
	want := []string{
		"EC2 Instance State-change Notification arn:aws:ec2:us-west-2: pending",
		"EC2 Instance State-change Notification arn:aws:ec2:us-west-2: running",
		"EC2 Instance Rebalance Recommendation arn:aws:ec2:us-west-2b ",
		"EC2 Spot Instance Interruption Warning arn:aws:ec2:us-west-2b terminate",
		"EC2 Instance State-change Notification arn:aws:ec2:us-west-2: shutting-down",
		"EC2 Instance State-change Notification arn:aws:ec2:us-west-2: terminated",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	out := must(r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}))(t)
	if i := out.Reservations[0].Instances[0]; i.State.Name != "terminated" || *i.StateReason.Code != "Server.SpotInstanceTermination" {
		t.Errorf("the instance is %s for %s", i.State.Name, *i.StateReason.Code)
	}
	wantCode(t, r.InterruptSpot(id, false), "IncorrectInstanceState")
}

func TestAnInstanceIsWarnedOnce(t *testing.T) {
	o := awsemulator.Options{}
	events := listen(t, &o)
	r := start(t, o)
	r.template(t, "nodes-v1")
	id := r.launch(t, r.fleet(t, "spot", "c5.large"))
	for range 2 {
		if err := r.InterruptSpot(id, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.KillInstance(id); err != nil {
		t.Fatal(err)
	}
	warnings := 0
	for e := next(t, events); e.Detail["state"] != "shutting-down"; e = next(t, events) {
		if e.Detail["instance-action"] == "terminate" {
			warnings++
		}
	}
	if warnings != 1 {
		t.Errorf("%d warnings, want 1", warnings)
	}
}

func TestInstancesTakeTheirTimeToStartAndToStop(t *testing.T) {
	r := start(t, awsemulator.Options{PendingFor: time.Hour, ShutdownFor: time.Hour})
	r.template(t, "nodes-v1")
	before := r.free(t)
	id := r.launch(t, r.fleet(t, "on-demand", "m5.large"))
	// only running instances have a status, unless all are asked for
	for all, want := range map[bool]int{false: 0, true: 1} {
		out := must(r.ec2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{IncludeAllInstances: aws.Bool(all)}))(t)
		if len(out.InstanceStatuses) != want {
			t.Errorf("%d statuses with all=%t, want %d", len(out.InstanceStatuses), all, want)
		}
	}
	state := func() types.InstanceStateName {
		out := must(r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}))(t)
		return out.Reservations[0].Instances[0].State.Name
	}
	if got := state(); got != "pending" {
		t.Errorf("after launch: %s", got)
	}
	if got := r.free(t); got != before-1 {
		t.Errorf("%d addresses are free, want one less than %d", got, before)
	}
	for range 2 { // the second call changes nothing
		out := must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}}))(t)
		if out.TerminatingInstances[0].CurrentState.Name != "shutting-down" || *out.TerminatingInstances[0].CurrentState.Code != 32 {
			t.Errorf("terminate says %v", out.TerminatingInstances[0].CurrentState)
		}
	}
	if got := state(); got != "shutting-down" {
		t.Errorf("after terminate: %s", got)
	}
}

// free counts the free addresses of all subnets.
func (r *rig) free(t *testing.T) (n int) {
	t.Helper()
	for _, s := range must(r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}))(t).Subnets {
		n += int(*s.AvailableIpAddressCount)
	}
	return n
}

func TestInstancesAreFoundByTagStateAndPage(t *testing.T) {
	r := start(t, awsemulator.Options{PendingFor: time.Hour})
	r.template(t, "nodes-v1")
	in := r.fleet(t, "on-demand", "m5.large")
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(23)
	ids := must(r.ec2.CreateFleet(t.Context(), in))(t).Instances[0].InstanceIds
	must(r.ec2.CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: ids[:7], Tags: []types.Tag{tag("karpenter.sh/nodeclaim", "default-abcde")},
	}))(t)
	count := func(size int32, filters ...types.Filter) (instances, pages int) {
		p := ec2.NewDescribeInstancesPaginator(r.ec2, &ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(size)})
		for p.HasMorePages() {
			for _, reservation := range must(p.NextPage(t.Context()))(t).Reservations {
				instances += len(reservation.Instances)
			}
			pages++
		}
		return instances, pages
	}
	by := func(name string, values ...string) types.Filter {
		return types.Filter{Name: aws.String(name), Values: values}
	}
	for _, c := range []struct {
		size             int32
		filters          []types.Filter
		instances, pages int
	}{
		{10, nil, 23, 3},
		{1000, []types.Filter{by("tag-key", "karpenter.sh/nodeclaim")}, 7, 1},
		{5, []types.Filter{by("tag:karpenter.sh/nodepool", "def*"), by("instance-state-name", "pending", "running")}, 23, 5},
		{5, []types.Filter{by("instance-state-name", "terminated")}, 0, 1},
	} {
		if n, pages := count(c.size, c.filters...); n != c.instances || pages != c.pages {
			t.Errorf("%v gave %d instances on %d pages, want %d on %d", c.filters, n, pages, c.instances, c.pages)
		}
	}
	_, err := r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{by("colour", "red")}})
	wantCode(t, err, "InvalidParameterValue")
}

func TestUnknownIDsAreRefusedAndNothingIsDone(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	ids := []string{r.launch(t, r.fleet(t, "on-demand", "m5.large")), "i-0123456789abcdef0"}
	_, err := r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: ids})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	_, err = r.ec2.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: ids, Tags: []types.Tag{tag("a", "b")}})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	_, err = r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: ids})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	i := r.DescribedInstances()[0]
	if i.Tags["a"] != "" || i.State == "shutting-down" || i.State == "terminated" {
		t.Errorf("the known instance was touched: %s, tags %v", i.State, i.Tags)
	}
	_, err = r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{DryRun: aws.Bool(true)})
	wantCode(t, err, "DryRunOperation")
}

func TestLaunchTemplates(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	ctx := t.Context()
	_, err := r.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("nodes-v1"), LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String("ami-1")},
	})
	wantCode(t, err, "InvalidLaunchTemplateName.AlreadyExistsException")
	found := must(r.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{
		Filters: []types.Filter{{Name: aws.String("tag:eks:eks-cluster-name"), Values: []string{"demo"}}},
	}))(t)
	if len(found.LaunchTemplates) != 1 || *found.LaunchTemplates[0].LaunchTemplateName != "nodes-v1" {
		t.Fatalf("found %v", found.LaunchTemplates)
	}
	versions := must(r.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateName: aws.String("nodes-v1"), Versions: []string{"$Latest"},
	}))(t)
	data := versions.LaunchTemplateVersions[0].LaunchTemplateData
	if *data.UserData != "aGVsbG8gbm9kZQ==" || len(data.NetworkInterfaces[0].Groups) != 1 || *data.MetadataOptions.HttpPutResponseHopLimit != 1 || *data.TagSpecifications[0].Tags[0].Value != "template" {
		t.Errorf("data %+v", data)
	}
	must(r.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("nodes-v1")}))(t)
	_, err = r.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: found.LaunchTemplates[0].LaunchTemplateId})
	wantCode(t, err, "InvalidLaunchTemplateId.NotFound")
	_, err = r.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"nodes-v1"}})
	wantCode(t, err, "InvalidLaunchTemplateName.NotFoundException")
}

func TestRunInstancesChecksBeforeADryRunSucceeds(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	in := &ec2.RunInstancesInput{
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large", DryRun: aws.Bool(true),
		LaunchTemplate:    &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("nodes-v1"), Version: aws.String("$Latest")},
		NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: aws.String(r.subnets(t)["us-west-2a"])}},
	}
	_, err := r.ec2.RunInstances(t.Context(), in)
	wantCode(t, err, "DryRunOperation")
	in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("none")}
	_, err = r.ec2.RunInstances(t.Context(), in)
	wantCode(t, err, "InvalidParameterValue")
	in.IamInstanceProfile, in.DryRun = nil, nil
	out := must(r.ec2.RunInstances(t.Context(), in))(t)
	if len(out.Instances) != 1 || out.Instances[0].InstanceType != "m5.large" {
		t.Errorf("instances %v", out.Instances)
	}
}

func TestInstanceStatus(t *testing.T) {
	states := make(chan awsemulator.Instance, 10)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }})
	r.template(t, "nodes-v1")
	id := r.launch(t, r.fleet(t, "on-demand", "m5.large"))
	for next(t, states).State != "running" {
	}
	since := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	if err := r.ImpairInstance(id, true, since); err != nil {
		t.Fatal(err)
	}
	if err := r.ScheduleEvent(id, "instance-retirement", since); err != nil {
		t.Fatal(err)
	}
	for filter, value := range map[string]string{
		"system-status.status": "impaired", "event.code": "instance-retirement", "instance-status.status": "ok",
	} {
		out := must(r.ec2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{
			Filters: []types.Filter{{Name: aws.String(filter), Values: []string{value}}},
		}))(t)
		if len(out.InstanceStatuses) != 1 || !out.InstanceStatuses[0].SystemStatus.Details[0].ImpairedSince.Equal(since) {
			t.Errorf("%s=%s gave %v", filter, value, out.InstanceStatuses)
		}
	}
}

// An event that is over is told of for a while, with that before its description, and found by its code as before.
func TestScheduledEventsOfAnInstance(t *testing.T) {
	states := make(chan awsemulator.Instance, 10)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }})
	r.template(t, "nodes-v1")
	id := r.launch(t, r.fleet(t, "on-demand", "m5.large"))
	for next(t, states).State != "running" {
	}
	date := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	for _, code := range []string{"instance-stop", "system-reboot"} {
		if err := r.ScheduleEvent(id, code, date); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.CloseEvents(id, "system-reboot", "Completed"); err != nil {
		t.Fatal(err)
	}
	for _, in := range []*ec2.DescribeInstanceStatusInput{
		{InstanceIds: []string{id}},
		{Filters: []types.Filter{{Name: aws.String("event.code"), Values: []string{"system-reboot"}}}},
		{Filters: []types.Filter{{Name: aws.String("event.description"), Values: []string{"[Completed]*"}}}},
		{Filters: []types.Filter{{Name: aws.String("event.not-before"), Values: []string{"2026-11-20T*"}}}},
	} {
		out := must(r.ec2.DescribeInstanceStatus(t.Context(), in))(t)
		if len(out.InstanceStatuses) != 1 || len(out.InstanceStatuses[0].Events) != 2 {
			t.Fatalf("statuses %+v", out.InstanceStatuses)
		}
		stop, reboot := out.InstanceStatuses[0].Events[0], out.InstanceStatuses[0].Events[1]
		if stop.Code != "instance-stop" || *stop.Description != "The instance is scheduled for instance-stop" || !stop.NotBefore.Equal(date) ||
			*reboot.Description != "[Completed] The instance is scheduled for system-reboot" || *stop.InstanceEventId == *reboot.InstanceEventId {
			t.Errorf("events %+v", out.InstanceStatuses[0].Events)
		}
	}
	_, err := r.ec2.DescribeInstanceStatus(t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: slices.Repeat([]string{id}, 101)})
	wantCode(t, err, "InvalidParameterValue")
}
