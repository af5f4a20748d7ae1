package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/settings"
	"joiner.sh/pkg/testing/scenario"
)

// What decisions go by comes from the settings, each of them; that pods have addresses of IPv6, from those of services.
func TestDecisionSettings(t *testing.T) {
	v := settings.Values{NominatedPodsOnly: true, PreferencePolicy: settings.PreferenceIgnore, MinValuesPolicy: settings.MinValuesBestEffort,
		MaxNodeClaimsPerPass: 7, MaxNodes: 9, MaxNodesPerMinute: 4, MaxUSDPerHour: 1.5, PerNodeOverheadUSD: 0.01, PodEvictionCostUSD: 0.02,
		DriftedPerCommand: 3, NodeRepair: true, VMMemoryOverheadPercent: 0.08, ReservedENIs: 2, ServiceCIDR: "fd30:1c53:5f8a::/108"}
	want := cluster.Settings{NominatedPodsOnly: true, IgnorePreferences: true, RelaxMinValues: true, MaxClaims: 7,
		Ceiling: cluster.Ceiling{Nodes: 9, NodesPerMinute: 4, MillionthsUSD: 1_500_000}, DeclaredNodeUSD: 0.01, PodEvictionCostUSD: 0.02,
		DriftedPerCommand: 3, NoSpotToSpotConsolidation: true, LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute,
		InitializationTimeout: 30 * time.Minute, DetachTimeout: detachTimeout, NodeRepair: true, GarbageCollectionMinAge: garbageCollectionMinAge,
		MemoryOverhead: 0.08, ReservedENIs: 2, OpenReservations: true, IPv6: true}
	if d := cmp.Diff(want, decisionSettings(v)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	v.ServiceCIDR, v.ReservedCapacity, v.SpotToSpotConsolidation = "172.20.0.0/16", true, true
	if got := decisionSettings(v); got.IPv6 || got.OpenReservations || got.NoSpotToSpotConsolidation {
		t.Errorf("%+v", got)
	}
}

// Scenarios of decisions run with the timeouts of the functions: without one, rules that hang on it are not tested.
func TestScenariosHaveTheTimeoutsOfTheFunctions(t *testing.T) {
	set, have := decisionSettings(settings.Values{}), scenario.New().Snapshot.Rules
	want := cluster.Settings{LaunchTimeout: set.LaunchTimeout, RegistrationTimeout: set.RegistrationTimeout,
		InitializationTimeout: set.InitializationTimeout}
	if d := cmp.Diff(want, have); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
