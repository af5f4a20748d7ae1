package instancetypes

import (
	"math"
	"testing"
)

// What a node costs beside its instance: volumes by GiB, gp3 above what is free, io1 for each of its IOPS, a public
// address, at the region's prices where they were read.
func TestNodeCosts(t *testing.T) {
	read := Catalog{DiskPrices: map[string]DiskPrice{"gp3": {GiB: 0.16, IOPS: 0.01, MiBps: 0.08}}}
	for name, test := range map[string]struct {
		catalog Catalog
		class   Class
		monthly float64
	}{
		"family":      {Catalog{}, Class{Disks: FamilyDisks(AL2023)}, 1.6},
		"two volumes": {Catalog{}, Class{Disks: FamilyDisks(Bottlerocket)}, 2.08},
		"free":        {Catalog{}, Class{Disks: []Disk{{Type: "gp3", GiB: 100, IOPS: 3000, MiBps: 125}}}, 8},
		"provisioned": {Catalog{}, Class{Disks: []Disk{{Type: "gp3", GiB: 100, IOPS: 4000, MiBps: 225}}}, 8 + 5 + 4},
		"io1":         {Catalog{}, Class{Disks: []Disk{{Type: "io1", GiB: 100, IOPS: 1000}}}, 12.5 + 65},
		"as read":     {read, Class{Disks: []Disk{{Type: "gp3", GiB: 100, IOPS: 4000, MiBps: 225}}}, 16 + 10 + 8},
		"not read":    {read, Class{Disks: []Disk{{Type: "gp2", GiB: 10}}}, 1},
		"address":     {Catalog{}, Class{PublicIPv4: true}, 0.005 * 730},
		"nothing":     {Catalog{}, Class{Family: Custom}, 0},
	} {
		if got := test.catalog.NodeCostOf(test.class).Total() * 730; math.Abs(got-test.monthly) > 1e-9 {
			t.Errorf("%s: %v USD a month, want %v", name, got, test.monthly)
		}
	}
}

// The price of an offering holds what the node costs, unless nobody knows the instance's.
func TestPricesHoldWhatANodeCosts(t *testing.T) {
	types := AddNodeCosts([]Type{{Offerings: []Offering{{Price: 0.1, Available: true}, {Price: 0.2}, {Why: spotPriceUnknown}, {Why: "unavailable"}}}},
		NodeCost{Disks: 0.01, Address: 0.005})
	for i, want := range []float64{0.115, 0.215, 0, 0} {
		o := types[0].Offerings[i]
		if math.Abs(o.Price-want) > 1e-12 || want > 0 && math.Abs(o.InstanceUSD()-(want-0.015)) > 1e-12 {
			t.Errorf("offering %d costs %v, its instance %v, want %v", i, o.Price, o.InstanceUSD(), want)
		}
	}
	if o := types[0].Offerings[2].AtPrice(0.05); !o.Available || math.Abs(o.Price-0.065) > 1e-12 {
		t.Errorf("an instance at 0.05 whose price nobody knew costs %v, available %v", o.Price, o.Available)
	}
	if o := types[0].Offerings[0].AtPrice(0.05); math.Abs(o.Price-0.065) > 1e-12 {
		t.Errorf("at 0.05 for the instance the node costs %v", o.Price)
	}
}
