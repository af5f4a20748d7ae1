package spotpools

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Limits of a record.
const (
	// Version of the stored form that this code reads and writes.
	Version = 1
	// MaxPools bounds the pools of one record; those with the least evidence are forgotten first.
	MaxPools = 1500
	// HalfLife is the time after which evidence counts half.
	HalfLife = 7 * 24 * time.Hour

	maxSeen   = 2000 // events that are known to be counted
	seenFor   = 2 * time.Hour
	forgotten = 0.01 // evidence below this is dropped
	maxAmount = 1e7  // of node hours or events in one pool
	maxName   = 64   // bytes
	clockSkew = time.Hour
)

// Pool is a spot pool: an instance type in a zone.
type Pool struct {
	Type string `json:"type"`
	Zone string `json:"zone"`
}

// family is the instance type without its size.
func (p Pool) family() string {
	f, _, _ := strings.Cut(p.Type, ".")
	return f
}

// valid reports whether the names are such as AWS gives.
func (p Pool) valid() bool {
	return p.Type != "" && p.Zone != "" && len(p.Type) <= maxName && len(p.Zone) <= maxName
}

func comparePools(a, b Pool) int {
	return cmp.Or(cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Type, b.Type))
}

// Kind is what happened in a pool.
type Kind string

// The kinds of events.
const (
	Interruption   Kind = "interruption"   // EC2 takes an instance back
	Recommendation Kind = "recommendation" // EC2 recommends to leave an instance
	Refusal        Kind = "refusal"        // a launch met InsufficientInstanceCapacity
)

// Event is one thing that happened in a pool. Two events of the same ID are one.
type Event struct {
	ID   string    `json:"id"`
	Kind Kind      `json:"kind"`
	Pool Pool      `json:"pool"`
	At   time.Time `json:"at"`
}

// Evidence is what was seen of a pool, in numbers that fade.
type Evidence struct {
	Hours           float64 `json:"hours,omitempty"` // of running spot nodes
	Interruptions   float64 `json:"interruptions,omitempty"`
	Recommendations float64 `json:"recommendations,omitempty"`
	Refusals        float64 `json:"refusals,omitempty"`
}

// How much of an interruption a recommendation and a refusal count as.
const (
	recommendationWeight = 0.2
	refusalWeight        = 0.05
)

// events are the interruptions with what stands for a part of one.
func (e Evidence) events() float64 {
	return e.Interruptions + recommendationWeight*e.Recommendations + refusalWeight*e.Refusals
}

// String says it as people do: 3 interruptions in 41 node hours.
func (e Evidence) String() string {
	out := fmt.Sprintf("%s in %.0f node hours", counted(e.Interruptions, "interruption"), e.Hours)
	if e.Recommendations >= 0.5 {
		out += ", " + counted(e.Recommendations, "rebalance recommendation")
	}
	if e.Refusals >= 0.5 {
		out += ", " + counted(e.Refusals, "refusal")
	}
	return out
}

func counted(n float64, what string) string {
	if math.Round(n) == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%.0f %ss", n, what)
}

func (e Evidence) plus(o Evidence) Evidence {
	return Evidence{e.Hours + o.Hours, e.Interruptions + o.Interruptions, e.Recommendations + o.Recommendations,
		e.Refusals + o.Refusals}
}

func (e Evidence) times(f float64) Evidence {
	return Evidence{e.Hours * f, e.Interruptions * f, e.Recommendations * f, e.Refusals * f}
}

// valid reports whether all amounts are numbers that can be.
func (e Evidence) valid() bool {
	for _, n := range [...]float64{e.Hours, e.Interruptions, e.Recommendations, e.Refusals} {
		if !(n >= 0 && n <= maxAmount) { // the negation refuses NaN too
			return false
		}
	}
	return true
}

// Cell is the evidence of one pool.
type Cell struct {
	Pool
	Evidence
}

// Seen is an event that was counted.
type Seen struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// Record is what one cluster saw. Methods return another record and change none.
type Record struct {
	Version int       `json:"version"`
	At      time.Time `json:"at"` // up to when running nodes are counted and evidence has faded
	Pools   []Cell    `json:"pools,omitempty"`
	Seen    []Seen    `json:"seen,omitempty"` // counted lately, so that none counts twice
}

