package instancetypes

import (
	"bytes"
	"compress/gzip"
	"math"
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes/builtin"
)

// Whatever a stored catalog says: it is refused, or every figure that is used of it can be true.
func FuzzDecodeCatalog(f *testing.F) {
	for _, text := range []string{
		`{"schema":1,"types":[{"name":"m5.large","vcpu":2,"memoryMiB":8192,"onDemandUSD":-5,"spotUSD":{"a":0,"b":1e308}}]}`,
		`{"schema":1,"types":[{"name":"a","vcpu":-1,"memoryMiB":9223372036854775807}],"commitments":[{"rates":{"a":-1}}],"spot":{"own":[{"type":"a","hours":-1}]}}`,
		`{"schema":1,"types":[{"name":"a"},{"name":"a"}]}`, `{"schema":1,"types":null,"zones":{"":""}}`, `[]`,
	} {
		f.Add([]byte(text))
	}
	known, err := DecodeCatalog(builtin.Data())
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var packed bytes.Buffer
		zw := gzip.NewWriter(&packed)
		_, _ = zw.Write(text)
		_ = zw.Close()
		c, err := DecodeCatalog(packed.Bytes())
		if err != nil {
			return
		}
		c, _ = c.Plausible(known)
		var jumps PriceJumps
		c, _ = jumps.Settle(c, known, time.Unix(0, 0))
		for _, t2 := range c.Types {
			if t2.VCPU <= 0 || t2.VCPU > maxVCPU || t2.MemoryMiB <= 0 || t2.MemoryMiB > maxMemoryMiB || !(t2.OnDemandUSD >= 0 && t2.OnDemandUSD <= maxPrice) {
				t.Fatalf("%+v of %q", t2, text)
			}
			for zone, usd := range t2.SpotUSD {
				if !(usd > 0 && usd <= maxPrice) {
					t.Fatalf("%v USD/h in %s of %q", usd, zone, text)
				}
			}
		}
		for _, m := range c.Commitments {
			for _, usd := range m.Rates {
				if m.Room < 0 || !(usd > 0) || math.IsInf(usd, 0) {
					t.Fatalf("%+v of %q", m, text)
				}
			}
		}
	})
}
