package instancetypes

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestPlausible(t *testing.T) {
	builtIn := Catalog{Region: "us-west-2", Types: []Facts{{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: 0.1}}}
	const same = "2 vCPUs, 8192 MiB, 0.1 USD, spot map[a:0.03]"
	for name, test := range map[string]struct {
		region string
		change func(*Facts)
		why    string // empty for plausible
		want   string // empty for left out
	}{
		"the same":                      {"us-west-2", func(*Facts) {}, "", same},
		"nine times as dear":            {"sa-east-1", func(f *Facts) { f.OnDemandUSD = 0.9 }, "", "2 vCPUs, 8192 MiB, 0.9 USD, spot map[a:0.03]"},
		"no price is known":             {"us-west-2", func(f *Facts) { f.OnDemandUSD, f.SpotUSD = 0, nil }, "", "2 vCPUs, 8192 MiB, 0 USD, spot map[]"},
		"a type of which less is known": {"us-west-2", func(f *Facts) { f.Name, f.OnDemandUSD = "m99.large", 50 }, "", "2 vCPUs, 8192 MiB, 50 USD, spot map[a:0.03]"},
		"cheap spot":                    {"us-west-2", func(f *Facts) { f.SpotUSD["a"] = 0.002 }, "", "2 vCPUs, 8192 MiB, 0.1 USD, spot map[a:0.002]"},
		"spot in a zone that is new":    {"us-west-2", func(f *Facts) { f.SpotUSD["z"] = 0.7 }, "", "2 vCPUs, 8192 MiB, 0.1 USD, spot map[a:0.03 z:0.7]"},
		"in another currency":           {"cn-north-1", func(f *Facts) { f.OnDemandUSD = 1.2 }, "", "2 vCPUs, 8192 MiB, 1.2 USD, spot map[a:0.03]"},
		"nearly free":                   {"us-west-2", func(f *Facts) { f.OnDemandUSD = 0.00001 }, "m5.large: an on-demand price of 1e-05 USD/h, the built-in catalog says 0.1", same},
		"eleven times as dear":          {"us-west-2", func(f *Facts) { f.OnDemandUSD = 1.1 }, "m5.large: an on-demand price of 1.1 USD/h, the built-in catalog says 0.1", same},
		"below nothing":                 {"us-west-2", func(f *Facts) { f.OnDemandUSD = -5 }, "m5.large: an on-demand price of -5 USD/h, the built-in catalog says 0.1", same},
		"no number":                     {"us-west-2", func(f *Facts) { f.OnDemandUSD = math.NaN() }, "m5.large: an on-demand price of NaN USD/h, the built-in catalog says 0.1", same},
		"below nothing in China": {"cn-north-1", func(f *Facts) { f.OnDemandUSD, f.SpotUSD["a"] = -5, -1 },
			"m5.large: an on-demand price of -5 USD/h, the built-in catalog says 0, a spot price of -1 USD/h in a, on demand it is 0",
			"2 vCPUs, 8192 MiB, 0 USD, spot map[]"},
		"free spot": {"us-west-2", func(f *Facts) { f.OnDemandUSD, f.SpotUSD["a"] = 0.12, 0 },
			"m5.large: a spot price of 0 USD/h in a, on demand it is 0.12", "2 vCPUs, 8192 MiB, 0.12 USD, spot map[a:0.12]"},
		"nearly free spot": {"us-west-2", func(f *Facts) { f.SpotUSD["b"] = 0.0009 },
			"m5.large: a spot price of 0.0009 USD/h in b, on demand it is 0.1", "2 vCPUs, 8192 MiB, 0.1 USD, spot map[a:0.03 b:0.1]"},
		"dear spot": {"us-west-2", func(f *Facts) { f.SpotUSD["a"] = 1.1 },
			"m5.large: a spot price of 1.1 USD/h in a, on demand it is 0.1", "2 vCPUs, 8192 MiB, 0.1 USD, spot map[a:0.1]"},
		"vCPUs below nothing": {"us-west-2", func(f *Facts) { f.VCPU = -2 }, "m5.large: -2 vCPUs, the built-in catalog says 2", same},
		"vCPUs":               {"us-west-2", func(f *Facts) { f.VCPU = 192 }, "m5.large: 192 vCPUs, the built-in catalog says 2", same},
		"no vCPUs":            {"us-west-2", func(f *Facts) { f.VCPU = 0 }, "m5.large: 0 vCPUs, the built-in catalog says 2", same},
		"memory":              {"us-west-2", func(f *Facts) { f.MemoryMiB = 800 }, "m5.large: 800 MiB of memory, the built-in catalog says 8192", same},
		"memory of an unknown type": {"us-west-2", func(f *Facts) { f.Name, f.MemoryMiB = "m99.large", 1<<28+1 },
			"m99.large: 268435457 MiB of memory, the built-in catalog says 0", ""},
	} {
		f := Facts{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: 0.1, Zones: []string{"a"}, SpotUSD: map[string]float64{"a": 0.03}}
		test.change(&f)
		read := fmt.Sprint(f)
		c := Catalog{Region: test.region, Types: []Facts{f, {Name: "x9.large", VCPU: 4, MemoryMiB: 100, OnDemandUSD: 1}}}
		got, odd := c.Plausible(builtIn)
		said := ""
		if len(got.Types) == 2 {
			f := got.Types[0]
			said = fmt.Sprintf("%d vCPUs, %d MiB, %v USD, spot %v", f.VCPU, f.MemoryMiB, f.OnDemandUSD, f.SpotUSD)
		}
		if why := strings.Join(odd, "; "); said != test.want || why != test.why {
			t.Errorf("%s: %s, want %s; said %q, want %q", name, said, test.want, why, test.why)
		}
		if fmt.Sprint(c.Types[0]) != read {
			t.Errorf("%s: what was read is changed to %+v", name, c.Types[0])
		}
	}
}

