package instancetypes

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/requirements"
)

// typeRequirements returns the values that a node of the type can have for each label an instance type decides. A label
// that the type does not give is there as one that does not exist, so that asking for it is refused.
func (r *typeResolver) typeRequirements(f *Facts, arch string) requirements.Set {
	b := requirementBuilder{values: make([]string, 0, 48), list: r.list[:0]}
	b.addPlace(r, f)
	b.addSystem(r.class.Family, arch)
	b.addName(f.Name)
	b.addHardware(f)
	b.addDevices(f)
	b.addValues(LabelType, f.Name)
	b.addValues(LabelTenancy, TenancyDedicated, TenancyDefault)
	b.addReservations(r.booked[f.Name])
	b.addPlacementGroup(r.class.Placement)
	r.list = b.list
	return requirements.Sorted(r.sortedRequirements(b.list))
}

// sortedRequirements returns the requirements by key. Nearly all types have the same keys in the same order, so how to
// sort them is remembered.
func (r *typeResolver) sortedRequirements(list []requirements.Requirement) []requirements.Requirement {
	same := len(list) == len(r.keys)
	for i := 0; same && i < len(list); i++ {
		same = list[i].Key == r.keys[i]
	}
	if !same {
		r.keys, r.order = make([]string, len(list)), make([]int, len(list))
		for i := range list {
			r.keys[i], r.order[i] = list[i].Key, i
		}
		slices.SortFunc(r.order, func(x, y int) int { return strings.Compare(r.keys[x], r.keys[y]) })
	}
	out := make([]requirements.Requirement, len(list))
	for i, from := range r.order {
		out[i] = list[from]
	}
	return out
}

// addPlacementGroup are the group of the class and the partitions that EC2 may put a node into.
func (b *requirementBuilder) addPlacementGroup(p *Placement) {
	if p == nil || p.ID == "" {
		b.addAbsent(LabelPlacement, LabelPartition)
		return
	}
	b.addValues(LabelPlacement, p.ID)
	var partitions []string
	for i := range p.Partitions {
		partitions = append(partitions, strconv.FormatInt(i+1, 10))
	}
	slices.Sort(partitions)
	b.addValues(LabelPartition, partitions...)
}

// requirementBuilder collects requirements whose values share one array, because there are thousands of them.
type requirementBuilder struct {
	values []string
	list   []requirements.Requirement
}

// addValues adds a requirement; values are sorted. Without values it says that the label does not exist.
func (b *requirementBuilder) addValues(key string, values ...string) {
	if len(values) == 0 {
		b.list = append(b.list, requirements.None(key))
		return
	}
	n := len(b.values)
	b.values = append(b.values, values...)
	b.list = append(b.list, requirements.Requirement{Key: key, Values: b.values[n:len(b.values):len(b.values)]})
}

// addNumber adds a requirement for a positive number, or none at all for 0.
func (b *requirementBuilder) addNumber(key string, n int64) {
	if n == 0 {
		b.addValues(key)
		return
	}
	b.addValues(key, strconv.FormatInt(n, 10))
}

func (b *requirementBuilder) addPlace(r *typeResolver, f *Facts) {
	names, ids := make([]string, 0, len(r.zones)), make([]string, 0, len(r.zones))
	for _, z := range r.zones {
		if !z.hasSubnet || !slices.Contains(f.Zones, z.name) {
			continue
		}
		names = append(names, z.name)
		if z.id != "" {
			ids = append(ids, z.id)
		}
	}
	slices.Sort(ids)
	b.addValues(LabelZone, names...)
	if len(ids) > 0 {
		b.addValues(LabelZoneID, ids...)
	}
	b.addValues(LabelRegion, r.region)
	var sold [3]string
	types := capacityTypes(f, sold[:0])
	if len(r.booked[f.Name]) > 0 {
		types = append(types[:len(types):len(types)], Reserved)
		slices.Sort(types)
	}
	b.addValues(LabelCapacityType, types...)
}

// addReservations are the labels that instances of the class's reservations of this type carry.
func (b *requirementBuilder) addReservations(list []*Reservation) {
	var ids, kinds, interruptible []string
	for _, r := range list {
		ids, kinds, interruptible = append(ids, r.ID), append(kinds, r.Kind),
			append(interruptible, strconv.FormatBool(r.Interruptible))
	}
	b.list = append(b.list, requirements.Of(LabelReservationID, ids...), requirements.Of(LabelReservation, kinds...),
		requirements.Of(LabelInterruptible, interruptible...))
}

// capacityTypes appends the ways in which the type is sold without a reservation, sorted.
func capacityTypes(f *Facts, to []string) []string {
	for _, c := range []string{OnDemand, Spot} {
		if slices.Contains(f.UsageClasses, c) {
			to = append(to, c)
		}
	}
	return to
}

