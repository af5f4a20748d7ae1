package metrics_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/metrics"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func lines(t *testing.T, records ...metrics.Record) string {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		all, err := metrics.EMFLines(noon(), "demo", r)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range all {
			b.Write(l)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func TestALineIsInTheEmbeddedFormat(t *testing.T) {
	got := lines(t, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: "empty"}, {Key: "nodepool", Value: "general"}},
		Values: []metrics.Value{metrics.Total("a_total", 2), metrics.Durations("b_seconds", time.Second, 1500*time.Millisecond), metrics.Gauge("c", 0), {Name: "nothing"}}})
	want := `{"_aws":{"Timestamp":1767268800000,"CloudWatchMetrics":[{"Namespace":"Joiner","Dimensions":[["cluster","nodepool","reason"]],` +
		`"Metrics":[{"Name":"a_total","Unit":"Count"},{"Name":"b_seconds","Unit":"Seconds"},{"Name":"c"}]}]},` +
		`"a_total":2,"b_seconds":[1,1.5],"c":0,"cluster":"demo","nodepool":"general","reason":"empty"}` + "\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("line (-want +got):\n%s", diff)
	}
	if got := lines(t, metrics.Record{Values: []metrics.Value{{Name: "nothing"}}}); got != "" {
		t.Errorf("nothing measured and still a line: %s", got)
	}
}

func TestManyNumbersGoOverSeveralLines(t *testing.T) {
	v := metrics.Durations("b_seconds", make([]time.Duration, 250)...)
	all, err := metrics.EMFLines(noon(), "demo", metrics.Record{Values: []metrics.Value{v, metrics.Total("a_total", 1)}})
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for i, l := range all {
		var root struct {
			A *int      `json:"a_total"`
			B []float64 `json:"b_seconds"`
		}
		if err := json.Unmarshal(l, &root); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, len(root.B))
		if (root.A != nil) != (i == 0) {
			t.Errorf("line %d counts again: %s", i, l)
		}
	}
	if diff := cmp.Diff([]int{100, 100, 50}, counts); diff != "" {
		t.Errorf("numbers in each line (-want +got):\n%s", diff)
	}
}

func TestANameTwiceIsRefused(t *testing.T) {
	for _, r := range []metrics.Record{
		{Values: []metrics.Value{metrics.Total("a", 1), metrics.Total("a", 1)}},
		{By: []metrics.Tag{{Key: "a", Value: "x"}}, Values: []metrics.Value{metrics.Total("a", 1)}},
		{By: []metrics.Tag{{Key: "cluster", Value: "x"}}, Values: []metrics.Value{metrics.Total("a", 1)}},
		{Values: []metrics.Value{metrics.Total("_aws", 1)}}, {Values: []metrics.Value{metrics.Total("", 1)}},
	} {
		if _, err := metrics.EMFLines(noon(), "demo", r); err == nil {
			t.Errorf("%+v was written", r)
		}
	}
}

func TestFleet(t *testing.T) {
	c := instancetypes.Catalog{Time: noon().Add(-time.Minute), Types: []instancetypes.Facts{{Name: "m5.large", OnDemandUSD: 0.096, SpotUSD: map[string]float64{"a": 0.03125}}}}
	claim := func(pool, capacityType, name, zone, id string) cluster.Claim {
		return cluster.Claim{Pool: pool, ProviderID: id, Labels: map[string]string{"karpenter.sh/capacity-type": capacityType,
			"node.kubernetes.io/instance-type": name, "topology.kubernetes.io/zone": zone}}
	}
	got := lines(t, metrics.FleetMetrics([]cluster.Claim{
		claim("general", "spot", "m5.large", "a", "i-1"), claim("general", "spot", "m5.large", "a", "i-2"), claim("general", "on-demand", "m5.large", "a", "i-3"),
		claim("batch", "reserved", "m5.large", "a", "i-4"), claim("batch", "spot", "m5.large", "b", "i-5"), claim("batch", "spot", "x9.huge", "a", "i-6"),
		claim("general", "spot", "m5.large", "a", ""),
	}, c, noon())...)
	want := []string{
		`"joiner_catalog_age_seconds":60,"joiner_price_usd_per_hour":0.2545,"karpenter_cluster_state_node_count":6}`,
		`"capacity_type":"reserved","cluster":"demo","joiner_nodepool_nodes":1,"karpenter_nodepools_cost_total":0,"nodepool":"batch"}`,
		`"capacity_type":"spot","cluster":"demo","joiner_nodepool_nodes":2,"karpenter_nodepools_cost_total":0.096,"nodepool":"batch"}`,
		`"capacity_type":"on-demand","cluster":"demo","joiner_nodepool_nodes":1,"karpenter_nodepools_cost_total":0.096,"nodepool":"general"}`,
		`"capacity_type":"spot","cluster":"demo","joiner_nodepool_nodes":2,"karpenter_nodepools_cost_total":0.0625,"nodepool":"general"}`,
	}
	all := strings.Split(strings.TrimSpace(got), "\n")
	if len(all) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(all), len(want), got)
	}
	for i, l := range all {
		if !strings.HasSuffix(l, want[i]) {
			t.Errorf("line %d is\n%s\nwant it to end with\n%s", i, l, want[i])
		}
	}
}
