// Package provider holds Joiner's instance types, user data and drift hash against those of Karpenter's AWS provider.
//
// It has tests only. What both are given is the same: an EC2NodeClass as YAML, and what EC2 says about every type of
// the data set.
package provider

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	peeroptions "github.com/aws/karpenter-provider-aws/pkg/operator/options"
	"github.com/aws/karpenter-provider-aws/pkg/providers/amifamily"
	"github.com/aws/karpenter-provider-aws/pkg/providers/instancetype/compatibility"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

// world is a class with the settings that change its types.
type world struct {
	name     string
	spec     string  // of the EC2NodeClass, beside its status
	status   string  // beside subnets and images
	overhead float64 // 0 for 0.075
	enis     int     // reserved
}

const interfacesOfTwoCards = `networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface},
  {networkCardIndex: 0, deviceIndex: 1, interfaceType: efa-only}, {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]`

func worlds() []world {
	kubelet := func(text string) string { return "amiFamily: AL2023\nkubelet: {" + text + "}" }
	all := []world{{name: "memory overhead", spec: "amiFamily: AL2023", overhead: 0.03}, {name: "reserved ENIs", spec: "amiFamily: AL2023", enis: 1},
		{name: "all ENIs reserved", spec: "amiFamily: AL2023", enis: 2}, {name: "reserved ENIs on Bottlerocket", spec: "amiFamily: Bottlerocket", enis: 1},
		{name: "reservations", spec: "amiFamily: AL2023", status: `capacityReservations:
- {id: cr-1, availabilityZone: us-west-2a, instanceType: m5.large, instanceMatchCriteria: open, ownerID: "111122223333", interruptible: true, reservationType: default, state: active}
- {id: cr-2, availabilityZone: us-west-2b, instanceType: p5.48xlarge, instanceMatchCriteria: targeted, ownerID: "111122223333", reservationType: capacity-block, state: active}`}}
	for _, family := range []string{"AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"} {
		all = append(all,
			world{name: family, spec: "amiFamily: " + family},
			world{name: family + " with maxPods", spec: "amiFamily: " + family + "\nkubelet: {maxPods: 110}"},
			world{name: family + " with podsPerCore", spec: "amiFamily: " + family + "\nkubelet: {podsPerCore: 4}"},
			world{name: family + " with RAID0", spec: "amiFamily: " + family + "\ninstanceStorePolicy: RAID0"},
			world{name: family + " with volumes", spec: "amiFamily: " + family + "\nblockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/sda1, ebs: {volumeSize: 60G}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 1T}}]"},
			world{name: family + " with a root volume", spec: "amiFamily: " + family + "\nblockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/x, rootVolume: true, ebs: {volumeSize: 77Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 9Gi}}]"},
			world{name: family + " from snapshots", spec: "amiFamily: " + family + "\nblockDeviceMappings: [{deviceName: /dev/xvda, ebs: {snapshotID: snap-1}}, {deviceName: /dev/x, rootVolume: true, ebs: {snapshotID: snap-2}}, {deviceName: /dev/sda1, ebs: {snapshotID: snap-1}}, {deviceName: /dev/xvdb, ebs: {snapshotID: snap-1}}]"},
			world{name: family + " with interfaces", spec: "amiFamily: " + family + "\n" + interfacesOfTwoCards})
	}
	for name, text := range map[string]string{
		"kubeReserved":           "kubeReserved: {cpu: 200m, memory: 1Gi, ephemeral-storage: 3Gi, pid: '1000'}",
		"part of kubeReserved":   "kubeReserved: {memory: 1500M}",
		"systemReserved":         "systemReserved: {cpu: '1.5', memory: 100Mi, ephemeral-storage: 2G, pid: '100'}",
		"eviction in percent":    "evictionHard: {memory.available: 5%, nodefs.available: '7.25%', imagefs.available: 20%}",
		"eviction in quantities": "evictionHard: {memory.available: 500Mi, nodefs.available: 1Gi, nodefs.inodesFree: 5%}",
		"eviction off":           "evictionHard: {memory.available: 100%, nodefs.available: 100%}",
		"soft eviction":          "evictionSoft: {memory.available: 1Gi}, evictionSoftGracePeriod: {memory.available: 1m}",
		"no pods":                "maxPods: 0",
		"both limits of pods":    "maxPods: 20, podsPerCore: 3",
	} {
		all = append(all, world{name: name, spec: kubelet(text)})
	}
	all = append(all, worldsOfRelease()...)
	return append(all, world{name: "connection tracking", spec: "amiFamily: AL2023\nconnectionTracking: {udpTimeout: 30}"},
		world{name: "nested virtualization", spec: "amiFamily: AL2023\ncpuOptions: {nestedVirtualization: enabled}"},
		world{name: "no nested virtualization", spec: "amiFamily: AL2023\ncpuOptions: {nestedVirtualization: disabled}"},
		world{name: "prefixes", spec: "amiFamily: AL2023\nipPrefixCount: 4"})
}

