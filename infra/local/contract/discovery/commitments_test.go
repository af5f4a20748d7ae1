package discovery

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/providers/discovery"
)

func (r *rig) committed(share float64) *discovery.CatalogRefresher {
	return r.market().WithCommitments(r.cfg, "demo", share)
}

// run starts instances outside any NodePool, with these tags.
func (r *rig) run(t *testing.T, typ types.InstanceType, n int32, spot bool, tags map[string]string) {
	t.Helper()
	var spec []types.Tag
	for k, v := range tags {
		spec = append(spec, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	name := aws.String(string(typ) + aws.ToString(spec[0].Value))
	data := &types.RequestLaunchTemplateData{ImageId: aws.String(r.image(t))}
	if _, err := r.finder.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: name, LaunchTemplateData: data}); err != nil {
		t.Fatal(err)
	}
	subnets, err := r.finder.EC2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("availability-zone"), Values: []string{"us-west-2a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	target := types.DefaultTargetCapacityTypeOnDemand
	if spot {
		target = types.DefaultTargetCapacityTypeSpot
	}
	out, err := r.finder.EC2.CreateFleet(t.Context(), &ec2.CreateFleetInput{Type: types.FleetTypeInstant,
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(n), DefaultTargetCapacityType: target},
		TagSpecifications:           []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: spec}},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: name, Version: aws.String("$Latest")},
			Overrides:                   []types.FleetLaunchTemplateOverridesRequest{{InstanceType: typ, SubnetId: subnets.Subnets[0].SubnetId}},
		}}})
	if err != nil || len(out.Errors) > 0 {
		t.Fatal(err, out)
	}
}

func (r *rig) image(t *testing.T) string {
	t.Helper()
	out, err := r.finder.EC2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("architecture"), Values: []string{"x86_64"}}}})
	if err != nil || len(out.Images) == 0 {
		t.Fatal(err, out)
	}
	return aws.ToString(out.Images[0].ImageId)
}

