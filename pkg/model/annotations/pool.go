package annotations

import (
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// NodePool holds the annotations that people wrote on a NodePool. What none of them says is the zero value.
type NodePool struct {
	ReportOnly          bool    // disruption decides about its nodes and tells, and changes nothing
	MinSavingsUSD       float64 // per hour
	MinSavingsPercent   float64 // of what the nodes of a consolidation cost
	HibernationSchedule string  // cron, or Never; whether it can be read is for those to say who know schedules
	HibernationDuration time.Duration
	TimeZone            string   // IANA name, not looked up
	ExpireWithinBudgets bool     // nodes that expire are replaced as drifted ones
	SpotToSpot          *bool    // whether spot nodes are replaced by spot nodes; nil for what the stack says
	Rebalance           string   // ignore, event or replace; empty for what the stack says
	LimitUSD            *float64 // per hour; nil for no limit
	NodeOverheadUSD     *float64 // per hour; nil for what the stack says
}

// Never is the schedule of a NodePool that stays awake whatever the stack does.
const Never = "never"

// Effect says what waits until an annotation that cannot be understood is mended.
type Effect string

// The effects.
const (
	StopsDisruption Effect = "no node is disrupted by choice"
	StopsLaunches   Effect = "the NodePool launches nothing"
)

// PoolAnnotation is an annotation that people write on a NodePool.
type PoolAnnotation struct {
	Key    string
	Values string // what it may be, for people
	Does   string // a sentence
	Stops  Effect // while its value is none of Values

	// read stores what the text says, or returns what is wrong with it.
	read func(p *NodePool, key, text string) (wrong string)
}

// ListPool returns all annotations that people write on NodePools. Nothing else reads any of them.
func ListPool() []PoolAnnotation {
	return append(listDisruption(), listPrices()...)
}

// listDisruption returns those about nodes that go.
func listDisruption() []PoolAnnotation {
	return []PoolAnnotation{
		{Key: v1.AnnotationDisruption, Values: "act, report", Stops: StopsDisruption,
			Does: "report: Joiner says what it would do to the nodes of the NodePool by choice, and does nothing.",
			read: word(func(p *NodePool, w string) { p.ReportOnly = w == "report" }, "act", "report")},
		{Key: v1.AnnotationMinSavingsUSD, Values: "USD per hour", Stops: StopsDisruption,
			Does: "The least that a consolidation of its nodes must save.",
			read: number(func(p *NodePool, n float64) { p.MinSavingsUSD = n }, mostUSD, "")},
		{Key: v1.AnnotationMinSavingsPercent, Values: "0 to 100, with or without %", Stops: StopsDisruption,
			Does: "The same, in percent of what the nodes cost that go.",
			read: number(func(p *NodePool, n float64) { p.MinSavingsPercent = n }, 100, "%")},
		{Key: v1.AnnotationHibernationSchedule, Values: "cron, never", Stops: StopsDisruption,
			Does: "When the NodePool falls asleep; never: it stays awake whatever hibernationSchedule says.",
			read: text(func(p *NodePool, s string) { p.HibernationSchedule = s })},
		{Key: v1.AnnotationHibernationDuration, Values: "duration, such as 12h", Stops: StopsDisruption,
			Does: "How long it sleeps from each start on.",
			read: duration(func(p *NodePool, d time.Duration) { p.HibernationDuration = d })},
		{Key: v1.AnnotationTimeZone, Values: "IANA name, such as Europe/Berlin", Stops: StopsDisruption,
			Does: "The time zone of its schedules; UTC without it.",
			read: text(func(p *NodePool, s string) { p.TimeZone = s })},
		{Key: v1.AnnotationExpire, Values: "force, within-budgets", Stops: StopsDisruption,
			Does: "within-budgets: nodes that expire are replaced as drifted ones; force: they are deleted, as by Karpenter.",
			read: word(func(p *NodePool, w string) { p.ExpireWithinBudgets = w == "within-budgets" }, "force", "within-budgets")},
		{Key: v1.AnnotationSpotToSpot, Values: "true, false", Stops: StopsDisruption,
			Does: "Whether consolidation replaces its spot nodes by spot nodes; without it spotToSpotConsolidation holds.",
			read: truth(func(p *NodePool, is bool) { p.SpotToSpot = &is })},
		{Key: v1.AnnotationRebalance, Values: "ignore, event, replace", Stops: StopsDisruption,
			Does: "What a rebalance recommendation does to its nodes; without it rebalance holds.",
			read: word(func(p *NodePool, w string) { p.Rebalance = w }, "ignore", "event", "replace")},
	}
}

// listPrices returns those about what nodes cost.
func listPrices() []PoolAnnotation {
	return []PoolAnnotation{
		{Key: v1.AnnotationLimitUSD, Values: "USD per hour", Stops: StopsLaunches,
			Does: "The most that its nodes may cost together.",
			read: usd(func(p *NodePool, n float64) { p.LimitUSD = &n })},
		{Key: v1.AnnotationNodeOverheadUSD, Values: "USD per hour", Stops: StopsLaunches,
			Does: "What you pay for each node besides AWS; without it perNodeOverheadUSD holds.",
			read: usd(func(p *NodePool, n float64) { p.NodeOverheadUSD = &n })},
	}
}

// Problem is an annotation whose value says nothing that Joiner knows.
type Problem struct {
	Key     string
	Stops   Effect // empty where nothing waits
	Message string // names the annotation, its value and what it may be
}

// ReadPool reads the annotations of people on a NodePool, and says what cannot be understood. Of those it takes over
// nothing.
func ReadPool(all map[string]string) (out NodePool, problems []Problem) {
	for _, a := range ListPool() {
		text, given := all[a.Key]
		if !given {
			continue
		}
		if wrong := a.read(&out, a.Key, text); wrong != "" {
			problems = append(problems, Problem{Key: a.Key, Stops: a.Stops, Message: wrong})
		}
	}
	return out, problems
}

// UnknownOnPool returns the keys of annotations that look like Joiner's and are none that a NodePool has, sorted.
func UnknownOnPool(all map[string]string) []string {
	known := []string{v1.AnnotationRegistrationHistory, v1.AnnotationZonalShifts}
	for _, a := range ListPool() {
		known = append(known, a.Key)
	}
	return lists.Where(slices.Sorted(maps.Keys(all)),
		func(key string) bool { return strings.HasPrefix(key, "joiner.sh/") && !slices.Contains(known, key) })
}