func TestACatalogOfOneTypeTwice(t *testing.T) {
	gz, err := Catalog{Schema: Schema, Types: []Facts{{Name: "b"}, {Name: "a"}, {Name: "b"}}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeCatalog(gz); err == nil || err.Error() != "decode catalog: it holds type b twice" {
		t.Errorf("error %v", err)
	}
}

// What makes nodes cheap beside their prices counts only where it can be true.
func TestPlausibleExtras(t *testing.T) {
	c := Catalog{Types: []Facts{{Name: "m5.large", VCPU: 2, MemoryMiB: 8192}},
		Commitments: []Commitment{{ID: "sp", Room: 5, Rates: map[string]float64{"m5.large": 0.05}}, {ID: "below nothing", Room: -1},
			{ID: "free", Room: 5, Rates: map[string]float64{"m5.large": 0}}, {ID: "no number", Rates: map[string]float64{"m5.large": math.NaN()}}},
		Elsewhere:  []RunningCount{{Type: "m5.large", Count: 1}, {Type: "m5.large", Count: -1}},
		DiskPrices: map[string]DiskPrice{"gp3": {GiB: 0.08}, "gp2": {GiB: -1}, "io1": {IOPS: math.Inf(1)}}}
	got, odd := c.Plausible(Catalog{})
	if len(got.Commitments) != 1 || len(got.Elsewhere) != 1 || len(got.DiskPrices) != 1 {
		t.Errorf("%+v", got)
	}
	want := []string{"3 of 4 commitments", "1 of 2 counts of what runs elsewhere", "2 of 3 prices of volumes"}
	if !slices.Equal(odd, want) {
		t.Errorf("said %q, want %q", odd, want)
	}
}

// A few kilobytes that unpack to millions of types are refused before a type is made of them: they took 14 GB.
func TestACatalogOfEmptyObjects(t *testing.T) {
	for name, list := range map[string]string{"types": `{}`, "elsewhere": `null`, "zones": `""`} {
		var packed bytes.Buffer
		zw := gzip.NewWriter(&packed)
		_, _ = zw.Write([]byte(`{"schema":1,"types":[{"name":"a","zones":["a"]}],"` + name + `":[` + strings.Repeat(list+",", 600_000) + list + `]}`))
		_ = zw.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := DecodeCatalog(packed.Bytes())
		runtime.ReadMemStats(&after)
		if made := (after.TotalAlloc - before.TotalAlloc) >> 20; err == nil || !strings.Contains(err.Error(), "at most") || made > 40 {
			t.Errorf("%s %s: %v, %d MiB were made", name, list, err, made)
		}
	}
}
