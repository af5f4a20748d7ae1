package instancetypes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// small is a region with three zones and one plain type; change adapts the type.
func small(change func(*instancetypes.Facts)) instancetypes.Catalog {
	f := instancetypes.Facts{
		Name: "m5.large", Arch: []string{"amd64"}, VCPU: 2, MemoryMiB: 8192, DefaultCardENIs: 3, IPv4PerENI: 10,
		Hypervisor: "nitro", Virtualization: []string{"hvm"}, UsageClasses: []string{"on-demand", "spot"},
		Zones: []string{"a", "b"}, OnDemandUSD: 0.096, SpotUSD: map[string]float64{"a": 0.04, "b": 0.03},
	}
	if change != nil {
		change(&f)
	}
	return instancetypes.Catalog{Region: "r", Zones: map[string]string{"a": "r-1", "b": "r-2", "c": "r-3"}, Types: []instancetypes.Facts{f}}
}

func offerings(x instancetypes.Type) string {
	var b strings.Builder
	for _, o := range x.Offerings {
		fmt.Fprintf(&b, "%s %s %v", o.CapacityType, o.Zone, o.Price)
		if !o.Available {
			fmt.Fprintf(&b, " no: %s", o.Why)
		} else if o.Why != "" {
			b.WriteString(" available, but: " + o.Why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestOfferings(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	unavailable := func(capacityType, typ, zone string, after time.Duration) instancetypes.UnavailableOffering {
		return instancetypes.UnavailableOffering{OfferingKey: instancetypes.OfferingKey{CapacityType: capacityType, Type: typ, Zone: zone}, Until: now.Add(after), Why: "Code"}
	}
	refused := func(class, zone string) instancetypes.UnavailableOffering {
		u := unavailable("spot", "m5.large", zone, time.Minute)
		u.Scope = instancetypes.ClassScope(class)
		return u
	}
	noC := func(c *instancetypes.Class) { delete(c.ZoneIDs, "c") }
	for _, v := range []struct {
		name        string
		facts       func(*instancetypes.Facts)
		class       func(*instancetypes.Class)
		unavailable []instancetypes.UnavailableOffering
		want        string
	}{
		{"cheapest first, zones without the type stay with the reason", nil, nil, nil, `
spot b 0.03
spot a 0.04
on-demand a 0.096
on-demand b 0.096
on-demand c 0.096 no: not sold in c
spot c 0 no: not sold in c
`},
		{"a zone without subnet", func(f *instancetypes.Facts) { f.Zones = []string{"a", "c"} }, noC, nil, `
spot b 0.03 no: not sold in b
spot a 0.04
on-demand a 0.096
on-demand b 0.096 no: not sold in b
on-demand c 0.096 no: the class has no subnet in c
spot c 0 no: the class has no subnet in c
`},
		{"unknown prices", func(f *instancetypes.Facts) { f.OnDemandUSD = 0; f.SpotUSD = map[string]float64{"b": 0.03} }, nil, nil, `
spot b 0.03
on-demand a 0 no: on-demand price unknown
spot a 0 no: spot price unknown
on-demand b 0 no: on-demand price unknown
on-demand c 0 no: not sold in c
spot c 0 no: not sold in c
`},
		{"not sold as spot", func(f *instancetypes.Facts) { f.UsageClasses = []string{"capacity-block", "on-demand"} }, nil, nil, `
on-demand a 0.096
on-demand b 0.096
on-demand c 0.096 no: not sold in c
`},
		{"unavailable: exact, expired, of another type", nil, nil, []instancetypes.UnavailableOffering{
			unavailable("spot", "m5.large", "b", time.Minute), unavailable("spot", "m5.large", "b", time.Second),
			unavailable("spot", "m5.large", "a", 0), unavailable("on-demand", "m5.xlarge", "a", time.Minute),
		}, `
spot b 0.03 no: unavailable until 2026-01-01T12:01:00Z (Code)
spot a 0.04
on-demand a 0.096
on-demand b 0.096
on-demand c 0.096 no: not sold in c
spot c 0 no: not sold in c
`},
		{"unavailable: a zone, a type, everything", nil, nil, []instancetypes.UnavailableOffering{
			unavailable("spot", "", "b", time.Minute), unavailable("on-demand", "m5.large", "", time.Minute),
		}, `
spot b 0.03 no: unavailable until 2026-01-01T12:01:00Z (Code)
spot a 0.04
on-demand a 0.096 no: unavailable until 2026-01-01T12:01:00Z (Code)
on-demand b 0.096 no: unavailable until 2026-01-01T12:01:00Z (Code)
on-demand c 0.096 no: not sold in c
spot c 0 no: not sold in c
`},
		{"unavailable of a class: this one, another one", nil, nil, []instancetypes.UnavailableOffering{
			refused("default", "b"), refused("other", "a"),
		}, `
spot b 0.03 no: EC2 refuses it; it is left alone until 2026-01-01T12:01:00Z (Code)
spot a 0.04
on-demand a 0.096
on-demand b 0.096
on-demand c 0.096 no: not sold in c
spot c 0 no: not sold in c
`},
	} {
		t.Run(v.name, func(t *testing.T) {
			c := small(v.facts)
			class := instancetypes.DefaultClass(small(nil))
			if v.class != nil {
				v.class(&class)
			}
			got := instancetypes.ResolveTypes(c, class, v.unavailable, now)
			if len(got) != 1 {
				t.Fatalf("%d types", len(got))
			}
			if d := cmp.Diff(strings.TrimPrefix(v.want, "\n"), offerings(got[0])); d != "" {
				t.Error(d)
			}
			for _, o := range got[0].Offerings {
				for _, u := range v.unavailable {
					if u.Covers(o.OfferingKey, now) && o.Available {
						t.Errorf("%s is available in spite of %v", o.OfferingKey, u)
					}
				}
			}
		})
	}
	c := small(nil)
	all := instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), []instancetypes.UnavailableOffering{unavailable("spot", "", "", time.Minute)}, now)
	if got := offerings(all[0]); strings.Count(got, "unavailable") != 2 || strings.Contains(got, "on-demand a 0.096 no") {
		t.Errorf("spot as a whole unavailable:\n%s", got)
	}
}

// What the class cannot use at all is unavailable everywhere, for one reason.
func TestClassRefuses(t *testing.T) {
	gpu := requirements.NewSet(requirements.Any(instancetypes.LabelGPUCount))
	for _, v := range []struct {
		name  string
		facts func(*instancetypes.Facts)
		class func(*instancetypes.Class)
		why   string
	}{
		{"no image", nil, func(c *instancetypes.Class) { c.Images = []instancetypes.Image{{ID: "ami-gpu", Requirements: gpu}} }, "no AMI of the class fits this type"},
		{"Xen", func(f *instancetypes.Facts) { f.Hypervisor = "xen" }, func(c *instancetypes.Class) { c.NitroOnly = true }, "connectionTracking needs the Nitro hypervisor"},
		{"Xen and IPv6", func(f *instancetypes.Facts) { f.Hypervisor = "xen" }, func(c *instancetypes.Class) { c.ApplySettings(0, 0, false, true) }, "pods of a cluster of IPv6 need the Nitro hypervisor"},
		{"Xen and prefixes", func(f *instancetypes.Facts) { f.Hypervisor = "xen" }, func(c *instancetypes.Class) { c.Prefixes = true }, "ipPrefixCount needs the Nitro hypervisor"},
		{"EFA", nil, func(c *instancetypes.Class) { c.Interfaces = []instancetypes.Interface{{}, {EFAOnly: true, Device: 1}} }, "the class asks for more EFA interfaces than this type has"},
		{"card", nil, func(c *instancetypes.Class) { c.Interfaces = []instancetypes.Interface{{}, {Card: 1}} }, "the class uses network card 1, this type has 1"},
		{"device", func(f *instancetypes.Facts) { f.CardENIs = []int64{3, 2} }, func(c *instancetypes.Class) { c.Interfaces = []instancetypes.Interface{{}, {Card: 1, Device: 2}} },
			"the class uses device 2 of network card 1, which takes 2"},
		{"ENA", func(f *instancetypes.Facts) { f.NoENA = true }, func(c *instancetypes.Class) { c.Interfaces = []instancetypes.Interface{{}} }, "networkInterfaces needs a type with ENA"},
		{"nested", nil, func(c *instancetypes.Class) { c.NestedVirtualization = true }, "it is not known to do nested virtualization, which cpuOptions asks for"},
		{"quantity", nil, func(c *instancetypes.Class) { c.SystemReserved = map[string]string{"cpu": "lots"} }, `kubelet systemReserved cpu: expression "lots": at character 1: undeclared reference to 'lots'`},
		{"percentage", nil, func(c *instancetypes.Class) { c.EvictionHard = map[string]string{"memory.available": "101%"} }, `kubelet evictionHard memory.available: "101%" is no percentage`},
	} {
		t.Run(v.name, func(t *testing.T) {
			c := small(v.facts)
			class := instancetypes.DefaultClass(c)
			v.class(&class)
			for _, o := range instancetypes.ResolveTypes(c, class, nil, noTime)[0].Offerings {
				if o.Available || o.Why != v.why {
					t.Errorf("%s: available %v, why %q, want %q", o.OfferingKey, o.Available, o.Why, v.why)
				}
			}
		})
	}
}

// The first image that the type can run is taken, in the order of the class.
func TestImageOfType(t *testing.T) {
	std := requirements.NewSet(requirements.Of(instancetypes.LabelArch, "amd64"), requirements.None(instancetypes.LabelGPUCount), requirements.None(instancetypes.LabelAccelCount))
	gpu := requirements.NewSet(requirements.Of(instancetypes.LabelArch, "amd64"), requirements.Any(instancetypes.LabelGPUCount))
	arm := requirements.NewSet(requirements.Of(instancetypes.LabelArch, "arm64"), requirements.None(instancetypes.LabelGPUCount))
	class := with(t, func(c *instancetypes.Class) {
		c.Images = []instancetypes.Image{
			{ID: "gpu", Requirements: gpu}, {ID: "new", Requirements: std}, {ID: "old", Requirements: std}, {ID: "arm", Requirements: arm},
		}
	})
	for name, want := range map[string]string{
		"m5.large": "new", "g4dn.xlarge": "gpu", "g6f.large": "gpu", "m6g.large": "arm", "inf2.xlarge": "", "g5g.xlarge": "",
	} {
		if got := one(t, class, name).ImageID; got != want {
			t.Errorf("%s runs %q, want %q", name, got, want)
		}
	}
}

// Types that no node can have are left out.
func TestLeftOut(t *testing.T) {
	for _, v := range []struct {
		name  string
		facts func(*instancetypes.Facts)
		class func(*instancetypes.Class)
		kept  int
	}{
		{"paravirtual only", func(f *instancetypes.Facts) { f.Virtualization = []string{"paravirtual"} }, nil, 0},
		{"32 bit only", func(f *instancetypes.Facts) { f.Arch = []string{"i386"} }, nil, 0},
		{"32 and 64 bit", func(f *instancetypes.Facts) { f.Arch = []string{"i386", "amd64"} }, nil, 1},
		{"a1 under AL2023", func(f *instancetypes.Facts) { f.Name = "a1.large"; f.Arch = []string{"arm64"} }, nil, 0},
		{"a1 under AL2", func(f *instancetypes.Facts) { f.Name = "a1.large"; f.Arch = []string{"arm64"} }, func(c *instancetypes.Class) { c.Family = instancetypes.AL2 }, 1},
	} {
		c := small(v.facts)
		class := instancetypes.DefaultClass(c)
		if v.class != nil {
			v.class(&class)
		}
		if got := len(instancetypes.ResolveTypes(c, class, nil, noTime)); got != v.kept {
			t.Errorf("%s: %d types, want %d", v.name, got, v.kept)
		}
	}
}

// A price that somebody names makes an offering to be had that lacked nothing else.
func TestAnOfferingAtAnotherPrice(t *testing.T) {
	c := small(func(f *instancetypes.Facts) { f.OnDemandUSD = 0; f.SpotUSD = map[string]float64{"b": 0.03} })
	got := instancetypes.ResolveTypes(c, instancetypes.DefaultClass(small(nil)), nil, time.Time{})[0]
	for i := range got.Offerings {
		got.Offerings[i] = got.Offerings[i].AtPrice(0.5)
	}
	want := "spot b 0.5\non-demand a 0.5\nspot a 0.5\non-demand b 0.5\non-demand c 0.5 no: not sold in c\nspot c 0.5 no: not sold in c\n"
	if d := cmp.Diff(want, offerings(got)); d != "" {
		t.Error(d)
	}
}

func TestWhatWasRefusedInWords(t *testing.T) {
	unavailable := func(scope string, o instancetypes.OfferingKey) instancetypes.UnavailableOffering {
		return instancetypes.UnavailableOffering{OfferingKey: o, Scope: scope, Why: "Code"}
	}
	spot := instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "a"}
	for want, err := range map[string]*instancetypes.NoCapacityError{
		"no capacity: nothing was left": {Why: "nothing was left"},
		"no capacity, " + spot.String() + ": Code, " + spot.String() + " in pg-1: Code, subnet-1: Code": {
			Unavailable: []instancetypes.UnavailableOffering{unavailable("", spot), unavailable("pg-1", spot), unavailable("subnet-1", instancetypes.OfferingKey{})}},
		"no capacity, s: Code, s: Code, s: Code, and 2 more offerings": {Unavailable: slices.Repeat([]instancetypes.UnavailableOffering{unavailable("s", instancetypes.OfferingKey{})}, 5)},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
