package instancetypes_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

func prices() []instancetypes.Facts {
	return []instancetypes.Facts{{Name: "c5.large", OnDemandUSD: 0.085}, {Name: "m5.large", OnDemandUSD: 0.1}, {Name: "m5.xlarge", OnDemandUSD: 0.2}, {Name: "r5.large", OnDemandUSD: 0.126}}
}

// TestAllot keeps to EC2's order ("How Reserved Instance discounts are applied" and "How Savings Plans apply to your
// usage" in AWS' documentation): zonal Reserved Instances, regional ones, those for every size from the smallest up,
// Savings Plans of one family, the others, each where it saves most.
func TestAllot(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2026, 1, day, 0, 0, 0, 0, time.UTC) }
	use := func(name, typ, zone string, day int) instancetypes.InstanceUse {
		return instancetypes.InstanceUse{Name: name, Type: typ, Zone: zone, Since: at(day)}
	}
	zonal := instancetypes.Commitment{ID: "zonal", Type: "m5.large", Zone: "a", Room: 1}
	regional := instancetypes.Commitment{ID: "regional", Type: "m5.large", Room: 1}
	flexible := instancetypes.Commitment{ID: "flexible", Type: "m5.4xlarge", Flexible: true, Room: 40}
	family := instancetypes.Commitment{ID: "family", Rates: map[string]float64{"m5.large": 0.07, "m5.xlarge": 0.14}, Room: 70_000}
	compute := instancetypes.Commitment{ID: "compute", Rates: map[string]float64{"m5.large": 0.08, "m5.xlarge": 0.16, "r5.large": 0.063}, Room: 100_000}
	for _, c := range []struct {
		name        string
		commitments []instancetypes.Commitment
		elsewhere   []instancetypes.RunningCount
		uses        []instancetypes.InstanceUse
		paid        map[string]float64
		left        map[string]int64
	}{
		{"zonal ones cover their zone only", []instancetypes.Commitment{zonal}, nil, []instancetypes.InstanceUse{use("n1", "m5.large", "b", 1), use("n2", "m5.large", "", 1)},
			map[string]float64{}, map[string]int64{"zonal": 1}},
		{"the oldest is covered", []instancetypes.Commitment{regional}, nil, []instancetypes.InstanceUse{use("n1", "m5.large", "b", 2), use("n2", "m5.large", "a", 1)},
			map[string]float64{"n2": 1}, map[string]int64{"regional": 0}},
		{"what runs elsewhere comes first", []instancetypes.Commitment{regional}, []instancetypes.RunningCount{{Type: "m5.large", Zone: "c", Count: 3}}, []instancetypes.InstanceUse{use("n1", "m5.large", "b", 2)},
			map[string]float64{}, map[string]int64{"regional": 0}},
		{"zonal ones are used up before regional ones", []instancetypes.Commitment{regional, zonal}, nil, []instancetypes.InstanceUse{use("n1", "m5.large", "a", 1)},
			map[string]float64{"n1": 1}, map[string]int64{"regional": 1, "zonal": 0}},
		{"flexible ones cover the smallest first, and the rest in part", []instancetypes.Commitment{flexible}, nil, []instancetypes.InstanceUse{use("n1", "m5.xlarge", "a", 1), use("n2", "m5.large", "a", 2), use("n3", "r5.large", "a", 1)},
			map[string]float64{"n2": 1, "n1": 0.75}, map[string]int64{"flexible": 0}},
		{"other sizes than their own are not for ones that are not flexible", []instancetypes.Commitment{regional}, nil, []instancetypes.InstanceUse{use("n1", "m5.xlarge", "a", 1)},
			map[string]float64{}, map[string]int64{"regional": 1}},
		{"plans cover where they save most", []instancetypes.Commitment{compute}, nil, []instancetypes.InstanceUse{use("n1", "m5.large", "a", 1), use("n2", "r5.large", "a", 2), use("n3", "c5.large", "a", 1)},
			map[string]float64{"n2": 1, "n1": 0.4625}, map[string]int64{"compute": 0}},
		{"a plan of one family comes before the others", []instancetypes.Commitment{compute, family}, nil, []instancetypes.InstanceUse{use("n1", "m5.large", "a", 1)},
			map[string]float64{"n1": 1}, map[string]int64{"compute": 100_000, "family": 0}},
		{"what is paid in part by one is paid for the rest by the next", []instancetypes.Commitment{compute, family}, nil, []instancetypes.InstanceUse{use("n1", "m5.xlarge", "a", 1)},
			map[string]float64{"n1": 1}, map[string]int64{"compute": 20_000, "family": 0}},
		{"none", nil, nil, []instancetypes.InstanceUse{use("n1", "m5.large", "a", 1)}, map[string]float64{}, map[string]int64{}},
	} {
		paid, left := instancetypes.Catalog{Types: prices(), Commitments: c.commitments, Elsewhere: c.elsewhere}.AllotCommitments(c.uses)
		if diff := cmp.Diff(c.paid, paid, cmp.Comparer(func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 })); diff != "" {
			t.Errorf("%s: paid (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.left, left); diff != "" {
			t.Errorf("%s: left (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestParts(t *testing.T) {
	for typ, want := range map[string]int64{"t3.nano": 1, "t3.micro": 2, "t3.small": 4, "t3.medium": 8, "m5.large": 16, "m5.xlarge": 32, "m5.24xlarge": 768, "m5.metal": 0, "m7i.metal-24xl": 0, "odd": 0} {
		if got := instancetypes.NormalizedSize(typ); got != want {
			t.Errorf("%s: %d, want %d", typ, got, want)
		}
	}
}

func TestPaid(t *testing.T) {
	offering := func(capacity, zone string, usd float64, available bool) instancetypes.Offering {
		return instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: capacity, Type: "m5.large", Zone: zone}, Price: usd, Available: available}
	}
	plain := instancetypes.Type{Name: "m5.large", Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelOS, "linux")),
		Offerings: []instancetypes.Offering{offering(instancetypes.Spot, "a", 0.04, true), offering(instancetypes.OnDemand, "a", 0.1, true), offering(instancetypes.OnDemand, "b", 0.1, true), offering(instancetypes.OnDemand, "c", 0.1, false)}}
	windows := plain
	windows.Name, windows.Requirements = "win", requirements.NewSet(requirements.Of(instancetypes.LabelOS, "windows"))
	c := instancetypes.Catalog{Types: prices(), Commitments: []instancetypes.Commitment{
		{ID: "sp", Rates: map[string]float64{"m5.large": 0.06}, Room: 1e6}, {ID: "ri", Type: "m5.large", Zone: "b", Room: 1},
		{ID: "small", Rates: map[string]float64{"m5.large": 0.06}, Room: 50_000}, {ID: "other", Type: "c5.large", Room: 1},
	}}
	types := []instancetypes.Type{plain, windows}
	got := c.AddCommitments(types)
	if len(plain.Offerings) != 4 || len(types[0].Offerings) != 4 {
		t.Error("the types given were changed")
	}
	if diff := cmp.Diff(windows, got[1]); diff != "" {
		t.Errorf("windows is not covered:\n%s", diff)
	}
	a, b := offering(instancetypes.OnDemand, "a", 0.1/10_000_000, true), offering(instancetypes.OnDemand, "b", 0.1/10_000_000, true)
	a.Paid = []instancetypes.CommitmentDraw{{Commitment: "sp", Amount: 60_000}}
	b.Paid = []instancetypes.CommitmentDraw{{Commitment: "ri", Amount: 1}, {Commitment: "sp", Amount: 60_000}}
	if diff := cmp.Diff(append([]instancetypes.Offering{a, b}, plain.Offerings...), got[0].Offerings); diff != "" {
		t.Errorf("offerings (-want +got):\n%s", diff)
	}
	shared := requirements.NewSet(requirements.Of(instancetypes.LabelTenancy, instancetypes.TenancyDefault))
	dedicated := requirements.NewSet(requirements.Of(instancetypes.LabelTenancy, instancetypes.TenancyDedicated))
	if !a.Meets(shared) || a.Meets(dedicated) || !plain.Offerings[1].Meets(dedicated) {
		t.Error("what is covered is of the tenancy default, nothing else is bound to one")
	}
}