func (b *requirementBuilder) addSystem(family, arch string) {
	b.addValues(LabelArch, arch)
	switch {
	case !IsWindows(family):
		b.addValues(LabelOS, "linux")
		b.addValues(LabelWindowsBuild)
	case arch == "amd64":
		b.addValues(LabelOS, "windows")
		b.addValues(LabelWindowsBuild, WindowsBuild(family))
	default: // there is no Windows image for ARM
		b.addValues(LabelOS)
		b.addValues(LabelWindowsBuild, WindowsBuild(family))
	}
}

func (b *requirementBuilder) addName(name string) {
	family, size, _ := strings.Cut(name, ".")
	b.addValues(LabelFamily, family)
	b.addValues(LabelSize, size)
	b.addValues(LabelFlex, strconv.FormatBool(strings.Contains(family, "-flex")))
	category, generation, ok := splitFamily(family)
	if !ok {
		b.addValues(LabelCategory)
		b.addValues(LabelGeneration)
		return
	}
	b.addValues(LabelCategory, category)
	b.addValues(LabelGeneration, generation)
}

// splitFamily takes category and generation from the name of a family: letters, then maybe a memory size such as -6tb,
// then digits. So is4gen gives is and 4, and u-6tb1 gives u and 1.
func splitFamily(family string) (category, generation string, ok bool) {
	digits := func(c rune) bool { return c < '0' || c > '9' }
	i := strings.IndexFunc(family, func(c rune) bool { return c < 'a' || c > 'z' })
	if i <= 0 {
		return "", "", false
	}
	category, rest := family[:i], family[i:]
	if after, found := strings.CutPrefix(rest, "-"); found {
		end := strings.IndexFunc(after, digits)
		if end <= 0 {
			return "", "", false
		}
		if rest, found = strings.CutPrefix(after[end:], "tb"); !found {
			return "", "", false
		}
	}
	end := strings.IndexFunc(rest, digits)
	if end < 0 {
		end = len(rest)
	}
	return category, rest[:end], end > 0
}

func (b *requirementBuilder) addHardware(f *Facts) {
	b.addNumber(LabelCPU, f.VCPU)
	if f.CPUManufacturer == "" {
		b.addValues(LabelCPUMaker)
	} else {
		b.addValues(LabelCPUMaker, kebabCase(f.CPUManufacturer))
	}
	b.addValues(LabelCPUClock, strconv.FormatInt(int64(math.Round(f.ClockGHz*1000)), 10)) // 0 where EC2 does not say
	b.addNumber(LabelMemory, f.MemoryMiB)
	b.addNumber(LabelEBSBandwidth, f.EBSMaxMbps)
	b.addNumber(LabelNetBandwidth, f.BandwidthMbps)
	b.addNumber(LabelLocalNVMe, f.LocalNVMeGB)
	b.addValues(LabelHypervisor, f.Hypervisor)
	b.addValues(LabelEncryption, strconv.FormatBool(f.EncryptionInTransit))
}

// addDevices describes GPUs and accelerators, each only where the type has exactly one kind.
func (b *requirementBuilder) addDevices(f *Facts) {
	if len(f.GPUs) == 1 {
		g := f.GPUs[0]
		b.addValues(LabelGPUName, kebabCase(g.Name))
		b.addValues(LabelGPUMaker, kebabCase(g.Manufacturer))
		b.addValues(LabelGPUCount, strconv.FormatInt(g.Count, 10))
		b.addValues(LabelGPUMemory, strconv.FormatInt(g.MemoryMiB, 10))
	} else {
		b.addAbsent(LabelGPUName, LabelGPUMaker, LabelGPUCount, LabelGPUMemory)
	}
	switch {
	case len(f.Neuron) == 1:
		b.addAccelerator(f.Neuron[0].Name, "aws", f.Neuron[0].Count)
	case len(f.Neuron) == 0 && len(f.InferenceAccelerators) == 1:
		a := f.InferenceAccelerators[0]
		b.addAccelerator(a.Name, a.Manufacturer, a.Count)
	default:
		b.addAbsent(LabelAccelName, LabelAccelMaker, LabelAccelCount)
	}
}

func (b *requirementBuilder) addAccelerator(name, maker string, count int64) {
	b.addValues(LabelAccelName, kebabCase(name))
	b.addValues(LabelAccelMaker, kebabCase(maker))
	b.addValues(LabelAccelCount, strconv.FormatInt(count, 10))
}

func (b *requirementBuilder) addAbsent(keys ...string) {
	for _, k := range keys {
		b.addValues(k)
	}
}

// kebabCase makes a label value of a product name.
func kebabCase(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
