package setting

import "time"

// Disruption says what Joiner does about nodes that could go by choice.
type Disruption string

// What is done about them.
const (
	DisruptionAct    Disruption = "act"    // they go
	DisruptionReport Disruption = "report" // it is said which would go and why
	DisruptionOff    Disruption = "off"    // nobody looks
)

func disruptionKnobs() []knob[Values] {
	return []knob[Values]{
		choice(Setting{Name: "disruption", Env: "DISRUPTION", Default: string(DisruptionAct), Unit: "word",
			Doc: "Whether empty, drifted and too dear nodes go (act), are only told of (report), or are not looked for (off); what is under way is taken back. A NodePool with the annotation joiner.sh/disruption: report is only told of in any case."},
			[]string{string(DisruptionAct), string(DisruptionReport), string(DisruptionOff)},
			func(v *Values, s string) { v.Disruption = Disruption(s) }),
		duration(Setting{Name: "paybackTime", Env: "PAYBACK_TIME", Default: "1h",
			Doc: "Within this time a consolidation must earn what moving its pods costs; its replacements are left alone until they have."},
			span{time.Minute, 24 * time.Hour}, func(v *Values) *time.Duration { return &v.PaybackTime }),
		number(Setting{Name: "podMoveUSD", Env: "POD_MOVE_USD", Default: "0.0012", Unit: "USD",
			Doc: "What moving one ordinary pod to another node costs you; more of it makes consolidation rarer."},
			reach{0.0000001, 100}, func(v *Values) *float64 { return &v.PodMoveUSD }),
		whole(Setting{Name: "disruptionSteps", Env: "DISRUPTION_STEPS", Default: "24", Unit: "questions",
			Doc: "How many sets of nodes one pass may ask about, fewer where they are much work as in clusters of thousands of nodes; an unfinished search goes on in the next pass."},
			bounds{1, 1000}, func(v *Values) *int { return &v.DisruptionSteps }),
		whole(Setting{Name: "disruptionWaves", Env: "DISRUPTION_WAVES", Default: "1", Unit: "waves",
			Doc: "A consolidation that begins while no other node is out of service may have so many times as many nodes as the budgets of NodePools let go at a time: they are drained in waves that the budgets allow, and those whose turn has not come take no new pods meanwhile. More makes fleets cheaper for fewer moves, and keeps old and new nodes side by side for longer."},
			bounds{1, 20}, func(v *Values) *int { return &v.DisruptionWaves }),
		whole(Setting{Name: "maxDriftedNodesPerCommand", Env: "MAX_DRIFTED_NODES_PER_COMMAND", Default: "1", Unit: "nodes",
			Doc: "How many drifted nodes with pods are replaced together at most, as far as the budgets of NodePools let them go; drifted nodes without pods go together in any case. More replaces large fleets sooner, and by fewer new nodes."},
			bounds{1, 100}, func(v *Values) *int { return &v.DriftedPerCommand }),
	}
}
