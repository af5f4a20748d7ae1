package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/paging"
)

// Limits of the lists about instance types.
const (
	typesPage     = 100
	offeringsPage = 1000
)

// readTypes lists every instance type that a node can have and that some zone sells, sorted by name, without prices.
func (r *CatalogRefresher) readTypes(ctx context.Context) ([]instancetypes.Facts, error) {
	zones, err := r.readOfferings(ctx)
	if err != nil {
		return nil, err
	}
	var out []instancetypes.Facts
	pages := ec2.NewDescribeInstanceTypesPaginator(r.ec2,
		&ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(typesPage), Filters: []types.Filter{
			ec2Filter("supported-virtualization-type", "hvm"),
			ec2Filter("processor-info.supported-architecture", "x86_64", "arm64")}})
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("describe instance types: %w", err)
		}
		for i := range page.InstanceTypes {
			f := factsOf(&page.InstanceTypes[i])
			if f.Zones = zones[f.Name]; len(f.Zones) > 0 {
				out = append(out, f)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("describe instance types: no zone sells any of them")
	}
	slices.SortFunc(out, func(a, b instancetypes.Facts) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// readOfferings lists the zones that sell each type, sorted.
func (r *CatalogRefresher) readOfferings(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(r.ec2, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(offeringsPage)})
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("describe instance type offerings: %w", err)
		}
		for _, o := range page.InstanceTypeOfferings {
			name := string(o.InstanceType)
			out[name] = append(out[name], aws.ToString(o.Location))
		}
	}
	for name, zones := range out {
		slices.Sort(zones)
		out[name] = slices.Compact(zones)
	}
	return out, nil
}

// factsOf translates what EC2 says about a type. A part that EC2 leaves out is zero.
func factsOf(t *types.InstanceTypeInfo) instancetypes.Facts {
	f := instancetypes.Facts{
		Name:              string(t.InstanceType),
		Hypervisor:        string(t.Hypervisor),
		BareMetal:         aws.ToBool(t.BareMetal),
		CurrentGeneration: aws.ToBool(t.CurrentGeneration),
		Burstable:         aws.ToBool(t.BurstablePerformanceSupported),
		Virtualization:    textsOf(t.SupportedVirtualizationTypes),
		UsageClasses:      textsOf(t.SupportedUsageClasses),
	}
	if p := t.ProcessorInfo; p != nil {
		f.NestedVirtualization = slices.Contains(p.SupportedFeatures,
			types.SupportedAdditionalProcessorFeatureNestedVirtualization)
		f.CPUManufacturer, f.ClockGHz = aws.ToString(p.Manufacturer), aws.ToFloat64(p.SustainedClockSpeedInGhz)
		for _, a := range p.SupportedArchitectures {
			if a == types.ArchitectureTypeX8664 {
				a = "amd64"
			}
			f.Arch = append(f.Arch, string(a))
		}
	}
	if v := t.VCpuInfo; v != nil {
		f.VCPU = int64(aws.ToInt32(v.DefaultVCpus))
	}
	if m := t.MemoryInfo; m != nil {
		f.MemoryMiB = aws.ToInt64(m.SizeInMiB)
	}
	if e := t.EbsInfo; e != nil {
		f.MaxEBSVolumes = int64(aws.ToInt32(e.MaximumEbsAttachments))
		f.SharedVolumeSlots = e.AttachmentLimitType == types.AttachmentLimitTypeShared
		if e.EbsOptimizedSupport == types.EbsOptimizedSupportDefault && e.EbsOptimizedInfo != nil {
			f.EBSMaxMbps = int64(aws.ToInt32(e.EbsOptimizedInfo.MaximumBandwidthInMbps))
		}
	}
	if s := t.InstanceStorageInfo; s != nil {
		f.LocalStorageGB = aws.ToInt64(s.TotalSizeInGB)
		if s.NvmeSupport != types.EphemeralNvmeSupportUnsupported {
			f.LocalNVMeGB = f.LocalStorageGB
		}
	}
	if t.PlacementGroupInfo != nil {
		f.PlacementStrategies = textsOf(t.PlacementGroupInfo.SupportedStrategies)
	}
	addNetwork(&f, t.NetworkInfo)
	addDevices(&f, t)
	return f
}

