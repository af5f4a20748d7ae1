package status

import (
	"fmt"
	"strings"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

// A picture has the spot pools with nodes or with events, those that are interrupted most often first, and no more than
// a page can hold.
func TestSpotPools(t *testing.T) {
	node := func(name, typeName, capacity string) cluster.Node {
		return cluster.Node{Name: name, Labels: map[string]string{instancetypes.LabelType: typeName, instancetypes.LabelZone: "a",
			instancetypes.LabelCapacityType: capacity}}
	}
	cell := func(typeName string, e spotpools.Evidence) spotpools.Cell {
		return spotpools.Cell{Pool: spotpools.Pool{Type: typeName, Zone: "a"}, Evidence: e}
	}
	s := cluster.Snapshot{Nodes: []cluster.Node{node("n1", "m5.large", instancetypes.Spot), node("n2", "m5.large", instancetypes.Spot),
		node("n3", "r5.large", instancetypes.OnDemand)}}
	if list, more := spotPools(s); list != nil || more != 0 {
		t.Errorf("without a record: %v, %d more", list, more)
	}
	s.Catalog.Spot = &spotpools.Summary{Own: []spotpools.Cell{
		cell("m5.large", spotpools.Evidence{Hours: 400}),
		cell("c6a.large", spotpools.Evidence{Hours: 41, Interruptions: 3}),
		cell("quiet.large", spotpools.Evidence{Hours: 5000}), // neither nodes nor events
	}}
	list, _ := spotPools(s)
	var got []string
	for _, p := range list {
		got = append(got, fmt.Sprintf("%s %s %d: %s", p.Type, p.Zone, p.Nodes, p.Seen))
	}
	want := "c6a.large a 0: 3 interruptions in 41 node hours, m5.large a 2: 0 interruptions in 400 node hours"
	if text := strings.Join(got, ", "); text != want || list[0].Hazard <= list[1].Hazard {
		t.Errorf("got %s\nwant %s\nhazards %v and %v", text, want, list[0].Hazard, list[1].Hazard)
	}
	page := pageOf(t, View{SpotPools: list, MoreSpotPools: 7})
	for _, part := range []string{`<a href="#spot">`, `<section id="spot">`, ">c6a.large a</th>", ">3 interruptions in 41 node hours<", "; 7 more<", ">" + FormatHazard(list[0]) + "<"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	if strings.Contains(pageOf(t, View{}), "#spot") {
		t.Error("a page without spot pools has a link to them")
	}
	for i := range mostSpotPools {
		s.Catalog.Spot.Own = append(s.Catalog.Spot.Own, cell(fmt.Sprintf("x%d.large", i), spotpools.Evidence{Hours: 10, Refusals: 1}))
	}
	if list, more := spotPools(s); len(list) != mostSpotPools || more != 2 {
		t.Errorf("%d pools, and %d more", len(list), more)
	}
}
