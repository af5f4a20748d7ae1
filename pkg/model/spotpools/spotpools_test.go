package spotpools

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const worlds = 400

// anyPool is one of 5 families in 3 sizes and 3 zones.
func anyPool(r *rand.Rand) Pool {
	return Pool{Type: fmt.Sprintf("f%d.%dxlarge", r.IntN(5), 1+r.IntN(3)), Zone: fmt.Sprintf("z%d", r.IntN(3))}
}

func anyRecord(r *rand.Rand) Record {
	rec := Record{Version: Version, At: start}
	for range r.IntN(12) {
		rec = rec.CountHours(map[Pool]float64{anyPool(r): r.Float64() * 2000})
	}
	var events []Event
	for k := range r.IntN(20) {
		events = append(events, Event{ID: fmt.Sprint(r.Uint64(), k), Pool: anyPool(r), At: start,
			Kind: []Kind{Interruption, Recommendation, Refusal}[r.IntN(3)]})
	}
	return rec.CountEvents(events, start)
}

func TestMoreInterruptionsNeverLowerAHazard(t *testing.T) {
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 1))
		rec, others := anyRecord(r), []Record{anyRecord(r)}
		if seed%2 == 0 {
			others = nil
		}
		more := rec.CountEvents([]Event{{ID: "one more", Kind: Interruption, Pool: anyPool(r)}}, start)
		before, after := EstimateHazards(Summarize(rec, others, start)), EstimateHazards(Summarize(more, others, start))
		hit := more.Pools
		raised := false
		for _, c := range hit {
			raised = raised || after.Of(c.Pool) > before.Of(c.Pool)
		}
		if !raised {
			t.Fatalf("seed %d: one more interruption raised no hazard", seed)
		}
		for range 40 {
			if p := anyPool(r); after.Of(p) < before.Of(p)*(1-1e-12) {
				t.Fatalf("seed %d: %v from %v to %v after an interruption more", seed, p, before.Of(p), after.Of(p))
			}
		}
	}
}

func TestWithoutDataEveryPoolHasThePrior(t *testing.T) {
	for _, s := range []Summary{{}, Summarize(Record{}, nil, start), Summarize(Decode([]byte("{"), start), []Record{{}}, start)} {
		h := EstimateHazards(s)
		for _, p := range []Pool{{"c6a.large", "us-west-2b"}, {"", ""}} {
			if got := h.Of(p); math.Abs(got-0.0002) > 1e-12 {
				t.Errorf("hazard of %v without data is %v, want 0.0002", p, got)
			}
		}
	}
}

func TestHazardFollowsWhatIsSeen(t *testing.T) {
	bad, sibling, neighbour, elsewhere := Pool{"c6a.large", "b"}, Pool{"c6a.xlarge", "b"}, Pool{"m5.large", "b"},
		Pool{"c6a.large", "a"}
	rec := Record{Version: Version, At: start}.CountHours(map[Pool]float64{bad: 5000, elsewhere: 5000, neighbour: 5000})
	var events []Event
	for k := range 100 {
		events = append(events, Event{ID: fmt.Sprint(k), Kind: Interruption, Pool: bad})
	}
	h := EstimateHazards(Summarize(rec.CountEvents(events, start), nil, start))
	if got := h.Of(bad); got < 0.018 || got > 0.022 {
		t.Errorf("100 interruptions in 5,000 node hours: hazard %v, want about 0.02", got)
	}
	if !(h.Of(bad) > h.Of(sibling) && h.Of(sibling) > h.Of(elsewhere)) || h.Of(neighbour) >= h.Of(sibling)/10 {
		t.Errorf("hazards %v of the pool, %v of its family there, %v of a neighbour that was never interrupted, %v of the type elsewhere",
			h.Of(bad), h.Of(sibling), h.Of(neighbour), h.Of(elsewhere))
	}
	if got := h.Seen(bad).String(); got != "100 interruptions in 5000 node hours" {
		t.Errorf("said as %q", got)
	}
}

func TestEvidenceFades(t *testing.T) {
	p := Pool{"c6a.large", "b"}
	rec := Record{Version: Version, At: start}.CountHours(map[Pool]float64{p: 80}).
		CountEvents([]Event{{ID: "a", Kind: Interruption, Pool: p}, {ID: "b", Kind: Interruption, Pool: p}}, start)
	week := rec.FadeTo(start.Add(7 * 24 * time.Hour))
	if diff := cmp.Diff([]Cell{{p, Evidence{Hours: 40, Interruptions: 1}}}, week.Pools); diff != "" {
		t.Errorf("after a week (-want +got):\n%s", diff)
	}
	if got := rec.FadeTo(start.Add(-time.Hour)); !cmp.Equal(got, rec) {
		t.Errorf("a clock that goes back changed the record: %+v", got)
	}
	if got := rec.FadeTo(start.Add(365 * 24 * time.Hour)); len(got.Pools) != 0 {
		t.Errorf("after a year it still knows %v", got.Pools)
	}
	twice := rec.FadeTo(start.Add(50 * time.Hour)).FadeTo(start.Add(168 * time.Hour))
	if math.Abs(twice.Pools[0].Hours-40) > 1e-9 {
		t.Errorf("fading in two steps comes to %v hours, want 40", twice.Pools[0].Hours)
	}
}

