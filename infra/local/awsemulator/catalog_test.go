package awsemulator_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
)

func TestInstanceTypesComeInPagesOfAHundred(t *testing.T) {
	r := start(t, awsemulator.Options{})
	p := ec2.NewDescribeInstanceTypesPaginator(r.ec2, &ec2.DescribeInstanceTypesInput{
		MaxResults: aws.Int32(100),
		Filters: []types.Filter{
			{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
	})
	byName, pages := map[types.InstanceType]types.InstanceTypeInfo{}, 0
	for p.HasMorePages() {
		out := must(p.NextPage(t.Context()))(t)
		pages++
		for _, i := range out.InstanceTypes {
			byName[i.InstanceType] = i
		}
	}
	if len(byName) != 1219 || pages != 13 {
		t.Errorf("%d types on %d pages, want 1219 on 13", len(byName), pages)
	}
	g5, p4d, inf2, metal := byName["g5.xlarge"], byName["p4d.24xlarge"], byName["inf2.xlarge"], byName["m5.metal"]
	got := []any{
		*g5.GpuInfo.Gpus[0].Name, *g5.GpuInfo.Gpus[0].Manufacturer, *g5.GpuInfo.Gpus[0].MemoryInfo.SizeInMiB,
		*g5.InstanceStorageInfo.TotalSizeInGB, g5.InstanceStorageInfo.NvmeSupport, *g5.MemoryInfo.SizeInMiB,
		g5.ProcessorInfo.SupportedArchitectures[0], *g5.ProcessorInfo.Manufacturer, *g5.ProcessorInfo.SustainedClockSpeedInGhz,
		*g5.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps, g5.EbsInfo.EbsOptimizedSupport, g5.Hypervisor,
		*p4d.NetworkInfo.EfaInfo.MaximumEfaInterfaces, len(p4d.NetworkInfo.NetworkCards), *p4d.NetworkInfo.MaximumNetworkInterfaces,
		*p4d.NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces, *p4d.NetworkInfo.Ipv4AddressesPerInterface,
		*p4d.NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps, p4d.SupportedUsageClasses[0],
		*inf2.NeuronInfo.NeuronDevices[0].CoreInfo.Count, *inf2.InferenceAcceleratorInfo.Accelerators[0].Name,
		*metal.BareMetal, metal.Hypervisor, *metal.VCpuInfo.DefaultVCpus,
	}
	want := []any{
		"A10G", "NVIDIA", int32(22888),
		int64(250), types.EphemeralNvmeSupportRequired, int64(16384),
		types.ArchitectureTypeX8664, "AMD", 3.3,
		int32(3500), types.EbsOptimizedSupportDefault, types.InstanceTypeHypervisorNitro,
		int32(4), 4, int32(60),
		int32(15), int32(50),
		100.0, types.UsageClassTypeCapacityBlock,
		int32(2), "Inferentia2",
		true, types.InstanceTypeHypervisor(""), int32(96),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
}

func TestOfferingsAndSpotPricesPageToTheEnd(t *testing.T) {
	r := start(t, awsemulator.Options{})
	offerings := ec2.NewDescribeInstanceTypeOfferingsPaginator(r.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000),
	})
	sold := map[string]bool{}
	for offerings.HasMorePages() {
		for _, o := range must(offerings.NextPage(t.Context()))(t).InstanceTypeOfferings {
			sold[string(o.InstanceType)+"/"+*o.Location] = true
		}
	}
	if len(sold) != 4495 || !sold["g5.xlarge/us-west-2c"] || sold["g5.xlarge/us-west-2d"] {
		t.Errorf("%d offerings, g5.xlarge in c %t, in d %t", len(sold), sold["g5.xlarge/us-west-2c"], sold["g5.xlarge/us-west-2d"])
	}
	history := ec2.NewDescribeSpotPriceHistoryPaginator(r.ec2, &ec2.DescribeSpotPriceHistoryInput{
		StartTime: aws.Time(time.Now()), ProductDescriptions: []string{"Linux/UNIX"}, MaxResults: aws.Int32(2000),
	})
	prices := map[string]string{}
	for history.HasMorePages() {
		for _, p := range must(history.NextPage(t.Context()))(t).SpotPriceHistory {
			prices[string(p.InstanceType)+"/"+*p.AvailabilityZone] = *p.SpotPrice
		}
	}
	if len(prices) != 4424 || prices["m5.large/us-west-2d"] != "0.035018" {
		t.Errorf("%d prices, m5.large in d costs %s, want 0.035018", len(prices), prices["m5.large/us-west-2d"])
	}
}

func TestTheNetworkAndTheImages(t *testing.T) {
	r := start(t, awsemulator.Options{})
	zones := must(r.ec2.DescribeAvailabilityZones(t.Context(), &ec2.DescribeAvailabilityZonesInput{}))(t).AvailabilityZones
	if len(zones) != 4 || *zones[1].ZoneName != "us-west-2b" || *zones[1].ZoneId != "usw2-az1" {
		t.Errorf("zones %v", zones)
	}
	p := ec2.NewDescribeSubnetsPaginator(r.ec2, &ec2.DescribeSubnetsInput{
		MaxResults: aws.Int32(3), Filters: []types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"demo"}}},
	})
	n, free := 0, 0
	for p.HasMorePages() {
		for _, s := range must(p.NextPage(t.Context()))(t).Subnets {
			n, free = n+1, free+int(*s.AvailableIpAddressCount)
		}
	}
	if n != 4 || free != 4*16379 {
		t.Errorf("%d subnets with %d addresses, want 4 with 65516", n, free)
	}
	images := must(r.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{
		Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"bottlerocket-aws-k8s-1.36-x86_64-v1.46.?-*"}}},
	}))(t).Images
	if len(images) != 1 || images[0].Architecture != types.ArchitectureValuesX8664 || *images[0].OwnerId != "092701018921" {
		t.Errorf("bottlerocket images: %v", images)
	}
}

