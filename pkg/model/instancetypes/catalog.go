package instancetypes

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/unpack"
)

// Schema is the version of the stored form that this code reads and writes.
const Schema = 1

// What a decoded catalog may have: the built-in one has 0.8 MB, 2,500 objects and 42,000 values.
const (
	mostBytes   = 16 << 20
	mostObjects = 20_000
	mostValues  = 500_000
)

// Catalog is everything known about one region's instance types at one time. It is stored as one gzipped JSON object.
type Catalog struct {
	Schema int               `json:"schema"`
	Region string            `json:"region"`
	Time   time.Time         `json:"time"`  // when it was stored; zero for the built-in snapshot of an unknown time
	Zones  map[string]string `json:"zones"` // zone name to zone id
	Types  []Facts           `json:"types"` // sorted by name

	// When each part was last read from AWS; zero for a part that is still the snapshot's.
	TypesTime    time.Time `json:"typesTime,omitzero"` // facts and offerings
	OnDemandTime time.Time `json:"onDemandTime,omitzero"`
	SpotTime     time.Time `json:"spotTime,omitzero"`
	// OnDemandFailed is the time when the price list did not answer, zero once it has.
	OnDemandFailed time.Time `json:"onDemandFailed,omitzero"`

	// Commitments lists what the account pays for anyhow, and Elsewhere what runs in it that draws on them and is not
	// of this cluster. Both are empty where the setting commitments is off.
	Commitments []Commitment   `json:"commitments,omitempty"`
	Elsewhere   []RunningCount `json:"elsewhere,omitempty"`
	RatesTime   time.Time      `json:"ratesTime,omitzero"` // when the rates of all Savings Plans were read last

	// DiskPrices holds the prices of the region's price list, by type of EBS volume; empty while it was not read.
	DiskPrices map[string]DiskPrice `json:"diskPrices,omitempty"`
}

// Facts holds what EC2 says about one instance type, and its prices.
type Facts struct {
	Name            string   `json:"name"`
	Arch            []string `json:"arch"` // amd64, arm64, i386, as EC2 lists them
	VCPU            int64    `json:"vcpu"`
	MemoryMiB       int64    `json:"memoryMiB"`
	CPUManufacturer string   `json:"cpuManufacturer,omitempty"`
	ClockGHz        float64  `json:"clockGHz,omitempty"`
	MaxENIs         int64    `json:"maxENIs"`         // over all network cards
	DefaultCardENIs int64    `json:"defaultCardENIs"` // of the card that pods use
	// of each network card; empty while EC2 was not asked
	CardENIs []int64 `json:"cardENIs,omitempty"`
	// network cards that take no EFA interface, of types that take some; empty while EC2 was not asked
	CardsWithoutEFA []int64 `json:"cardsWithoutEFA,omitempty"`
	IPv4PerENI      int64   `json:"ipv4PerENI"`
	BandwidthMbps   int64   `json:"bandwidthMbps,omitempty"`
	// only where EBS optimisation is on by default
	EBSMaxMbps int64 `json:"ebsMaxMbps,omitempty"`
	// that can be attached, beside the first network interface and the instance store; 0 while EC2 was not asked
	MaxEBSVolumes         int64              `json:"maxEBSVolumes,omitempty"`
	SharedVolumeSlots     bool               `json:"sharedVolumeSlots,omitempty"` // further interfaces take of them
	BranchENIs            int64              `json:"branchENIs,omitempty"`
	EncryptionInTransit   bool               `json:"encryptionInTransit"`
	Hypervisor            string             `json:"hypervisor"` // nitro, xen, empty for bare metal
	BareMetal             bool               `json:"bareMetal"`
	Virtualization        []string           `json:"virtualization"`
	CurrentGeneration     bool               `json:"currentGeneration"`
	Burstable             bool               `json:"burstable"`
	UsageClasses          []string           `json:"usageClasses"` // on-demand, spot, capacity-block
	NoENA                 bool               `json:"noENA,omitempty"`
	NestedVirtualization  bool               `json:"nestedVirtualization,omitempty"`
	PlacementStrategies   []string           `json:"placementStrategies,omitempty"` // cluster, partition, spread
	EFA                   bool               `json:"efa"`
	MaxEFAs               int64              `json:"maxEFAs,omitempty"`
	LocalStorageGB        int64              `json:"localStorageGB,omitempty"`
	LocalNVMeGB           int64              `json:"localNVMeGB,omitempty"`
	GPUs                  []Accelerator      `json:"gpus,omitempty"`
	Neuron                []Neuron           `json:"neuron,omitempty"`
	InferenceAccelerators []Accelerator      `json:"inferenceAccelerators,omitempty"`
	MediaAccelerators     []Accelerator      `json:"mediaAccelerators,omitempty"`
	FPGAs                 []Accelerator      `json:"fpgas,omitempty"`
	Zones                 []string           `json:"zones"` // zones that sell it
	OnDemandUSD           float64            `json:"onDemandUSD,omitempty"`
	SpotUSD               map[string]float64 `json:"spotUSD,omitempty"` // zone to USD per hour
}

