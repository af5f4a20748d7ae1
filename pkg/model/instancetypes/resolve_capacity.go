package instancetypes

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	quantity "k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/model/resources"
)

// Amounts that hold where a class says nothing else.
const (
	defaultEphemeral   = 20 << 30 // bytes
	defaultWindowsPods = 110
	reservedEphemeral  = 1 << 30            // bytes
	reservedPerPod     = 11 * resources.MiB // bytes
	reservedMemory     = 255 * resources.MiB
	defaultEviction    = 100 * resources.MiB
	armFirmware        = 64 // MiB that an ARM instance keeps before the system sees it
	evictionPercent    = 10 // of the ephemeral storage
	// of the nominal memory that a system sees; firmware and hypervisor take less than the rest
	leastMemoryPercent       = 85
	signalMemory             = "memory.available"
	signalEphemeral          = "nodefs.available"
	bytesPerGB               = 1_000_000_000
	bytesPerMiB              = float64(resources.MiB)
	milliPerCore       int64 = 1000
)

// kubeletLimits are the amounts that kubelet settings of the class take away, parsed.
type kubeletLimits struct {
	kube, system resources.List
	kubeSet      map[string]string // the resources whose amounts in kube replace the computed ones
	memory, disk evictionThreshold
	expressions  kubeletExpressions // of which kube and system hold nothing
}

// evictionThreshold is an eviction threshold: bytes, or a percentage of what there is. Unset leaves the default.
type evictionThreshold struct {
	set     bool
	percent float64 // used when not negative
	bytes   int64
}

func newLimits(c Class) (kubeletLimits, error) {
	var l kubeletLimits
	var err error
	if l.expressions, err = newExpressions(c); err != nil {
		return kubeletLimits{}, err
	}
	if l.kube, err = parseReserved("kubeReserved", c.KubeReserved); err != nil {
		return kubeletLimits{}, err
	}
	l.kubeSet = c.KubeReserved
	if l.system, err = parseReserved("systemReserved", c.SystemReserved); err != nil {
		return kubeletLimits{}, err
	}
	if l.memory, err = parseThreshold(c.EvictionHard, signalMemory); err != nil {
		return kubeletLimits{}, err
	}
	if l.disk, err = parseThreshold(c.EvictionHard, signalEphemeral); err != nil {
		return kubeletLimits{}, err
	}
	return l, nil
}

// parseReserved reads the quantities of a map. The key pid takes nothing that pods ask for.
func parseReserved(field string, m map[string]string) (resources.List, error) {
	var l resources.List
	for _, name := range []string{resources.CPU, resources.Memory, resources.Ephemeral} {
		text, ok := m[name]
		if !ok || !IsQuantity(text) {
			continue // it is not there, or an expression
		}
		q, err := quantity.ParseQuantity(text)
		if err != nil {
			return l, fmt.Errorf("kubelet %s %s: %q is no quantity", field, name, text)
		}
		if name == resources.CPU {
			l.CPU = q.MilliValue()
		} else {
			l = l.With(name, q.Value())
		}
	}
	return l, nil
}

func parseThreshold(m map[string]string, signal string) (evictionThreshold, error) {
	text, ok := m[signal]
	if !ok {
		return evictionThreshold{}, nil
	}
	if number, found := strings.CutSuffix(text, "%"); found {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || p < 0 || p > 100 {
			return evictionThreshold{}, fmt.Errorf("kubelet evictionHard %s: %q is no percentage", signal, text)
		}
		if p == 100 {
			p = 0 // the kubelet takes 100 % as switched off
		}
		return evictionThreshold{set: true, percent: p}, nil
	}
	q, err := quantity.ParseQuantity(text)
	if err != nil {
		return evictionThreshold{}, fmt.Errorf("kubelet evictionHard %s: %q is no quantity", signal, text)
	}
	return evictionThreshold{set: true, percent: -1, bytes: q.Value()}, nil
}

// bytesOf returns the threshold in bytes where there are total bytes.
func (t evictionThreshold) bytesOf(total, unset int64) int64 {
	switch {
	case !t.set:
		return unset
	case t.percent >= 0:
		return int64(math.Ceil(float64(total) / 100 * t.percent))
	}
	return t.bytes
}

