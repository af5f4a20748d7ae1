package conformance

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func statusOf(err error) int {
	if r, ok := errors.AsType[*awshttp.ResponseError](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}

func networkQuestions() []question {
	subnets := func(name string, filters ...types.Filter) question {
		return question{"ec2 DescribeSubnets: " + name, func(a *account) string {
			out, err := a.ec2.DescribeSubnets(a.t.Context(), &ec2.DescribeSubnetsInput{Filters: filters})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.Subnets, func(s types.Subnet) string {
				return text("%s zone id %t addresses %t", *s.AvailabilityZone, strings.HasPrefix(aws.ToString(s.AvailabilityZoneId), "usw2-az"), aws.ToInt32(s.AvailableIpAddressCount) > 100)
			}), nil)
		}}
	}
	groups := func(name string, filters ...types.Filter) question {
		return question{"ec2 DescribeSecurityGroups: " + name, func(a *account) string {
			out, err := a.ec2.DescribeSecurityGroups(a.t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: filters})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.SecurityGroups, func(g types.SecurityGroup) string { return *g.GroupName }), nil)
		}}
	}
	return []question{
		subnets("by tag", filter("tag:karpenter.sh/discovery", "demo")),
		subnets("by a tag's key", filter("tag-key", "karpenter.sh/discovery")),
		subnets("by a pattern", filter("tag:Name", "*-us-west-2?"), filter("tag:karpenter.sh/discovery", "demo")),
		subnets("by two tags of which one is missing", filter("tag:karpenter.sh/discovery", "demo"), filter("tag-key", "none")),
		subnets("by an id that is none", filter("subnet-id", "subnet-0123456789abcdef0")),
		groups("by tag", filter("tag:karpenter.sh/discovery", "demo")),
		groups("by name", filter("group-name", "demo-node")),
		groups("by a pattern of the name", filter("group-name", "demo-*")),
		groups("by an id that is none", filter("group-id", "sg-0123456789abcdef0")),
		{"ec2 DescribeSubnets: unknown filter", func(a *account) string {
			_, err := a.ec2.DescribeSubnets(a.t.Context(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("colour", "red")}})
			return a.say("done", err)
		}},
	}
}

