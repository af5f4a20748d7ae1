package provider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	sdk "github.com/aws/karpenter-provider-aws/pkg/aws"
	peeroptions "github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/launchtemplate"
	"github.com/aws/karpenter-provider-aws/pkg/providers/placementgroup"
	"github.com/aws/karpenter-provider-aws/pkg/utils"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/patrickmn/go-cache"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/operator/options"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

// templateCase is a launch whose templates are compared.
type templateCase struct {
	name         string
	spec         string // of the EC2NodeClass
	region       string
	dns          string // address of the cluster's DNS; empty while it is not known
	capacityType string
	reservation  *instancetypes.Reservation // of every type, with capacity type reserved
	tenancy      string
	partition    string // that the claim requires of the class's placement group
	efa          bool   // the claim requests it
}

const (
	ipv4DNS = "172.20.0.10"
	ipv6DNS = "fd00::10"
)

// classSpecs are node classes, each with something that goes into a template.
func classSpecs() map[string]string {
	out := map[string]string{
		"user data":                "amiFamily: AL2023\nuserData: \"#!/bin/bash\\necho hello\\n\"",
		"tags":                     "amiFamily: AL2023\ntags: {team: a, cost: '7'}",
		"monitoring":               "amiFamily: AL2023\ndetailedMonitoring: true",
		"public address":           "amiFamily: AL2023\nassociatePublicIPAddress: true",
		"no public address":        "amiFamily: AL2023\nassociatePublicIPAddress: false",
		"RAID0":                    "amiFamily: AL2023\ninstanceStorePolicy: RAID0",
		"RAID0 on Bottlerocket":    "amiFamily: Bottlerocket\ninstanceStorePolicy: RAID0",
		"metadata":                 "amiFamily: AL2023\nmetadataOptions: {httpEndpoint: disabled, httpProtocolIPv6: enabled, httpPutResponseHopLimit: 3, httpTokens: optional}",
		"default metadata":         "amiFamily: AL2023\nmetadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}",
		"nested virtualization":    "amiFamily: AL2023\ncpuOptions: {nestedVirtualization: enabled}",
		"connection tracking":      "amiFamily: AL2023\nconnectionTracking: {tcpEstablishedTimeout: 350, udpStreamTimeout: 60, udpTimeout: 30}",
		"part of it":               "amiFamily: AL2023\nconnectionTracking: {udpTimeout: 30}",
		"interfaces":               "amiFamily: AL2023\n" + interfacesOfTwoCards,
		"interfaces with tracking": "amiFamily: AL2023\nconnectionTracking: {udpTimeout: 30}\nassociatePublicIPAddress: true\nipPrefixCount: 2\n" + interfacesOfTwoCards,
		"prefixes":                 "amiFamily: AL2023\nipPrefixCount: 4",
		"kubelet":                  "amiFamily: AL2023\nkubelet: {maxPods: 42, clusterDNS: [10.0.0.53], kubeReserved: {cpu: 100m}, evictionHard: {memory.available: 5%}}",
		"kubelet on Bottlerocket":  "amiFamily: Bottlerocket\nkubelet: {maxPods: 42, clusterDNS: [10.0.0.53], systemReserved: {memory: 100Mi}}",
		"volumes": "amiFamily: AL2023\nblockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 100G, volumeType: gp3, iops: 4000, throughput: 200, encrypted: true, deleteOnTermination: true}}, " +
			"{deviceName: /dev/b, ebs: {snapshotID: snap-1, kmsKeyID: key, encrypted: false, volumeInitializationRate: 100}}]",
		"a placement group": "amiFamily: AL2023\nplacementGroupSelector: {name: pg}",
	}
	for _, family := range []string{"AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"} {
		out["plain "+family] = "amiFamily: " + family
	}
	return out
}

