package main

import (
	"strings"
	"testing"
)

// TestMarketsAreTheSameForEachWay plays two days twice, and holds the oracle to knowing more than the price says.
func TestMarketsAreTheSameForEachWay(t *testing.T) {
	s := marketScenarios()[0]
	s.nodes = 30
	first, err := playScenario(s, 4, seedRange{0, 2}, 0.06)
	if err != nil {
		t.Fatal(err)
	}
	again, err := playScenario(s, 4, seedRange{0, 2}, 0.06)
	if err != nil {
		t.Fatal(err)
	}
	for i := range first {
		if first[i].usd != again[i].usd || first[i].interruptions != again[i].interruptions {
			t.Errorf("%s: a seed gives another story: %+v and %+v", first[i].way, first[i], again[i])
		}
		if first[i].hours < 5000 {
			t.Errorf("%s: %v node hours, want about 5,760", first[i].way, first[i].hours)
		}
	}
	if first[0].usd >= first[1].usd || first[0].interruptions <= first[3].interruptions {
		t.Errorf("by price: %+v, by EC2: %+v, by the oracle: %+v", first[0], first[1], first[3])
	}
}

func TestACalmMarketCostsNothing(t *testing.T) {
	r, err := playScenario(marketScenarios()[4], 6, seedRange{0, 2}, 0.06)
	if err != nil {
		t.Fatal(err)
	}
	if more := r[2].hourlyPrice()/r[1].hourlyPrice() - 1; r[0].name != "calm" || more > 0.002 || more < -0.02 {
		t.Errorf("in a calm market learning changes the price by %.2f %%", 100*more)
	}
	var out strings.Builder
	if err := writeTable(&out, r, 6, seedRange{0, 2}, 0.06); err != nil || !strings.Contains(out.String(), "| learned | ") {
		t.Errorf("the table is\n%s(%v)", out.String(), err)
	}
	for _, bad := range [][2]int{{0, 1}, {1, 0}} {
		if runScenarios(seedRange{0, bad[1]}, bad[0], 0.06, "", "") == nil {
			t.Errorf("%v days and seeds are no error", bad)
		}
	}
}

// The part of the way is that of the sums, and its error is that of the seeds that come to other parts.
func TestPartOfTheWay(t *testing.T) {
	for _, c := range []struct {
		base, learns, best []float64
		want               string
	}{
		{[]float64{3, 4}, []float64{2.5, 3.5}, []float64{2, 3}, "50 ± 0 % of the way"},
		{[]float64{3, 3}, []float64{2, 3}, []float64{2, 2}, "50 ± 50 % of the way"},
		{[]float64{3, 3}, []float64{3.5, 3.5}, []float64{2, 2}, "-50 ± 0 % of the way"},
		{[]float64{3, 3}, []float64{2, 2}, []float64{2.99, 2.99}, "no way: there is none"},
	} {
		if got := learnedPart(c.base, c.learns, c.best); got != c.want {
			t.Errorf("from %v by %v to %v: %s, want %s", c.base, c.learns, c.best, got, c.want)
		}
	}
}