// Accelerator is a kind of GPU, FPGA or inference device of an instance type.
type Accelerator struct {
	Manufacturer string `json:"manufacturer"`
	Name         string `json:"name"`
	Count        int64  `json:"count"`               // a part of a GPU, which EC2 counts as none, is one to pods
	Part         bool   `json:"part,omitempty"`      // each is a part of a device
	MemoryMiB    int64  `json:"memoryMiB,omitempty"` // of one device, or of the part
}

// Neuron is a kind of AWS Neuron device of an instance type.
type Neuron struct {
	Name           string `json:"name"`
	Count          int64  `json:"count"`
	CoresPerDevice int64  `json:"coresPerDevice"`
	MemoryMiB      int64  `json:"memoryMiB,omitempty"`
}

// DecodeCatalog reads a stored catalog. It refuses a catalog of another schema, without types, with two types of one
// name, or with far more than any region has.
func DecodeCatalog(gz []byte) (Catalog, error) {
	var c Catalog
	most := unpack.Bounds{Bytes: mostBytes, Objects: mostObjects, Values: mostValues}
	if err := unpack.JSON(bytes.NewReader(gz), most, &c); err != nil {
		return Catalog{}, fmt.Errorf("decode catalog: %w", err)
	}
	switch {
	case c.Schema != Schema:
		return Catalog{}, fmt.Errorf("decode catalog: schema is %d, this version reads %d", c.Schema, Schema)
	case len(c.Types) == 0:
		return Catalog{}, fmt.Errorf("decode catalog: it holds no instance types")
	}
	slices.SortFunc(c.Types, func(a, b Facts) int { return strings.Compare(a.Name, b.Name) })
	for n, t := range c.Types {
		if n > 0 && c.Types[n-1].Name == t.Name {
			return Catalog{}, fmt.Errorf("decode catalog: it holds type %s twice", t.Name)
		}
		for i := range t.GPUs {
			if g := &t.GPUs[i]; g.Count == 0 { // as EC2 says it
				g.Count, g.Part = 1, true
			}
		}
	}
	return c, nil
}

// Encode writes the catalog in the form that Decode reads. Equal catalogs give equal bytes.
func (c Catalog) Encode() ([]byte, error) {
	b, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode catalog: %w", err)
	}
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	if _, err := zw.Write(b); err != nil {
		return nil, fmt.Errorf("encode catalog: %w", err)
	}
	if err := zw.Close(); err != nil {
		return nil, fmt.Errorf("encode catalog: %w", err)
	}
	return out.Bytes(), nil
}

// Find returns the facts of the named type.
func (c Catalog) Find(name string) (Facts, bool) {
	i, ok := slices.BinarySearchFunc(c.Types, name, func(f Facts, n string) int { return strings.Compare(f.Name, n) })
	if !ok {
		return Facts{}, false
	}
	return c.Types[i], true
}
