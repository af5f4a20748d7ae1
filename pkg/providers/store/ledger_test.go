package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/store"
)

func TestMarksOfOneWriter(t *testing.T) {
	s := &fakeStore{}
	clock := start()
	l := store.NewUnavailableOfferings(s, clock.now)
	add(t, l, offering("spot", "m5.large", "us-west-2b"), offering("spot", "c5.large", "us-west-2a"))
	want := []instancetypes.UnavailableOffering{
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "c5.large", Zone: "us-west-2a"}, Until: at("12:03:00"), Why: "InsufficientInstanceCapacity", Times: 1},
		{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: "m5.large", Zone: "us-west-2b"}, Until: at("12:03:00"), Why: "InsufficientInstanceCapacity", Times: 1},
	}
	if diff := cmp.Diff(want, unavailable(t, l)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	clock.pass(3*time.Minute - time.Second)
	if got := len(unavailable(t, l)); got != 2 {
		t.Errorf("%d marks one second before their end, want 2", got)
	}
	clock.pass(time.Second)
	if got := unavailable(t, l); len(got) != 0 {
		t.Errorf("marks at their end: %v, want none", got)
	}
}

func TestOfferingThatKeepsFailingRestsLonger(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	var got []string
	for range 6 {
		add(t, l, offering("spot", "m5.large", "us-west-2a"))
		u := unavailable(t, l)[0]
		rest := u.Until.Sub(clock.now())
		got = append(got, fmt.Sprintf("%d times: %s", u.Times, rest))
		clock.pass(rest + 10*time.Second)
	}
	want := []string{"1 times: 3m0s", "2 times: 6m0s", "3 times: 12m0s", "4 times: 24m0s", "5 times: 30m0s", "6 times: 30m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("periods (-want +got):\n%s", diff)
	}
	clock.pass(30 * time.Minute)
	add(t, l, offering("spot", "m5.large", "us-west-2a"))
	if u := unavailable(t, l)[0]; u.Times != 1 || u.Until.Sub(clock.now()) != 3*time.Minute {
		t.Errorf("after a long success: %+v, want a first failure of three minutes", u)
	}
}

// Marks that differ in their scope alone are two, each with a period of its own: a full subnet is not another subnet,
// and an offering in one reservation not that in another.
func TestMarksThatDifferInScopeAlone(t *testing.T) {
	for _, o := range []instancetypes.OfferingKey{{}, {CapacityType: "reserved", Type: "m5.large", Zone: "us-west-2a"}} {
		l, clock := newLedger(&fakeStore{})
		for _, scope := range []string{"one", "two"} {
			add(t, l, instancetypes.UnavailableOffering{OfferingKey: o, Scope: scope, Why: "full"})
			clock.pass(10 * time.Second)
		}
		want := []instancetypes.UnavailableOffering{{OfferingKey: o, Scope: "one", Until: at("12:03:00"), Why: "full", Times: 1},
			{OfferingKey: o, Scope: "two", Until: at("12:03:10"), Why: "full", Times: 1}}
		if diff := cmp.Diff(want, unavailable(t, l)); diff != "" {
			t.Errorf("marks of %+v (-want +got):\n%s", o, diff)
		}
	}
}

