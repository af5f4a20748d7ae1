package sim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/refresh"
	controller "joiner.sh/pkg/controllers/spotpools"
	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/testing/objects"
)

// SpotOutcome is what was learned of spot pools.
type SpotOutcome struct {
	Noted   int     // events, since the record was lost last
	Counted float64 // in the record in the end, faded
	Lost    int     // how often the record was lost
}

// spotStore is what is stored of spot pools. The loop alone touches it.
type spotStore struct {
	events  []spotpools.Event // that wait to be counted
	record  spotpools.Record
	version int
	noted   map[string]bool // what the record may count, by the ids of events
	others  []spotpools.Record
	lost    int
}

// What is drawn of a world that learns spot pools.
const (
	spotLossEvery = 12 * time.Minute // in the mean, the record is lost
	// spotFades is how much less than what was noted the record may count: a storm lasts hours, and the half-life is
	// seven days.
	spotFades = 0.97
)

// newSpotStore is an empty one beside the record of another cluster, whose numbers cannot be true.
func newSpotStore() *spotStore {
	absurd := spotpools.Record{Version: spotpools.Version, Pools: []spotpools.Cell{
		{Pool: spotpools.Pool{Type: "c5.large", Zone: "us-west-2a"}, Evidence: spotpools.Evidence{Hours: 1,
			Interruptions: 1e6}},
		{Pool: spotpools.Pool{Type: "m5.large", Zone: "us-west-2b"}, Evidence: spotpools.Evidence{Hours: 1e7}}}}
	return &spotStore{noted: map[string]bool{}, record: spotpools.Record{Version: spotpools.Version},
		others: []spotpools.Record{absurd}}
}

// loseSpotRecords loses the record now and then, as somebody who empties the bucket does.
func (w *world) loseSpotRecords() {
	w.runAfter(w.drawDuration(time.Minute, 2*spotLossEvery), func() {
		if !w.trouble {
			return
		}
		s := w.spot
		s.record, s.version, s.noted = spotpools.Record{Version: spotpools.Version}, s.version+1, map[string]bool{}
		for _, e := range s.events {
			s.noted[e.ID] = true
		}
		s.lost++
		w.addTrace("the record of spot pools is lost")
		w.loseSpotRecords()
	})
}

// counted is how many events the record counts.
func (s *spotStore) counted() (n float64) {
	for _, c := range s.record.Pools {
		n += c.Interruptions + c.Recommendations + c.Refusals
	}
	return n
}

func (s *spotStore) outcome() SpotOutcome {
	return SpotOutcome{Noted: len(s.noted), Counted: s.counted(), Lost: s.lost}
}

// spotRecordWritten is a record that is stored.
type spotRecordWritten struct{}

// checkSpotCounted: no event counts twice.
func checkSpotCounted(w *world, _ spotRecordWritten) []string {
	if n := w.spot.counted(); n > float64(len(w.spot.noted))+1e-6 || math.IsNaN(n) {
		return broken("the record counts %.3f events, %d were noted", n, len(w.spot.noted))
	}
	return nil
}

// spotProblems: at rest every event that was noted is counted.
func spotProblems(w *world) (bad []string) {
	s := w.spot
	if s == nil {
		return nil
	}
	if len(s.events) > 0 {
		bad = append(bad, fmt.Sprintf("%d events of spot pools are not counted", len(s.events)))
	}
	if n := s.counted(); n < spotFades*float64(len(s.noted)) {
		bad = append(bad, fmt.Sprintf("the record counts %.3f events of spot pools, %d were noted", n, len(s.noted)))
	}
	return bad
}

// spotPorts keep what is stored of spot pools.
type spotPorts struct {
	*caller
	store *spotStore
}

// spotEvents is where notices and launches note events, nil where spot pools are not learned.
func (in Invocation) spotEvents() controllers.SpotPoolEvents {
	if in.Ports.spot.store == nil {
		return nil
	}
	return in.Ports.spot
}

// learnSpotPools has refresh keep the record, where spot pools are learned.
func (in Invocation) learnSpotPools(f *refresh.Controller) {
	p := in.Ports
	if p.spot.store == nil {
		return
	}
	l := &controller.Learner{Claims: p.claims, Events: p.spot, Records: p.spot, Now: in.Now, Log: in.Log}
	f.Spot, p.offerings.learned = l, l.Latest
}

// NoteSpotEvents keeps the events.
func (p *spotPorts) NoteSpotEvents(ctx context.Context, events []spotpools.Event) error {
	return tryPort(ctx, p.caller, "note spot events", fmt.Sprint(len(events)), func() error {
		p.countMutation("note spot events")
		for _, e := range events {
			same := func(o spotpools.Event) bool { return o.ID == e.ID }
			if p.store.noted[e.ID] = true; !slices.ContainsFunc(p.store.events, same) {
				p.store.events = append(p.store.events, e)
			}
		}
		return nil
	})
}

// ListSpotEvents lists them.
func (p *spotPorts) ListSpotEvents(ctx context.Context) ([]spotpools.Event, error) {
	return callPort(ctx, p.caller, "list spot events", "", func() ([]spotpools.Event, error) {
		return slices.Clone(p.store.events), nil
	})
}

// ForgetSpotEvents forgets those.
func (p *spotPorts) ForgetSpotEvents(ctx context.Context, events []spotpools.Event) error {
	return tryPort(ctx, p.caller, "forget spot events", fmt.Sprint(len(events)), func() error {
		if len(events) > 0 {
			p.countMutation("forget spot events")
		}
		p.store.events = slices.DeleteFunc(p.store.events,
			func(e spotpools.Event) bool { return slices.Contains(events, e) })
		return nil
	})
}

// ReadOwn reads the record.
func (p *spotPorts) ReadOwn(ctx context.Context) (r spotpools.Record, version string, err error) {
	r, err = callPort(ctx, p.caller, "read spot record", "", func() (spotpools.Record, error) {
		version = strconv.Itoa(p.store.version)
		return p.store.record.Sanitized(time.Now()), nil
	})
	return r, version, err
}

// WriteOwn stores it, if it is of that version. That is no change of the cluster: node hours are counted at rest, too.
func (p *spotPorts) WriteOwn(ctx context.Context, r spotpools.Record, version string) error {
	return tryPort(ctx, p.caller, "write spot record", version, func() error {
		if version != strconv.Itoa(p.store.version) {
			return &objects.ConflictError{What: "record of spot pools"}
		}
		p.store.version++
		p.store.record = r
		p.observe(spotRecordWritten{})
		return nil
	})
}

// ReadOthers reads those of other clusters.
func (p *spotPorts) ReadOthers(ctx context.Context) ([]spotpools.Record, error) {
	return callPort(ctx, p.caller, "read spot records of others", "", func() ([]spotpools.Record, error) {
		return p.store.others, nil
	})
}
