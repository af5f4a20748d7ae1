package catalog

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"joiner/pkg/require"
)

// requirements returns the values that a node of the type can have for each label an instance type decides. A label that
// the type does not give is there as one that does not exist, so that asking for it is refused (spec aws.md §2.2).
func (r *resolver) requirements(f *Facts, arch string) require.Set {
	b := builder{values: make([]string, 0, 48), list: r.list[:0]}
	b.place(r, f)
	b.system(r.class.Family, arch)
	b.name(f.Name)
	b.hardware(f)
	b.devices(f)
	b.set(LabelType, f.Name)
	b.set(LabelTenancy, TenancyDedicated, TenancyDefault)
	b.reservations(r.booked[f.Name])
	b.placement(r.class.Placement)
	r.list = b.list
	return require.Sorted(r.sorted(b.list))
}

// sorted returns the requirements by key. Nearly all types have the same keys in the same order, so how to sort them is remembered.
func (r *resolver) sorted(list []require.Requirement) []require.Requirement {
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
	out := make([]require.Requirement, len(list))
	for i, from := range r.order {
		out[i] = list[from]
	}
	return out
}

// placement are the group of the class and the partitions that EC2 may put a node into (spec aws.md §1.15).
func (b *builder) placement(p *Placement) {
	if p == nil || p.ID == "" {
		b.absent(LabelPlacement, LabelPartition)
		return
	}
	b.set(LabelPlacement, p.ID)
	var partitions []string
	for i := range p.Partitions {
		partitions = append(partitions, strconv.FormatInt(i+1, 10))
	}
	slices.Sort(partitions)
	b.set(LabelPartition, partitions...)
}

// builder collects requirements whose values share one array, because there are thousands of them.
type builder struct {
	values []string
	list   []require.Requirement
}

// set adds a requirement; values are sorted. Without values it says that the label does not exist.
func (b *builder) set(key string, values ...string) {
	if len(values) == 0 {
		b.list = append(b.list, require.None(key))
		return
	}
	n := len(b.values)
	b.values = append(b.values, values...)
	b.list = append(b.list, require.Requirement{Key: key, Values: b.values[n:len(b.values):len(b.values)]})
}

// number adds a requirement for a positive number, or none at all for 0.
func (b *builder) number(key string, n int64) {
	if n == 0 {
		b.set(key)
		return
	}
	b.set(key, strconv.FormatInt(n, 10))
}

func (b *builder) place(r *resolver, f *Facts) {
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
	b.set(LabelZone, names...)
	if len(ids) > 0 {
		b.set(LabelZoneID, ids...)
	}
	b.set(LabelRegion, r.region)
	var sold [3]string
	types := capacityTypes(f, sold[:0])
	if len(r.booked[f.Name]) > 0 {
		types = append(types[:len(types):len(types)], Reserved)
		slices.Sort(types)
	}
	b.set(LabelCapacityType, types...)
}

// reservations are the labels that instances of the class's reservations of this type carry.
func (b *builder) reservations(list []*Reservation) {
	var ids, kinds, interruptible []string
	for _, r := range list {
		ids, kinds, interruptible = append(ids, r.ID), append(kinds, r.Kind), append(interruptible, strconv.FormatBool(r.Interruptible))
	}
	b.set(LabelReservationID, distinct(ids)...)
	b.set(LabelReservation, distinct(kinds)...)
	b.set(LabelInterruptible, distinct(interruptible)...)
}

func distinct(values []string) []string {
	slices.Sort(values)
	return slices.Compact(values)
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

func (b *builder) system(family, arch string) {
	b.set(LabelArch, arch)
	switch {
	case !IsWindows(family):
		b.set(LabelOS, "linux")
		b.set(LabelWindowsBuild)
	case arch == "amd64":
		b.set(LabelOS, "windows")
		b.set(LabelWindowsBuild, WindowsBuild(family))
	default: // there is no Windows image for ARM
		b.set(LabelOS)
		b.set(LabelWindowsBuild, WindowsBuild(family))
	}
}

func (b *builder) name(name string) {
	family, size, _ := strings.Cut(name, ".")
	b.set(LabelFamily, family)
	b.set(LabelSize, size)
	b.set(LabelFlex, strconv.FormatBool(strings.Contains(family, "-flex")))
	category, generation, ok := splitFamily(family)
	if !ok {
		b.set(LabelCategory)
		b.set(LabelGeneration)
		return
	}
	b.set(LabelCategory, category)
	b.set(LabelGeneration, generation)
}

// splitFamily takes category and generation from the name of a family: letters, then maybe a memory size such as -6tb, then
// digits. So is4gen gives is and 4, and u-6tb1 gives u and 1.
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

func (b *builder) hardware(f *Facts) {
	b.number(LabelCPU, f.VCPU)
	if f.CPUManufacturer == "" {
		b.set(LabelCPUMaker)
	} else {
		b.set(LabelCPUMaker, kebab(f.CPUManufacturer))
	}
	b.set(LabelCPUClock, strconv.FormatInt(int64(math.Round(f.ClockGHz*1000)), 10)) // 0 where EC2 does not say
	b.number(LabelMemory, f.MemoryMiB)
	b.number(LabelEBSBandwidth, f.EBSMaxMbps)
	b.number(LabelNetBandwidth, f.BandwidthMbps)
	b.number(LabelLocalNVMe, f.LocalNVMeGB)
	b.set(LabelHypervisor, f.Hypervisor)
	b.set(LabelEncryption, strconv.FormatBool(f.EncryptionInTransit))
}

// devices describes GPUs and accelerators, each only where the type has exactly one kind.
func (b *builder) devices(f *Facts) {
	if len(f.GPUs) == 1 {
		g := f.GPUs[0]
		b.set(LabelGPUName, kebab(g.Name))
		b.set(LabelGPUMaker, kebab(g.Manufacturer))
		b.set(LabelGPUCount, strconv.FormatInt(g.Count, 10)) // 0 for a part of a GPU
		b.set(LabelGPUMemory, strconv.FormatInt(g.MemoryMiB, 10))
	} else {
		b.absent(LabelGPUName, LabelGPUMaker, LabelGPUCount, LabelGPUMemory)
	}
	switch {
	case len(f.Neuron) == 1:
		b.accelerator(f.Neuron[0].Name, "aws", f.Neuron[0].Count)
	case len(f.Neuron) == 0 && len(f.InferenceAccelerators) == 1:
		a := f.InferenceAccelerators[0]
		b.accelerator(a.Name, a.Manufacturer, a.Count)
	default:
		b.absent(LabelAccelName, LabelAccelMaker, LabelAccelCount)
	}
}

func (b *builder) accelerator(name, maker string, count int64) {
	b.set(LabelAccelName, kebab(name))
	b.set(LabelAccelMaker, kebab(maker))
	b.set(LabelAccelCount, strconv.FormatInt(count, 10))
}

func (b *builder) absent(keys ...string) {
	for _, k := range keys {
		b.set(k)
	}
}

// kebab makes a label value of a product name.
func kebab(s string) string { return strings.ReplaceAll(strings.ToLower(s), " ", "-") }