// templateCases are every class with every way to launch.
func templateCases() []templateCase {
	ways := []templateCase{{name: "on-demand"}, {name: "spot", capacityType: instancetypes.Spot}, {name: "EFA", efa: true}, {name: "IPv6", dns: ipv6DNS},
		{name: "EFA and IPv6", efa: true, dns: ipv6DNS, capacityType: instancetypes.Spot}, {name: "no DNS", dns: "none"}, {name: "dedicated", tenancy: "dedicated"}, {name: "both tenancies", tenancy: "both"},
		{name: "an isolated region", region: "us-iso-east-1"}, {name: "partition", partition: "2"},
		{name: "a reservation", capacityType: instancetypes.Reserved, reservation: &instancetypes.Reservation{ID: "cr-1", Kind: "default", Remaining: 1}},
		{name: "an interruptible reservation", capacityType: instancetypes.Reserved, reservation: &instancetypes.Reservation{ID: "cr-1", Kind: "default", Interruptible: true, Remaining: 1}},
		{name: "a capacity block", capacityType: instancetypes.Reserved, reservation: &instancetypes.Reservation{ID: "cr-1", Kind: instancetypes.CapacityBlock, Remaining: 1}}}
	var out []templateCase
	for class, spec := range classSpecs() {
		for _, w := range ways {
			if w.partition != "" && !strings.Contains(spec, "placementGroup") {
				continue
			}
			w.name, w.spec = class+", "+w.name, spec
			if w.capacityType == "" {
				w.capacityType = instancetypes.OnDemand
			}
			if w.region == "" {
				w.region = "us-west-2"
			}
			switch w.dns {
			case "":
				w.dns = ipv4DNS
			case "none":
				w.dns = ""
			}
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b templateCase) int { return strings.Compare(a.name, b.name) })
	return out
}

func (c templateCase) class() string {
	return "metadata: {name: default}\nspec:\n  " + strings.ReplaceAll(c.spec, "\n", "\n  ") + `
status:
  instanceProfile: profile
  subnets: [{id: subnet-a, zone: a, zoneID: r-1}]
  securityGroups: [{id: sg-1}, {id: sg-2}]
  amis: [{id: ami-amd64, name: bottlerocket-aws-k8s-1.36-x86_64-v1.40.0, requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]},
    {id: ami-arm64, name: bottlerocket-aws-k8s-1.36-aarch64-v1.40.0, requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}]
`
}

func (c templateCase) cidr() string {
	if c.dns == ipv6DNS {
		return "fd00::/108"
	}
	return "172.20.0.0/16"
}

// types differ in what goes into a template: the image, how many pods and how many EFA interfaces.
func (c templateCase) types() []instancetypes.Type {
	kinds := []struct {
		name, arch string
		pods, efa  int64
	}{{"m5.large", "amd64", 29, 0}, {"p5.48xlarge", "amd64", 100, 4}, {"m7g.large", "arm64", 29, 1}}
	if c.reservation != nil {
		kinds = kinds[:1]
	}
	var out []instancetypes.Type
	for i, k := range kinds {
		if c.efa && k.efa == 0 {
			continue // it has no room for the claim
		}
		if strings.Contains(c.spec, "maxPods: 42") {
			k.pods = 42
		}
		t := instancetypes.Type{Name: k.name, ImageID: "ami-" + k.arch, MaxPods: k.pods, Capacity: resources.List{CPU: 2_000, Memory: 8 << 30, Pods: k.pods}.With(instancetypes.ResourceEFA, k.efa),
			Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelType, k.name), requirements.Of(corev1.LabelArchStable, k.arch)),
			Offerings:    []instancetypes.Offering{{OfferingKey: instancetypes.OfferingKey{CapacityType: c.capacityType, Type: k.name, Zone: "a"}, Price: float64(i + 1), Available: true, Reservation: c.reservation}}}
		t.Allocatable = t.Capacity
		for card := range k.efa {
			t.EFADevices = append(t.EFADevices, instancetypes.NetworkDevice{Card: int32(card), Device: int32(min(card, 1)), EFA: true})
		}
		out = append(out, t)
	}
	return out
}

