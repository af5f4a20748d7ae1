package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner/pkg/model/instancetypes"
	decided "joiner/pkg/model/plan"
)

// drawCommitment has the account pay for some capacity in advance, in a part of the runs about no other thing: one
// commitment, so that it is clear what draws on it.
func (w *world) drawCommitment() {
	if w.plan.focus == "" || !w.drawChance(0.25) {
		return
	}
	types := slices.Sorted(maps.Keys(w.types))
	one := types[w.rng.IntN(len(types))]
	k := instancetypes.Commitment{ID: "paid", Type: one, Room: w.drawInt(1, 3)}
	switch w.rng.IntN(4) {
	case 0:
		zones := w.zoneNames()
		k.Zone = zones[w.rng.IntN(len(zones))]
	case 1:
		k.Flexible, k.Room = true, 16*w.drawInt(1, 6)
	case 2:
		k = instancetypes.Commitment{ID: "paid", Rates: map[string]float64{}, Room: 10_000 * w.drawInt(1, 40)}
		for i, name := range types {
			k.Rates[name] = float64(40_000+7_000*i) / 1e6
		}
	}
	w.market.Commitments = []instancetypes.Commitment{k}
	w.addTrace("the account has paid for %d of %s%s %s in advance", k.Room, k.Type, k.Zone,
		strings.Join(slices.Sorted(maps.Keys(k.Rates)), " "))
}

// checkPrice looks at what a new claim is reckoned to cost: what the offer costs in public, and less only where a
// commitment covers it that has room for all claims that were stored on its account and are still wanted.
func (w *world) checkPrice(c *claim, l decided.Launch) {
	public := 0.0
	for _, o := range w.types[l.Choice.Type].Offerings {
		if o.CapacityType == l.Choice.CapacityType && o.Zone == l.Choice.Zone {
			public = o.Price
		}
	}
	if p := l.Choice.Price; p > public || p < public && len(l.Choice.Paid) == 0 {
		w.addViolation("price", "claim %s is to cost %g USD/h as %s, which is sold for %g", c.Name, p, l.Choice.Offer,
			public)
	}
	if c.paid = l.Choice.Paid; len(c.paid) == 0 {
		return
	}
	sum, of := int64(0), ""
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		have := w.claims[name]
		host := w.nodeOf(have)
		_, goes := markOf(have)
		// since whoever decided has read
		goes = goes || time.Since(have.spared) < seconds
		// its handler died before it could delete the claim, and is tried again
		goes = goes || host != nil && host.isTainted()
		// what replaces it has its share
		if goes = goes || !have.Deleting.IsZero() || host != nil && !host.Deleting.IsZero(); len(have.paid) > 0 &&
			!goes {
			sum += have.paid[0].Amount
			of += fmt.Sprintf(" %s:%d", name, have.paid[0].Amount)
		}
	}
	if k := w.market.Commitments[0]; sum+c.paid[0].Amount > k.Room {
		w.addViolation("covered twice", "claim %s takes %d of a commitment of %d, of which these have some:%s", c.Name,
			c.paid[0].Amount, k.Room, of)
	}
}
