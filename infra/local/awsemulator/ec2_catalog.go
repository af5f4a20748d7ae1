package awsemulator

import (
	"fmt"
	"slices"
	"strconv"

	"joiner.sh/infra/local/awsemulator/wire"
)

type xmlType struct {
	Name       string      `xml:"instanceType"`
	Current    bool        `xml:"currentGeneration"`
	FreeTier   bool        `xml:"freeTierEligible"`
	Usage      []string    `xml:"supportedUsageClasses>item"`
	RootTypes  []string    `xml:"supportedRootDeviceTypes>item"`
	Virtual    []string    `xml:"supportedVirtualizationTypes>item"`
	BareMetal  bool        `xml:"bareMetal"`
	Hypervisor string      `xml:"hypervisor,omitempty"`
	Processor  xmlCPU      `xml:"processorInfo"`
	VCPU       xmlVCPU     `xml:"vCpuInfo"`
	Memory     int         `xml:"memoryInfo>sizeInMiB"`
	HasStorage bool        `xml:"instanceStorageSupported"`
	Storage    *xmlStorage `xml:"instanceStorageInfo"`
	EBS        xmlEBS      `xml:"ebsInfo"`
	Network    xmlNetwork  `xml:"networkInfo"`
	GPU        *xmlGPUs    `xml:"gpuInfo"`
	FPGA       *xmlFPGAs   `xml:"fpgaInfo"`
	Media      *xmlMedia   `xml:"mediaAcceleratorInfo"`
	Inference  *xmlInfer   `xml:"inferenceAcceleratorInfo"`
	Neuron     *xmlNeurons `xml:"neuronInfo"`
	Placement  []string    `xml:"placementGroupInfo>supportedStrategies>item"`
	Hibernate  bool        `xml:"hibernationSupported"`
	Burstable  bool        `xml:"burstablePerformanceSupported"`
	Dedicated  bool        `xml:"dedicatedHostsSupported"`
	Recovery   bool        `xml:"autoRecoverySupported"`
	BootModes  []string    `xml:"supportedBootModes>item"`
}

type xmlCPU struct {
	Archs []string `xml:"supportedArchitectures>item"`
	Clock float64  `xml:"sustainedClockSpeedInGhz,omitempty"`
	Maker string   `xml:"manufacturer"`
	Has   []string `xml:"supportedFeatures>item"`
}

type xmlVCPU struct {
	Default int `xml:"defaultVCpus"`
	Cores   int `xml:"defaultCores"`
	Threads int `xml:"defaultThreadsPerCore"`
}

type xmlStorage struct {
	Total int       `xml:"totalSizeInGB"`
	Disks []xmlDisk `xml:"disks>item"`
	NVMe  string    `xml:"nvmeSupport"`
}

type xmlDisk struct {
	Size  int    `xml:"sizeInGB"`
	Count int    `xml:"count"`
	Type  string `xml:"type"`
}

type xmlEBS struct {
	Optimized  string `xml:"ebsOptimizedSupport"`
	Encryption string `xml:"encryptionSupport"`
	Most       int    `xml:"ebsOptimizedInfo>maximumBandwidthInMbps,omitempty"`
	NVMe       string `xml:"nvmeSupport"`
}

type xmlNetwork struct {
	Performance string    `xml:"networkPerformance"`
	ENIs        int       `xml:"maximumNetworkInterfaces"`
	CardCount   int       `xml:"maximumNetworkCards"`
	DefaultCard int       `xml:"defaultNetworkCardIndex"`
	Cards       []xmlCard `xml:"networkCards>item"`
	IPv4        int       `xml:"ipv4AddressesPerInterface"`
	IPv6        int       `xml:"ipv6AddressesPerInterface"`
	HasIPv6     bool      `xml:"ipv6Supported"`
	ENA         string    `xml:"enaSupport"`
	EFA         bool      `xml:"efaSupported"`
	EFAInfo     *xmlEFA   `xml:"efaInfo"`
	Encryption  bool      `xml:"encryptionInTransitSupported"`
}

type xmlEFA struct {
	Most int `xml:"maximumEfaInterfaces"`
}

