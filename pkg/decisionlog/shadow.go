package decisionlog

import (
	"slices"
	"strings"
	"time"
)

// Comparison holds what Joiner would have done over a time in which it only observed, beside what the cluster's own
// autoscaler did.
//
// Launches are those of the passes, each pod's once; growth is every rise of the nodes' number and price between two
// passes. Savings are those of the disruptions that the last pass of disrupt proposed, for as long as passes go on.
type Comparison struct {
	Since   time.Time        `json:"since"`
	Until   time.Time        `json:"until"`
	Passes  int              `json:"passes"`
	Acted   int              `json:"acted"` // passes that were not in mode observe; they are not shadows
	Spans   []ComparisonSpan `json:"spans"`
	Total   ComparisonSpan   `json:"total"`
	SavedUS float64          `json:"savedUSD"` // by the removals over the whole time, in USD
}

// ComparisonSpan is a part of the time. Prices are USD per hour.
type ComparisonSpan struct {
	Start      time.Time `json:"start"`
	Nodes      int       `json:"nodes"`      // there were, at its end
	HourlyUSD  float64   `json:"hourlyUSD"`  // of these
	Launches   int       `json:"launches"`   // that Joiner would have made
	LaunchUSD  float64   `json:"launchUSD"`  // of these
	Grown      int       `json:"grown"`      // nodes that somebody else added
	GrownUSD   float64   `json:"grownUSD"`   // of these
	Removals   int       `json:"removals"`   // NodeClaims that Joiner would have removed, as its last pass saw it
	SavesUSD   float64   `json:"savesUSD"`   // by these
	Difference float64   `json:"difference"` // LaunchUSD - GrownUSD - SavesUSD: below zero Joiner is cheaper
}

const (
	countedFor       = 15 * time.Minute // a launch for the same pods within this is the same launch
	proposalValidFor = 10 * time.Minute // a proposal without a newer pass
)

// ShadowOf reads the records, sorted by time, in spans of the length.
func ShadowOf(all []Record, span time.Duration) Comparison {
	var out Comparison
	if len(all) == 0 {
		return out
	}
	c := comparer{seen: map[string]time.Time{}, span: span}
	out.Since, out.Until, out.Passes = all[0].Time, all[len(all)-1].Time, len(all)
	for i, r := range all {
		if r.Mode != "observe" {
			out.Acted++
		}
		c.enterSpan(r)
		if i > 0 {
			c.countAdded(all[i-1], r)
			out.SavedUS += c.countSaved(all[i-1].Time, r.Time)
		}
		c.addLaunch(r)
		c.addRemoval(r)
	}
	out.Spans = c.spans
	for i := range out.Spans {
		s := &out.Spans[i]
		s.Difference = s.LaunchUSD - s.GrownUSD - s.SavesUSD
		out.Total.Launches, out.Total.LaunchUSD = out.Total.Launches+s.Launches, out.Total.LaunchUSD+s.LaunchUSD
		out.Total.Grown, out.Total.GrownUSD = out.Total.Grown+s.Grown, out.Total.GrownUSD+s.GrownUSD
	}
	last := out.Spans[len(out.Spans)-1]
	out.Total.Start, out.Total.Nodes, out.Total.HourlyUSD, out.Total.Removals, out.Total.SavesUSD = out.Since,
		last.Nodes, last.HourlyUSD, last.Removals, last.SavesUSD
	out.Total.Difference = out.Total.LaunchUSD - out.Total.GrownUSD - out.Total.SavesUSD
	return out
}

// comparer reads records one after the other.
type comparer struct {
	span  time.Duration
	spans []ComparisonSpan
	seen  map[string]time.Time // launches by their pods

	saves    float64 // of the proposals that stand
	removals int
	proposed time.Time
}

// enterSpan begins the span of the record if it is not the last one.
func (c *comparer) enterSpan(r Record) {
	start := r.Time.Truncate(c.span)
	if n := len(c.spans); n == 0 || c.spans[n-1].Start.Before(start) {
		s := ComparisonSpan{Start: start}
		if c.proposalIsCurrent(r.Time) {
			s.Removals, s.SavesUSD = c.removals, c.saves
		}
		c.spans = append(c.spans, s)
	}
	s := c.currentSpan()
	s.Nodes, s.HourlyUSD = r.Fleet.Nodes+r.Fleet.Foreign, r.Fleet.AllUSD
}

func (c *comparer) currentSpan() *ComparisonSpan { return &c.spans[len(c.spans)-1] }

func (c *comparer) proposalIsCurrent(at time.Time) bool {
	return !c.proposed.IsZero() && at.Sub(c.proposed) <= proposalValidFor
}

// countAdded counts what was added between two passes.
func (c *comparer) countAdded(before, r Record) {
	if more := r.Fleet.Nodes + r.Fleet.Foreign - before.Fleet.Nodes - before.Fleet.Foreign; more > 0 {
		c.currentSpan().Grown += more
		c.currentSpan().GrownUSD += max(0, r.Fleet.AllUSD-before.Fleet.AllUSD)
	}
}

// countSaved returns what the standing proposals would have saved between two passes, in USD.
func (c *comparer) countSaved(from, to time.Time) float64 {
	if c.proposed.IsZero() {
		return 0
	}
	if end := c.proposed.Add(proposalValidFor); to.After(end) {
		to = end
	}
	return max(0, to.Sub(from).Hours()) * c.saves
}

func (c *comparer) addLaunch(r Record) {
	for _, l := range r.Launches {
		names := slices.Clone(l.Names)
		slices.Sort(names)
		key := strings.Join(names, ",")
		if at, ok := c.seen[key]; !ok || r.Time.Sub(at) > countedFor {
			c.currentSpan().Launches++
			c.currentSpan().LaunchUSD += l.HourlyUSD
		}
		c.seen[key] = r.Time
	}
}

func (c *comparer) addRemoval(r Record) {
	if r.Function != Disrupt {
		return
	}
	c.saves, c.removals, c.proposed = 0, 0, r.Time
	for _, x := range r.Removals {
		if x.Stage == "propose" || x.Stage == "begin" || x.Stage == "report" {
			c.saves += x.SavesUSD
			c.removals += len(x.Claims)
		}
	}
	c.currentSpan().Removals, c.currentSpan().SavesUSD = c.removals, c.saves
}
