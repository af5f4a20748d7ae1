package tick

import (
	"slices"
	"strings"
	"time"
)

// Shadow is what Joiner would have done over a time in which it only observed, beside what the cluster's own autoscaler did.
//
// Launches are those of the passes, each pod's once; growth is every rise of the nodes' number and price between two passes. Savings are
// those of the disruptions that the last pass of disrupt proposed, for as long as passes go on.
type Shadow struct {
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	Passes  int       `json:"passes"`
	Acted   int       `json:"acted"` // passes that were not in mode observe; they are not shadows
	Spans   []Span    `json:"spans"`
	Total   Span      `json:"total"`
	SavedUS float64   `json:"savedUSD"` // by the removals over the whole time, in USD
}

// Span is a part of the time. Prices are USD per hour.
type Span struct {
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
	countedFor = 15 * time.Minute // a launch for the same pods within this is the same launch
	standsFor  = 10 * time.Minute // a proposal without a newer pass
)

// ShadowOf reads the records, sorted by time, in spans of the length.
func ShadowOf(all []Record, span time.Duration) Shadow {
	var out Shadow
	if len(all) == 0 {
		return out
	}
	w := shadower{seen: map[string]time.Time{}, span: span}
	out.Since, out.Until, out.Passes = all[0].Time, all[len(all)-1].Time, len(all)
	for i, r := range all {
		if r.Mode != "observe" {
			out.Acted++
		}
		w.enter(r)
		if i > 0 {
			w.grow(all[i-1], r)
			out.SavedUS += w.saved(all[i-1].Time, r.Time)
		}
		w.launch(r)
		w.remove(r)
	}
	out.Spans = w.spans
	for i := range out.Spans {
		s := &out.Spans[i]
		s.Difference = s.LaunchUSD - s.GrownUSD - s.SavesUSD
		out.Total.Launches, out.Total.LaunchUSD = out.Total.Launches+s.Launches, out.Total.LaunchUSD+s.LaunchUSD
		out.Total.Grown, out.Total.GrownUSD = out.Total.Grown+s.Grown, out.Total.GrownUSD+s.GrownUSD
	}
	last := out.Spans[len(out.Spans)-1]
	out.Total.Start, out.Total.Nodes, out.Total.HourlyUSD, out.Total.Removals, out.Total.SavesUSD = out.Since, last.Nodes, last.HourlyUSD, last.Removals, last.SavesUSD
	out.Total.Difference = out.Total.LaunchUSD - out.Total.GrownUSD - out.Total.SavesUSD
	return out
}

// shadower reads records one after the other.
type shadower struct {
	span  time.Duration
	spans []Span
	seen  map[string]time.Time // launches by their pods

	saves    float64 // of the proposals that stand
	removals int
	proposed time.Time
}

// enter begins the span of the record if it is not the last one.
func (w *shadower) enter(r Record) {
	start := r.Time.Truncate(w.span)
	if n := len(w.spans); n == 0 || w.spans[n-1].Start.Before(start) {
		s := Span{Start: start}
		if w.stands(r.Time) {
			s.Removals, s.SavesUSD = w.removals, w.saves
		}
		w.spans = append(w.spans, s)
	}
	s := w.now()
	s.Nodes, s.HourlyUSD = r.Fleet.Nodes+r.Fleet.Foreign, r.Fleet.AllUSD
}

func (w *shadower) now() *Span { return &w.spans[len(w.spans)-1] }

func (w *shadower) stands(at time.Time) bool {
	return !w.proposed.IsZero() && at.Sub(w.proposed) <= standsFor
}

// grow counts what was added between two passes.
func (w *shadower) grow(before, r Record) {
	if more := r.Fleet.Nodes + r.Fleet.Foreign - before.Fleet.Nodes - before.Fleet.Foreign; more > 0 {
		w.now().Grown += more
		w.now().GrownUSD += max(0, r.Fleet.AllUSD-before.Fleet.AllUSD)
	}
}

// saved is what the standing proposals would have saved between two passes, in USD.
func (w *shadower) saved(from, to time.Time) float64 {
	if w.proposed.IsZero() {
		return 0
	}
	if end := w.proposed.Add(standsFor); to.After(end) {
		to = end
	}
	return max(0, to.Sub(from).Hours()) * w.saves
}

func (w *shadower) launch(r Record) {
	for _, l := range r.Launches {
		names := slices.Clone(l.Names)
		slices.Sort(names)
		key := strings.Join(names, ",")
		if at, ok := w.seen[key]; !ok || r.Time.Sub(at) > countedFor {
			w.now().Launches++
			w.now().LaunchUSD += l.HourlyUSD
		}
		w.seen[key] = r.Time
	}
}

func (w *shadower) remove(r Record) {
	if r.Function != Disrupt {
		return
	}
	w.saves, w.removals, w.proposed = 0, 0, r.Time
	for _, x := range r.Removals {
		if x.Stage == "propose" || x.Stage == "begin" || x.Stage == "report" {
			w.saves += x.SavesUSD
			w.removals += len(x.Claims)
		}
	}
	w.now().Removals, w.now().SavesUSD = w.removals, w.saves
}
