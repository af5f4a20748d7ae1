package discovery

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

func TestFactsOfAType(t *testing.T) {
	info := types.InstanceTypeInfo{
		InstanceType: "x9.large", BareMetal: aws.Bool(false), BurstablePerformanceSupported: aws.Bool(true), CurrentGeneration: aws.Bool(true),
		Hypervisor: types.InstanceTypeHypervisorNitro, SupportedVirtualizationTypes: []types.VirtualizationType{"hvm", "paravirtual"},
		SupportedUsageClasses: []types.UsageClassType{"on-demand", "spot"},
		ProcessorInfo: &types.ProcessorInfo{Manufacturer: aws.String("Intel"), SustainedClockSpeedInGhz: aws.Float64(3.1),
			SupportedFeatures:      []types.SupportedAdditionalProcessorFeature{"nested-virtualization"},
			SupportedArchitectures: []types.ArchitectureType{"i386", "x86_64"}},
		VCpuInfo:   &types.VCpuInfo{DefaultVCpus: aws.Int32(4)},
		MemoryInfo: &types.MemoryInfo{SizeInMiB: aws.Int64(8192)},
		EbsInfo: &types.EbsInfo{EbsOptimizedSupport: types.EbsOptimizedSupportDefault,
			MaximumEbsAttachments: aws.Int32(26), AttachmentLimitType: types.AttachmentLimitTypeShared,
			EbsOptimizedInfo: &types.EbsOptimizedInfo{MaximumBandwidthInMbps: aws.Int32(4750)}},
		InstanceStorageInfo: &types.InstanceStorageInfo{TotalSizeInGB: aws.Int64(75), NvmeSupport: types.EphemeralNvmeSupportRequired},
		NetworkInfo: &types.NetworkInfo{MaximumNetworkInterfaces: aws.Int32(10), Ipv4AddressesPerInterface: aws.Int32(12),
			EncryptionInTransitSupported: aws.Bool(true), EfaSupported: aws.Bool(true), EfaInfo: &types.EfaInfo{MaximumEfaInterfaces: aws.Int32(2)},
			DefaultNetworkCardIndex: aws.Int32(1), NetworkCards: []types.NetworkCardInfo{
				{NetworkCardIndex: aws.Int32(1), MaximumNetworkInterfaces: aws.Int32(7), BaselineBandwidthInGbps: aws.Float64(12.5)},
				{NetworkCardIndex: aws.Int32(0), MaximumNetworkInterfaces: aws.Int32(3), BaselineBandwidthInGbps: aws.Float64(0.75)},
				{NetworkCardIndex: aws.Int32(2), MaximumNetworkInterfaces: aws.Int32(9), InterfaceTypes: []types.NetworkCardInterfaceType{"interface"}}}},
		PlacementGroupInfo: &types.PlacementGroupInfo{SupportedStrategies: []types.PlacementGroupStrategy{"cluster", "spread"}},
		GpuInfo: &types.GpuInfo{Gpus: []types.GpuDeviceInfo{{Manufacturer: aws.String("NVIDIA"), Name: aws.String("T4"), Count: aws.Int32(2),
			MemoryInfo: &types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(16384)}},
			{Manufacturer: aws.String("NVIDIA"), Name: aws.String("L4"), Count: aws.Int32(0), LogicalGpuCount: aws.Int32(1)}}},
		NeuronInfo: &types.NeuronInfo{NeuronDevices: []types.NeuronDeviceInfo{{Name: aws.String("Trainium"), Count: aws.Int32(1),
			CoreInfo: &types.NeuronDeviceCoreInfo{Count: aws.Int32(8)}, MemoryInfo: &types.NeuronDeviceMemoryInfo{SizeInMiB: aws.Int32(99)}}}},
		FpgaInfo: &types.FpgaInfo{Fpgas: []types.FpgaDeviceInfo{{Manufacturer: aws.String("Xilinx"), Name: aws.String("U30"), Count: aws.Int32(3)}}},
	}
	want := instancetypes.Facts{
		Name: "x9.large", Arch: []string{"i386", "amd64"}, VCPU: 4, MemoryMiB: 8192, CPUManufacturer: "Intel", ClockGHz: 3.1,
		MaxENIs: 10, DefaultCardENIs: 7, CardENIs: []int64{3, 7, 9}, CardsWithoutEFA: []int64{2}, NestedVirtualization: true, PlacementStrategies: []string{"cluster", "spread"}, IPv4PerENI: 12, BandwidthMbps: 13250, EBSMaxMbps: 4750,
		MaxEBSVolumes: 26, SharedVolumeSlots: true, EncryptionInTransit: true,
		Hypervisor: "nitro", Virtualization: []string{"hvm", "paravirtual"}, CurrentGeneration: true, Burstable: true,
		UsageClasses: []string{"on-demand", "spot"}, EFA: true, MaxEFAs: 2, LocalStorageGB: 75, LocalNVMeGB: 75,
		GPUs:   []instancetypes.Accelerator{{Manufacturer: "NVIDIA", Name: "T4", Count: 2, MemoryMiB: 16384}, {Manufacturer: "NVIDIA", Name: "L4", Count: 1, Part: true}},
		Neuron: []instancetypes.Neuron{{Name: "Trainium", Count: 1, CoresPerDevice: 8, MemoryMiB: 99}},
		FPGAs:  []instancetypes.Accelerator{{Manufacturer: "Xilinx", Name: "U30", Count: 3}},
	}
	if diff := cmp.Diff(want, factsOf(&info)); diff != "" {
		t.Errorf("facts (-want +got):\n%s", diff)
	}
	info.EbsInfo.EbsOptimizedSupport = types.EbsOptimizedSupportSupported // costs extra, so it is off
	info.InstanceStorageInfo.NvmeSupport = types.EphemeralNvmeSupportUnsupported
	if f := factsOf(&info); f.EBSMaxMbps != 0 || f.LocalNVMeGB != 0 || f.LocalStorageGB != 75 {
		t.Errorf("EBS %d Mbps, NVMe %d GB, disks %d GB", f.EBSMaxMbps, f.LocalNVMeGB, f.LocalStorageGB)
	}
	if diff := cmp.Diff(instancetypes.Facts{Name: "bare"}, factsOf(&types.InstanceTypeInfo{InstanceType: "bare"})); diff != "" {
		t.Errorf("a type of which EC2 says nothing (-want +got):\n%s", diff)
	}
}

