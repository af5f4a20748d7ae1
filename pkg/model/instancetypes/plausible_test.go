package instancetypes

import (
	"math"
	"strings"
	"testing"
)

func TestPlausible(t *testing.T) {
	builtIn := Catalog{Region: "us-west-2", Types: []Facts{{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: 0.1}}}
	for name, test := range map[string]struct {
		region string
		change func(*Facts)
		want   string // empty for plausible
	}{
		"the same":                      {"us-west-2", func(*Facts) {}, ""},
		"nine times as dear":            {"sa-east-1", func(f *Facts) { f.OnDemandUSD = 0.9 }, ""},
		"no price is known":             {"us-west-2", func(f *Facts) { f.OnDemandUSD, f.SpotUSD = 0, nil }, ""},
		"a type of which less is known": {"us-west-2", func(f *Facts) { f.Name, f.OnDemandUSD = "m99.large", 50 }, ""},
		"cheap spot":                    {"us-west-2", func(f *Facts) { f.SpotUSD["a"] = 0.002 }, ""},
		"in another currency":           {"cn-north-1", func(f *Facts) { f.OnDemandUSD = 1.2 }, ""},
		"nearly free":                   {"us-west-2", func(f *Facts) { f.OnDemandUSD = 0.00001 }, "m5.large: an on-demand price of 1e-05 USD/h, the built-in catalog says 0.1"},
		"eleven times as dear":          {"us-west-2", func(f *Facts) { f.OnDemandUSD = 1.1 }, "m5.large: an on-demand price of 1.1 USD/h"},
		"below nothing":                 {"us-west-2", func(f *Facts) { f.OnDemandUSD = -5 }, "m5.large: an on-demand price of -5 USD/h"},
		"no number":                     {"us-west-2", func(f *Facts) { f.OnDemandUSD = math.NaN() }, "m5.large: an on-demand price of NaN"},
		"free spot":                     {"us-west-2", func(f *Facts) { f.SpotUSD["a"] = 0 }, "m5.large: a spot price of 0 USD/h in a"},
		"nearly free spot":              {"us-west-2", func(f *Facts) { f.SpotUSD["a"] = 0.0009 }, "m5.large: a spot price of 0.0009 USD/h in a, the built-in catalog says 0.1 on demand"},
		"vCPUs below nothing":           {"us-west-2", func(f *Facts) { f.VCPU = -2 }, "m5.large: -2 vCPUs"},
		"vCPUs":                         {"us-west-2", func(f *Facts) { f.VCPU = 192 }, "m5.large: 192 vCPUs, the built-in catalog says 2"},
		"memory":                        {"us-west-2", func(f *Facts) { f.MemoryMiB = 800 }, "m5.large: 800 MiB of memory, the built-in catalog says 8192"},
		"memory of an unknown type":     {"us-west-2", func(f *Facts) { f.Name, f.MemoryMiB = "m99.large", 1<<28+1 }, "m99.large: 268435457 MiB of memory"},
	} {
		f := Facts{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, OnDemandUSD: 0.1, Zones: []string{"a"}, SpotUSD: map[string]float64{"a": 0.03}}
		test.change(&f)
		c := Catalog{Region: test.region, Types: []Facts{f, {Name: "x9.large", VCPU: 4, MemoryMiB: 100, OnDemandUSD: 1}}}
		got, odd := c.Plausible(builtIn)
		left := 2
		if test.want != "" {
			left = 1
		}
		if text := strings.Join(odd, "; "); len(got.Types) != left || !strings.HasPrefix(text, test.want) || text == "" != (test.want == "") {
			t.Errorf("%s: %d types left, said %q, want %q", name, len(got.Types), text, test.want)
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