func TestParametersNameTheNewestImages(t *testing.T) {
	r := start(t, awsemulator.Options{})
	client := ssm.NewFromConfig(r.cfg)
	const eks = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/"
	for path, image := range map[string]string{
		eks + "x86_64/standard/recommended/image_id":                                           "amazon-eks-node-al2023-x86_64-standard-1.36-v20261109",
		eks + "x86_64/nvidia/recommended/image_id":                                             "amazon-eks-node-al2023-x86_64-nvidia-1.36-v20261109",
		eks + "x86_64/neuron/recommended/image_id":                                             "amazon-eks-node-al2023-x86_64-neuron-1.36-v20261109",
		eks + "arm64/standard/recommended/image_id":                                            "amazon-eks-node-al2023-arm64-standard-1.36-v20261109",
		eks + "x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20261012/image_id": "amazon-eks-node-al2023-x86_64-standard-1.36-v20261012",
		"/aws/service/bottlerocket/aws-k8s-1.36/arm64/latest/image_id":                         "bottlerocket-aws-k8s-1.36-arm64-v1.46.0-*",
		"/aws/service/bottlerocket/aws-k8s-1.36-nvidia/x86_64/1.45.0/image_id":                 "bottlerocket-aws-k8s-1.36-nvidia-x86_64-v1.45.0-*",
	} {
		out := must(client.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String(path)}))(t)
		if want := r.image(t, image); *out.Parameter.Value != want {
			t.Errorf("%s is %s, want %s", path, *out.Parameter.Value, want)
		}
	}
	_, err := client.GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String(eks + "arm64/neuron/recommended/image_id")})
	wantCode(t, err, "ParameterNotFound")
	both := must(client.GetParameters(t.Context(), &ssm.GetParametersInput{Names: []string{
		eks + "arm64/nvidia/recommended/image_id", "/none",
	}}))(t)
	if len(both.Parameters) != 1 || !slices.Equal(both.InvalidParameters, []string{"/none"}) {
		t.Errorf("GetParameters gave %d, invalid %v", len(both.Parameters), both.InvalidParameters)
	}
}

func TestPricesOfSharedAndBareMetal(t *testing.T) {
	r := start(t, awsemulator.Options{})
	cfg := r.cfg
	cfg.Region = "us-east-1" // where the price list lives
	client := pricing.NewFromConfig(cfg)
	prices := func(tenancy, family string) map[string]string {
		in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(100)}
		for field, value := range map[string]string{
			"regionCode": "us-west-2", "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux",
			"capacitystatus": "Used", "marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family,
		} {
			in.Filters = append(in.Filters, pricingtypes.Filter{
				Type: pricingtypes.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value),
			})
		}
		out := map[string]string{}
		for p := pricing.NewGetProductsPaginator(client, in); p.HasMorePages(); {
			for _, item := range must(p.NextPage(t.Context()))(t).PriceList {
				name, usd := readPrice(t, item)
				out[name] = usd
			}
		}
		return out
	}
	shared, metal := prices("Shared", "Compute Instance"), prices("Dedicated", "Compute Instance (bare metal)")
	if len(shared)+len(metal) != 1219 || shared["m5.large"] != "0.0960000000" || metal["m5.metal"] != "4.6080000000" {
		t.Errorf("%d shared with m5.large at %s, %d metal with m5.metal at %s", len(shared), shared["m5.large"], len(metal), metal["m5.metal"])
	}
	_, err := client.GetProducts(t.Context(), &pricing.GetProductsInput{
		ServiceCode: aws.String("AmazonEC2"),
		Filters:     []pricingtypes.Filter{{Type: "TERM_MATCH", Field: aws.String("colour"), Value: aws.String("red")}},
	})
	wantCode(t, err, "InvalidParameterException")
}

// readPrice reads an item of the price list in the shape that AWS documents.
func readPrice(t *testing.T, item string) (name, usd string) {
	t.Helper()
	var product struct {
		Product struct{ Attributes map[string]string }
		Terms   struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct{ PricePerUnit map[string]string }
			}
		}
	}
	if err := json.Unmarshal([]byte(item), &product); err != nil {
		t.Fatal(err)
	}
	for _, term := range product.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			usd = dimension.PricePerUnit["USD"]
		}
	}
	return product.Product.Attributes["instanceType"], usd
}