func offeringQuestions() []question {
	return []question{
		{"ec2 DescribeInstanceTypes: m5.large", func(a *account) string {
			out, err := a.ec2.DescribeInstanceTypes(a.t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large"}})
			if err != nil {
				return a.say(nil, err)
			}
			t := out.InstanceTypes[0]
			return a.say([]any{*t.VCpuInfo.DefaultVCpus, *t.MemoryInfo.SizeInMiB, t.ProcessorInfo.SupportedArchitectures, t.Hypervisor, *t.NetworkInfo.MaximumNetworkInterfaces,
				*t.NetworkInfo.Ipv4AddressesPerInterface, len(t.NetworkInfo.NetworkCards), *t.NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces, t.NetworkInfo.EnaSupport, t.SupportedUsageClasses,
				t.SupportedVirtualizationTypes, t.EbsInfo.EbsOptimizedSupport, *t.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps, t.PlacementGroupInfo.SupportedStrategies, *t.CurrentGeneration}, nil)
		}},
		{"ec2 DescribeInstanceTypes: pages of 100 with our filters", func(a *account) string {
			pages := ec2.NewDescribeInstanceTypesPaginator(a.ec2, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(100),
				Filters: []types.Filter{filter("supported-virtualization-type", "hvm"), filter("processor-info.supported-architecture", "x86_64", "arm64")}})
			n, largest, seen := 0, 0, map[string]bool{}
			for pages.HasMorePages() {
				page, err := pages.NextPage(a.t.Context())
				if err != nil {
					return a.say(nil, err)
				}
				n++
				largest = max(largest, len(page.InstanceTypes))
				for _, t := range page.InstanceTypes {
					seen[string(t.InstanceType)] = true
				}
			}
			return a.say([]bool{n > 10, largest == 100, len(seen) > 1000, seen["m5.large"], seen["m6g.large"]}, nil)
		}},
		{"ec2 DescribeInstanceTypes: unknown", func(a *account) string {
			_, err := a.ec2.DescribeInstanceTypes(a.t.Context(), &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.tiny"}})
			return a.say("done", err)
		}},
		{"ec2 DescribeInstanceTypes: dry run", func(a *account) string {
			_, err := a.ec2.DescribeInstanceTypes(a.t.Context(), &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
			return a.say("done", err)
		}},
		{"ec2 DescribeInstanceTypeOfferings: m5.large by zone", func(a *account) string {
			out, err := a.ec2.DescribeInstanceTypeOfferings(a.t.Context(), &ec2.DescribeInstanceTypeOfferingsInput{LocationType: types.LocationTypeAvailabilityZone,
				Filters: []types.Filter{filter("instance-type", "m5.large")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.InstanceTypeOfferings, func(o types.InstanceTypeOffering) string { return string(o.InstanceType) + " " + *o.Location }), nil)
		}},
		{"ec2 DescribeSpotPriceHistory: m5.large now", func(a *account) string {
			out, err := a.ec2.DescribeSpotPriceHistory(a.t.Context(), &ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []types.InstanceType{"m5.large"}, ProductDescriptions: []string{"Linux/UNIX"}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(slices.Compact(sorted(out.SpotPriceHistory, func(p types.SpotPrice) string {
				return *p.AvailabilityZone + " priced " + text("%t", *p.SpotPrice != "")
			})), nil)
		}},
		{"ec2 DescribeCapacityReservations: unknown id", func(a *account) string {
			_, err := a.ec2.DescribeCapacityReservations(a.t.Context(), &ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-0123456789abcdef0"}})
			return a.say("done", err)
		}},
		{"ec2 DescribePlacementGroups: unknown name", func(a *account) string {
			_, err := a.ec2.DescribePlacementGroups(a.t.Context(), &ec2.DescribePlacementGroupsInput{GroupNames: []string{"none"}})
			return a.say("done", err)
		}},
	}
}

func imageQuestions() []question {
	images := func(name string, in ec2.DescribeImagesInput) question {
		return question{"ec2 DescribeImages: " + name, func(a *account) string {
			q := in
			if len(q.ImageIds) > 0 && q.ImageIds[0] == "IMAGE" {
				q.ImageIds = []string{a.image}
			}
			out, err := a.ec2.DescribeImages(a.t.Context(), &q)
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.Images, func(i types.Image) string {
				return text("%s %s dated %t", *i.Name, i.Architecture, aws.ToString(i.CreationDate) != "")
			}), nil)
		}}
	}
	return []question{
		images("by name, of our own", ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: []types.Filter{filter("name", "golden-*"), filter("state", "available")}}),
		images("by name, of Amazon", ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{filter("name", "golden-1")}}),
		images("by tag", ec2.DescribeImagesInput{Filters: []types.Filter{filter("tag:use", "nodes"), filter("state", "available")}, IncludeDeprecated: aws.Bool(true)}),
		images("by the key of a tag", ec2.DescribeImagesInput{Filters: []types.Filter{filter("tag-key", "use")}}),
		images("by id", ec2.DescribeImagesInput{ImageIds: []string{"IMAGE"}}),
		images("by a filter of an id that is none", ec2.DescribeImagesInput{Filters: []types.Filter{filter("image-id", "ami-0123456789abcdef0")}}),
		images("by an id that is none", ec2.DescribeImagesInput{ImageIds: []string{"ami-0123456789abcdef0"}}),
	}
}

// template is what our launch templates hold.
func (a *account) template() *types.RequestLaunchTemplateData {
	return &types.RequestLaunchTemplateData{
		ImageId: aws.String(a.image), UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("hello"))),
		NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0), NetworkCardIndex: aws.Int32(0), Groups: []string{a.group}, AssociatePublicIpAddress: aws.Bool(true)}},
		MetadataOptions:   &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: types.LaunchTemplateHttpTokensStateRequired, HttpEndpoint: "enabled"},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(20), VolumeType: "gp3", Encrypted: aws.Bool(true)}}},
		Monitoring: &types.LaunchTemplatesMonitoringRequest{Enabled: aws.Bool(false)},
	}
}

