package decisionlog

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/plan"
)

// Schema is the version of the stored form that this code reads and writes.
const Schema = 1

// The functions whose passes are kept.
const (
	Provision = "provision"
	Disrupt   = "disrupt"
)

const (
	mostEntries = 100 // of a list of a record
	mostPods    = 5   // of a launch that are named
	mostText    = 300 // bytes of a reason
)

// PassStamp says whose pass it was.
type PassStamp struct {
	Cluster    string `json:"cluster"`
	Function   string `json:"function"`
	Version    string `json:"version,omitempty"`    // of the function
	Invocation string `json:"invocation,omitempty"` // request id
	Mode       string `json:"mode,omitempty"`       // act or observe
}

// Record is a tick in short. CloudWatch Logs Insights finds the first 200 fields of a line, so what is asked for most
// stands first.
type Record struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"` // of the snapshot
	PassStamp
	Snapshot string `json:"snapshot,omitempty"` // key of the whole tick in the store; empty if it was not stored

	Fleet         Fleet   `json:"fleet"`          // what there was
	HourlyUSD     float64 `json:"hourlyUSD"`      // of the launches
	LowerBoundUSD float64 `json:"lowerBoundUSD"`  // of the same
	Gap           float64 `json:"gap"`            // HourlyUSD / LowerBoundUSD - 1, 0 without a bound
	Prices        string  `json:"prices"`         // when they were read, or whence they come
	Placed        int     `json:"placed"`         // pods that fit where there is room
	More          int     `json:"more,omitempty"` // entries that were cut off

	Unplaced []Reason          `json:"unplaced,omitempty"`
	Removals []DisruptionStage `json:"removals,omitempty"`
	Launches []Launch          `json:"launches,omitempty"`
	Skipped  []Reason          `json:"skipped,omitempty"` // pools that took no part
	Spared   []Reason          `json:"spared,omitempty"`  // nodes that stay
	Faults   []Fault           `json:"faults,omitempty"`  // what the program failed about
}

// Fault is something that the program failed about and left out.
type Fault struct {
	Kind  cluster.PartKind `json:"kind,omitempty"`
	Name  string           `json:"name,omitempty"`
	Pods  int              `json:"pods,omitempty"`
	Names []string         `json:"names,omitempty"` // of the first of them
	Why   string           `json:"why"`
	Stack []string         `json:"stack,omitempty"` // innermost first
}

// Fleet is what the nodes of pools were, and what others there were. Nodes whose price nobody knows cost nothing here.
type Fleet struct {
	Nodes     int     `json:"nodes"`
	Foreign   int     `json:"foreign"` // nodes of no pool
	HourlyUSD float64 `json:"hourlyUSD"`
	AllUSD    float64 `json:"allUSD"` // with those of no pool
}

// Launch is one node to make.
type Launch struct {
	Pool         string   `json:"pool"`
	Type         string   `json:"type"`
	Zone         string   `json:"zone"`
	CapacityType string   `json:"capacityType"`
	HourlyUSD    float64  `json:"hourlyUSD"`
	Types        int      `json:"types"` // that the launch may choose from
	Pods         int      `json:"pods"`
	Names        []string `json:"names"` // of the first of them, namespace/name
}

// DisruptionStage is a disruption in one of its stages.
type DisruptionStage struct {
	Stage    string   `json:"stage"` // propose, begin, finish, undo, report; of provision scale
	Reason   string   `json:"reason,omitempty"`
	Claims   []string `json:"claims"`
	Replaces []string `json:"replacements,omitempty"` // offers
	SavesUSD float64  `json:"savesUSD"`
	Moves    int      `json:"moves,omitempty"` // pods
	Why      string   `json:"why,omitempty"`
}

// Reason is why things of one kind are as they are: pods without a home, pools without a part, nodes that stay.
type Reason struct {
	Why   string   `json:"why"`
	Count int      `json:"count"`
	Names []string `json:"names"` // of the first of them
}

// HasDecision reports whether the tick is worth keeping: something was to be launched, removed or refused, or failed.
func (r Record) HasDecision() bool {
	return len(r.Launches)+len(r.Removals)+len(r.Unplaced)+len(r.Faults) > 0
}

// Fail adds what failed.
func (r *Record) Fail(faults ...plan.Fault) {
	for _, f := range faults {
		if len(r.Faults) == mostEntries {
			r.More++
			continue
		}
		r.Faults = append(r.Faults, Fault{Kind: f.Kind, Name: f.Name, Pods: len(f.Pods), Names: firstOf(f.Pods),
			Why: f.Why, Stack: f.Stack})
	}
}