// Launches side by side meet the same refusal; a repeated call after a lost reply says it again.
func TestSameFailureSeenTwiceIsOneFailure(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	o := offering("spot", "m5.large", "us-west-2a")
	add(t, l, o, o)
	clock.pass(20 * time.Second)
	add(t, l, o)
	want := []instancetypes.UnavailableOffering{{OfferingKey: o.OfferingKey, Until: at("12:03:20"), Why: o.Why, Times: 1}}
	if diff := cmp.Diff(want, unavailable(t, l)); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// A thousand notices in a minute name a few offerings. What everybody knows is not written again.
func TestWhatIsMarkedAlreadyIsNotWrittenAgain(t *testing.T) {
	s := &fakeStore{}
	l, clock := newLedger(s)
	known, other := offering("spot", "m5.large", "us-west-2a"), offering("spot", "m5.large", "us-west-2b")
	add(t, l, known)
	before := s.version
	clock.pass(17 * time.Second)
	reads := s.reads
	add(t, l, known)
	if s.version != before || s.reads != reads {
		t.Errorf("a mark that was made 17 s ago for three minutes is written again, or asked for %d times", s.reads-reads)
	}
	second := store.NewUnavailableOfferings(s, clock.now)
	if add(t, second, known); s.version != before || s.reads != reads+1 {
		t.Errorf("another process writes what it finds, or asks %d times, want once", s.reads-reads)
	}
	add(t, l, known, other)
	if s.version == before || len(unavailable(t, l)) != 2 {
		t.Errorf("an offering that is not marked yet was left out: %v", unavailable(t, l))
	}
}

func TestShortMarkDoesNotShortenLongOne(t *testing.T) {
	l, _ := newLedger(&fakeStore{})
	// without one that is new nothing is written
	o, other := offering("on-demand", "", "us-west-2a"), offering("spot", "", "us-west-2b")
	for _, add := range []struct {
		period time.Duration
		marks  []instancetypes.UnavailableOffering
	}{{20 * time.Minute, []instancetypes.UnavailableOffering{o}}, {time.Minute, []instancetypes.UnavailableOffering{o, other}}} {
		if err := l.MarkUnavailable(t.Context(), add.marks, add.period); err != nil {
			t.Fatal(err)
		}
	}
	if got := unavailable(t, l)[0].Until; !got.Equal(at("12:20:00")) {
		t.Errorf("mark ends at %s, want 12:20:00", got)
	}
}

func TestWritersAtTheSameTimeKeepEachOthersMarks(t *testing.T) {
	s := &fakeStore{}
	mine, _ := newLedger(s)
	other, _ := newLedger(s)
	left := 3
	s.beforeWrite = func() { // three times, somebody else writes between our read and our write
		if left--; left >= 0 {
			hook := s.beforeWrite
			s.beforeWrite = nil
			add(t, other, offering("spot", fmt.Sprintf("c%d.large", left), "us-west-2a"))
			s.beforeWrite = hook
		}
	}
	add(t, mine, offering("spot", "m5.large", "us-west-2a"))
	var got []string
	for _, u := range unavailable(t, mine) {
		got = append(got, u.Type)
	}
	if diff := cmp.Diff([]string{"c0.large", "c1.large", "c2.large", "m5.large"}, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

func TestEndlessConflictsEndInAnError(t *testing.T) {
	s := &fakeStore{}
	l, _ := newLedger(s)
	s.beforeWrite = func() { s.version++ }
	err := l.MarkUnavailable(t.Context(), []instancetypes.UnavailableOffering{offering("spot", "m5.large", "us-west-2a")}, time.Minute)
	if err == nil || !strings.Contains(err.Error(), "spot m5.large in us-west-2a") {
		t.Errorf("error %v, want one that names the offering", err)
	}
	if s.writes != 8 {
		t.Errorf("%d tries, want 8", s.writes)
	}
}

func TestFaultOfTheStoreIsReturnedAtOnce(t *testing.T) {
	broken := errors.New("connection refused")
	s := &fakeStore{fault: broken}
	l, _ := newLedger(s)
	if err := l.MarkUnavailable(t.Context(), []instancetypes.UnavailableOffering{offering("spot", "m5.large", "a")}, time.Minute); !errors.Is(err, broken) {
		t.Errorf("Add: error %v, want the store's", err)
	}
	if _, err := l.ListUnavailable(t.Context()); !errors.Is(err, broken) {
		t.Errorf("Marks: error %v, want the store's", err)
	}
}

func TestBrokenDataIsMended(t *testing.T) {
	s := &fakeStore{data: map[string]string{"marks": "{not a list"}, version: 7}
	l, _ := newLedger(s)
	if got := unavailable(t, l); len(got) != 0 {
		t.Errorf("marks of broken data: %v, want none", got)
	}
	add(t, l, offering("spot", "m5.large", "us-west-2a"))
	if got := unavailable(t, l); len(got) != 1 {
		t.Errorf("marks after a write: %v, want one", got)
	}
}

func TestSizeIsLimited(t *testing.T) {
	s := &fakeStore{}
	l, clock := newLedger(s)
	var many []instancetypes.UnavailableOffering
	for i := range 1999 {
		many = append(many, offering("spot", fmt.Sprintf("x%04d.large", i), "us-west-2a"))
	}
	add(t, l, many...)
	clock.pass(time.Second)
	late := offering("spot", "late.large", "us-west-2a")
	late.Why = strings.Repeat("x", 5000)
	add(t, l, late, offering("spot", "later.large", "us-west-2a"), offering("spot", "latest.large", "us-west-2a"))
	got := unavailable(t, l)
	if len(got) != 2000 || got[0].Type != "late.large" || got[2].Type != "latest.large" {
		t.Errorf("%d marks from %s, %s: want 2000 with the latest among them", len(got), got[0].Type, got[2].Type)
	}
	if size := len(s.data["marks"]); size > 700_000 {
		t.Errorf("the data takes %d bytes, want less than the megabyte a ConfigMap holds", size)
	}
}

func TestNothingToAddCostsNoCall(t *testing.T) {
	s := &fakeStore{}
	l, _ := newLedger(s)
	add(t, l)
	if s.reads+s.writes != 0 {
		t.Errorf("%d reads and %d writes, want none", s.reads, s.writes)
	}
}

func newLedger(s *fakeStore) (*store.UnavailableOfferings, *clock) {
	c := start()
	return store.NewUnavailableOfferings(s, c.now), c
}

func add(t *testing.T, l *store.UnavailableOfferings, m ...instancetypes.UnavailableOffering) {
	t.Helper()
	if err := l.MarkUnavailable(t.Context(), m, 3*time.Minute); err != nil {
		t.Fatal(err)
	}
}

func unavailable(t *testing.T, l *store.UnavailableOfferings) []instancetypes.UnavailableOffering {
	t.Helper()
	out, err := l.ListUnavailable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func offering(capacityType, instanceType, zone string) instancetypes.UnavailableOffering {
	return instancetypes.UnavailableOffering{
		OfferingKey: instancetypes.OfferingKey{CapacityType: capacityType, Type: instanceType, Zone: zone},
		Why:         "InsufficientInstanceCapacity",
	}
}

type clock struct{ time time.Time }

func start() *clock                   { return &clock{at("12:00:00")} }
func (c *clock) now() time.Time       { return c.time }
func (c *clock) pass(d time.Duration) { c.time = c.time.Add(d) }
func at(timeOfDay string) time.Time {
	out, err := time.Parse(time.DateTime, "2026-03-01 "+timeOfDay)
	if err != nil {
		panic(err)
	}
	return out
}

// fakeStore is a Store in memory.
type fakeStore struct {
	data          map[string]string
	version       int
	fault         error
	beforeWrite   func()
	reads, writes int
}

func (s *fakeStore) ReadData(context.Context, string) (map[string]string, string, error) {
	s.reads++
	if s.version == 0 {
		return nil, "", s.fault
	}
	return maps.Clone(s.data), fmt.Sprint(s.version), s.fault
}

func (s *fakeStore) WriteData(_ context.Context, _ string, data map[string]string, version string) error {
	s.writes++
	if s.beforeWrite != nil {
		s.beforeWrite()
	}
	current := ""
	if s.version > 0 {
		current = fmt.Sprint(s.version)
	}
	if s.fault != nil {
		return s.fault
	}
	if version != current {
		return changed{}
	}
	s.data, s.version = maps.Clone(data), s.version+1
	return nil
}

type changed struct{}

func (changed) Error() string  { return "the data was changed" }
func (changed) Conflict() bool { return true }