func ours(more ...types.Tag) []types.Tag {
	return append([]types.Tag{tag("eks:eks-cluster-name", "demo"), tag("karpenter.sh/nodepool", "default"), tag("karpenter.k8s.aws/ec2nodeclass", "default")}, more...)
}

func templateQuestions() []question {
	name := aws.String("joiner/demo/1")
	create := func(a *account) string {
		out, err := a.ec2.CreateLaunchTemplate(a.t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: name, LaunchTemplateData: a.template(),
			TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: ours()}}})
		if err != nil {
			return a.say(nil, err)
		}
		return a.say([]any{*out.LaunchTemplate.LaunchTemplateName, *out.LaunchTemplate.LatestVersionNumber, len(out.LaunchTemplate.Tags)}, nil)
	}
	describe := func(in ec2.DescribeLaunchTemplatesInput) func(a *account) string {
		return func(a *account) string {
			q := in
			out, err := a.ec2.DescribeLaunchTemplates(a.t.Context(), &q)
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.LaunchTemplates, func(t types.LaunchTemplate) string {
				return text("%s dated %t, %d tags", *t.LaunchTemplateName, t.CreateTime != nil, len(t.Tags))
			}), nil)
		}
	}
	byTag := ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{filter("tag:eks:eks-cluster-name", "demo"), filter("tag:karpenter.k8s.aws/ec2nodeclass", "default")}}
	return []question{
		{"ec2 DescribeLaunchTemplates: unknown name", describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"joiner/demo/1"}})},
		{"ec2 CreateLaunchTemplate: dry run", func(a *account) string {
			_, err := a.ec2.CreateLaunchTemplate(a.t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: name, LaunchTemplateData: a.template(), DryRun: aws.Bool(true)})
			return a.say("done", err)
		}},
		{"ec2 CreateLaunchTemplate", create},
		{"ec2 CreateLaunchTemplate: again", create},
		{"ec2 DescribeLaunchTemplates: by name", describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"joiner/demo/1"}})},
		{"ec2 DescribeLaunchTemplates: by tags", describe(byTag)},
		{"ec2 DescribeLaunchTemplateVersions: what it holds", func(a *account) string {
			out, err := a.ec2.DescribeLaunchTemplateVersions(a.t.Context(), &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: name, Versions: []string{"$Latest"}})
			if err != nil {
				return a.say(nil, err)
			}
			d := out.LaunchTemplateVersions[0].LaunchTemplateData
			return a.say([]any{*d.ImageId, aws.ToString(d.UserData), d.NetworkInterfaces[0].Groups, d.MetadataOptions.HttpTokens, *d.BlockDeviceMappings[0].Ebs.VolumeSize, d.BlockDeviceMappings[0].Ebs.VolumeType}, nil)
		}},
	}
}

func closingQuestions() []question {
	drop := func(a *account) string {
		_, err := a.ec2.DeleteLaunchTemplate(a.t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("joiner/demo/1")})
		return a.say("done", err)
	}
	return []question{
		{"ec2 DeleteLaunchTemplate", drop}, {"ec2 DeleteLaunchTemplate: again", drop},
		{"ec2 DeleteLaunchTemplate: unknown id", func(a *account) string {
			_, err := a.ec2.DeleteLaunchTemplate(a.t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String("lt-0123456789abcdef0")})
			return a.say("done", err)
		}},
	}
}
