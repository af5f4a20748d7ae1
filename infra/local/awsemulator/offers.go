package awsemulator

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"joiner.sh/pkg/model/instancetypes/builtin"
)

// InstanceType is a record of the data set: what EC2 says of a type, where it is sold and for how much.
type InstanceType struct {
	Name                 string
	Arch                 []string
	VCPU                 int
	MemoryMiB            int
	CPUManufacturer      string
	ClockGHz             float64
	MaxENIs              int
	DefaultCardENIs      int
	CardENIs             []int
	NoENA                bool
	NestedVirtualization bool
	PlacementStrategies  []string
	IPv4PerENI           int
	BandwidthMbps        int
	EBSMaxMbps           int
	BranchENIs           int
	EncryptionInTransit  bool
	Hypervisor           string
	BareMetal            bool
	CurrentGeneration    bool
	Burstable            bool
	UsageClasses         []string
	Virtualization       []string
	EFA                  bool
	MaxEFAs              int
	LocalStorageGB       int
	LocalNVMeGB          int
	GPUs                 []Device
	Neuron               []Device
	InferenceAcc         []Device `json:"inferenceAccelerators"`
	MediaAcc             []Device `json:"mediaAccelerators"`
	FPGAs                []Device
	Zones                []string
	OnDemandUSD          float64
	SpotUSD              map[string]float64
}

// Device is a kind of accelerator in a type.
type Device struct {
	Manufacturer, Name               string
	Count, MemoryMiB, CoresPerDevice int
}

// Capacity types of an offering, as EC2 names them.
const (
	spot     = "spot"
	onDemand = "on-demand"
)

// Capacity limits how many instances may live in offerings. An empty part fits every one; parts may hold * and ?.
type Capacity struct {
	CapacityType string `json:"capacityType,omitempty"` // spot or on-demand
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	Limit        int    `json:"limit"` // living instances in each offering that fits; 0: unavailable
	// Code replaces InsufficientInstanceCapacity in the error.
	Code string `json:"code,omitempty"`
}

// offerings is what the region sells: types, zones, prices, and limits that were set.
type offerings struct {
	types   []InstanceType // by name
	byName  map[string]*InstanceType
	zoneIDs map[string]string

	mu     sync.Mutex
	limits []Capacity
	prices map[string]float64 // type/zone to a spot price that was set
}

func readOfferings() (*offerings, error) {
	o, err := snapshot()
	if err != nil {
		return nil, err
	}
	return &offerings{types: o.types, zoneIDs: o.zoneIDs, byName: o.byName, prices: map[string]float64{}}, nil
}

// snapshot is the snapshot of the product, which is read once: no account changes a type.
var snapshot = sync.OnceValues(parseSnapshot)

func parseSnapshot() (*offerings, error) {
	z, err := gzip.NewReader(bytes.NewReader(builtin.Data()))
	if err != nil {
		return nil, fmt.Errorf("unpack snapshot: %w", err)
	}
	var doc struct {
		Zones map[string]string
		Types []InstanceType
	}
	if err := json.NewDecoder(z).Decode(&doc); err != nil {
		return nil, fmt.Errorf("parse snapshot: %w", err)
	}
	o := &offerings{types: doc.Types, zoneIDs: doc.Zones, byName: map[string]*InstanceType{}}
	slices.SortFunc(o.types, func(a, b InstanceType) int { return strings.Compare(a.Name, b.Name) })
	for i := range o.types {
		o.byName[o.types[i].Name] = &o.types[i]
	}
	return o, nil
}

func (o *offerings) zoneNames() []string { return slices.Sorted(maps.Keys(o.zoneIDs)) }

// hourlyPrice of an offering in USD an hour; false if it is not sold.
func (o *offerings) hourlyPrice(capacityType, name, zone string) (float64, bool) {
	t := o.byName[name]
	if t == nil || !slices.Contains(t.Zones, zone) || !slices.Contains(t.UsageClasses, capacityType) {
		return 0, false
	}
	if capacityType == onDemand {
		return t.OnDemandUSD, true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if p, ok := o.prices[name+"/"+zone]; ok {
		return p, true
	}
	p, ok := t.SpotUSD[zone]
	return p, ok
}

// capacityLimit of an offering: the rule that was set last wins. False if there is none.
func (o *offerings) capacityLimit(capacityType, name, zone string) (Capacity, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, l := range slices.Backward(o.limits) {
		if matchesPattern(l.CapacityType, capacityType) && matchesPattern(l.InstanceType, name) &&
			matchesPattern(l.Zone, zone) {
			return l, true
		}
	}
	return Capacity{}, false
}

// InstanceType returns the record of a type.
func (c *market) InstanceType(name string) (InstanceType, bool) {
	t, ok := c.offerings.byName[name]
	if !ok {
		return InstanceType{}, false
	}
	return *t, true
}

// LimitCapacity sets a limit. Later limits win over earlier ones; a negative limit lifts the others for its offerings.
func (c *market) LimitCapacity(l Capacity) {
	c.offerings.mu.Lock()
	defer c.offerings.mu.Unlock()
	c.offerings.limits = append(c.offerings.limits, l)
}

// ClearCapacity lifts all limits.
func (c *market) ClearCapacity() {
	c.offerings.mu.Lock()
	defer c.offerings.mu.Unlock()
	c.offerings.limits = nil
}

// SetSpotPrice sets the spot price of a type in a zone, in USD an hour, for history and allocation.
func (c *market) SetSpotPrice(instanceType, zone string, usd float64) {
	c.offerings.mu.Lock()
	defer c.offerings.mu.Unlock()
	c.offerings.prices[instanceType+"/"+zone] = usd
}
