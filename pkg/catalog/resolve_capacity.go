package catalog

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"

	"joiner/pkg/resource"
)

// Amounts that hold where a class says nothing else (spec aws.md §2.4 to §2.6).
const (
	defaultEphemeral         = 20 << 30 // bytes
	defaultWindowsPods       = 110
	reservedEphemeral        = 1 << 30           // bytes
	reservedPerPod           = 11 * resource.MiB // bytes
	reservedMemory           = 255 * resource.MiB
	defaultEviction          = 100 * resource.MiB
	armFirmware              = 64 // MiB that an ARM instance keeps before the system sees it
	evictionPercent          = 10 // of the ephemeral storage
	signalMemory             = "memory.available"
	signalEphemeral          = "nodefs.available"
	bytesPerGB               = 1_000_000_000
	bytesPerMiB              = float64(resource.MiB)
	milliPerCore       int64 = 1000
)

// amounts is what a node of a type has, and what of it pods can use.
type amounts struct {
	capacity    resource.List
	allocatable resource.List
}

// limits are the amounts that kubelet settings of the class take away, parsed.
type limits struct {
	kube, system resource.List
	kubeSet      [3]bool // whether cpu, memory and ephemeral storage in kube replace the computed ones
	memory, disk threshold
}

// threshold is an eviction threshold: bytes, or a percentage of what there is. Unset leaves the default.
type threshold struct {
	set     bool
	percent float64 // used when not negative
	bytes   int64
}

func newLimits(c Class) (limits, error) {
	var l limits
	var err error
	if l.kube, err = parseReserved("kubeReserved", c.KubeReserved); err != nil {
		return limits{}, err
	}
	for i, name := range []string{resource.CPU, resource.Memory, resource.Ephemeral} {
		_, l.kubeSet[i] = c.KubeReserved[name]
	}
	if l.system, err = parseReserved("systemReserved", c.SystemReserved); err != nil {
		return limits{}, err
	}
	if l.memory, err = parseThreshold(c.EvictionHard, signalMemory); err != nil {
		return limits{}, err
	}
	if l.disk, err = parseThreshold(c.EvictionHard, signalEphemeral); err != nil {
		return limits{}, err
	}
	return l, nil
}

// parseReserved reads a map of quantities. The key pid takes nothing that pods ask for.
func parseReserved(field string, m map[string]string) (resource.List, error) {
	var l resource.List
	for _, name := range []string{resource.CPU, resource.Memory, resource.Ephemeral} {
		text, ok := m[name]
		if !ok {
			continue
		}
		q, err := quantity.ParseQuantity(text)
		if err != nil {
			return l, fmt.Errorf("kubelet %s %s: %q is no quantity", field, name, text)
		}
		if name == resource.CPU {
			l.CPU = q.MilliValue()
		} else {
			l = l.With(name, q.Value())
		}
	}
	return l, nil
}

func parseThreshold(m map[string]string, signal string) (threshold, error) {
	text, ok := m[signal]
	if !ok {
		return threshold{}, nil
	}
	if number, found := strings.CutSuffix(text, "%"); found {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || p < 0 || p > 100 {
			return threshold{}, fmt.Errorf("kubelet evictionHard %s: %q is no percentage", signal, text)
		}
		if p == 100 {
			p = 0 // the kubelet takes 100 % as switched off
		}
		return threshold{set: true, percent: p}, nil
	}
	q, err := quantity.ParseQuantity(text)
	if err != nil {
		return threshold{}, fmt.Errorf("kubelet evictionHard %s: %q is no quantity", signal, text)
	}
	return threshold{set: true, percent: -1, bytes: q.Value()}, nil
}

// of returns the threshold in bytes where there are total bytes.
func (t threshold) of(total, unset int64) int64 {
	switch {
	case !t.set:
		return unset
	case t.percent >= 0:
		return int64(math.Ceil(float64(total) / 100 * t.percent))
	}
	return t.bytes
}

// amounts computes what a node of the type has (spec aws.md §2.3 to §2.6).
func (r *resolver) amounts(f *Facts, arch string) amounts {
	pods := r.pods(f)
	memory := memoryEstimate(f, r.class.MemoryOverhead)
	c := resource.List{
		CPU: f.VCPU * milliPerCore, Memory: memory, Pods: pods,
		Ephemeral: r.ephemeral(f), Extended: r.extended(f, arch),
	}
	if mib, ok := r.class.LearnedMemoryMiB[f.Name]; ok {
		c.Memory = mib * resource.MiB // what nodes reported; the thresholds keep to the estimate
	}
	reserved := r.reserved(f, pods).Add(r.limits.system).Add(resource.List{
		Memory:    r.limits.memory.of(memory, defaultEviction),
		Ephemeral: r.limits.disk.of(c.Ephemeral, percentUp(c.Ephemeral, evictionPercent)),
	})
	a := c
	a.CPU -= reserved.CPU
	a.Memory -= reserved.Memory
	a.Ephemeral -= reserved.Ephemeral
	return amounts{capacity: c, allocatable: a}
}

