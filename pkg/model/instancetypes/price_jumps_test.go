package instancetypes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A price that moves more than threefold at once is used when a later catalog says it again, six minutes on, and not
// before.
func TestPriceJumps(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type read struct {
		after         time.Duration // the start, as is the time of its writing
		demand, spot  float64
		wantD, wantS  float64
		held          []string
		sameAsWritten bool // as the read before: nothing was written since
	}
	jump := []string{"m5.large a at 0.003 USD/h", "m5.large on-demand at 0.9 USD/h"}
	for name, reads := range map[string][]read{
		"that moves as prices do": {{0, 0.1, 0.03, 0.1, 0.03, nil, false}, {time.Minute, 0.29, 0.011, 0.29, 0.011, nil, false}},
		"that refresh confirms": {{0, 0.1, 0.03, 0.1, 0.03, nil, false}, {time.Minute, 0.9, 0.003, 0.1, 0.03, jump, false},
			{6 * time.Minute, 0.9, 0.003, 0.1, 0.03, jump, false}, {11 * time.Minute, 0.9, 0.003, 0.9, 0.003, nil, false}},
		"that nobody says again": {{0, 0.1, 0.03, 0.1, 0.03, nil, false}, {time.Minute, 0.9, 0.003, 0.1, 0.03, jump, false},
			{time.Hour, 0.9, 0.003, 0.1, 0.03, jump, true}},
		"that refresh takes back": {{0, 0.1, 0.03, 0.1, 0.03, nil, false}, {time.Minute, 0.9, 0.003, 0.1, 0.03, jump, false},
			{6 * time.Minute, 0.1, 0.03, 0.1, 0.03, nil, false}, {11 * time.Minute, 0.9, 0.003, 0.1, 0.03, jump, false}},
		"of which nothing was known": {{0, 0, 0, 0, 0, nil, false}, {time.Minute, 0.9, 0.003, 0.9, 0.003, nil, false}},
	} {
		var jumps PriceJumps
		var have Catalog
		var written time.Time
		for i, r := range reads {
			if !r.sameAsWritten {
				written = start.Add(r.after)
			}
			stored := Catalog{Time: written, Types: []Facts{{Name: "m5.large", OnDemandUSD: r.demand, SpotUSD: map[string]float64{"a": r.spot}}}}
			var held []string
			have, held = jumps.Settle(stored, have, start.Add(r.after))
			if f := have.Types[0]; f.OnDemandUSD != r.wantD || f.SpotUSD["a"] != r.wantS || !cmp.Equal(held, r.held) {
				t.Errorf("a price %s, read %d: on demand %v, spot %v, held %q; want %+v", name, i, f.OnDemandUSD, f.SpotUSD["a"], held, r)
			}
			if f := stored.Types[0]; f.OnDemandUSD != r.demand || f.SpotUSD["a"] != r.spot {
				t.Errorf("a price %s, read %d changed what was stored", name, i)
			}
		}
	}
}
