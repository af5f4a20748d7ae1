package decisionlog

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// Schema is the version of the stored form that this code reads and writes.
const Schema = 2

// The functions whose passes are kept.
const (
	Provision = "provision"
	Disrupt   = "disrupt"
)

const (
	// MostEntries bounds a list of a record.
	MostEntries = 100
	// MostNames bounds the pods of an entry that are named.
	MostNames = 5
)

// PassStamp says whose pass it was.
type PassStamp struct {
	Cluster    string `json:"cluster"`
	Function   string `json:"function"`
	Version    string `json:"version,omitempty"`    // of the function
	Release    string `json:"release,omitempty"`    // of Joiner
	Invocation string `json:"invocation,omitempty"` // request id
	Mode       string `json:"mode,omitempty"`       // act or observe
}

// Record is a pass in short. CloudWatch Logs Insights finds the first 200 fields of a line, so what is asked for most
// stands first.
type Record struct {
	Schema int       `json:"schema"`
	Time   time.Time `json:"time"` // of the snapshot
	PassStamp
	Snapshot string `json:"snapshot,omitempty"` // key of the whole pass in the store; empty if it was not stored

	Fleet         Fleet   `json:"fleet"`          // what there was
	HourlyUSD     float64 `json:"hourlyUSD"`      // of the launches
	LowerBoundUSD float64 `json:"lowerBoundUSD"`  // of the same
	Gap           float64 `json:"gap"`            // HourlyUSD / LowerBoundUSD - 1, 0 without a bound
	Prices        string  `json:"prices"`         // when they were read, or whence they come
	Placed        int     `json:"placed"`         // pods that fit where there is room
	More          int     `json:"more,omitempty"` // entries that were cut off

	Unplaced     []Reason          `json:"unplaced,omitempty"`
	WouldHelp    []Reason          `json:"wouldHelp,omitempty"` // what would give pods a node, with these pods
	Removals     []DisruptionStage `json:"removals,omitempty"`
	Launches     []Launch          `json:"launches,omitempty"`
	Skipped      []Reason          `json:"skipped,omitempty"`      // pools that took no part
	NotDisrupted []Reason          `json:"notDisrupted,omitempty"` // nodes that stay
	Faults       []Fault           `json:"faults,omitempty"`       // what the program failed about
	Rollouts     []string          `json:"rollouts,omitempty"`     // what was decided about NodeRollouts
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

// Fleet counts the nodes, those of pools and others, with their prices. Nodes whose price nobody knows cost nothing
// here.
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
	Stage    string   `json:"stage"` // propose, begin, finish, rollback, report; of provision scale
	Reason   string   `json:"reason,omitempty"`
	Claims   []string `json:"claims"`
	Replaces []string `json:"replacements,omitempty"` // offerings
	SavesUSD float64  `json:"savesUSD"`
	Moves    int      `json:"moves,omitempty"` // pods
	Why      string   `json:"why,omitempty"`
}

// Reason tells why things of one kind are as they are: unschedulable pods, pools without a part, nodes that stay.
type Reason struct {
	Why   string   `json:"why"`
	Count int      `json:"count"`
	Names []string `json:"names"` // of the first of them
}

// HasDecision reports whether the pass is worth keeping: something was to be launched, removed or refused, or failed.
func (r Record) HasDecision() bool {
	return len(r.Launches)+len(r.Removals)+len(r.Unplaced)+len(r.Faults)+len(r.Rollouts) > 0
}

// AddFaults adds what failed.
func (r *Record) AddFaults(faults ...plan.Fault) {
	for _, f := range faults {
		if len(r.Faults) == MostEntries {
			r.More++
			continue
		}
		r.Faults = append(r.Faults, Fault{Kind: f.Kind, Name: f.Name, Pods: len(f.Pods), Names: FirstNames(f.Pods),
			Why: f.Why, Stack: f.Stack})
	}
}

// AddHelp adds what would give pods a node, which is told by pod.
func (r *Record) AddHelp(byPod map[string]string) {
	for _, pod := range slices.Sorted(maps.Keys(byPod)) {
		i := slices.IndexFunc(r.WouldHelp, func(x Reason) bool { return x.Why == byPod[pod] })
		if i < 0 && len(r.WouldHelp) == MostEntries {
			r.More++
			continue
		} else if i < 0 {
			i, r.WouldHelp = len(r.WouldHelp), append(r.WouldHelp, Reason{Why: byPod[pod]})
		}
		x := &r.WouldHelp[i]
		if x.Count++; len(x.Names) < MostNames {
			x.Names = append(x.Names, pod)
		}
	}
}

// FirstNames are the names that an entry shows.
func FirstNames(names []string) []string { return names[:min(len(names), MostNames)] }

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
