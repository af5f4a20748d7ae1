package prometheus_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/testing/shortrun"
)

// Prices of Amazon Managed Service for Prometheus in us-east-1: USD for ten million samples, up to two billion a month and
// beyond.
const (
	usdOfFirst       = 0.90
	usdBeyond        = 0.35
	firstSamples     = 2e9
	sendsInAMonth    = 730 * 60
	mostSeriesOfSend = 100_000
)

// busyCluster is a cluster of so many nodes of ten types in three NodePools, with 15 pods each, of which the first so many
// nodes are gone and as many others came.
func busyCluster(t *testing.T, nodes, gone int, now time.Time) cluster.Snapshot {
	t.Helper()
	catalog, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	types := []string{"c5.large", "c5.xlarge", "c6i.xlarge", "m5.large", "m5.xlarge", "m6i.xlarge", "m6i.2xlarge", "r5.large", "r6i.xlarge", "t3.large"}
	pools := []string{"general", "spot", "batch"}
	s := cluster.Snapshot{Now: now, Catalog: catalog, Classes: []instancetypes.Class{{Name: "default", Ready: true}}}
	for _, name := range pools {
		s.Pools = append(s.Pools, cluster.Pool{Name: name, Class: "default", Ready: true, Counted: resources.List{CPU: 2000, Memory: 8 << 30, Pods: 29}, Limits: resources.List{CPU: 1e9},
			Limited: []string{"cpu"}, Disruption: cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}})
	}
	catalog.Time = now
	for i := gone; i < nodes+gone; i++ {
		made := noon().Add(-time.Hour)
		if i >= nodes {
			made = now.Add(-2 * time.Minute)
		}
		name := fmt.Sprintf("general-%05d", i)
		labels := map[string]string{"karpenter.sh/nodepool": pools[i%len(pools)], "karpenter.sh/capacity-type": []string{"spot", "on-demand"}[i%2], "node.kubernetes.io/instance-type": types[i%len(types)],
			"topology.kubernetes.io/zone": "us-west-2" + string("abc"[i%3]), "kubernetes.io/arch": "amd64"}
		id, node := "aws:///us-west-2a/i-"+name, "ip-10-0-"+fmt.Sprint(i)+".us-west-2.compute.internal"
		s.Claims = append(s.Claims, cluster.Claim{Name: name, UID: name, Pool: labels["karpenter.sh/nodepool"], Class: "default", ProviderID: id, NodeName: node, Labels: labels, Created: made,
			Conditions: []cluster.Condition{{Type: "Launched", Status: "True", Since: made.Add(2 * time.Second)}, {Type: "Registered", Status: "True", Since: made.Add(40 * time.Second)}, {Type: "Initialized", Status: "True", Since: made.Add(50 * time.Second)}}})
		s.Nodes = append(s.Nodes, cluster.Node{Name: node, ProviderID: id, Labels: labels, Created: made.Add(30 * time.Second), Ready: true, ReadySince: made.Add(40 * time.Second),
			Capacity: resources.List{CPU: 4000, Memory: 16 << 30, Pods: 58, Ephemeral: 20 << 30}, Allocatable: resources.List{CPU: 3920, Memory: 15 << 30, Pods: 58, Ephemeral: 17 << 30}})
		for n := range 15 {
			owner := cluster.OwnerOther
			if n < 3 {
				owner = cluster.OwnerDaemonSet
			}
			pod := fmt.Sprintf("web-%05d-%02d", i, n)
			s.Pods = append(s.Pods, cluster.Pod{Namespace: "shop", Name: pod, UID: pod, NodeName: node, Phase: "Running", Ready: true, Created: made, ReadySince: made.Add(time.Minute),
				Need: resources.List{CPU: 250, Memory: 512 << 20, Pods: 1}, Owner: owner})
		}
	}
	return s
}

// seriesOf is how many series a send of a busy cluster has.
func seriesOf(t *testing.T, detail timeseries.Detail, nodes int) int {
	t.Helper()
	history, now, n := timeseries.History{}, noon(), 0
	for minute := range 3 {
		s := busyCluster(t, nodes, minute*nodes/50, now)
		history = history.Observe(s, timeseries.Activity{Deleted: map[string]string{"general-00000": "expired"}, Evictions: map[string]int{"200": 5, "429": 1}, PodsDrained: map[string]int{"Drifted": 5}})
		series, _ := history.List(s, timeseries.Options{Detail: detail, Limit: mostSeriesOfSend, Build: map[string]string{"version": "1"}})
		n, now = len(series), now.Add(time.Minute)
	}
	return n
}

// usdOf is what Amazon Managed Service for Prometheus takes in a month for a send of so many series each minute.
func usdOf(series int) float64 {
	samples := float64(series) * sendsInAMonth
	return (min(samples, firstSamples)*usdOfFirst + max(0, samples-firstSamples)*usdBeyond) / 1e7
}

// TestThePageSaysWhatMetricsCost: infra/costs.md has the numbers of series of each choice, and what they cost.
func TestThePageSaysWhatMetricsCost(t *testing.T) {
	shortrun.Skip(t)
	page, err := os.ReadFile("../../../infra/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, choice := range []struct {
		name   string
		detail timeseries.Detail
	}{{"cluster", timeseries.Cluster}, {"nodes", timeseries.Nodes}, {"all", timeseries.All}} {
		row := "| `" + choice.name + "` |"
		for _, nodes := range []int{50, 500, 5000} {
			n := seriesOf(t, choice.detail, nodes)
			row += fmt.Sprintf(" %d series, USD %.2f |", n, usdOf(n))
		}
		if !strings.Contains(string(page), "\n"+row+"\n") {
			t.Errorf("infra/costs.md lacks this row:\n%s", row)
		}
	}
}
