package ec2_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"joiner.sh/pkg/nodeclaim/launch"
)

func TestATemplateHoldsAllThatTheOrderSays(t *testing.T) {
	r := start(t, 1)
	o := r.order("spot", "p5.48xlarge") // has network cards for each form of an interface
	yes := true
	w := &o.Templates[0]
	w.Monitoring, w.NestedVirtual, w.Enclave = true, "enabled", true
	w.BlockDevices = []launch.BlockDevice{
		{Device: "/dev/xvda", SizeGiB: 20, VolumeType: "gp3", IOPS: 4000, Throughput: 250, Encrypted: &yes, DeleteOnTermination: &yes},
		{Device: "/dev/xvdb", SnapshotID: "snap-1", KMSKeyID: "key-1", VolumeInitializationRate: 100},
	}
	w.NetworkInterfaces[0].AssociatePublicIP, w.NetworkInterfaces[0].IPv4PrefixCount = &yes, 2
	w.NetworkInterfaces[0].ConnectionTracking = &launch.ConnectionTracking{TCPEstablishedSec: 100, UDPSec: 40}
	w.NetworkInterfaces = append(w.NetworkInterfaces, launch.NetworkInterface{CardIndex: 1, DeviceIndex: 1, Type: "efa-only", SecurityGroupIDs: []string{r.group}},
		launch.NetworkInterface{CardIndex: 2, DeviceIndex: 1, PrimaryIPv6: true, IPv6AddressCount: 1})
	r.launch(t, o, token)

	out, err := r.ec2.DescribeLaunchTemplateVersions(t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("joiner/demo/1"), Versions: []string{"$Latest"}})
	if err != nil {
		t.Fatal(err)
	}
	tags := []types.Tag{tag("eks:eks-cluster-name", "demo"), tag("karpenter.k8s.aws/ec2nodeclass", "default"), tag("karpenter.sh/nodepool", "default"), tag("kubernetes.io/cluster/demo", "owned")}
	i32 := aws.Int32
	want := &types.ResponseLaunchTemplateData{
		ImageId: aws.String(r.image), UserData: aws.String("aGVsbG8gbm9kZQ=="),
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecification{Name: aws.String("nodes")},
		Monitoring:         &types.LaunchTemplatesMonitoring{Enabled: &yes},
		CpuOptions:         &types.LaunchTemplateCpuOptions{NestedVirtualization: "enabled"},
		EnclaveOptions:     &types.LaunchTemplateEnclaveOptions{Enabled: &yes},
		Placement:          &types.LaunchTemplatePlacement{Tenancy: "default"},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptions{HttpEndpoint: "enabled", HttpProtocolIpv6: "disabled",
			HttpPutResponseHopLimit: i32(1), HttpTokens: "required", InstanceMetadataTags: "disabled"},
		CapacityReservationSpecification: &types.LaunchTemplateCapacityReservationSpecificationResponse{CapacityReservationPreference: "none"},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMapping{
			{DeviceName: aws.String("/dev/xvda"), Ebs: &types.LaunchTemplateEbsBlockDevice{VolumeSize: i32(20), VolumeType: "gp3", Iops: i32(4000), Throughput: i32(250), Encrypted: &yes, DeleteOnTermination: &yes}},
			{DeviceName: aws.String("/dev/xvdb"), Ebs: &types.LaunchTemplateEbsBlockDevice{SnapshotId: aws.String("snap-1"), KmsKeyId: aws.String("key-1"), VolumeInitializationRate: i32(100)}},
		},
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecification{
			{NetworkCardIndex: i32(0), DeviceIndex: i32(0), Groups: []string{r.group}, AssociatePublicIpAddress: &yes, Ipv4PrefixCount: i32(2),
				ConnectionTrackingSpecification: &types.ConnectionTrackingSpecification{TcpEstablishedTimeout: i32(100), UdpTimeout: i32(40)}},
			{NetworkCardIndex: i32(1), DeviceIndex: i32(1), InterfaceType: aws.String("efa-only"), Groups: []string{r.group}},
			{NetworkCardIndex: i32(2), DeviceIndex: i32(1), PrimaryIpv6: &yes, Ipv6AddressCount: i32(1)},
		},
		TagSpecifications: []types.LaunchTemplateTagSpecification{{ResourceType: "network-interface", Tags: tags}, {ResourceType: "spot-instances-request", Tags: tags}},
	}
	diff := cmp.Diff(want, out.LaunchTemplateVersions[0].LaunchTemplateData, ignoreSDK(), sortTags(), cmpopts.EquateEmpty())
	if diff != "" {
		t.Errorf("template (-want +got):\n%s", diff)
	}
	all := r.templates(t)
	if len(all) != 1 {
		t.Fatalf("%d templates, want 1", len(all))
	}
	if diff := cmp.Diff(tags, all[0].Tags, ignoreSDK(), sortTags()); diff != "" {
		t.Errorf("tags of the template itself (-want +got):\n%s", diff)
	}
}