func TestEachEventCountsOnce(t *testing.T) {
	p := Pool{"c6a.large", "b"}
	e := Event{ID: "i-1", Kind: Interruption, Pool: p}
	rec := Record{Version: Version}.CountEvents([]Event{e, e}, start)
	rec = rec.CountEvents([]Event{e, {ID: "i-2", Kind: "of another version", Pool: p}, {Kind: Refusal, Pool: p}}, start.Add(time.Hour))
	if diff := cmp.Diff([]Cell{{p, Evidence{Interruptions: 1}}}, rec.Pools); diff != "" {
		t.Errorf("given three times (-want +got):\n%s", diff)
	}
	if later := rec.CountEvents(nil, start.Add(3*time.Hour)); len(later.Seen) != 0 {
		t.Errorf("it remembers %v for ever", later.Seen)
	}
}

func TestRecordIsBounded(t *testing.T) {
	rec := Record{Version: Version, At: start}
	nodes := map[Pool]float64{}
	for k := range 3 * MaxPools {
		nodes[Pool{fmt.Sprintf("f%d.large", k), "z"}] = float64(1 + k)
	}
	rec = rec.CountHours(nodes)
	if len(rec.Pools) != MaxPools {
		t.Fatalf("%d pools, want %d", len(rec.Pools), MaxPools)
	}
	if i := slices.IndexFunc(rec.Pools, func(c Cell) bool { return c.Hours <= 2*MaxPools }); i >= 0 {
		t.Errorf("it kept %v and forgot pools with more evidence", rec.Pools[i])
	}
	var events []Event
	for k := range 3 * maxSeen {
		events = append(events, Event{ID: fmt.Sprint(k), Kind: Refusal, Pool: Pool{"f1.large", "z"}})
	}
	rec = rec.CountEvents(events, start)
	b, err := rec.Encode()
	if err != nil || len(rec.Seen) != maxSeen || len(b) > MaxStored {
		t.Errorf("%d events are remembered in %d bytes (%v), want %d in at most %d", len(rec.Seen), len(b), err, maxSeen, MaxStored)
	}
	if diff := cmp.Diff(rec, Decode(b, start)); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeIsNoRecord(t *testing.T) {
	for name, text := range map[string]string{
		"nothing": "", "text": "sold out", "a list": "[1]", "another version": `{"version":2,"pools":[{"type":"a","zone":"b","hours":5}]}`,
		"bad amounts": `{"version":1,"pools":[{"type":"a","zone":"b","hours":-5},{"type":"a","zone":"c","interruptions":1e300},{"zone":"c","hours":4}]}`,
		"to come":     `{"version":1,"at":"2226-03-01T12:00:00Z","pools":[{"type":"a","zone":"b","hours":5}]}`,
	} {
		if got := Decode([]byte(text), start); len(got.Pools) != 0 || got.Version != Version {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
}

func TestOrderOfPartsDoesNotMatter(t *testing.T) {
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 2))
		own, parts := anyRecord(r), []Record{anyRecord(r), anyRecord(r), anyRecord(r)}
		want := Summarize(own, parts, start.Add(time.Hour))
		r.Shuffle(len(parts), func(i, k int) { parts[i], parts[k] = parts[k], parts[i] })
		if diff := cmp.Diff(want, Summarize(own, parts, start.Add(time.Hour))); diff != "" {
			t.Fatalf("seed %d: parts in another order (-want +got):\n%s", seed, diff)
		}
	}
}

func TestOnePartMovesTheEstimateWithinBounds(t *testing.T) {
	for seed := range uint64(worlds) {
		r := rand.New(rand.NewPCG(seed, 3))
		own := anyRecord(r)
		liar := Record{Version: Version, At: start}
		for range 1 + r.IntN(200) { // says the worst of some pools and the best of others
			e := Evidence{Hours: maxAmount}
			if r.IntN(2) == 0 {
				e = Evidence{Interruptions: maxAmount}
			}
			liar = liar.with(map[Pool]Evidence{anyPool(r): e})
		}
		honest := EstimateHazards(Summarize(own, nil, start))
		moved := EstimateHazards(Summarize(own, []Record{liar.Sanitized(start), anyRecord(r)}, start))
		for range 40 {
			p := anyPool(r)
			if f := moved.Of(p) / honest.Of(p); f > 4*(1+1e-9) || f < 0.25*(1-1e-9) {
				t.Fatalf("seed %d: others move the hazard of %v by a factor of %v", seed, p, f)
			}
		}
	}
}
