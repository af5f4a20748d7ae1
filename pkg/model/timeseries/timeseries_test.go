package timeseries

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// text is the series of the metrics, one a line, as Prometheus prints them.
func text(all []Series, families ...string) string {
	var lines []string
	for _, s := range all {
		for _, f := range families {
			if f == s.Family {
				var labels []string
				for _, l := range s.Labels {
					labels = append(labels, fmt.Sprintf("%s=%q", l.Name, l.Value))
				}
				lines = append(lines, fmt.Sprintf("%s{%s} %g", strings.TrimPrefix(s.Name, "karpenter_"), strings.Join(labels, ","), s.Value))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// expect compares whatever the order is.
func expect(t *testing.T, want, got string) {
	t.Helper()
	sorted := func(s string) string {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

// claim is a NodeClaim of the pool general with its node, made ten minutes before noon.
func claim(name string) (cluster.Claim, cluster.Node) {
	labels := map[string]string{"karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "spot",
		"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "a", "kubernetes.io/arch": "amd64"}
	made := noon().Add(-10 * time.Minute)
	return cluster.Claim{Name: name, UID: "uid-" + name, Pool: "general", ProviderID: "aws:///a/" + name, NodeName: "n-" + name, Labels: labels, Created: made,
			Conditions: []cluster.Condition{{Type: "Registered", Status: "True", Reason: "Registered", Since: made.Add(time.Minute)}}},
		cluster.Node{Name: "n-" + name, ProviderID: "aws:///a/" + name, Labels: labels, Created: made.Add(time.Minute), Ready: true,
			Capacity: resources.List{CPU: 2000, Memory: 8 << 30, Pods: 29}, Allocatable: resources.List{CPU: 1930, Memory: 7 << 30, Pods: 29}}
}

func sample() cluster.Snapshot {
	c, n := claim("c1")
	price := 0.5
	return cluster.Snapshot{Now: noon(), Claims: []cluster.Claim{c}, Nodes: []cluster.Node{n, {Name: "foreign", Created: noon(), Capacity: resources.List{CPU: 70}, Allocatable: resources.List{CPU: 70}}},
		Pools: []cluster.Pool{{Name: "general", Class: "default", Ready: true, Counted: resources.List{CPU: 2000}, Limits: resources.List{CPU: 100_000}, Limited: []string{"cpu"},
			Disruption: cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}}},
		Classes:  []instancetypes.Class{{Name: "default"}},
		Overlays: []cluster.Overlay{{Name: "dearer", Price: &price, Requirements: requirements.FromLabels(map[string]string{"karpenter.sh/capacity-type": "spot"})}},
		Catalog: instancetypes.Catalog{Time: noon().Add(-time.Minute), Zones: map[string]string{"a": "usw2-az1"},
			Types: []instancetypes.Facts{{Name: "m5.large", VCPU: 2, MemoryMiB: 8192, Zones: []string{"a"}, UsageClasses: []string{"on-demand", "spot"}, OnDemandUSD: 0.096, SpotUSD: map[string]float64{"a": 0.03125}}}},
		Pods: []cluster.Pod{
			{Namespace: "shop", Name: "web", UID: "web", NodeName: "n-c1", Phase: "Running", Ready: true, Created: noon().Add(-time.Hour), Need: resources.List{CPU: 500, Memory: 1 << 30, Pods: 1}, Owner: cluster.OwnerOther},
			{Namespace: "kube-system", Name: "proxy", UID: "proxy", NodeName: "n-c1", Phase: "Running", Ready: true, Created: noon().Add(-time.Hour), Need: resources.List{CPU: 100, Pods: 1}, Owner: cluster.OwnerDaemonSet},
			{Namespace: "shop", Name: "new", UID: "new", Phase: "Pending", Unscheduled: true, Created: noon().Add(-30 * time.Second), Need: resources.List{CPU: 500, Pods: 1}, Owner: cluster.OwnerOther},
			{Namespace: "shop", Name: "room", Phase: "Pending", Unscheduled: true, Virtual: true},
		}}
}

func TestHowThingsStand(t *testing.T) {
	got, omitted := History{}.List(sample(), Options{Detail: All, Build: map[string]string{"version": "1"}})
	if omitted != 0 {
		t.Errorf("%d series omitted", omitted)
	}
	at := `arch="amd64",capacity_type="spot",instance_type="m5.large",managed="true",node_name="n-c1",nodepool="general"`
	expect(t, `
nodes_allocatable{managed="false",node_name="foreign",resource_type="cpu"} 0.07
nodes_allocatable{`+at+`,resource_type="cpu",zone="a"} 1.93
nodes_allocatable{`+at+`,resource_type="memory",zone="a"} 7.516192768e+09
nodes_allocatable{`+at+`,resource_type="pods",zone="a"} 29
nodes_current_lifetime_seconds{managed="false",node_name="foreign"} 0
nodes_current_lifetime_seconds{`+at+`,zone="a"} 540
nodes_system_overhead{`+at+`,resource_type="cpu",zone="a"} 0.07
nodes_system_overhead{`+at+`,resource_type="memory",zone="a"} 1.073741824e+09
nodes_total_daemon_requests{`+at+`,resource_type="cpu",zone="a"} 0.1
nodes_total_daemon_requests{`+at+`,resource_type="pods",zone="a"} 1
nodes_total_pod_requests{`+at+`,resource_type="cpu",zone="a"} 0.6
nodes_total_pod_requests{`+at+`,resource_type="memory",zone="a"} 1.073741824e+09
nodes_total_pod_requests{`+at+`,resource_type="pods",zone="a"} 2
`, text(got, nodesAllocatable, nodesAge, nodesOverhead, nodesDaemonRequests, nodesPodRequests))
	expect(t, `
build_info{version="1"} 1
cloudprovider_instance_type_cpu_cores{instance_type="m5.large"} 2
cloudprovider_instance_type_memory_bytes{instance_type="m5.large"} 8.589934592e+09
cloudprovider_instance_type_offering_available{capacity_type="on-demand",instance_type="m5.large",zone="a"} 1
cloudprovider_instance_type_offering_available{capacity_type="spot",instance_type="m5.large",zone="a"} 1
cloudprovider_instance_type_offering_price_estimate{capacity_type="on-demand",instance_type="m5.large",zone="a"} 0.096
cloudprovider_instance_type_offering_price_estimate{capacity_type="spot",instance_type="m5.large",zone="a"} 0.03125
cluster_state_node_count{} 2
cluster_utilization_percent{resource_type="cpu"} 30
cluster_utilization_percent{resource_type="memory"} 14.285714285714286
cluster_utilization_percent{resource_type="pods"} 6.896551724137931
joiner_nodepool_nodes{capacity_type="spot",nodepool="general"} 1
joiner_price_usd_per_hour{} 0.03125
nodepools_cost_total{nodepool="general"} 0.5
nodepools_limit{nodepool="general",resource_type="cpu"} 100
nodepools_nodes_consuming_budgets{nodepool="general",reason="Drifted"} 0
nodepools_nodes_consuming_budgets{nodepool="general",reason="Empty"} 0
nodepools_nodes_consuming_budgets{nodepool="general",reason="Underutilized"} 0
nodepools_usage{nodepool="general",resource_type="cpu"} 2
operator_nodeclaim_status_condition_current_status_seconds{name="c1",nodepool="general",reason="Registered",status="True",type="Registered"} 540
pods_provisioning_scheduling_undecided_time_seconds{name="new",namespace="shop"} 30
pods_state{arch="amd64",capacity_type="spot",instance_type="m5.large",managed="true",name="proxy",namespace="kube-system",node="n-c1",nodepool="general",phase="Running",ready="true",scheduled="true",zone="a"} 1
pods_state{arch="amd64",capacity_type="spot",instance_type="m5.large",managed="true",name="web",namespace="shop",node="n-c1",nodepool="general",phase="Running",ready="true",scheduled="true",zone="a"} 1
pods_state{managed="false",name="new",namespace="shop",phase="Pending",ready="false",scheduled="false"} 1
pods_unbound_time_seconds{dynamic_resources="false",name="new",namespace="shop"} 30
scheduler_unschedulable_pods_count{controller="provisioner"} 1
`, text(got, buildInfo, typeCPU, typeMemory, offeringAvailable, offeringPrice, metrics.NodeCount, utilization, metrics.PoolCost, poolsLimit, poolsUsage, poolsConsuming,
		metrics.Unschedulable, podsState, podsUnbound, podsUndecided, metrics.PricePerHour, metrics.PoolNodes, "operator_nodeclaim_status_condition_current_status_seconds"))
}

func TestDetailDecidesWhichSeriesAreSent(t *testing.T) {
	for detail, want := range map[Detail][]bool{Cluster: {true, false, false}, Nodes: {true, true, false}, All: {true, true, true}} {
		got, _ := History{}.List(sample(), Options{Detail: detail})
		for i, family := range []string{poolsUsage, nodesAllocatable, podsState} {
			if has := text(got, family) != ""; has != want[i] {
				t.Errorf("detail %d: %s is there: %v", detail, family, has)
			}
		}
		for _, s := range got {
			if f, known := FindFamily(s.Family); !known || f.Detail > detail {
				t.Errorf("detail %d has %s", detail, s.Family)
			}
		}
	}
}

// TestTooManySeries leave out the most detailed metrics whole, and say so.
func TestTooManySeries(t *testing.T) {
	all, _ := History{}.List(sample(), Options{Detail: All})
	got, omitted := History{}.List(sample(), Options{Detail: All, Limit: len(all) - 1})
	if len(got)+omitted != len(all) || omitted < 1 || text(got, podsState) != "" || text(got, nodesAllocatable) == "" {
		t.Errorf("%d of %d series, %d omitted:\n%s", len(got), len(all), omitted, text(got, podsState))
	}
	expect(t, fmt.Sprintf("joiner_remote_write_omitted_series{} %d\njoiner_remote_write_series{} %d", omitted, len(got)), text(got, seriesOmitted, seriesSent))
	if got, _ := (History{}).List(sample(), Options{Detail: All, Limit: 10}); len(got) > 10 {
		t.Errorf("%d series, at most 10 wanted", len(got))
	}
}

// TestTheLifeOfANode: each step is counted once, however often it is seen, with the labels of Karpenter, also when the
// history was stored in between.
func TestTheLifeOfANode(t *testing.T) {
	s := sample()
	h := store(t, History{}.Observe(s, Activity{}))
	if got := h.Totals.List(s.Now); len(got) != 0 {
		t.Fatalf("the first observation counts %v", got)
	}
	c, n := claim("c2")
	c.Created, c.Annotations = noon().Add(10*time.Second), map[string]string{"joiner.sh/nominated-pods": "shop/new", "joiner.sh/replaces": "command-1"}
	c.Conditions, c.NodeName, c.ProviderID = nil, "", ""
	s.Claims[0].Annotations = map[string]string{"joiner.sh/disruption-command": `{"id":"command-1","reason":"Underutilized"}`}
	s.Claims = append(s.Claims, c)
	s.Now = noon().Add(20 * time.Second)
	h = store(t, h.Observe(s, Activity{}).Observe(s, Activity{}))

	c.Conditions = []cluster.Condition{{Type: "Registered", Status: "True", Reason: "Registered", Since: noon().Add(50 * time.Second)}}
	c.NodeName, c.ProviderID = n.Name, n.ProviderID
	n.Created = noon().Add(50 * time.Second)
	s.Claims[1] = c
	s.Nodes = append(s.Nodes, n)
	s.Pods[2].NodeName, s.Pods[2].Phase, s.Pods[2].Ready, s.Pods[2].Unscheduled = n.Name, "Running", true, false
	s.Pods[2].Bound, s.Pods[2].ReadySince = noon().Add(52*time.Second), noon().Add(60*time.Second)
	s.Claims[0].Deleting = noon().Add(55 * time.Second)
	s.Nodes[0].Deleting = noon().Add(56 * time.Second)
	s.Now = noon().Add(61 * time.Second)
	h = store(t, h.Observe(s, Activity{Evictions: map[string]int{"201": 1, "429": 3}, PodsDrained: map[string]int{"Underutilized": 1}}).Observe(s, Activity{}))

	s.Claims[0].Conditions = append(s.Claims[0].Conditions, cluster.Condition{Type: "Drained", Status: "True", Reason: "Drained", Since: noon().Add(62 * time.Second)},
		cluster.Condition{Type: "InstanceTerminating", Status: "True", Reason: "InstanceTerminating", Since: noon().Add(63 * time.Second)})
	s.Now = noon().Add(65 * time.Second)
	h = store(t, h.Observe(s, Activity{}))
	s.Claims, s.Nodes = s.Claims[1:], s.Nodes[1:]
	s.Now = noon().Add(85 * time.Second)
	h = store(t, h.Observe(s, Activity{}).Observe(s, Activity{}))

	all, _ := h.List(s, Options{Detail: Cluster})
	how := `{capacity_type="spot",consolidation_policy="when_empty_or_underutilized",nodepool="general",reason="underutilized",termination_mode="graceful"}`
	expect(t, `
nodeclaims_created_total{min_values_relaxed="false",nodepool="general",reason="underutilized"} 1
nodeclaims_disrupted_total`+how+` 1
nodeclaims_terminated_total{capacity_type="spot",nodepool="general",zone="a"} 1
nodes_created_total{nodepool="general",zone="a"} 1
nodes_drained_total{nodepool="general"} 1
nodes_terminated_total{nodepool="general",zone="a"} 1
operator_nodeclaim_status_condition_transitions_total{nodepool="general",reason="Drained",status="True",type="Drained"} 1
operator_nodeclaim_status_condition_transitions_total{nodepool="general",reason="InstanceTerminating",status="True",type="InstanceTerminating"} 1
operator_nodeclaim_status_condition_transitions_total{nodepool="general",reason="Registered",status="True",type="Registered"} 1
pods_disruption_initiated_total`+how+` 1
pods_drained_total{reason="Underutilized"} 1
pods_eviction_requests_total{code="201"} 1
pods_eviction_requests_total{code="429"} 3
`, text(all, metrics.ClaimsCreated, metrics.ClaimsDisrupt, metrics.ClaimsEnded, nodesCreated, nodesDrained, nodesTerminated, podsDisrupted, podsDrained, podsEvictions,
		"operator_nodeclaim_status_condition_transitions_total"))
	var sums []Series
	for _, s := range all {
		if strings.HasSuffix(s.Name, "_sum") || strings.HasSuffix(s.Name, "_count") {
			sums = append(sums, s)
		}
	}
	expect(t, `
nodeclaims_instance_termination_duration_seconds_count{nodepool="general"} 1
nodeclaims_instance_termination_duration_seconds_sum{nodepool="general"} 22
nodeclaims_termination_duration_seconds_count{nodepool="general"} 1
nodeclaims_termination_duration_seconds_sum{nodepool="general"} 30
nodes_lifetime_duration_seconds_count{nodepool="general"} 1
nodes_lifetime_duration_seconds_sum{nodepool="general"} 625
nodes_termination_duration_seconds_count{nodepool="general"} 1
nodes_termination_duration_seconds_sum{nodepool="general"} 29
pods_bound_duration_seconds_count{dynamic_resources="false"} 1
pods_bound_duration_seconds_sum{dynamic_resources="false"} 82
pods_provisioning_bound_duration_seconds_count{dynamic_resources="false"} 1
pods_provisioning_bound_duration_seconds_sum{dynamic_resources="false"} 42
pods_provisioning_startup_duration_seconds_count{} 1
pods_provisioning_startup_duration_seconds_sum{} 50
pods_scheduling_decision_duration_seconds_count{} 1
pods_scheduling_decision_duration_seconds_sum{} 40
pods_startup_duration_seconds_count{} 1
pods_startup_duration_seconds_sum{} 90
`, text(sums, instanceTermination, claimTermination, nodeLifetime, nodeTermination, podsBound, podsProvisioningBound, podsProvisioningStartup, metrics.DecisionTime, podsStartup))
}

// store is the history as another process reads it.
func store(t *testing.T, h History) (out History) {
	t.Helper()
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHistogramsAndSummaries(t *testing.T) {
	totals := Totals{}
	for i := range 100 {
		totals.Measure(podsStartup, time.Duration(i+1)*time.Second, noon())
		totals.Measure(claimTermination, time.Duration(i)*time.Second, noon(), "nodepool", "general")
	}
	expect(t, `
nodeclaims_termination_duration_seconds_bucket{le="1",nodepool="general"} 2
nodeclaims_termination_duration_seconds_bucket{le="2",nodepool="general"} 3
nodeclaims_termination_duration_seconds_bucket{le="4",nodepool="general"} 5
nodeclaims_termination_duration_seconds_bucket{le="8",nodepool="general"} 9
nodeclaims_termination_duration_seconds_bucket{le="16",nodepool="general"} 17
nodeclaims_termination_duration_seconds_bucket{le="32",nodepool="general"} 33
nodeclaims_termination_duration_seconds_bucket{le="64",nodepool="general"} 65
nodeclaims_termination_duration_seconds_bucket{le="128",nodepool="general"} 100
nodeclaims_termination_duration_seconds_bucket{le="256",nodepool="general"} 100
nodeclaims_termination_duration_seconds_bucket{le="512",nodepool="general"} 100
nodeclaims_termination_duration_seconds_bucket{le="1024",nodepool="general"} 100
nodeclaims_termination_duration_seconds_bucket{le="2048",nodepool="general"} 100
nodeclaims_termination_duration_seconds_bucket{le="+Inf",nodepool="general"} 100
nodeclaims_termination_duration_seconds_count{nodepool="general"} 100
nodeclaims_termination_duration_seconds_sum{nodepool="general"} 4950
pods_startup_duration_seconds_count{} 100
pods_startup_duration_seconds_sum{} 5050
pods_startup_duration_seconds{quantile="0"} 1
pods_startup_duration_seconds{quantile="0.5"} 50
pods_startup_duration_seconds{quantile="0.9"} 90
pods_startup_duration_seconds{quantile="0.99"} 99
pods_startup_duration_seconds{quantile="1"} 100
`, text(totals.List(noon().Add(10*time.Minute)), claimTermination, podsStartup))
	for _, s := range totals.List(noon().Add(11 * time.Minute)) {
		if s.Name == podsStartup && !math.IsNaN(s.Value) {
			t.Errorf("eleven minutes later %v", s)
		}
	}
}

// TestWhatEndsANodeClaim: the reason stands on the NodeClaim or was told by the pass; a person's deletion is none.
func TestWhatEndsANodeClaim(t *testing.T) {
	s := sample()
	s.Claims = nil
	for _, name := range []string{"by-person", "by-lifecycle", "by-notice"} {
		c, _ := claim(name)
		s.Claims = append(s.Claims, c)
	}
	h := History{}.Observe(s, Activity{})
	for i := range s.Claims {
		s.Claims[i].Deleting = noon().Add(time.Second)
	}
	s.Claims[2].Annotations = map[string]string{"joiner.sh/deletion-reason": "spot_interrupted"}
	s.Now = noon().Add(2 * time.Second)
	h = h.Observe(s, Activity{Deleted: map[string]string{"by-lifecycle": "expired"}})
	all, _ := h.List(s, Options{})
	expect(t, `
interruption_received_messages_total{message_type="spot_interrupted"} 1
nodeclaims_disrupted_total{capacity_type="spot",nodepool="general",reason="expired",termination_mode="graceful"} 1
nodeclaims_disrupted_total{capacity_type="spot",nodepool="general",reason="spot_interrupted",termination_mode="graceful"} 1
`, text(all, metrics.ClaimsDisrupt, interruptions))
}

func TestRefusalsAndStatusChecks(t *testing.T) {
	s := sample()
	h := History{}.Observe(s, Activity{})
	offering := instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "a"}
	s.Unavailable = []instancetypes.UnavailableOffering{{OfferingKey: offering, Until: noon().Add(3 * time.Minute), Why: "InsufficientInstanceCapacity"},
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "on-demand", Type: "m5.large", Zone: "a"}, Until: noon().Add(3 * time.Minute), Why: "SpotInterrupted"}}
	s.Impaired = []cluster.Impairment{{Instance: "i-1", System: true, Since: noon()}}
	h = h.Observe(s, Activity{}).Observe(s, Activity{})
	s.Unavailable[0].Until = noon().Add(9 * time.Minute)
	h = h.Observe(s, Activity{})
	all, _ := h.List(s, Options{})
	expect(t, `
cloudprovider_instance_launch_failures_total{capacity_type="spot",reason="InsufficientInstanceCapacity",zone="a",zone_id="usw2-az1"} 2
interruption_instance_status_unhealthy_total{category="system_status"} 1
`, text(all, launchFailures, unhealthyInstances))
}

// TestTotalsOfAPoolThatIsGoneEnd, so that their number stays bounded.
func TestTotalsOfAPoolThatIsGoneEnd(t *testing.T) {
	h := History{At: noon(), Totals: Totals{}}
	h.Totals.Count(metrics.ClaimsEnded, 1, "nodepool", "gone")
	h.Totals.Count(metrics.ClaimsEnded, 1, "nodepool", "general")
	s := sample()
	all, _ := h.Observe(s, Activity{}).List(s, Options{})
	expect(t, `nodeclaims_terminated_total{nodepool="general"} 1`, text(all, metrics.ClaimsEnded))
}