func TestWhatTheSnapshotAddsToTheFacts(t *testing.T) {
	static := instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "a", BandwidthMbps: 750, BranchENIs: 9, OnDemandUSD: 1}, {Name: "b", OnDemandUSD: 2}}}
	before := instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "a", VCPU: 1, OnDemandUSD: 7, SpotUSD: map[string]float64{"z": 0.5}}, {Name: "b"}, {Name: "gone"}}}
	read := []instancetypes.Facts{{Name: "a", VCPU: 2, BandwidthMbps: 1}, {Name: "b", VCPU: 4, BandwidthMbps: 2}, {Name: "new", VCPU: 8, BandwidthMbps: 3}}
	want := []instancetypes.Facts{
		{Name: "a", VCPU: 2, BandwidthMbps: 750, BranchENIs: 9, OnDemandUSD: 7, SpotUSD: map[string]float64{"z": 0.5}},
		{Name: "b", VCPU: 4, OnDemandUSD: 2},
		{Name: "new", VCPU: 8, BandwidthMbps: 3},
	}
	if diff := cmp.Diff(want, withTypes(before, read, static).Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestSpotPricesOfTheSnapshotGoWithTheFirstReading(t *testing.T) {
	c := instancetypes.Catalog{Zones: map[string]string{"z": "old", "y": "id-y"}, Types: []instancetypes.Facts{
		{Name: "a", SpotUSD: map[string]float64{"z": 1, "y": 2}}, {Name: "b", SpotUSD: map[string]float64{"z": 3}}}}
	s := spotMarket{prices: map[spotPlace]float64{{"a", "z"}: 5, {"unknown", "z"}: 6}, zoneIDs: map[string]string{"z": "id-z"}}
	first := withSpot(c, s)
	want := instancetypes.Catalog{Zones: map[string]string{"z": "id-z", "y": "id-y"}, Types: []instancetypes.Facts{{Name: "a", SpotUSD: map[string]float64{"z": 5}}, {Name: "b"}}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("first reading (-want +got):\n%s", diff)
	}
	c.SpotTime = time.Unix(1, 0)
	later := withSpot(c, s)
	want.Types = []instancetypes.Facts{{Name: "a", SpotUSD: map[string]float64{"z": 5, "y": 2}}, {Name: "b", SpotUSD: map[string]float64{"z": 3}}}
	if diff := cmp.Diff(want.Types, later.Types); diff != "" {
		t.Errorf("later reading (-want +got):\n%s", diff)
	}
	if c.Types[0].SpotUSD["z"] != 1 || c.Zones["z"] != "old" {
		t.Error("the catalog given was changed")
	}
}

// A price list that lacks a type for a day leaves its price as it was: without one it could not be bought, and nobody
// knew what its nodes cost.
func TestAPriceThatVanishesStays(t *testing.T) {
	c := instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "a", OnDemandUSD: 1}, {Name: "b", OnDemandUSD: 2, SpotUSD: map[string]float64{"z": 0.5}}, {Name: "new"}}}
	got := withOnDemand(c, map[string]float64{"a": 3, "unknown": 4})
	want := []instancetypes.Facts{{Name: "a", OnDemandUSD: 3}, {Name: "b", OnDemandUSD: 2, SpotUSD: map[string]float64{"z": 0.5}}, {Name: "new"}}
	if diff := cmp.Diff(want, got.Types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if c.Types[0].OnDemandUSD != 1 {
		t.Error("the catalog given was changed")
	}
}

