package spotpools

import (
	"math"
	"testing"
	"time"
)

// FuzzDecode feeds stored records of this and of other clusters: what is kept of them is few, and can be added up.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{`{"version":1,"at":"2026-01-01T00:00:00Z","pools":[{"type":"m5.large","zone":"a","hours":1e308,"interruptions":1e308}],"seen":[{"id":"x"}]}`,
		`{"version":1,"pools":[{"pool":{"type":"","zone":""},"hours":-1}]}`, `{"version":1,"pools":[{"type":"a","zone":"b","hours":9999999},{"type":"a","zone":"b","hours":9999999}]}`, `null`, `[]`} {
		f.Add([]byte(text))
	}
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text []byte) {
		r := Decode(text, now)
		r = r.CountEvents([]Event{{ID: "own", Kind: Refusal, Pool: Pool{"m5.large", "a"}, At: now}}, now).CountHours(map[Pool]float64{{"m5.large", "a"}: 1})
		if len(r.Pools) > MaxPools+1 || len(r.Seen) > maxSeen {
			t.Errorf("%d pools, %d seen", len(r.Pools), len(r.Seen))
		}
		for _, c := range r.Pools {
			for _, x := range []float64{c.Hours, c.Interruptions, c.Recommendations, c.Refusals} {
				if !(x >= 0) || math.IsInf(x, 0) {
					t.Fatalf("%+v", c)
				}
			}
		}
		if b, err := r.Encode(); err != nil || len(b) == 0 {
			t.Errorf("it cannot be written again: %v", err)
		}
	})
}
