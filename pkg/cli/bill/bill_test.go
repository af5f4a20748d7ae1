package bill

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/metrics"
)

// More nodes, and more memory for the same work, cost more; every line says how it comes about.
func TestTheBillGrowsWithTheCluster(t *testing.T) {
	last := 0.0
	for _, c := range []Cluster{{3, 10, 1, 512}, {50, 10, 2, 512}, {500, 10, 5, 512}, {5000, 10, 10, 512}, {5000, 10, 10, 1769}} {
		lines, err := Estimate(Usual(), c)
		if err != nil {
			t.Fatal(err)
		}
		usd := Sum(lines)
		t.Logf("%d nodes, %d MiB: %.2f USD: %+v", c.Nodes, c.MemoryMiB, usd, lines)
		if usd <= last {
			t.Errorf("%+v costs %.2f USD, no more than the one before", c, usd)
		}
		last = usd
		for _, l := range lines {
			if l.How == "" || l.USD < 0 {
				t.Errorf("line %+v", l)
			}
		}
	}
	if first, err := Estimate(Usual(), Cluster{3, 10, 1, 512}); err != nil || Sum(first) > 15 {
		t.Errorf("a cluster of 3 nodes costs %.2f USD, %v", Sum(first), err)
	}
}

// The fleet of the largest cluster of the table has the metrics that the bill counts with, and no more for more nodes.
func TestTheFleetHasTheMetricsThatAreCounted(t *testing.T) {
	const nodes, pools, ofRequests = 5000, 10, 2 // what functions ask of the API server is counted with those of the fleet
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	series := map[string]bool{}
	var claims []cluster.Claim
	for i := range nodes {
		pool, kind := fmt.Sprint("pool-", i%pools), []string{"spot", "on-demand"}[i/pools%2]
		claims = append(claims, cluster.Claim{Pool: pool, ProviderID: fmt.Sprint("i-", i), Labels: map[string]string{instancetypes.LabelCapacityType: kind,
			instancetypes.LabelType: fmt.Sprintf("m%d.large", i%7), instancetypes.LabelZone: string("abc"[i%3])}})
	}
	for _, r := range metrics.FleetMetrics(claims, instancetypes.Catalog{Time: noon}, noon) {
		for _, v := range r.Values {
			series[fmt.Sprint(v.Name, r.By)] = true
		}
	}
	if want := otherSeries - ofRequests + pools*poolSeries; len(series) != want {
		t.Errorf("%d nodes in %d NodePools have %d metrics, and the bill counts %d, %.2f USD a month", nodes, pools, len(series), want, float64(want)*PerMetric)
	}
}

// Figures between measured sizes, and beyond the largest, are in proportion; what a size lacks is taken from others.
func TestFiguresBetweenAndBeyondWhatWasMeasured(t *testing.T) {
	of := func(nodes, requests, series int) Size {
		return Size{Nodes: nodes, Series: series, Functions: map[string]Ticks{"provision": {Warm: Taken{Requests: requests}, Cold: Taken{Requests: 10 * requests}}}}
	}
	m := Measured{Sizes: []Size{of(10, 100, 7), of(20, 300, 0), of(30, 300, 27)}}
	for _, c := range []struct {
		nodes            int
		requests, series float64
	}{{1, 100, 7}, {10, 100, 7}, {15, 200, 12}, {25, 300, 22}, {30, 300, 27}, {50, 300, 47}} {
		requests := m.figureFor(c.nodes, func(s Size) float64 { return float64(s.Functions["provision"].Warm.Requests) })
		series := m.figureFor(c.nodes, func(s Size) float64 { return float64(s.Series) })
		if requests != c.requests || series != c.series {
			t.Errorf("%d nodes: %v requests and %v metrics, want %v and %v", c.nodes, requests, series, c.requests, c.series)
		}
	}
	if one := interpolate([]point{{500, 20}}, 50); one != 2 {
		t.Errorf("a tenth of the only size takes %v, want 2", one)
	}
	// Of 120 ticks of a process one is cold: 119 × 100 and 1,000.
	s := Stack{TicksPerHour: map[string]float64{"provision": 60}}
	if got := m.tick(s, "provision", 10, func(t Taken) float64 { return float64(t.Requests) }); got != 107.5 {
		t.Errorf("a tick makes %v requests in the mean, want 107.5", got)
	}
}

// Every function with a schedule was measured, warm and cold, and no tick at rest writes more log than this, in clusters
// of any size that was measured.
func TestTicksAreMeasuredAndTheirLogIsBounded(t *testing.T) {
	const mostLog = 40 << 10
	m, err := readFigures()
	if err != nil || len(m.Sizes) == 0 {
		t.Fatalf("%d sizes, %v", len(m.Sizes), err)
	}
	for _, s := range m.Sizes {
		for _, f := range Passes() {
			ticks := s.Functions[f]
			if ticks.Warm.CPUSeconds == 0 || ticks.Warm.Requests == 0 || ticks.Cold.Requests < ticks.Warm.Requests/2 || ticks.Warm.BytesRead == 0 {
				t.Errorf("%d nodes: %s takes %+v", s.Nodes, f, ticks)
			}
			if ticks.Warm.LogBytes > mostLog {
				t.Errorf("%d nodes: %s writes %d bytes of log in a tick at rest", s.Nodes, f, ticks.Warm.LogBytes)
			}
		}
	}
	ticks, nodes, sizes, err := How()
	if err != nil || len(sizes) != len(m.Sizes) || !strings.Contains(ticks, "make scale") || !strings.Contains(nodes, "measure-usage") {
		t.Errorf("how it was measured: %q, %q, %v", ticks, nodes, err)
	}
}

// What the API server answers from another zone is what was measured of its answers, and not whole lists of pods.
func TestAnswersBetweenZonesAreThoseMeasured(t *testing.T) {
	m, err := readFigures()
	if err != nil {
		t.Fatal(err)
	}
	s := Usual()
	for _, z := range m.Sizes {
		bytes := 0.0
		for _, f := range Passes() {
			ticks := s.TicksPerHour[f]
			warm, cold := float64(z.Functions[f].Warm.BytesRead), float64(z.Functions[f].Cold.BytesRead)
			bytes += (ticks-0.5)*warm + 0.5*cold // one in two hours is cold
		}
		want := bytes * HoursPerMonth / 1e9 * 2 / 3 * PerGBZone
		lines, err := InVPC(s, Cluster{z.Nodes, 10, 1, 512}, 4, 2)
		if err != nil {
			t.Fatal(err)
		}
		if got := lines[2].USD; math.Abs(got-want) > 0.001 {
			t.Errorf("%d nodes: %v, want %.3f USD", z.Nodes, lines[2], want)
		}
	}
}

// A million foreign instances: four million events of 0.2 + 2 + 1.2 USD a million, of which the first of each second is
// traced and one in twenty of the others, at 5 USD a million.
func TestForeignInstancesCost(t *testing.T) {
	s := Usual()
	s.Tracing = false
	if got := ForeignInstances(s, 1e6); math.Abs(got-13.6) > 0.01 {
		t.Errorf("without traces %.3f USD, want 13.60", got)
	}
	// Of 2,628,000 seconds 78.2 % have an event: 2,054,000 of 4,000,000, and 5 % of the rest.
	if got := ForeignInstances(Usual(), 1e6); math.Abs(got-13.6-10.76) > 0.02 {
		t.Errorf("with traces %.3f USD, want 24.36", got)
	}
}