// addAmounts adds what a node of the type has and what of it pods can use. It returns why the kubelet's settings make
// no sense for the type, nothing when they do.
func (r *typeResolver) addAmounts(t *Type, f *Facts, arch string) (why string) {
	pods, err := r.maxPods(f)
	if err != nil {
		why = err.Error()
	}
	limits, told, err := r.limitsOf(f, pods)
	if err != nil {
		why = cmp.Or(why, err.Error())
	}
	c := resources.List{
		CPU: f.VCPU * milliPerCore, Memory: memoryEstimate(f, r.class.MemoryOverhead), Pods: pods,
		Ephemeral: r.ephemeralStorage(f), Extended: r.extendedResources(f, arch),
	}
	if mib, ok := r.class.LearnedMemoryMiB[f.Name]; ok {
		// what nodes reported, as far as it can be true
		c.Memory = min(max(mib, f.MemoryMiB*leastMemoryPercent/100), f.MemoryMiB) * resources.MiB
	}
	reserved := r.reservedAmounts(f, pods, limits).Add(limits.system).Add(resources.List{
		Memory:    limits.memory.bytesOf(c.Memory, defaultEviction),
		Ephemeral: limits.disk.bytesOf(c.Ephemeral, percentUp(c.Ephemeral, evictionPercent)),
	})
	t.Capacity, t.Allocatable, t.MaxPods, t.Reserved = c, c, pods, told
	t.Allocatable.CPU -= reserved.CPU
	t.Allocatable.Memory -= reserved.Memory
	t.Allocatable.Ephemeral -= reserved.Ephemeral
	return why
}

// memoryEstimate is the memory in bytes that the system will see: the nominal size less firmware and hypervisor.
func memoryEstimate(f *Facts, overhead float64) int64 {
	mib := f.MemoryMiB
	if len(f.Arch) > 0 && f.Arch[0] == "arm64" {
		mib -= armFirmware
	}
	mib -= int64(math.Ceil(float64(mib*resources.MiB) * overhead / bytesPerMiB))
	return mib * resources.MiB
}

// ephemeralStorage is the size in bytes of the disk that pods write to.
func (r *typeResolver) ephemeralStorage(f *Facts) int64 {
	switch {
	case r.class.RAID0 && f.LocalStorageGB > 0:
		return f.LocalStorageGB * bytesPerGB
	case r.class.EphemeralBytes > 0:
		return r.class.EphemeralBytes
	}
	return defaultEphemeral
}

// maxPods returns the number of pods that a node of the type may run. With an error it is what holds without the
// expression.
func (r *typeResolver) maxPods(f *Facts) (int64, error) {
	usual := r.podsPerCore(f, r.usualPods(f))
	if r.limits.expressions.maxPods == nil {
		return usual, nil
	}
	n, err := r.limits.expressions.evaluateMaxPods(f, usual)
	if err != nil {
		return usual, err
	}
	return r.podsPerCore(f, n), nil
}

// usualPods is the number of the class, or what the family does without one.
func (r *typeResolver) usualPods(f *Facts) (n int64) {
	switch {
	case r.class.MaxPods != nil:
		n = *r.class.MaxPods
	case limitsPodsByENI(r.class.Family):
		n = podsByENI(f, r.class.ReservedENIs+r.efaOnly(0))
	default:
		n = defaultWindowsPods
	}
	return n
}

// podsPerCore is the number within what the class allows for each core.
func (r *typeResolver) podsPerCore(f *Facts, n int64) int64 {
	if r.class.PodsPerCore > 0 && honorsPodsPerCore(r.class.Family) {
		n = min(n, r.class.PodsPerCore*f.VCPU)
	}
	return n
}

// podsByENI returns the number of pods for which the addresses of the network interfaces suffice, with taken interfaces
// used otherwise. Two pods use the host's network.
func podsByENI(f *Facts, taken int64) int64 {
	enis := f.DefaultCardENIs - taken
	if enis <= 0 {
		return 0
	}
	return enis*(f.IPv4PerENI-1) + 2
}

// reservedAmounts returns what the kubelet and the container runtime keep for themselves.
func (r *typeResolver) reservedAmounts(f *Facts, pods int64, limits kubeletLimits) resources.List {
	if reservesByENI(r.class.Family) {
		pods = podsByENI(f, r.efaOnly(0))
	}
	l := resources.List{CPU: reservedCPU(f.VCPU), Memory: reservedPerPod*pods + reservedMemory,
		Ephemeral: reservedEphemeral}
	for name := range limits.kubeSet {
		l = l.With(name, limits.kube.Get(name))
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

// extendedResources lists the devices that pods can ask for, sorted by name.
func (r *typeResolver) extendedResources(f *Facts, arch string) []resources.Extended {
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
	var out []resources.Extended
	for _, e := range [...]resources.Extended{
		{Name: ResourceAMD, Count: amd}, {Name: ResourceNeuron, Count: neurons},
		{Name: ResourceNeuronCore, Count: cores},
		{Name: ResourceGaudi, Count: gaudi}, {Name: ResourceNVIDIA, Count: nvidia},
		{Name: ResourcePrivateIP, Count: addresses},
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