// addNetwork sets a bandwidth that is the sum over the network cards; for types that it knows the snapshot says it
// better.
func addNetwork(f *instancetypes.Facts, n *types.NetworkInfo) {
	if n == nil {
		return
	}
	f.MaxENIs, f.IPv4PerENI = int64(aws.ToInt32(n.MaximumNetworkInterfaces)),
		int64(aws.ToInt32(n.Ipv4AddressesPerInterface))
	f.EncryptionInTransit, f.EFA = aws.ToBool(n.EncryptionInTransitSupported), aws.ToBool(n.EfaSupported)
	if n.EfaInfo != nil {
		f.MaxEFAs = int64(aws.ToInt32(n.EfaInfo.MaximumEfaInterfaces))
	}
	f.DefaultCardENIs, f.NoENA = f.MaxENIs, n.EnaSupport == types.EnaSupportUnsupported
	cards := slices.Clone(n.NetworkCards)
	slices.SortFunc(cards, func(a, b types.NetworkCardInfo) int {
		return cmp.Compare(aws.ToInt32(a.NetworkCardIndex), aws.ToInt32(b.NetworkCardIndex))
	})
	var gbps float64
	for _, card := range cards {
		f.CardENIs = append(f.CardENIs, int64(aws.ToInt32(card.MaximumNetworkInterfaces)))
		if f.MaxEFAs > 0 && len(card.InterfaceTypes) > 0 &&
			!slices.Contains(card.InterfaceTypes, types.NetworkCardInterfaceTypeEfa) {
			f.CardsWithoutEFA = append(f.CardsWithoutEFA, int64(aws.ToInt32(card.NetworkCardIndex)))
		}
		gbps += aws.ToFloat64(card.BaselineBandwidthInGbps)
		if aws.ToInt32(card.NetworkCardIndex) == aws.ToInt32(n.DefaultNetworkCardIndex) {
			f.DefaultCardENIs = int64(aws.ToInt32(card.MaximumNetworkInterfaces))
		}
	}
	f.BandwidthMbps = int64(math.Round(gbps * 1000))
}

func addDevices(f *instancetypes.Facts, t *types.InstanceTypeInfo) {
	if t.GpuInfo != nil {
		for _, g := range t.GpuInfo.Gpus {
			a := deviceFrom(g.Manufacturer, g.Name, g.Count)
			part := aws.ToFloat64(g.GpuPartitionSize)
			a.Part = a.Count == 0 || part > 0 && part < 1
			a.Count = max(a.Count, int64(aws.ToInt32(g.LogicalGpuCount)), 1) // of a part of a GPU EC2 counts none
			if g.MemoryInfo != nil {
				a.MemoryMiB = int64(aws.ToInt32(g.MemoryInfo.SizeInMiB))
			}
			f.GPUs = append(f.GPUs, a)
		}
	}
	if t.NeuronInfo != nil {
		for _, n := range t.NeuronInfo.NeuronDevices {
			d := instancetypes.Neuron{Name: aws.ToString(n.Name), Count: int64(aws.ToInt32(n.Count))}
			if n.CoreInfo != nil {
				d.CoresPerDevice = int64(aws.ToInt32(n.CoreInfo.Count))
			}
			if n.MemoryInfo != nil {
				d.MemoryMiB = int64(aws.ToInt32(n.MemoryInfo.SizeInMiB))
			}
			f.Neuron = append(f.Neuron, d)
		}
	}
	if t.InferenceAcceleratorInfo != nil {
		for _, a := range t.InferenceAcceleratorInfo.Accelerators {
			f.InferenceAccelerators = append(f.InferenceAccelerators, deviceFrom(a.Manufacturer, a.Name, a.Count))
		}
	}
	if t.MediaAcceleratorInfo != nil {
		for _, a := range t.MediaAcceleratorInfo.Accelerators {
			f.MediaAccelerators = append(f.MediaAccelerators, deviceFrom(a.Manufacturer, a.Name, a.Count))
		}
	}
	if t.FpgaInfo != nil {
		for _, a := range t.FpgaInfo.Fpgas {
			f.FPGAs = append(f.FPGAs, deviceFrom(a.Manufacturer, a.Name, a.Count))
		}
	}
}

func deviceFrom(manufacturer, name *string, count *int32) instancetypes.Accelerator {
	return instancetypes.Accelerator{Manufacturer: aws.ToString(manufacturer), Name: aws.ToString(name),
		Count: int64(aws.ToInt32(count))}
}

func textsOf[T ~string](in []T) []string {
	return lists.Of(in, func(v T) string { return string(v) })
}
