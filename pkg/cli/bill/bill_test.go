package bill

import (
	"strings"
	"testing"
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

// A pass over more nodes than were measured takes longer in proportion.
func TestPassesBetweenAndBeyondWhatWasMeasured(t *testing.T) {
	m := measured{Passes: []pass{{"f", 10, 1, 100, 1}, {"f", 20, 3, 200, 1}}}
	for nodes, want := range map[int]float64{1: 1, 10: 1, 15: 2, 20: 3, 40: 7} {
		if got := m.at("f", nodes); got.CPUSeconds != want {
			t.Errorf("%d nodes: %v s, want %v", nodes, got.CPUSeconds, want)
		}
	}
	if how, err := How(); err != nil || !strings.Contains(how, "measure-usage") {
		t.Errorf("how passes were measured: %q, %v", how, err)
	}
}