func TestCommitmentsAreStoredWithWhatUsesThemElsewhere(t *testing.T) {
	r := start(t)
	for _, x := range []awsemulator.ReservedInstances{
		{ID: "r1", Type: "m5.large", Count: 2}, {ID: "r2", Type: "m5.xlarge", Count: 1, Platform: "Linux/UNIX (Amazon VPC)"},
		{ID: "r3", Type: "m5.large", Count: 3, Zone: "us-west-2b"}, {ID: "r4", Type: "g5.xlarge", Count: 1}, {ID: "r5", Type: "m5.metal", Count: 1},
		{ID: "r6", Type: "c5.large", Count: 9, Platform: "Windows"}, {ID: "r7", Type: "c5.large", Count: 9, Tenancy: "dedicated"}, {ID: "r8", Type: "c5.large", Count: 9, State: "retired"},
	} {
		r.BuyReserved(x)
	}
	for _, p := range []awsemulator.SavingsPlan{
		{ID: "sp-all", CommitUSD: 2.5, RatesUSD: map[string]float64{"m5.large": 0.06, "c6g.large": 0.0412345}, WindowsUSD: map[string]float64{"m5.xlarge": 0.2}},
		{ID: "sp-m5", Family: "m5", CommitUSD: 1, RatesUSD: map[string]float64{"m5.large": 0.05}},
		{ID: "sp-far", Family: "m5", Region: "eu-west-1", CommitUSD: 1, RatesUSD: map[string]float64{"m5.large": 0.05}},
		{ID: "sp-old", State: "retired", CommitUSD: 1, RatesUSD: map[string]float64{"m5.large": 0.05}},
		{ID: "sp-ml", OtherKind: "SageMaker", CommitUSD: 1, RatesUSD: map[string]float64{"m5.large": 0.05}},
	} {
		r.BuyPlan(p)
	}
	r.run(t, "m5.large", 2, false, map[string]string{"Name": "batch"})
	r.run(t, "c5.large", 1, true, map[string]string{"Name": "spot"})
	r.run(t, "r5.large", 1, false, map[string]string{"eks:eks-cluster-name": "demo", "karpenter.sh/nodepool": "default"})
	r.run(t, "m5.2xlarge", 1, false, map[string]string{"eks:eks-cluster-name": "demo"})
	r.ReserveCapacity(awsemulator.Reservation{Type: "m5.large", Zone: "us-west-2c", Count: 4})
	r.ReserveCapacity(awsemulator.Reservation{Type: "p5.48xlarge", Zone: "us-west-2c", Count: 1, Block: true, Ends: r.now.Add(time.Hour)})
	r.ForgetCalls()

	if _, err := r.committed(0.5).Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := r.store().ReadStored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []instancetypes.Commitment{
		{ID: "ri/g5.xlarge", Type: "g5.xlarge", Room: 1},
		{ID: "ri/m5", Type: "m5.large", Flexible: true, Room: 2*16 + 32},
		{ID: "ri/m5.large/us-west-2b", Type: "m5.large", Zone: "us-west-2b", Room: 3},
		{ID: "ri/m5.metal", Type: "m5.metal", Room: 1},
		{ID: "sp-all", Room: 1_250_000, Rates: map[string]float64{"m5.large": 0.06, "c6g.large": 0.0412345}},
		{ID: "sp-m5", Room: 500_000, Rates: map[string]float64{"m5.large": 0.05}},
	}
	if diff := cmp.Diff(want, got.Commitments); diff != "" {
		t.Errorf("commitments (-want +got):\n%s", diff)
	}
	running := []instancetypes.RunningCount{{Type: "m5.2xlarge", Zone: "us-west-2a", Count: 1}, {Type: "m5.large", Zone: "us-west-2a", Count: 2}, {Type: "m5.large", Zone: "us-west-2c", Count: 4}}
	if diff := cmp.Diff(running, got.Elsewhere); diff != "" {
		t.Errorf("elsewhere (-want +got):\n%s", diff)
	}
	actions := []string{"savingsplans:DescribeSavingsPlans", "savingsplans:DescribeSavingsPlanRates", "ec2:DescribeReservedInstances", "ec2:DescribeInstances"}
	first := map[string]int{actions[0]: 1, actions[1]: 2, actions[2]: 1, actions[3]: 1}
	if diff := cmp.Diff(first, r.made(actions...)); diff != "" {
		t.Errorf("first refresh (-want +got):\n%s", diff)
	}

	r.now = r.now.Add(12*time.Hour - time.Second)
	r.refreshWith(t, r.committed(1))
	if diff := cmp.Diff(map[string]int{actions[0]: 1, actions[2]: 1, actions[3]: 1}, r.made(actions...)); diff != "" {
		t.Errorf("the rates of known plans are asked for again (-want +got):\n%s", diff)
	}
	r.now = r.now.Add(time.Second)
	r.refreshWith(t, r.committed(1))
	if diff := cmp.Diff(first, r.made(actions...)); diff != "" {
		t.Errorf("after 12 hours (-want +got):\n%s", diff)
	}

	r.AddFault(awsemulator.Fault{Service: "savingsplans", Action: "DescribeSavingsPlans", Kind: awsemulator.FailBefore, Code: "AccessDeniedException", Times: 9})
	_, err = r.committed(1).Refresh(t.Context())
	if err == nil || awserrors.CodeOf(err) != "AccessDeniedException" {
		t.Errorf("a refusal is not told: %v", err)
	}
	r.ClearFaults()
	if got, err = r.store().ReadStored(t.Context()); err != nil || len(got.Commitments) != 6 {
		t.Errorf("what was known before is not kept: %v, %v", got.Commitments, err)
	}
	r.refresh(t)
	if got, err = r.store().ReadStored(t.Context()); err != nil || got.Commitments != nil || got.Elsewhere != nil {
		t.Errorf("switched off, they are still there: %v, %v", got.Commitments, err)
	}
}

func (r *rig) refreshWith(t *testing.T, m *discovery.CatalogRefresher) {
	t.Helper()
	if _, err := m.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnIsolatedMarketReadsReservedInstancesOnly(t *testing.T) {
	r := start(t)
	r.BuyReserved(awsemulator.ReservedInstances{ID: "r1", Type: "m5.large", Count: 2})
	r.BuyPlan(awsemulator.SavingsPlan{ID: "sp", CommitUSD: 1, RatesUSD: map[string]float64{"m5.large": 0.05}})
	r.refreshWith(t, isolated(r).WithCommitments(r.cfg, "demo", 1))
	if n := r.CallCounts()["savingsplans:DescribeSavingsPlans"]; n != 0 {
		t.Errorf("%d calls of Savings Plans", n)
	}
	got, err := r.store().ReadStored(t.Context())
	if diff := cmp.Diff([]instancetypes.Commitment{{ID: "ri/m5", Type: "m5.large", Flexible: true, Room: 32}}, got.Commitments); diff != "" || err != nil {
		t.Errorf("commitments (-want +got):\n%s%v", diff, err)
	}
}