type xmlCard struct {
	Index       int      `xml:"networkCardIndex"`
	Performance string   `xml:"networkPerformance"`
	ENIs        int      `xml:"maximumNetworkInterfaces"`
	Baseline    float64  `xml:"baselineBandwidthInGbps,omitempty"`
	Types       []string `xml:"interfaceTypeSet>item"`
}

type xmlDevice struct {
	Name   string `xml:"name"`
	Maker  string `xml:"manufacturer,omitempty"`
	Count  int    `xml:"count"`
	Cores  *int   `xml:"coreInfo>count"`
	Memory int    `xml:"memoryInfo>sizeInMiB,omitempty"`
}

type xmlGPUs struct {
	Devices []xmlDevice `xml:"gpus>item"`
	Memory  int         `xml:"totalGpuMemoryInMiB"`
}

type xmlFPGAs struct {
	Devices []xmlDevice `xml:"fpgas>item"`
}

type xmlMedia struct {
	Devices []xmlDevice `xml:"accelerators>item"`
}

type xmlInfer struct {
	Devices []xmlDevice `xml:"accelerators>member"`
}

type xmlNeurons struct {
	Devices []xmlDevice `xml:"neuronDevices>item"`
	Memory  int         `xml:"totalNeuronDeviceMemoryInMiB"`
}

// ec2Architectures of a type in EC2's words.
func ec2Architectures(t *InstanceType) []string {
	var out []string
	for _, a := range t.Arch {
		if a == "amd64" {
			a = "x86_64"
		}
		out = append(out, a)
	}
	return out
}

func describeDevices(list []Device) (out []xmlDevice, memory int) {
	for _, d := range list {
		x := xmlDevice{Name: d.Name, Maker: d.Manufacturer, Count: d.Count, Memory: d.MemoryMiB}
		if d.CoresPerDevice > 0 {
			x.Cores = &d.CoresPerDevice
		}
		out = append(out, x)
		memory += d.Count * d.MemoryMiB
	}
	return out, memory
}

// describeType renders a record. What the data set does not hold is left out or, where clients expect it, follows from
// what it holds (cards from the ENIs of the default one, performance from the baseline).
func describeType(t *InstanceType) xmlType {
	threads := 2
	if slices.Contains(t.Arch, "arm64") || t.VCPU == 1 {
		threads = 1
	}
	nvme, ebs := "unsupported", "unsupported"
	if t.Hypervisor != "xen" {
		nvme = "required"
	}
	if t.EBSMaxMbps > 0 {
		ebs = "default"
	}
	out := xmlType{
		Name: t.Name, Current: t.CurrentGeneration, Usage: t.UsageClasses, RootTypes: []string{"ebs"},
		Virtual: t.Virtualization, BareMetal: t.BareMetal, Hypervisor: t.Hypervisor,
		Processor: xmlCPU{ec2Architectures(t), t.ClockGHz, t.CPUManufacturer, nil},
		VCPU:      xmlVCPU{t.VCPU, t.VCPU / threads, threads}, Memory: t.MemoryMiB,
		EBS:     xmlEBS{Optimized: ebs, Encryption: "supported", Most: t.EBSMaxMbps, NVMe: nvme},
		Network: networkOf(t), Placement: t.PlacementStrategies, Burstable: t.Burstable,
		Recovery: !t.BareMetal, BootModes: []string{"legacy-bios", "uefi"},
	}
	if t.NestedVirtualization {
		out.Processor.Has = []string{"nested-virtualization"}
	}
	if t.LocalStorageGB > 0 {
		s := &xmlStorage{Total: t.LocalStorageGB, Disks: []xmlDisk{{t.LocalStorageGB, 1, "hdd"}}, NVMe: "unsupported"}
		if t.LocalNVMeGB > 0 {
			s.NVMe, s.Disks[0].Type = "required", "ssd"
		}
		out.HasStorage, out.Storage = true, s
	}
	addDevices(&out, t)
	return out
}

