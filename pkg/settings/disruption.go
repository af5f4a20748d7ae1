package settings

// Disruption says what Joiner does about nodes that could go by choice.
type Disruption string

// What is done about them.
const (
	DisruptionAct    Disruption = "act"    // they go
	DisruptionReport Disruption = "report" // it is said which would go and why
	DisruptionOff    Disruption = "off"    // nobody looks
)

func disruptionKnobs() []settingBinding[Values] {
	return []settingBinding[Values]{
		choiceSetting(Setting{Name: "disruption", Env: "DISRUPTION", Default: string(DisruptionAct), Unit: "word",
			Doc: "What Joiner does with empty, drifted and too expensive nodes: remove them (act), report them (report), or nothing (off). report and off roll unfinished disruptions back. The annotation joiner.sh/disruption: report of a NodePool overrides act."},
			[]Disruption{DisruptionAct, DisruptionReport, DisruptionOff},
			func(v *Values) *Disruption { return &v.Disruption }),
		numberSetting(Setting{Name: "podEvictionCostUSD", Env: "POD_EVICTION_COST_USD", Default: "0.0012", Unit: "USD",
			Doc: "What it costs you to move one ordinary pod to another node. A consolidation must save that within an hour, so more makes consolidation rarer."},
			0.0000001, 100, func(v *Values) *float64 { return &v.PodEvictionCostUSD }),
		boolSetting(Setting{Name: "spotToSpotConsolidation", Env: "SPOT_TO_SPOT_CONSOLIDATION", Default: "true",
			Doc: "Whether consolidation replaces spot nodes by cheaper spot nodes, as Karpenter's feature gate SpotToSpotConsolidation. The annotation joiner.sh/spot-to-spot-consolidation of a NodePool holds for its nodes."},
			func(v *Values) *bool { return &v.SpotToSpotConsolidation }),
		wholeSetting(Setting{Name: "maxDriftedNodesPerCommand", Env: "MAX_DRIFTED_NODES_PER_COMMAND", Default: "1",
			Unit: "nodes",
			Doc:  "How many drifted nodes with pods are replaced together at most, as far as the budgets of NodePools let them go; drifted nodes without pods go together in any case. More replaces large fleets sooner, and by fewer new nodes."},
			1, 100, func(v *Values) *int { return &v.DriftedPerCommand }),
	}
}