// class is the world's EC2NodeClass as YAML: subnets in two of four zones, and one image that every type can run.
func (w world) class() string {
	indent := func(s string) string { return "  " + strings.ReplaceAll(s, "\n", "\n  ") + "\n" }
	return "metadata: {name: default}\nspec:\n" + indent(w.spec) + "status:\n" + indent(w.status+`
subnets: [{id: subnet-1, zone: us-west-2a, zoneID: usw2-az2}, {id: subnet-2, zone: us-west-2b, zoneID: usw2-az1}, {id: subnet-3, zone: us-west-2b, zoneID: usw2-az1}]
amis: [{id: ami-1, requirements: []}]`)
}

// seen is what a type looks like: amounts in bytes, millicores and numbers, labels by their values.
type seen struct {
	labels                map[string]string
	capacity, allocatable map[string]int64
	usable                bool // by the class, in some zone
}

func ours(t *testing.T, w world, c instancetypes.Catalog) map[string]seen {
	n := &awsv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(w.class()), n); err != nil {
		t.Fatal(err)
	}
	class := nodeclass.DescribeClass(n)
	class.MemoryOverhead, class.ReservedENIs = cmp.Or(w.overhead, 0.075), int64(w.enis)
	amounts := func(l resources.List) map[string]int64 {
		out := map[string]int64{}
		for _, n := range l.Names() {
			out[n] = l.Get(n)
		}
		return out
	}
	out := map[string]seen{}
	for _, x := range instancetypes.ResolveTypes(c, class, nil, time.Time{}) {
		s := seen{labels: map[string]string{}, capacity: amounts(x.Capacity), allocatable: amounts(x.Allocatable)}
		for _, r := range x.Requirements.All() {
			if len(r.Values) > 0 {
				s.labels[r.Key] = strings.Join(r.Values, ",")
			}
		}
		for _, o := range x.Offerings {
			s.usable = s.usable || o.Available || strings.HasPrefix(o.Why, "not sold in") || strings.HasPrefix(o.Why, "the class has no subnet in")
		}
		out[x.Name] = s
	}
	return out
}

func theirs(t *testing.T, w world, c instancetypes.Catalog) map[string]seen {
	n := &peerv1.EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(w.class()), n); err != nil {
		t.Fatal(err)
	}
	ctx := peeroptions.ToContext(context.Background(), &peeroptions.Options{VMMemoryOverheadPercent: cmp.Or(w.overhead, 0.075), ReservedENIs: w.enis})
	resolve, err := typeResolver(c.Region, n)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]seen{}
	for _, f := range c.Types {
		if !slices.Contains(f.Virtualization, "hvm") {
			continue // EC2 is not asked for it
		}
		info := infoOf(f)
		x, err := resolve(ctx, info, f.Zones)
		if err != nil {
			t.Fatal(err)
		}
		s := seen{labels: map[string]string{}, capacity: amountsOf(x.Capacity), allocatable: amountsOf(x.Allocatable()),
			usable: compatibility.IsCompatibleWithNodeClass(info, n, nil) && slices.ContainsFunc(f.Zones, func(z string) bool { return c.Zones[z] != "" }) && boots(x, n)}
		for key, r := range x.Requirements {
			if values := r.Values(); len(values) > 0 {
				s.labels[key] = strings.Join(sets.List(sets.New(values...)), ",")
			}
		}
		out[x.Name] = s
	}
	return out
}

// resolveType is how Karpenter sees an instance type that is sold in these zones.
type resolveType func(ctx context.Context, info types.InstanceTypeInfo, zones []string) (*cloudprovider.InstanceType, error)

// boots reports whether an image of the class fits the type.
func boots(x *cloudprovider.InstanceType, n *peerv1.EC2NodeClass) bool {
	return len(amifamily.MapToInstanceTypes([]*cloudprovider.InstanceType{x}, n.Status.AMIs)) > 0
}

