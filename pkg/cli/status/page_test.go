package status

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
)

func pageOf(t *testing.T, v View) string {
	t.Helper()
	var b strings.Builder
	if err := WritePage(&b, "shop", v); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A page shows what a price is made of, and where the time for it went.
func TestPageShowsCostsAndTimes(t *testing.T) {
	n := Node{Name: "a", Type: "m5.large", HourlyUSD: 0.1034, NodeUSD: 0.0074, Priced: true,
		Parts: instancetypes.NodeCost{Disks: 0.0024, Address: 0.005}}
	p := Pool{Name: "general", Nodes: []Node{n, n}}
	for _, n := range p.Nodes {
		p.Sum = p.Sum.addSum(n)
	}
	page := pageOf(t, View{Pools: []Pool{p}, Total: p.Sum, Steps: []Step{{"reading the cluster", 1234 * time.Millisecond}, {"deciding", 60 * time.Millisecond}}})
	for want, times := range map[string]int{
		">instance 0.0960<": 2, ">volumes 0.0024<": 2, ">IPv4 0.0050<": 2, // of each node
		">instance 0.1920<": 1, ">volumes 0.0048<": 1, ">IPv4 0.0100<": 1, // of all
		"Time went into reading the cluster 1.23 s, deciding 0.06 s.": 1,
	} {
		if got := strings.Count(page, want); got != times {
			t.Errorf("%q is there %d times, want %d", want, got, times)
		}
	}
	if got := FormatParts(0.0984, instancetypes.NodeCost{Disks: 0.0024}); !cmp.Equal(got, []string{"instance 0.0960", "volumes 0.0024"}) {
		t.Errorf("without an address: %v", got)
	}
	if got := FormatParts(0.1384, instancetypes.NodeCost{Disks: 0.0024, Declared: 0.04}); !cmp.Equal(got, []string{"instance 0.0960", "volumes 0.0024", "declared 0.0400"}) {
		t.Errorf("with what its owner declares it is %v", got)
	}
	if got := FormatParts(0.096, instancetypes.NodeCost{}); got != nil {
		t.Errorf("of an instance alone: %v", got)
	}
}

// A NodePool with many nodes is folded, and each has its link.
func TestPageFoldsLargeNodePools(t *testing.T) {
	var pools []Pool
	for i, size := range []int{mostUnfolded, mostUnfolded + 1} {
		p := Pool{Name: fmt.Sprintf("pool%d", i), Problem: "no subnet"}
		for n := range size {
			p.Nodes = append(p.Nodes, Node{Name: fmt.Sprintf("node-%d", n)})
		}
		pools = append(pools, p)
	}
	page := pageOf(t, View{Pools: pools})
	for i, details := range []string{"<details open>", "<details>"} {
		want := fmt.Sprintf("<section id=\"pool-%d\">\n%s\n<summary>", i, details)
		if !strings.Contains(page, want) || !strings.Contains(page, fmt.Sprintf(`href="#pool-%d"`, i)) {
			t.Errorf("no %q with a link to it", want)
		}
	}
	if n := strings.Count(page, "not ready</span></h2>") + strings.Count(page, "not ready</span></small></h2>"); n != 2 {
		t.Errorf("%d headings say not ready, want 2", n)
	}
}