func addDevices(out *xmlType, t *InstanceType) {
	if list, memory := describeDevices(t.GPUs); list != nil {
		out.GPU = &xmlGPUs{list, memory}
	}
	if list, _ := describeDevices(t.FPGAs); list != nil {
		out.FPGA = &xmlFPGAs{list}
	}
	if list, _ := describeDevices(t.MediaAcc); list != nil {
		out.Media = &xmlMedia{list}
	}
	if list, _ := describeDevices(t.InferenceAcc); list != nil {
		out.Inference = &xmlInfer{list}
	}
	if list, memory := describeDevices(t.Neuron); list != nil {
		out.Neuron = &xmlNeurons{list, memory}
	}
}

func networkOf(t *InstanceType) xmlNetwork {
	performance := fmt.Sprintf("%g Gigabit", float64(t.BandwidthMbps)/1000)
	if t.BandwidthMbps == 0 {
		performance = "Moderate"
	}
	n := xmlNetwork{
		Performance: performance, ENIs: t.MaxENIs, CardCount: len(t.CardENIs), IPv4: t.IPv4PerENI, IPv6: t.IPv4PerENI,
		HasIPv6: t.supportsIPv6(), ENA: "required", EFA: t.EFA, Encryption: t.EncryptionInTransit,
	}
	if t.NoENA {
		n.ENA = "unsupported"
	}
	if t.EFA {
		n.EFAInfo = &xmlEFA{t.MaxEFAs}
	}
	for i, enis := range t.CardENIs {
		n.Cards = append(n.Cards, xmlCard{i, performance, enis,
			float64(t.BandwidthMbps) / 1000 / float64(len(t.CardENIs)), t.interfaceTypes(i)})
	}
	return n
}

func (t *InstanceType) filterAttribute(name string) ([]string, bool) {
	switch name {
	case "instance-type":
		return []string{t.Name}, true
	case "bare-metal":
		return []string{strconv.FormatBool(t.BareMetal)}, true
	case "burstable-performance-supported":
		return []string{strconv.FormatBool(t.Burstable)}, true
	case "current-generation":
		return []string{strconv.FormatBool(t.CurrentGeneration)}, true
	case "hypervisor":
		return []string{t.Hypervisor}, true
	case "instance-storage-supported":
		return []string{strconv.FormatBool(t.LocalStorageGB > 0)}, true
	case "memory-info.size-in-mib":
		return []string{strconv.Itoa(t.MemoryMiB)}, true
	case "network-info.efa-supported":
		return []string{strconv.FormatBool(t.EFA)}, true
	case "processor-info.supported-architecture":
		return ec2Architectures(t), true
	case "supported-usage-class":
		return t.UsageClasses, true
	case "supported-virtualization-type":
		return t.Virtualization, true
	case "vcpu-info.default-vcpus":
		return []string{strconv.Itoa(t.VCPU)}, true
	}
	return nil, false
}

type describeTypesInput struct {
	page
	Filter       []filter
	InstanceType []string
}

func (c *market) describeInstanceTypes(_ *call, in *describeTypesInput) (any, error) {
	for _, name := range in.InstanceType {
		if c.offerings.byName[name] == nil {
			return nil, wire.Fail(400, "InvalidInstanceType",
				"The following supplied instance types do not exist: [%s]", name)
		}
	}
	if in.MaxResults > 0 && in.MaxResults < 5 {
		return nil, wire.Fail(400, "InvalidParameterValue",
			"Value ( %d ) for parameter maxResults is invalid. Expecting a value greater than or equal to 5.",
			in.MaxResults)
	}
	var found []*InstanceType
	for i := range c.offerings.types {
		t := &c.offerings.types[i]
		ok, err := matchesFilters(in.Filter, t.filterAttribute)
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.InstanceType, t.Name) {
			found = append(found, t)
		}
	}
	var out struct {
		Types []xmlType `xml:"instanceTypeSet>item"`
		Next  string    `xml:"nextToken,omitempty"`
	}
	var err error
	found, out.Next, err = cutPage(found, in.page, 100, func(t *InstanceType) string { return t.Name })
	for _, t := range found {
		out.Types = append(out.Types, describeType(t))
	}
	return out, err
}
