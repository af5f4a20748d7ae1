package instancetypes_test

import (
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

var noTime time.Time

// region is the built-in catalog.
func region(t testing.TB) instancetypes.Catalog {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// resolved is one record of what Karpenter 1.14.1 makes of a type under the default class.
type resolved struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels"`
	Capacity    map[string]int64  `json:"capacity"`
	Allocatable map[string]int64  `json:"allocatable"`
}

func karpenter(t *testing.T) []resolved {
	t.Helper()
	f, err := os.Open("testdata/resolved-types.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zr, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []resolved
	if err := json.NewDecoder(zr).Decode(&out); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(out, func(a, b resolved) int { return compare(a.Name, b.Name) })
	return out
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func amountsOf(l resources.List) map[string]int64 {
	out := map[string]int64{}
	for _, n := range l.Names() {
		out[n] = l.Get(n)
	}
	return out
}

// Every type of the data set comes out as in Karpenter: labels, capacity and allocatable.
func TestEveryTypeLikeKarpenter(t *testing.T) {
	c, want := region(t), karpenter(t)
	got := instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, noTime)
	if len(got) != 1213 || len(want) != 1213 {
		t.Fatalf("%d types, Karpenter %d, want 1213", len(got), len(want))
	}
	for i, w := range want {
		labels := got[i].Requirements.Labels()
		for _, k := range []string{instancetypes.LabelZone, instancetypes.LabelZoneID, instancetypes.LabelCapacityType} {
			delete(labels, k) // these are single values for few types and belong to the offering
		}
		if strings.HasPrefix(w.Name, "g6f.") || strings.HasPrefix(w.Name, "gr6f.") { // Karpenter counts no part of a GPU
			w.Labels[instancetypes.LabelGPUCount] = "1"
			w.Capacity["nvidia.com/gpu"], w.Allocatable["nvidia.com/gpu"] = 1, 1
		}
		g := resolved{Name: got[i].Name, Labels: labels, Capacity: amountsOf(got[i].Capacity), Allocatable: amountsOf(got[i].Allocatable)}
		if d := cmp.Diff(w, g); d != "" {
			t.Errorf("%s (-karpenter +joiner):\n%s", w.Name, d)
		}
	}
}

func one(t *testing.T, class instancetypes.Class, name string) instancetypes.Type {
	t.Helper()
	for _, x := range instancetypes.ResolveTypes(region(t), class, nil, noTime) {
		if x.Name == name {
			return x
		}
	}
	t.Fatalf("no type %s", name)
	return instancetypes.Type{}
}

// The vectors Amounts are MiB and millicores; kept is capacity less allocatable.
func TestVectors(t *testing.T) {
	maxPods := func(n int64) func(*instancetypes.Class) { return func(c *instancetypes.Class) { c.MaxPods = &n } }
	family := func(f string) func(*instancetypes.Class) { return func(c *instancetypes.Class) { c.Family = f } }
	enis := func(c *instancetypes.Class) { c.ReservedENIs = 1 }
	perCore := func(c *instancetypes.Class) { c.PodsPerCore = 4 }
	for _, v := range []struct {
		name, typ                        string
		change                           []func(*instancetypes.Class)
		pods, memory, keptCPU, keptMiB   int64
		allocatableCPU, allocatableMemMB int64
	}{
		{"t3.medium", "t3.medium", nil, 17, 3788, 70, 442, 1930, 3246},
		{"m5.large", "m5.large", nil, 29, 7577, 70, 574, 1930, 6903},
		{"c6g.large", "c6g.large", nil, 29, 3729, 70, 574, 1930, 3055},
		{"m5.xlarge", "m5.xlarge", nil, 58, 15155, 80, 893, 3920, 14162},
		{"m7g.2xlarge", "m7g.2xlarge", nil, 58, 30251, 90, 893, 7910, 29258},
		{"m5.24xlarge", "m5.24xlarge", nil, 737, 363724, 310, 8362, 95690, 355262},
		{"max pods keep the reservation", "m5.large", []func(*instancetypes.Class){maxPods(110)}, 110, 7577, 70, 574, 1930, 6903},
		{"max pods move it on Bottlerocket", "m5.large", []func(*instancetypes.Class){family(instancetypes.Bottlerocket), maxPods(110)}, 110, 7577, 70, 1465, 1930, 6012},
		{"reserved ENI", "m5.large", []func(*instancetypes.Class){enis}, 20, 7577, 70, 574, 1930, 6903},
		{"reserved ENI on Bottlerocket", "m5.large", []func(*instancetypes.Class){family(instancetypes.Bottlerocket), enis}, 20, 7577, 70, 475, 1930, 7002},
		{"pods per core", "m5.large", []func(*instancetypes.Class){perCore}, 8, 7577, 70, 574, 1930, 6903},
		{"pods per core on Bottlerocket", "m5.large", []func(*instancetypes.Class){family(instancetypes.Bottlerocket), perCore}, 29, 7577, 70, 574, 1930, 6903},
		{"Windows", "m5.large", []func(*instancetypes.Class){family(instancetypes.Windows2022)}, 110, 7577, 70, 1465, 1930, 6012},
		{"EFA on the default card", "m5.large", []func(*instancetypes.Class){func(c *instancetypes.Class) {
			c.Interfaces = []instancetypes.Interface{{}, {Device: 1, EFAOnly: true}, {Device: 2, EFAOnly: true}, {Card: 1, EFAOnly: true}}
		}}, 11, 7577, 70, 376, 1930, 7101},
		{"all ENIs reserved", "m5.large", []func(*instancetypes.Class){func(c *instancetypes.Class) { c.ReservedENIs = 3 }}, 0, 7577, 70, 574, 1930, 6903},
	} {
		t.Run(v.name, func(t *testing.T) {
			class := instancetypes.DefaultClass(region(t))
			for _, f := range v.change {
				f(&class)
			}
			x := one(t, class, v.typ)
			kept := x.Capacity.Sub(x.Allocatable)
			got := []int64{x.MaxPods, x.Capacity.Memory >> 20, kept.CPU, kept.Memory>>20 - 100, x.Allocatable.CPU, x.Allocatable.Memory >> 20}
			want := []int64{v.pods, v.memory, v.keptCPU, v.keptMiB, v.allocatableCPU, v.allocatableMemMB}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
	win := one(t, with(t, func(c *instancetypes.Class) { c.Family = instancetypes.Windows2022 }), "m5.large")
	if n := win.Capacity.Get(instancetypes.ResourcePrivateIP); n != 9 {
		t.Errorf("Windows m5.large has %d addresses, want 9", n)
	}
}

func with(t *testing.T, change func(*instancetypes.Class)) instancetypes.Class {
	c := instancetypes.DefaultClass(region(t))
	change(&c)
	return c
}

func TestKubeletSettings(t *testing.T) {
	const gi = int64(1) << 30
	for _, v := range []struct {
		name   string
		change func(*instancetypes.Class)
		kept   resources.List // capacity less allocatable of m5.large
	}{
		{"kubeReserved replaces single keys",
			func(c *instancetypes.Class) { c.KubeReserved = map[string]string{"cpu": "500m", "pid": "100"} },
			resources.List{CPU: 500, Memory: (574 + 100) << 20, Ephemeral: 3 * gi}},
		{"kubeReserved of all",
			func(c *instancetypes.Class) {
				c.KubeReserved = map[string]string{"cpu": "1", "memory": "1Gi", "ephemeral-storage": "5Gi"}
			},
			resources.List{CPU: 1000, Memory: (1024 + 100) << 20, Ephemeral: 7 * gi}},
		{"systemReserved comes on top",
			func(c *instancetypes.Class) { c.SystemReserved = map[string]string{"cpu": "100m", "memory": "100Mi"} },
			resources.List{CPU: 170, Memory: (574 + 100 + 100) << 20, Ephemeral: 3 * gi}},
		{"eviction percentage counts from the memory that nodes have, rounded up",
			func(c *instancetypes.Class) {
				c.EvictionHard = map[string]string{"memory.available": "5%", "nodefs.available": "15%"}
				c.LearnedMemoryMiB = map[string]int64{"m5.large": 7700}
			},
			resources.List{CPU: 70, Memory: 574<<20 + 403701760, Ephemeral: 4 * gi}},
		{"eviction quantity",
			func(c *instancetypes.Class) {
				c.EvictionHard = map[string]string{"memory.available": "500Mi", "pid.available": "3%"}
			},
			resources.List{CPU: 70, Memory: (574 + 500) << 20, Ephemeral: 3 * gi}},
		{"eviction 100 % is off",
			func(c *instancetypes.Class) { c.EvictionHard = map[string]string{"memory.available": "100%"} },
			resources.List{CPU: 70, Memory: 574 << 20, Ephemeral: 3 * gi}},
	} {
		t.Run(v.name, func(t *testing.T) {
			x := one(t, with(t, v.change), "m5.large")
			if d := cmp.Diff(v.kept, x.Capacity.Sub(x.Allocatable), cmp.Comparer(func(a, b resources.List) bool { return a.String() == b.String() })); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestEphemeralAndLearnedMemory(t *testing.T) {
	raid := one(t, with(t, func(c *instancetypes.Class) { c.RAID0 = true }), "m5d.4xlarge")
	if raid.Capacity.Ephemeral != 600_000_000_000 || raid.Allocatable.Ephemeral != 600_000_000_000-60_000_000_000-1<<30 {
		t.Errorf("RAID0: %d of %d bytes", raid.Allocatable.Ephemeral, raid.Capacity.Ephemeral)
	}
	none := one(t, with(t, func(c *instancetypes.Class) { c.RAID0 = true; c.EphemeralBytes = 100 << 30 }), "m5.large")
	if none.Capacity.Ephemeral != 100<<30 || none.Allocatable.Ephemeral != 89<<30 {
		t.Errorf("100 GiB: %d of %d bytes", none.Allocatable.Ephemeral, none.Capacity.Ephemeral)
	}
	learned := one(t, with(t, func(c *instancetypes.Class) { c.LearnedMemoryMiB = map[string]int64{"m5.large": 7700} }), "m5.large")
	if learned.Capacity.Memory != 7700<<20 || learned.Allocatable.Memory != (7700-674)<<20 {
		t.Errorf("learned: %d of %d bytes", learned.Allocatable.Memory, learned.Capacity.Memory)
	}
	for said, want := range map[int64]int64{1: 6963, 16 << 20: 8192} {
		lied := one(t, with(t, func(c *instancetypes.Class) { c.LearnedMemoryMiB = map[string]int64{"m5.large": said} }), "m5.large")
		if lied.Capacity.Memory != want<<20 {
			t.Errorf("learned %d MiB: %d MiB, want %d", said, lied.Capacity.Memory>>20, want)
		}
	}
	efa := one(t, with(t, func(c *instancetypes.Class) {
		c.Interfaces = []instancetypes.Interface{{}, {Card: 1, EFAOnly: true}, {Card: 2, EFAOnly: true}, {Card: 3, EFAOnly: true}}
	}), "p5.48xlarge")
	if n := efa.Capacity.Get(instancetypes.ResourceEFA); n != 3 {
		t.Errorf("configured EFA interfaces: %d, want 3", n)
	}
}

// A kubelet setting that nobody can read keeps every type from the class, in words, instead of counting for nothing.
func TestKubeletSettingsThatCannotBeRead(t *testing.T) {
	for want, change := range map[string]func(*instancetypes.Class){
		`kubelet evictionHard memory.available: "-5%" is no percentage`:  func(c *instancetypes.Class) { c.EvictionHard = map[string]string{"memory.available": "-5%"} },
		`kubelet evictionHard nodefs.available: "101%" is no percentage`: func(c *instancetypes.Class) { c.EvictionHard = map[string]string{"nodefs.available": "101%"} },
		`kubelet evictionHard memory.available: "x%" is no percentage`:   func(c *instancetypes.Class) { c.EvictionHard = map[string]string{"memory.available": "x%"} },
		`kubelet evictionHard memory.available: "lots" is no quantity`:   func(c *instancetypes.Class) { c.EvictionHard = map[string]string{"memory.available": "lots"} },
	} {
		for _, o := range one(t, with(t, change), "m5.large").Offerings {
			if o.Available || o.Why != want {
				t.Errorf("%s: available %t, %q; want %q", o.OfferingKey, o.Available, o.Why, want)
			}
		}
	}
}

// The zones of a type are those where it is sold and the class has a subnet, and their ids go with them.
func TestZonesOfAType(t *testing.T) {
	for want, v := range map[string]struct{ sold, subnets []string }{
		"a,b r-1,r-2": {[]string{"a", "b"}, []string{"a", "b", "c"}},
		"b r-2":       {[]string{"a", "b"}, []string{"b", "c"}},
		"c r-3":       {[]string{"b", "c"}, []string{"a", "c"}},
		" ":           {[]string{"a"}, []string{"b"}},
	} {
		c := small(func(f *instancetypes.Facts) { f.Zones = v.sold })
		class := instancetypes.DefaultClass(c)
		class.ZoneIDs = map[string]string{}
		for _, z := range v.subnets {
			class.ZoneIDs[z] = c.Zones[z]
		}
		r := instancetypes.ResolveTypes(c, class, nil, noTime)[0].Requirements
		zones, _ := r.Get(instancetypes.LabelZone)
		ids, _ := r.Get(instancetypes.LabelZoneID)
		if got := strings.Join(zones.Values, ",") + " " + strings.Join(ids.Values, ","); got != want {
			t.Errorf("sold in %v, subnets in %v: %s, want %s", v.sold, v.subnets, got, want)
		}
	}
}

// A label that a type does not have refuses pods that ask for it.
func TestAbsentLabels(t *testing.T) {
	x := one(t, instancetypes.DefaultClass(region(t)), "m5.large")
	for _, k := range []string{
		instancetypes.LabelGPUCount, instancetypes.LabelAccelName, instancetypes.LabelLocalNVMe, instancetypes.LabelWindowsBuild,
		instancetypes.LabelReservationID, instancetypes.LabelPlacement,
	} {
		r, ok := x.Requirements.Get(k)
		if !ok || r.Operator() != requirements.DoesNotExist {
			t.Errorf("%s: %v %v, want one that does not exist", k, r, ok)
		}
	}
	if r, _ := x.Requirements.Get(instancetypes.LabelTenancy); !slices.Equal(r.Values, []string{"dedicated", "default"}) {
		t.Errorf("tenancy: %v", r)
	}
	metal := one(t, instancetypes.DefaultClass(region(t)), "m5.metal")
	if r, _ := metal.Requirements.Get(instancetypes.LabelHypervisor); !slices.Equal(r.Values, []string{""}) {
		t.Errorf("hypervisor of bare metal: %v, want the empty value", r)
	}
	win := with(t, func(c *instancetypes.Class) { c.Family = instancetypes.Windows2022 })
	if r, _ := one(t, win, "m6g.large").Requirements.Get(instancetypes.LabelOS); r.Operator() != requirements.DoesNotExist {
		t.Errorf("Windows on ARM: %v, want no operating system", r)
	}
	if r, _ := one(t, win, "m5.large").Requirements.Get(instancetypes.LabelOS); !slices.Equal(r.Values, []string{"windows"}) {
		t.Errorf("Windows: %v", r)
	}
	if r, _ := one(t, win, "m5.large").Requirements.Get(instancetypes.LabelWindowsBuild); !r.Has("10.0.20348") {
		t.Errorf("Windows build: %v", r)
	}
}

func TestCategoryAndGeneration(t *testing.T) {
	facts, ok := region(t).Find("m5.large")
	if !ok {
		t.Fatal("no m5.large")
	}
	for name, want := range map[string][2]string{
		"m5.large": {"m", "5"}, "u-6tb1.metal": {"u", "1"}, "is4gen.large": {"is", "4"}, "u7i-12tb.224xlarge": {"u", "7"},
		"m7i-flex.large": {"m", "7"}, "hpc6a.48xlarge": {"hpc", "6"}, "odd.large": {"", ""}, "u-x1.large": {"", ""},
		"a10.large": {"a", "10"}, "z9d.metal": {"z", "9"}, "5m.large": {"", ""},
	} {
		facts.Name = name
		c := instancetypes.Catalog{Region: "us-west-2", Zones: map[string]string{"us-west-2a": "usw2-az2"}, Types: []instancetypes.Facts{facts}}
		l := instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, noTime)[0].Requirements.Labels()
		if got := [2]string{l[instancetypes.LabelCategory], l[instancetypes.LabelGeneration]}; got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Accelerators make labels only where there is one kind, and Neuron counts before what EC2 calls inference
// accelerators.
func TestOneKindOfDevice(t *testing.T) {
	neuron, inference := instancetypes.Neuron{Name: "Trainium 2", Count: 4}, instancetypes.Accelerator{Manufacturer: "Some One", Name: "Chip", Count: 1}
	gpu := instancetypes.Accelerator{Manufacturer: "NVIDIA", Name: "T4", Count: 1}
	for _, v := range []struct {
		name  string
		facts func(*instancetypes.Facts)
		want  [3]string // accelerator name, its manufacturer, GPU name
	}{
		{"neuron", func(f *instancetypes.Facts) {
			f.Neuron, f.InferenceAccelerators = []instancetypes.Neuron{neuron}, []instancetypes.Accelerator{inference}
		}, [3]string{"trainium-2", "aws", ""}},
		{"inference", func(f *instancetypes.Facts) { f.InferenceAccelerators = []instancetypes.Accelerator{inference} }, [3]string{"chip", "some-one", ""}},
		{"two", func(f *instancetypes.Facts) {
			f.Neuron, f.InferenceAccelerators = []instancetypes.Neuron{neuron, neuron}, []instancetypes.Accelerator{inference}
		}, [3]string{}},
		{"GPU", func(f *instancetypes.Facts) { f.GPUs = []instancetypes.Accelerator{gpu} }, [3]string{"", "", "t4"}},
		{"two GPUs", func(f *instancetypes.Facts) { f.GPUs = []instancetypes.Accelerator{gpu, gpu} }, [3]string{}},
	} {
		c := small(v.facts)
		l := instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, noTime)[0].Requirements.Labels()
		if got := [3]string{l[instancetypes.LabelAccelName], l[instancetypes.LabelAccelMaker], l[instancetypes.LabelGPUName]}; got != v.want {
			t.Errorf("%s: %v, want %v", v.name, got, v.want)
		}
	}
}

func TestSameResultTwice(t *testing.T) {
	c := region(t)
	class := instancetypes.DefaultClass(c)
	a := instancetypes.ResolveTypes(c, class, nil, noTime)
	slices.Reverse(c.Types)
	class.ZoneIDs = maps.Clone(class.ZoneIDs)
	b := instancetypes.ResolveTypes(c, class, nil, noTime)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("the order of the facts matters:\n%s", d)
	}
}

func BenchmarkResolve(b *testing.B) {
	c := region(b)
	class := instancetypes.DefaultClass(c)
	unavailable := []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Zone: "us-west-2a"}, Until: time.Unix(1, 0)}}
	b.ReportAllocs()
	for b.Loop() {
		if len(instancetypes.ResolveTypes(c, class, unavailable, noTime)) == 0 {
			b.Fatal("no types")
		}
	}
}