func newRecord(st PassStamp, s cluster.Snapshot) Record {
	r := Record{Schema: Schema, Time: s.Now.UTC().Round(0), PassStamp: st, Prices: "built in"}
	if !s.Catalog.Time.IsZero() {
		r.Prices = s.Catalog.Time.UTC().Format(time.RFC3339)
	}
	for _, h := range s.StateNodes() {
		labels := h.Labels()
		usd, _ := s.Catalog.Charge(instancetypes.Offer{CapacityType: labels[instancetypes.LabelCapacityType],
			Type: labels[instancetypes.LabelType], Zone: labels[instancetypes.LabelZone]})
		r.Fleet.AllUSD += usd
		if h.Pool() == "" {
			r.Fleet.Foreign++
			continue
		}
		r.Fleet.Nodes++
		r.Fleet.HourlyUSD += usd
	}
	return r
}

func (r *Record) addLaunches(p plan.Plan) {
	for _, l := range p.AllLaunches() {
		if len(r.Launches) == mostEntries {
			r.More++
			continue
		}
		r.Launches = append(r.Launches, Launch{Pool: l.Pool, Type: l.Choice.Type, Zone: l.Choice.Zone,
			CapacityType: l.Choice.CapacityType,
			HourlyUSD:    l.Choice.Price, Types: len(l.Types), Pods: len(l.Pods), Names: firstOf(l.Pods)})
	}
	r.HourlyUSD, r.LowerBoundUSD, r.Gap = p.TotalPrice(), p.LowerBoundUSD, p.BoundGap()
	r.Placed = len(p.Existing)
	unplaced, skipped := reasonCounts{}, reasonCounts{}
	for _, u := range p.Unplaced {
		unplaced.addReason(strings.Join(u.Why, "; "), u.Pod)
	}
	for _, s := range p.Skipped {
		skipped.addReason(s.Why, s.Pool)
	}
	for _, s := range p.Short {
		skipped.addReason(s.Why, s.Pool)
	}
	for _, x := range p.Removals {
		r.addRemoval(DisruptionStage{Stage: "scale", Claims: []string{x.Claim}, Why: x.Why})
	}
	r.Fail(p.Faults...)
	r.Unplaced, r.Skipped = r.commonest(unplaced), r.commonest(skipped)
}

func (r *Record) addRemovals(p disruption.Plan) {
	ends := func(stage string, all []disruption.EndedCommand) {
		for _, e := range all {
			r.addRemoval(DisruptionStage{Stage: stage, Claims: e.Claims, Why: e.Why})
		}
	}
	commands := func(stage string, all []disruption.Command) {
		for _, c := range all {
			x := DisruptionStage{Stage: stage, Reason: string(c.Reason), Claims: c.Claims, SavesUSD: c.SavesUSD,
				Moves: c.Moves}
			for _, l := range c.Launches {
				x.Replaces = append(x.Replaces, l.Choice.String())
			}
			r.addRemoval(x)
		}
	}
	ends("finish", p.Finish)
	ends("undo", p.Undo)
	commands("begin", p.Begin)
	commands("propose", p.Proposed)
	commands("report", p.Reported)
	r.Fail(p.Faults...)
	spared := reasonCounts{}
	for _, s := range p.Spared {
		spared.addReason(s.Why, cmp.Or(s.Node, s.Claim))
	}
	r.Spared = r.commonest(spared)
}

func (r *Record) addRemoval(x DisruptionStage) {
	if len(r.Removals) == mostEntries {
		r.More++
		return
	}
	r.Removals = append(r.Removals, x)
}

// reasonCounts gathers what is so for the same reason.
type reasonCounts map[string]*Reason

func (all reasonCounts) addReason(why, name string) {
	if len(why) > mostText {
		why = strings.ToValidUTF8(why[:mostText], "") + "..."
	}
	if all[why] == nil {
		all[why] = &Reason{Why: why}
	}
	x := all[why]
	x.Count++
	if len(x.Names) < mostPods {
		x.Names = append(x.Names, name)
	}
}

// commonest are the commonest reasons.
func (r *Record) commonest(all reasonCounts) []Reason {
	var out []Reason
	for _, x := range all { // sorted below
		slices.Sort(x.Names)
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.Why, b.Why))
	})
	if len(out) > mostEntries {
		r.More += len(out) - mostEntries
		out = out[:mostEntries]
	}
	return out
}

func firstOf(names []string) []string { return names[:min(len(names), mostPods)] }

// String says the record in one line.
func (r Record) String() string {
	unplaced := 0
	for _, u := range r.Unplaced {
		unplaced += u.Count
	}
	s := fmt.Sprintf("%s %s: %d launches at %.4f USD/h, %d placed, %d unplaced", r.Time.Format(time.RFC3339),
		r.Function, len(r.Launches), r.HourlyUSD, r.Placed, unplaced)
	if r.Function == Disrupt {
		s = fmt.Sprintf("%s %s: %d disruptions", r.Time.Format(time.RFC3339), r.Function, len(r.Removals))
	}
	return s
}