// memoryEstimate is the memory in bytes that the system will see: the nominal size less firmware and hypervisor.
func memoryEstimate(f *Facts, overhead float64) int64 {
	mib := f.MemoryMiB
	if len(f.Arch) > 0 && f.Arch[0] == "arm64" {
		mib -= armFirmware
	}
	mib -= int64(math.Ceil(float64(mib*resource.MiB) * overhead / bytesPerMiB))
	return mib * resource.MiB
}

// ephemeral is the size in bytes of the disk that pods write to.
func (r *resolver) ephemeral(f *Facts) int64 {
	switch {
	case r.class.RAID0 && f.LocalStorageGB > 0:
		return f.LocalStorageGB * bytesPerGB
	case r.class.EphemeralBytes > 0:
		return r.class.EphemeralBytes
	}
	return defaultEphemeral
}

// pods is how many pods a node of the type may run (spec aws.md §2.5).
func (r *resolver) pods(f *Facts) int64 {
	var n int64
	switch {
	case r.class.MaxPods != nil:
		n = *r.class.MaxPods
	case limitsPodsByENI(r.class.Family):
		n = podsByENI(f, r.class.ReservedENIs+r.efaOnly(0))
	default:
		n = defaultWindowsPods
	}
	if r.class.PodsPerCore > 0 && honorsPodsPerCore(r.class.Family) {
		n = min(n, r.class.PodsPerCore*f.VCPU)
	}
	return n
}

// podsByENI is how many pods the addresses of the network interfaces suffice for, with taken interfaces used otherwise. Two
// pods use the host's network.
func podsByENI(f *Facts, taken int64) int64 {
	enis := f.DefaultCardENIs - taken
	if enis <= 0 {
		return 0
	}
	return enis*(f.IPv4PerENI-1) + 2
}

// reserved is what the kubelet and the container runtime keep for themselves (spec aws.md §2.6).
func (r *resolver) reserved(f *Facts, pods int64) resource.List {
	if reservesByENI(r.class.Family) {
		pods = podsByENI(f, r.efaOnly(0))
	}
	l := resource.List{CPU: reservedCPU(f.VCPU), Memory: reservedPerPod*pods + reservedMemory, Ephemeral: reservedEphemeral}
	if r.limits.kubeSet[0] {
		l.CPU = r.limits.kube.CPU
	}
	if r.limits.kubeSet[1] {
		l.Memory = r.limits.kube.Memory
	}
	if r.limits.kubeSet[2] {
		l.Ephemeral = r.limits.kube.Ephemeral
	}
	return l
}

// reservedCPU is 6 % of the first core, 1 % of the second, 0.5 % of the next two and 0.25 % of the rest, in millicores.
func reservedCPU(cores int64) int64 {
	milli := int64(0)
	for _, band := range [4]struct{ cores, basisPoints int64 }{{1, 600}, {1, 100}, {2, 50}, {cores, 25}} {
		n := min(cores, band.cores)
		milli += n * milliPerCore * band.basisPoints / 10000
		cores -= n
	}
	return milli
}

// extended lists the devices that pods can ask for, sorted by name (spec aws.md §2.3).
func (r *resolver) extended(f *Facts, arch string) []resource.Extended {
	var amd, gaudi, nvidia, neurons, cores, addresses int64
	for _, g := range f.GPUs {
		switch g.Manufacturer {
		case "AMD":
			amd += g.Count
		case "Habana":
			gaudi += g.Count
		case "NVIDIA":
			nvidia += g.Count
		}
	}
	for i, n := range f.Neuron {
		neurons += n.Count
		if i == 0 {
			cores = n.Count * n.CoresPerDevice
		}
	}
	if IsWindows(r.class.Family) && arch == "amd64" {
		addresses = f.IPv4PerENI - 1
	}
	efas := f.MaxEFAs
	if len(r.class.Interfaces) > 0 {
		efas = r.efaOnly(allCards)
	}
	var out []resource.Extended
	for _, e := range [...]resource.Extended{
		{Name: ResourceAMD, Count: amd}, {Name: ResourceNeuron, Count: neurons}, {Name: ResourceNeuronCore, Count: cores},
		{Name: ResourceGaudi, Count: gaudi}, {Name: ResourceNVIDIA, Count: nvidia}, {Name: ResourcePrivateIP, Count: addresses},
		{Name: ResourceEFA, Count: efas}, {Name: ResourcePodENI, Count: f.BranchENIs},
	} {
		if e.Count > 0 {
			out = append(out, e)
		}
	}
	return out
}

// percentUp is p percent of n, rounded up.
func percentUp(n, p int64) int64 { return int64(math.Ceil(float64(n) / 100 * float64(p))) }
