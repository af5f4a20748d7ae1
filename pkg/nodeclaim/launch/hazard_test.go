package launch

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// market are 10 types in 3 zones whose pools cost 0.1 USD/h and have the hazard, but for those named.
func market(hazard float64, others map[string]float64) []instancetypes.Type {
	var out []instancetypes.Type
	for k := range 10 {
		t := instancetypes.Type{Name: fmt.Sprintf("m%d.large", k), MaxPods: 10}
		for _, zone := range []string{"a", "b", "c"} {
			o := instancetypes.Offering{Offer: instancetypes.Offer{CapacityType: "spot", Type: t.Name, Zone: zone},
				Available: true, Hazard: hazard}
			if h, other := others[t.Name+" "+zone]; other {
				o.Hazard = h
			}
			o.RiskUSD = o.Hazard * 10 * 0.05
			o.Price = 0.1 + o.RiskUSD
			t.Offerings = append(t.Offerings, o)
		}
		out = append(out, t)
	}
	return out
}

func leftOut(types []instancetypes.Type) (out []string) {
	for _, l := range HazardousPools(types, requirements.Set{}) {
		out = append(out, l.Type+" "+l.Zone)
	}
	return out
}

func TestPoolsThatAreInterruptedMuchMoreAreLeftOut(t *testing.T) {
	half, none := map[string]float64{}, []string(nil)
	for k := range 10 {
		half[fmt.Sprintf("m%d.large a", k)], half[fmt.Sprintf("m%d.large b", k)] = 0.02, 0.02
	}
	for _, test := range []struct {
		name  string
		types []instancetypes.Type
		want  []string
	}{
		{"all the same", market(0.002, nil), none},
		{"not learned", market(0, nil), none},
		{"a little more", market(0.002, map[string]float64{"m3.large b": 0.0038}), none},
		{"much more of nearly nothing", market(0.00001, map[string]float64{"m3.large b": 0.0001}), none},
		{"one of 30", market(0.002, map[string]float64{"m3.large b": 0.02}), []string{"m3.large b"}},
		{"the worst first", market(0.002, map[string]float64{"m3.large b": 0.02, "m1.large c": 0.03}), []string{"m1.large c", "m3.large b"}},
		{"too few others", market(0.002, map[string]float64{"m3.large b": 0.02})[2:6], none},
	} {
		if got := leftOut(test.types); !slices.Equal(got, test.want) {
			t.Errorf("%s: left out are %q, want %q", test.name, got, test.want)
		}
	}
	zones := requirements.NewSet(requirements.Of(corev1.LabelTopologyZone, "a", "c"))
	two := market(0.002, map[string]float64{"m3.large b": 0.02, "m1.large c": 0.03})
	if got := HazardousPools(two, zones); len(got) != 1 || got[0].Type != "m1.large" || got[0].Zone != "c" {
		t.Errorf("without zone b %v are left out, want m1.large in zone c", got)
	}
	if got := leftOut(market(0.001, half)); len(got) != 0 {
		t.Errorf("most pools are as bad as others, and %q are left out", got)
	}
}

func TestEnoughPoolsAndTypesStay(t *testing.T) {
	bad := map[string]float64{}
	for k := range 14 { // just under half, so that the median is a good one
		bad[fmt.Sprintf("m%d.large %c", k/3, "abc"[k%3])] = 0.05
	}
	types := market(0.001, bad)
	got := leftOut(types)
	if len(got) != 14 {
		t.Errorf("%d of 14 hazardous pools are left out", len(got))
	}
	for n := 4; n <= 10; n++ {
		kept, keptTypes := 0, map[string]bool{}
		some := types[:n]
		out := leftOut(some)
		for _, typ := range some {
			for _, o := range typ.Offerings {
				if !slices.Contains(out, o.Type+" "+o.Zone) {
					kept, keptTypes[o.Type] = kept+1, true
				}
			}
		}
		if kept < min(12, 3*n) || len(keptTypes) < min(6, n) {
			t.Errorf("of %d types %d pools of %d types are left", n, kept, len(keptTypes))
		}
	}
}