// FadeTo is the record as it counts at the time now. A time before that of the record changes nothing.
func (r Record) FadeTo(now time.Time) Record {
	by := now.Sub(r.At)
	if r.At.IsZero() || by <= 0 {
		r.At = maxTime(r.At, now)
		return r
	}
	f := math.Exp2(-by.Hours() / HalfLife.Hours())
	out := make([]Cell, 0, len(r.Pools))
	for _, c := range r.Pools {
		if c.Evidence = c.times(f); c.Hours+c.events() >= forgotten {
			out = append(out, c)
		}
	}
	r.At, r.Pools = now, out
	return r
}

func maxTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// CountEvents is the record with the events, each of which counts once however often it is given.
func (r Record) CountEvents(events []Event, now time.Time) Record {
	seen := make(map[string]bool, len(r.Seen))
	kept := make([]Seen, 0, len(r.Seen))
	for _, s := range r.Seen {
		if now.Sub(s.At) < seenFor {
			seen[s.ID] = true
			kept = append(kept, s)
		}
	}
	more := map[Pool]Evidence{}
	for _, e := range events {
		if e.ID == "" || seen[e.ID] || !e.Pool.valid() {
			continue
		}
		x := more[e.Pool]
		switch e.Kind {
		case Interruption:
			x.Interruptions++
		case Recommendation:
			x.Recommendations++
		case Refusal:
			x.Refusals++
		default:
			continue
		}
		more[e.Pool] = x
		seen[e.ID] = true
		kept = append(kept, Seen{e.ID, now})
	}
	if len(kept) > maxSeen {
		kept = kept[len(kept)-maxSeen:]
	}
	r.Seen = kept
	return r.with(more)
}

// CountHours is the record with the node hours that ran in each pool.
func (r Record) CountHours(hours map[Pool]float64) Record {
	more := map[Pool]Evidence{}
	for p, h := range hours {
		if e := (Evidence{Hours: h}); p.valid() && e.valid() && h > 0 {
			more[p] = e
		}
	}
	return r.with(more)
}

// with is the record with more evidence, sorted and within its bounds.
func (r Record) with(more map[Pool]Evidence) Record {
	cells := slices.Clone(r.Pools)
	for p, e := range more { // sorted below
		cells = append(cells, Cell{p, e})
	}
	r.Pools = bounded(cells)
	return r
}

// bounded adds up cells of the same pool, sorts them and keeps those with the most evidence.
func bounded(cells []Cell) []Cell {
	slices.SortStableFunc(cells, func(a, b Cell) int { return comparePools(a.Pool, b.Pool) })
	var out []Cell
	for _, c := range cells {
		if n := len(out); n > 0 && out[n-1].Pool == c.Pool {
			out[n-1].Evidence = out[n-1].plus(c.Evidence)
			continue
		}
		out = append(out, c)
	}
	if len(out) <= MaxPools {
		return out
	}
	slices.SortFunc(out, func(a, b Cell) int {
		return cmp.Or(cmp.Compare(b.weight(), a.weight()), comparePools(a.Pool, b.Pool))
	})
	out = out[:MaxPools]
	slices.SortFunc(out, func(a, b Cell) int { return comparePools(a.Pool, b.Pool) })
	return out
}

// weight is how much a pool's evidence is worth keeping: an event tells as much as the hours in which one is expected.
func (c Cell) weight() float64 { return c.Hours + c.events()/priorHazard }

// Sanitized is the record without what cannot be: other versions, pools without names, amounts that are no numbers,
// times to come.
func (r Record) Sanitized(now time.Time) Record {
	if r.Version != Version || r.At.After(now.Add(clockSkew)) {
		return Record{Version: Version}
	}
	var cells []Cell
	for _, c := range r.Pools {
		if c.Pool.valid() && c.Evidence.valid() {
			cells = append(cells, c)
		}
	}
	r.Pools = bounded(cells)
	r.Seen = slices.DeleteFunc(slices.Clone(r.Seen),
		func(s Seen) bool { return s.ID == "" || s.At.After(now.Add(clockSkew)) })
	if len(r.Seen) > maxSeen {
		r.Seen = r.Seen[len(r.Seen)-maxSeen:]
	}
	return r
}

func compareCells(a, b Cell) int {
	return cmp.Or(comparePools(a.Pool, b.Pool), cmp.Compare(a.Hours, b.Hours),
		cmp.Compare(a.Interruptions, b.Interruptions), cmp.Compare(a.Recommendations, b.Recommendations),
		cmp.Compare(a.Refusals, b.Refusals))
}
