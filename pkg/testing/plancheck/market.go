package plancheck

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"slices"
)

// Market holds what EC2 sells, read from the data files and not through the catalog package that the packer uses.
type Market struct {
	types   map[string]*soldType
	names   []string // sorted
	zoneIDs map[string]string
}

// soldType is an instance type. Amounts are milli-CPU, bytes and units.
type soldType struct {
	name        string
	labels      map[string]string // without zone and capacity type
	capacity    resourceAmounts
	allocatable resourceAmounts
	zones       []string
	usage       []string
	onDemand    float64
	spot        map[string]float64
}

// resourceAmounts is an amount of each resource: milli-CPU, bytes, units.
type resourceAmounts map[string]int64

// NewMarket reads the gzipped facts (zones and prices) and the gzipped list of what each type resolves to (labels,
// capacity and allocatable). Types without a resolved form cannot become nodes and are left out.
func NewMarket(facts, resolved []byte) (Market, error) {
	var f struct {
		Zones map[string]string `json:"zones"`
		Types []struct {
			Name         string             `json:"name"`
			Zones        []string           `json:"zones"`
			UsageClasses []string           `json:"usageClasses"`
			OnDemandUSD  float64            `json:"onDemandUSD"`
			SpotUSD      map[string]float64 `json:"spotUSD"`
		} `json:"types"`
	}
	if err := decodeFile(facts, &f); err != nil {
		return Market{}, fmt.Errorf("read facts: %w", err)
	}
	var r []struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels"`
		Capacity    resourceAmounts   `json:"capacity"`
		Allocatable resourceAmounts   `json:"allocatable"`
	}
	if err := decodeFile(resolved, &r); err != nil {
		return Market{}, fmt.Errorf("read resolved types: %w", err)
	}
	m := Market{types: map[string]*soldType{}, zoneIDs: f.Zones}
	for _, t := range r {
		m.types[t.Name] = &soldType{name: t.Name, labels: t.Labels, capacity: t.Capacity, allocatable: t.Allocatable}
	}
	for _, t := range f.Types {
		s := m.types[t.Name]
		if s == nil {
			continue
		}
		s.zones, s.usage, s.onDemand, s.spot = t.Zones, t.UsageClasses, t.OnDemandUSD, t.SpotUSD
		m.names = append(m.names, t.Name)
	}
	slices.Sort(m.names)
	return m, nil
}

func decodeFile(gz []byte, into any) error {
	zr, err := gzip.NewReader(bytes.NewReader(gz))
	if err != nil {
		return err
	}
	return json.NewDecoder(zr).Decode(into)
}

// priceAt returns the price of the type there, in USD per hour, and whether it is sold there at all.
func (s *soldType) priceAt(zone, capacityType string) (float64, bool) {
	if !slices.Contains(s.zones, zone) || !slices.Contains(s.usage, capacityType) {
		return 0, false
	}
	p := s.onDemand
	if capacityType == "spot" {
		p = s.spot[zone]
	}
	return p, p > 0
}

func (a resourceAmounts) addAmounts(b resourceAmounts, times int64) {
	for k, v := range b { // each key on its own
		a[k] += v * times
	}
}

// firstShort names the first resource, by name, of which there is not enough.
func (a resourceAmounts) firstShort(room resourceAmounts) (string, bool) {
	short := ""
	for k, v := range a {
		if v > room[k] && (short == "" || k < short) {
			short = k
		}
	}
	return short, short == ""
}