func TestTheSnapshotOfAnotherRegionGivesNoTypes(t *testing.T) {
	static := instancetypes.Catalog{Region: "us-west-2", Zones: map[string]string{"us-west-2a": "x"}, Types: []instancetypes.Facts{{Name: "a"}}, Time: time.Unix(1, 0)}
	if diff := cmp.Diff(instancetypes.Catalog{Region: "eu-west-1"}, startCatalog(static, "eu-west-1")); diff != "" {
		t.Errorf("another region (-want +got):\n%s", diff)
	}
	static.Time = time.Time{}
	if diff := cmp.Diff(static, startCatalog(static, "us-west-2")); diff != "" {
		t.Errorf("its own region (-want +got):\n%s", diff)
	}
}

func TestWhereThePriceListIs(t *testing.T) {
	for region, want := range map[string]string{"us-west-2": "us-east-1", "sa-east-1": "us-east-1", "ap-northeast-1": "ap-south-1",
		"eu-west-1": "eu-central-1", "cn-north-1": "cn-northwest-1"} {
		if got := priceListRegion(region); got != want {
			t.Errorf("%s: %s, want %s", region, got, want)
		}
	}
	for region, want := range map[string]bool{"us-west-2": true, "cn-north-1": true, "us-gov-west-1": false,
		"us-iso-east-1": false, "us-isob-east-1": false, "eu-isoe-west-1": false, "eusc-de-east-1": false} {
		if got := (&CatalogRefresher{region: region}).listsPrices(); got != want {
			t.Errorf("%s lists prices: %v", region, got)
		}
	}
}

func TestWhenThePriceListIsAsked(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for name, test := range map[string]struct {
		read, failed time.Time
		want         bool
	}{
		"never":                   {time.Time{}, time.Time{}, true},
		"it is read twice a day":  {now.Add(-11 * time.Hour), time.Time{}, false},
		"half a day has passed":   {now.Add(-12 * time.Hour), time.Time{}, true},
		"it failed an hour ago":   {time.Time{}, now.Add(-time.Hour), true},
		"it failed a moment ago":  {time.Time{}, now.Add(-5 * time.Minute), false},
		"old, and it failed also": {now.Add(-13 * time.Hour), now.Add(-59 * time.Minute), false},
	} {
		if got := arePricesDue(instancetypes.Catalog{OnDemandTime: test.read, OnDemandFailed: test.failed}, now); got != test.want {
			t.Errorf("%s: due %v, want %v", name, got, test.want)
		}
	}
}

func TestReadProduct(t *testing.T) {
	const product = `{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{"OnDemand":{
		"b":{"priceDimensions":{"2":{"pricePerUnit":{"USD":"0.0000000000"}},"1":{"pricePerUnit":{"USD":"0.0960000000","CNY":"0.7"}}}},
		"a":{"priceDimensions":{"1":{"pricePerUnit":{"USD":"5"}}}}}}}`
	for _, test := range []struct {
		text, currency, name string
		price                float64
		fails                bool
	}{
		{product, "USD", "m5.large", 0.096, false},
		{product, "CNY", "m5.large", 0.7, false},
		{`{"product":{"attributes":{"instanceType":"m5.large"}},"terms":{}}`, "USD", "m5.large", 0, false},
		{`{"product":{"attributes":{"instanceType":"x"}},"terms":{"OnDemand":{"a":{"priceDimensions":{"1":{"pricePerUnit":{"USD":"free"}}}}}}}`, "USD", "", 0, true},
		{`no json`, "USD", "", 0, true},
	} {
		var name string
		var price float64
		p, err := readProduct(test.text)
		if err == nil {
			name, price, err = p.instancePrice(test.currency)
		}
		if name != test.name || price != test.price || (err != nil) != test.fails {
			t.Errorf("%s: %s costs %v, error %v", test.text, name, price, err)
		}
	}
}

func TestWhatIsDue(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, test := range []struct {
		last time.Time
		want bool
	}{{time.Time{}, true}, {now, false}, {now.Add(-time.Hour + time.Second), false}, {now.Add(-time.Hour), true}, {now.Add(time.Minute), true}} {
		if got := isDue(test.last, now, time.Hour); got != test.want {
			t.Errorf("read at %v: due is %v", test.last, got)
		}
	}
}