func tag(k, v string) types.Tag { return types.Tag{Key: aws.String(k), Value: aws.String(v)} }

func sortTags() cmp.Option {
	return cmpopts.SortSlices(func(a, b types.Tag) bool { return *a.Key < *b.Key })
}

// ignoreSDK leaves out the marker that the SDK embeds in each of its types.
func ignoreSDK() cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".noSmithyDocumentSerde" }, cmp.Ignore())
}

// templates are all of the account.
func (r *rig) templates(t *testing.T) []types.LaunchTemplate {
	t.Helper()
	out, err := r.ec2.DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return out.LaunchTemplates
}

func TestATemplateIsMadeOnceAndAnewWhenItIsGone(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	for i := range 3 {
		r.launch(t, o, fmt.Sprint(claimUID, "-", i))
	}
	if n := r.CallCounts()["ec2:CreateLaunchTemplate"]; n != 1 {
		t.Errorf("%d templates made for three launches, want 1", n)
	}
	r.deleteTemplate(t, "joiner/demo/1") // by the sweep, between our look and CreateFleet
	r.launch(t, o, claimUID+"-3")
	if n := r.CallCounts()["ec2:CreateLaunchTemplate"]; n != 2 {
		t.Errorf("%d templates made, want a second one", n)
	}
}

func TestParallelLaunchesMakeATemplateOnce(t *testing.T) {
	r := start(t, 5)
	o := r.order("on-demand", "m5.large")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, _, err := r.LaunchInstances(t.Context(), o, fmt.Sprint(claimUID, "-", i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	r.count(t, 8)
	if n := r.CallCounts()["ec2:CreateLaunchTemplate"]; n != 1 {
		t.Errorf("%d templates made, want 1", n)
	}
}

// Another process may make the template between our look and our making it.
func TestATemplateThatSomebodyElseMadeMeanwhileIsUsed(t *testing.T) {
	r := start(t, 1)
	o := r.order("on-demand", "m5.large")
	r.launch(t, o, token)
	other := start2(t, r)
	if id := other.launch(t, o, claimUID+"-1"); id == "" {
		t.Error("no instance")
	}
	if n := r.CallCounts()["ec2:CreateLaunchTemplate"]; n != 1 {
		t.Errorf("%d templates made, want 1", n)
	}
}

func TestASweepDeletesOnlyOldTemplatesOfOurs(t *testing.T) {
	r := start(t, 1)
	r.launch(t, r.order("on-demand", "m5.large"), token)
	foreign := []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: []types.Tag{tag("eks:eks-cluster-name", "demo")}}}
	for name, tags := range map[string][]types.TagSpecification{"karpenter.k8s.aws/17": foreign, "joiner/demo/untagged": nil} {
		if _, err := r.ec2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), TagSpecifications: tags,
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(r.image)}}); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := r.SweepTemplates(t.Context(), time.Hour); n != 0 || err != nil {
		t.Errorf("deleted %d new templates, %v", n, err)
	}
	r.Now = func() time.Time { return time.Now().Add(61 * time.Minute) }
	if n, err := r.SweepTemplates(t.Context(), time.Hour); n != 1 || err != nil {
		t.Errorf("deleted %d templates, %v, want ours", n, err)
	}
	for _, left := range r.templates(t) {
		if *left.LaunchTemplateName == "joiner/demo/1" {
			t.Error("our old template is still there")
		}
	}
	if n := len(r.templates(t)); n != 2 {
		t.Errorf("%d templates left, want the two that are not ours", n)
	}
}
