package instancetypes

import "slices"

// HoursPerMonth is the number of hours by which AWS divides a month's price.
const HoursPerMonth = 730

// AddressUSD is the price of a public IPv4 address in use, in USD per hour, in every region.
const AddressUSD = 0.005

// What a gp3 volume has before it costs more.
const (
	freeIOPS  = 3000
	freeMiBps = 125
)

// Disk is an EBS volume that every node of a class gets.
type Disk struct {
	Device string `json:"device,omitempty"`
	Type   string `json:"type"` // gp3, gp2, io1, io2, st1, sc1, standard
	GiB    int64  `json:"gib"`
	IOPS   int64  `json:"iops,omitempty"`
	MiBps  int64  `json:"mibps,omitempty"`
}

// bottlerocketRootGiB is no less than the root snapshots of Bottlerocket's images, which have outgrown 4 GiB.
const bottlerocketRootGiB = 6

// FamilyDisks are the volumes of an image family's nodes whose class names none; nil where the image decides.
func FamilyDisks(family string) []Disk {
	switch {
	case family == AL2, family == AL2023:
		return []Disk{{Device: "/dev/xvda", Type: "gp3", GiB: 20}}
	case family == Bottlerocket:
		return []Disk{{Device: "/dev/xvda", Type: "gp3", GiB: bottlerocketRootGiB}, {Device: "/dev/xvdb", Type: "gp3", GiB: 20}}
	case IsWindows(family):
		return []Disk{{Device: "/dev/sda1", Type: "gp3", GiB: 50}}
	}
	return nil
}

// DiskPrice is the price of a type of EBS volume, in USD per month.
type DiskPrice struct {
	GiB   float64 `json:"gib"`
	IOPS  float64 `json:"iops,omitempty"`  // for each of those that are paid for
	MiBps float64 `json:"mibps,omitempty"` // of gp3, above what is free
}

// listDiskPrices returns the prices of us-east-1 and us-west-2, for as long as the region's price list was not read.
func listDiskPrices() map[string]DiskPrice {
	return map[string]DiskPrice{
		"gp3": {GiB: 0.08, IOPS: 0.005, MiBps: 0.04}, "gp2": {GiB: 0.10},
		"io1": {GiB: 0.125, IOPS: 0.065}, "io2": {GiB: 0.125, IOPS: 0.065},
		"st1": {GiB: 0.045}, "sc1": {GiB: 0.015}, "standard": {GiB: 0.05},
	}
}

// NodeCost is the cost of a node beside its instance, in USD per hour.
type NodeCost struct {
	Disks   float64 `json:"disks,omitempty"`
	Address float64 `json:"address,omitempty"` // a public IPv4 address
	// what the owner pays for it elsewhere, such as agents that are licensed per host
	Declared float64 `json:"declared,omitempty"`
}

// Total is the sum of the parts.
func (n NodeCost) Total() float64 { return n.Disks + n.Address + n.Declared }

// NodeCostOf returns the cost of every node of the class beside its instance. That is the volumes of its block device
// mappings, or of its image family, and a public IPv4 address where the class asks for one.
func (c Catalog) NodeCostOf(class Class) NodeCost {
	var n NodeCost
	known := listDiskPrices()
	for _, d := range class.Disks {
		p, ok := c.DiskPrices[d.Type]
		if !ok {
			p = known[d.Type]
		}
		iops := d.IOPS
		if d.Type == "gp3" {
			iops = max(0, iops-freeIOPS)
		}
		month := float64(d.GiB)*p.GiB + float64(iops)*p.IOPS + float64(max(0, d.MiBps-freeMiBps))*p.MiBps
		n.Disks += month / HoursPerMonth
	}
	if class.PublicIPv4 {
		n.Address = AddressUSD
	}
	return n
}

// AddNodeCosts is the types with what a node costs beside its instance in the price of each offering whose price is
// known. NodeUSD of an offering says how much of its price that is.
func AddNodeCosts(types []Type, n NodeCost) []Type {
	if usd := n.Total(); usd > 0 {
		for _, t := range types {
			addCost(t.Offerings, usd, n.Declared)
		}
	}
	return types
}

// AddDeclaredCost is a copy of the types in which the owner declares usd more per node and hour, or less where it is
// negative.
func AddDeclaredCost(types []Type, usd float64) []Type {
	out := slices.Clone(types)
	for i := range out {
		out[i].Offerings = slices.Clone(out[i].Offerings)
		addCost(out[i].Offerings, usd, usd)
	}
	return out
}

// addCost adds what a node costs more per hour to the offerings, declared of it by the owner.
func addCost(all []Offering, usd, declared float64) {
	for k := range all {
		o := &all[k]
		o.NodeUSD, o.DeclaredUSD = o.NodeUSD+usd, o.DeclaredUSD+declared
		if o.hasPrice() {
			o.Price += usd
		}
	}
}

func (o Offering) hasPrice() bool { return o.PriceKnown() && (o.Price > 0 || o.Available) }

// InstanceUSD is the price of the instance alone, without what the node costs beside it.
func (o Offering) InstanceUSD() float64 { return o.Price - o.NodeUSD }
