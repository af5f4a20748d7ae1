package instancetypes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Prices of AWS do not move threefold from one refresh to the next. Where they seem to, somebody else may have written
// the catalog, or an answer of AWS was wrong: the old price holds until refresh, which writes every few minutes, has
// said the new one again.
const (
	jumpFactor   = 3
	jumpConfirms = 6 * time.Minute // longer than the usual time from one refresh to the next
)

// PriceJumps are prices of a stored catalog that are not used yet. The zero value has none.
type PriceJumps struct{ held map[pricedOffering]priceJump }

// pricedOffering is an instance type in a zone, of spot, or on demand where the zone is empty.
type pricedOffering struct{ instanceType, zone string }

func (o pricedOffering) String() string {
	return o.instanceType + " " + cmp.Or(o.zone, OnDemand)
}

// priceJump is a price that was not used, with the times of the catalog that had it first and of its reading.
type priceJump struct {
	usd           float64
	written, seen time.Time
}

// Settle returns the catalog that was read at the time now with prices of the one before in place of those that moved
// more than threefold, until a catalog that was written later says the same, six minutes after the first. It says which
// prices are held, and remembers them for the next catalog.
func (j *PriceJumps) Settle(c, before Catalog, now time.Time) (Catalog, []string) {
	held := map[pricedOffering]priceJump{}
	settle := func(o pricedOffering, usd, was float64) float64 {
		if !hasJumped(usd, was) {
			return usd
		}
		at, known := j.held[o]
		if !known || hasJumped(usd, at.usd) {
			at = priceJump{usd, c.Time, now}
		}
		if c.Time.After(at.written) && now.Sub(at.seen) >= jumpConfirms {
			return usd
		}
		held[o] = at
		return was
	}
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		f := &c.Types[i]
		was, _ := before.Find(f.Name)
		f.OnDemandUSD = settle(pricedOffering{f.Name, ""}, f.OnDemandUSD, was.OnDemandUSD)
		f.SpotUSD = maps.Clone(f.SpotUSD)
		for zone, usd := range f.SpotUSD {
			f.SpotUSD[zone] = settle(pricedOffering{f.Name, zone}, usd, was.SpotUSD[zone])
		}
	}
	j.held = held
	var why []string
	for o, at := range held {
		why = append(why, fmt.Sprintf("%s at %v USD/h", o, at.usd))
	}
	slices.Sort(why)
	return c, why
}

// hasJumped reports whether a price is more than three times the other, or less than a third. Prices of 0 are not
// known.
func hasJumped(usd, was float64) bool {
	return usd > 0 && was > 0 && (usd > was*jumpFactor || usd < was/jumpFactor)
}