func amountsOf(l corev1.ResourceList) map[string]int64 {
	out := map[string]int64{}
	for name, q := range l {
		n := q.Value()
		if name == corev1.ResourceCPU {
			n = q.MilliValue()
		}
		if n != 0 {
			out[string(name)] = n
		}
	}
	return out
}

// infoOf is what EC2 says of a type.
func infoOf(f instancetypes.Facts) types.InstanceTypeInfo {
	info := types.InstanceTypeInfo{
		InstanceType: types.InstanceType(f.Name), Hypervisor: types.InstanceTypeHypervisor(f.Hypervisor), BareMetal: aws.Bool(f.BareMetal),
		ProcessorInfo: &types.ProcessorInfo{Manufacturer: aws.String(f.CPUManufacturer), SustainedClockSpeedInGhz: aws.Float64(f.ClockGHz)},
		VCpuInfo:      &types.VCpuInfo{DefaultVCpus: aws.Int32(int32(f.VCPU))}, MemoryInfo: &types.MemoryInfo{SizeInMiB: aws.Int64(f.MemoryMiB)},
		PlacementGroupInfo: &types.PlacementGroupInfo{},
		NetworkInfo: &types.NetworkInfo{DefaultNetworkCardIndex: aws.Int32(0), Ipv4AddressesPerInterface: aws.Int32(int32(f.IPv4PerENI)),
			MaximumNetworkInterfaces: aws.Int32(int32(f.MaxENIs)), EncryptionInTransitSupported: aws.Bool(f.EncryptionInTransit), EnaSupport: types.EnaSupportRequired},
	}
	for _, a := range f.Arch {
		info.ProcessorInfo.SupportedArchitectures = append(info.ProcessorInfo.SupportedArchitectures, types.ArchitectureType(strings.Replace(a, "amd64", "x86_64", 1)))
	}
	for _, u := range f.UsageClasses {
		info.SupportedUsageClasses = append(info.SupportedUsageClasses, types.UsageClassType(u))
	}
	if f.NestedVirtualization {
		info.ProcessorInfo.SupportedFeatures = append(info.ProcessorInfo.SupportedFeatures, types.SupportedAdditionalProcessorFeatureNestedVirtualization)
	}
	if f.NoENA {
		info.NetworkInfo.EnaSupport = types.EnaSupportUnsupported
	}
	for i, n := range f.CardENIs {
		info.NetworkInfo.NetworkCards = append(info.NetworkInfo.NetworkCards, types.NetworkCardInfo{NetworkCardIndex: aws.Int32(int32(i)), MaximumNetworkInterfaces: aws.Int32(int32(n))})
	}
	if f.EFA {
		info.NetworkInfo.EfaInfo = &types.EfaInfo{MaximumEfaInterfaces: aws.Int32(int32(f.MaxEFAs))}
	}
	if f.EBSMaxMbps > 0 {
		info.EbsInfo = &types.EbsInfo{EbsOptimizedSupport: types.EbsOptimizedSupportDefault, EbsOptimizedInfo: &types.EbsOptimizedInfo{MaximumBandwidthInMbps: aws.Int32(int32(f.EBSMaxMbps))}}
	}
	if f.LocalStorageGB > 0 {
		info.InstanceStorageInfo = &types.InstanceStorageInfo{TotalSizeInGB: aws.Int64(f.LocalStorageGB), NvmeSupport: types.EphemeralNvmeSupportUnsupported}
		if f.LocalNVMeGB > 0 {
			info.InstanceStorageInfo.NvmeSupport = types.EphemeralNvmeSupportRequired
		}
	}
	addDevices(&info, f)
	return info
}

func addDevices(info *types.InstanceTypeInfo, f instancetypes.Facts) {
	for _, g := range f.GPUs {
		if info.GpuInfo == nil {
			info.GpuInfo = &types.GpuInfo{}
		}
		info.GpuInfo.Gpus = append(info.GpuInfo.Gpus, types.GpuDeviceInfo{Manufacturer: aws.String(g.Manufacturer), Name: aws.String(g.Name),
			Count: aws.Int32(int32(g.Count)), MemoryInfo: &types.GpuDeviceMemoryInfo{SizeInMiB: aws.Int32(int32(g.MemoryMiB))}})
	}
	for _, n := range f.Neuron {
		if info.NeuronInfo == nil {
			info.NeuronInfo = &types.NeuronInfo{}
		}
		info.NeuronInfo.NeuronDevices = append(info.NeuronInfo.NeuronDevices, types.NeuronDeviceInfo{Name: aws.String(n.Name), Count: aws.Int32(int32(n.Count)),
			CoreInfo: &types.NeuronDeviceCoreInfo{Count: aws.Int32(int32(n.CoresPerDevice))}})
	}
	for _, a := range f.InferenceAccelerators {
		if info.InferenceAcceleratorInfo == nil {
			info.InferenceAcceleratorInfo = &types.InferenceAcceleratorInfo{}
		}
		info.InferenceAcceleratorInfo.Accelerators = append(info.InferenceAcceleratorInfo.Accelerators, types.InferenceDeviceInfo{
			Manufacturer: aws.String(a.Manufacturer), Name: aws.String(a.Name), Count: aws.Int32(int32(a.Count))})
	}
}