func (c templateCase) claim() cluster.Claim {
	var reqs []requirements.Requirement
	if c.tenancy == "dedicated" {
		reqs = append(reqs, requirements.Of(instancetypes.LabelTenancy, "dedicated"))
	}
	if c.tenancy == "both" {
		reqs = append(reqs, requirements.Of(instancetypes.LabelTenancy, "dedicated", "default"))
	}
	if c.partition != "" {
		reqs = append(reqs, requirements.Of(instancetypes.LabelPartition, c.partition, "3"))
	}
	out := cluster.Claim{Name: "claim", UID: "uid", Pool: "general", Class: "default", Requirements: requirements.NewSet(reqs...),
		Labels: map[string]string{karpv1.NodePoolLabelKey: "general", "team": "a", "node-restriction.kubernetes.io/x": "y"},
		Taints: []cluster.Taint{{Key: "a", Value: "b", Effect: "NoSchedule"}}, StartupTaints: []cluster.Taint{{Key: karpv1.UnregisteredTaintKey, Effect: "NoExecute"}}}
	// Joiner's nodes have them from their boot on, Karpenter's from their registration
	if r := c.reservation; r != nil {
		maps.Copy(out.Labels, map[string]string{instancetypes.LabelReservationID: r.ID, instancetypes.LabelReservation: r.Kind, instancetypes.LabelInterruptible: strconv.FormatBool(r.Interruptible)})
	}
	if c.efa {
		out.Requests = resources.List{}.With(instancetypes.ResourceEFA, 1)
	}
	return out
}

// ours is what Joiner puts into the template of each type.
func (c templateCase) ours(t *testing.T) map[string]string {
	class := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(c.class()), class); err != nil {
		t.Fatal(err)
	}
	in := launch.Input{Claim: c.claim(), Class: class, Resolved: instancetypes.Class{Name: "default", Ready: true}, Types: c.types(),
		Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: c.dns, ServiceCIDR: c.cidr(), Region: c.region}}
	if class.Spec.PlacementGroupSelector != nil {
		in.Resolved.Placement = &instancetypes.Placement{ID: "pg-1", Name: "pg", Strategy: "partition", Partitions: 7}
	}
	o, err := launch.ChooseOrder(in)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range o.Templates {
		for _, v := range m.Overrides {
			out[v.Type] = plainTemplate(t, class.ResolvedAMIFamily(), fleet.TemplateData(m))
		}
	}
	return out
}

// theirs is what Karpenter puts into the template of each type.
func (c templateCase) theirs(t *testing.T) map[string]string {
	class := &peerv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(c.class()), class); err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", Labels: c.claim().Labels}}
	for _, k := range c.claim().Taints {
		claim.Spec.Taints = append(claim.Spec.Taints, corev1.Taint{Key: k.Key, Value: k.Value, Effect: corev1.TaintEffect(k.Effect)})
	}
	for _, k := range c.claim().StartupTaints {
		claim.Spec.StartupTaints = append(claim.Spec.StartupTaints, corev1.Taint{Key: k.Key, Value: k.Value, Effect: corev1.TaintEffect(k.Effect)})
	}
	for _, r := range c.claim().Requirements.All() {
		claim.Spec.Requirements = append(claim.Spec.Requirements, karpv1.NodeSelectorRequirementWithMinValues{Key: r.Key, Operator: corev1.NodeSelectorOperator(r.Operator()), Values: r.Values})
	}
	claim.Spec.Resources.Requests = peerAmounts(c.claim().Requests)
	var all []*cloudprovider.InstanceType
	for _, k := range c.types() {
		all = append(all, peerOf(k))
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ctx = options.ToContext(ctx, &options.Options{FeatureGates: options.FeatureGates{ReservedCapacity: true}})
	ctx = peeroptions.ToContext(ctx, &peeroptions.Options{ClusterName: "demo"})
	resolver, err := imageResolver(c.region)
	if err != nil {
		t.Fatal(err)
	}
	made, ca, cidr := &madeTemplates{}, "Q0E=", c.cidr()
	p := launchtemplate.NewDefaultProvider(ctx, cache.New(time.Hour, 0), made, nil, resolver, nil, nil, placement{}, &ca, nil, net.ParseIP(c.dns), "https://api")
	p.ClusterCIDR.Store(&cidr)
	tags, err := utils.GetTags(class, claim, "demo")
	if err != nil {
		t.Fatal(err)
	}
	tenancy := "default"
	if c.tenancy == "dedicated" {
		tenancy = c.tenancy
	}
	templates, err := p.EnsureAll(ctx, class, claim, all, c.capacityType, tags, tenancy)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, l := range templates {
		for _, k := range l.InstanceTypes {
			followLater(class.AMIFamily(), made.data[l.Name])
			out[k.Name] = plainTemplate(t, class.AMIFamily(), made.data[l.Name])
		}
	}
	return out
}