// difference is a way in which the two may differ, with the reason.
type difference struct {
	why     string
	applies func(w world, typeName, what string, theirs, ours string) bool
}

func differences(c instancetypes.Catalog) []difference {
	xen := map[string]bool{}
	for _, f := range c.Types {
		xen[f.Name] = f.Hypervisor == "xen"
	}
	return append(differencesOfRelease(), []difference{
		{"Joiner leaves types out that no class of the family can use: a1 under AL2023", func(w world, name, what, theirs, _ string) bool {
			return what == "type" && theirs == "there, usable false" && strings.HasPrefix(name, "a1.") && strings.Contains(w.spec, "amiFamily: AL2023")
		}},
		{"pods write to the family's volume in Joiner, whatever is marked as root", func(w world, _, what, _, _ string) bool {
			return strings.HasSuffix(w.name, " with a root volume") && strings.HasSuffix(what, "ephemeral-storage")
		}},
		{"EC2 gives Xen types no prefixes", func(w world, name, what, theirs, _ string) bool {
			return what == "usable" && theirs == "true" && xen[name] && strings.Contains(w.spec, "ipPrefixCount")
		}},
	}...)
}

// Every type of the data set has Karpenter's labels, capacity and allocatable in every world, and is usable where
// Karpenter's is, but for the differences listed.
func TestEveryTypeInEveryWorld(t *testing.T) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	allowed, used, compared := differences(c), map[string]int{}, 0
	for _, w := range worlds() {
		want, got, shown := theirs(t, w, c), ours(t, w, c), 0
		for _, name := range slices.Sorted(maps.Keys(want)) {
			compared++
			all := compare(want[name], got[name])
			for _, what := range slices.Sorted(maps.Keys(all)) {
				d := all[what]
				i := slices.IndexFunc(allowed, func(a difference) bool { return a.applies(w, name, what, d[0], d[1]) })
				if i >= 0 {
					used[allowed[i].why]++
					continue
				}
				if shown++; shown <= 10 {
					t.Errorf("%s, %s: %s is %q in Karpenter and %q in Joiner", w.name, name, what, d[0], d[1])
				}
			}
		}
		if shown > 10 {
			t.Errorf("%s: %d differences", w.name, shown)
		}
	}
	for _, a := range allowed {
		if used[a.why] == 0 {
			t.Errorf("nothing differs because %s", a.why)
		}
		t.Logf("%6d values differ because %s", used[a.why], a.why)
	}
	t.Logf("%d types in %d worlds compared", compared, len(worlds()))
	if compared < 60*1200 {
		t.Errorf("only %d types were compared", compared)
	}
}

// compare lists what differs, by its name, with their value and ours.
func compare(want, got seen) map[string][2]string {
	out := map[string][2]string{}
	note := func(what, a, b string) {
		if a != b {
			out[what] = [2]string{a, b}
		}
	}
	if got.labels == nil {
		return map[string][2]string{"type": {fmt.Sprintf("there, usable %t", want.usable), "left out"}}
	}
	note("usable", fmt.Sprint(want.usable), fmt.Sprint(got.usable))
	for _, k := range keys(want.labels, got.labels) {
		note("label "+k, want.labels[k], got.labels[k])
	}
	for _, k := range keys(want.capacity, got.capacity) {
		note("capacity of "+k, fmt.Sprint(want.capacity[k]), fmt.Sprint(got.capacity[k]))
	}
	for _, k := range keys(want.allocatable, got.allocatable) {
		note("allocatable "+k, fmt.Sprint(want.allocatable[k]), fmt.Sprint(got.allocatable[k]))
	}
	return out
}

func keys[V any](a, b map[string]V) []string {
	all := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(all)
	return slices.Compact(all)
}