// madeTemplates is EC2 without any template, which takes every new one.
type madeTemplates struct {
	sdk.EC2API // nil: a call that is not below must be loud

	data map[string]*types.RequestLaunchTemplateData
}

// DescribeLaunchTemplates finds none.
func (m *madeTemplates) DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "InvalidLaunchTemplateName.NotFoundException"}
}

// CreateLaunchTemplate keeps what is in the template.
func (m *madeTemplates) CreateLaunchTemplate(_ context.Context, in *ec2.CreateLaunchTemplateInput, _ ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error) {
	if m.data == nil {
		m.data = map[string]*types.RequestLaunchTemplateData{}
	}
	m.data[*in.LaunchTemplateName] = in.LaunchTemplateData
	return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: &types.LaunchTemplate{LaunchTemplateName: in.LaunchTemplateName}}, nil
}

// placement finds the group of every class that selects one.
type placement struct{}

func (placement) Get(_ context.Context, n placementgroup.NodeClass) (*placementgroup.PlacementGroup, error) {
	if n.PlacementGroupSelector() == nil {
		return nil, nil
	}
	return &placementgroup.PlacementGroup{ID: "pg-1", Name: "pg", PartitionCount: 7, Strategy: placementgroup.StrategyPartition}, nil
}

// plainTemplate is the content of a template as text, without what means nothing: the order of tags, what is EC2's
// default anyway and how user data says what it says.
func plainTemplate(t *testing.T, family string, data *types.RequestLaunchTemplateData) string {
	d := *data
	d.NetworkInterfaces = slices.Clone(d.NetworkInterfaces)
	for i := range d.NetworkInterfaces {
		if n := &d.NetworkInterfaces[i]; aws.ToInt32(n.NetworkCardIndex) == 0 {
			n.NetworkCardIndex = nil
		}
		if n := &d.NetworkInterfaces[i]; n.Ipv6AddressCount != nil {
			n.Ipv6PrefixCount = nil // EC2 takes one of the two: Karpenter sends both, Joiner the address
		}
	}
	if d.EnclaveOptions != nil && !*d.EnclaveOptions.Enabled {
		d.EnclaveOptions = nil
	}
	for _, s := range d.TagSpecifications {
		slices.SortFunc(s.Tags, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(d.UserData))
	if err != nil {
		t.Fatal(err)
	}
	d.UserData = nil
	content, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s\n%v", content, meaning(t, family, string(text)))
}

// The template of every type holds what Karpenter's holds, for every class, capacity type, reservation, network,
// tenancy and partition.
func TestTemplatesHoldWhatKarpentersDo(t *testing.T) {
	n := 0
	for _, c := range templateCases() {
		t.Run(c.name, func(t *testing.T) {
			want, got := c.theirs(t), c.ours(t)
			n += len(want)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-karpenter +joiner):\n%s", d)
			}
		})
	}
	t.Logf("%d templates", n)
	if n < 500 {
		t.Errorf("only %d templates were compared", n)
	}
}
