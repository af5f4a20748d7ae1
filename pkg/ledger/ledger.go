// Package ledger remembers which offers EC2 refused to sell, for all functions and over their lives.
//
// It knows how long a refusal counts and how marks of several writers come together. It refuses to know where they are kept
// (that is the Store) and what EC2's error codes mean (that is the writer of a mark).
package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"joiner/pkg/catalog"
)

const (
	name       = "joiner-sold-out" // of the data in the store
	field      = "marks"           // its one entry, a JSON list
	maxMarks   = 2000              // the longest lived stay; a mark takes about 150 bytes, the store holds 1 MiB
	maxWhy     = 120               // bytes
	maxTries   = 8                 // against other writers
	renewals   = 10                // of a mark within its period, at most
	longest    = 30 * time.Minute  // that growing back-off reaches
	maxDoubled = 20                // doublings; more would overflow and are above longest anyway
)

// Store keeps small shared data with optimistic concurrency. Repeating a write is harmless: its version is used up.
type Store interface {
	// ReadData returns nil and an empty version for data that does not exist.
	ReadData(ctx context.Context, name string) (data map[string]string, version string, err error)
	// WriteData replaces the data if it is still of that version. Otherwise its error has a method Conflict() bool that
	// reports true.
	WriteData(ctx context.Context, name string, data map[string]string, version string) error
}

// Ledger is the list of offers that are sold out. Its methods may be called concurrently.
type Ledger struct {
	store Store
	now   func() time.Time

	mu   sync.Mutex
	last entries // as read or written last; they are never changed, and marks never get shorter
}

// New makes a ledger on a store.
func New(store Store, now func() time.Time) *Ledger { return &Ledger{store: store, now: now} }

// Marks returns the marks that still count, sorted by offer.
func (l *Ledger) Marks(ctx context.Context) ([]catalog.Mark, error) {
	all, _, err := l.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("read sold-out marks: %w", err)
	}
	now := l.now()
	return slices.DeleteFunc(all, func(e entry) bool { return !now.Before(e.Until) }).marks(), nil
}

// Add marks offers as sold out for a time, of which each mark's Offer and Why are read. An offer that is refused again after
// its mark ended, but within twice that mark's period, counts as failing still: the period doubles, up to 30 minutes, and
// Times tells how often. A refusal while a mark counts is the same failure seen twice, by launches side by side or by a
// repeated call: it renews the mark. A mark never shortens another. Marks of other writers at the same time are kept.
func (l *Ledger) Add(ctx context.Context, marks []catalog.Mark, period time.Duration) error {
	if len(marks) == 0 || l.lately().all(marks, period, l.now()) { // a minute with many notices would have everybody ask for the same
		return nil
	}
	var err error
	for range maxTries {
		if err = l.add(ctx, marks, period); err == nil || !isConflict(err) || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("mark %d offers as sold out, %s first: %w", len(marks), marks[0], err)
	}
	return nil
}

func (l *Ledger) add(ctx context.Context, marks []catalog.Mark, period time.Duration) error {
	old, version, err := l.read(ctx)
	if err != nil {
		return err
	}
	if old.all(marks, period, l.now()) {
		return nil // or write
	}
	next := merge(old, marks, period, l.now())
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := l.store.WriteData(ctx, name, map[string]string{field: string(body)}, version); err != nil {
		return err
	}
	l.remember(next)
	return nil
}

func (l *Ledger) lately() entries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *Ledger) remember(e entries) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = e
}

// read returns the stored entries. Text that is no list of marks counts as none: whoever broke it must not stop launches,
// and the next write mends it.
func (l *Ledger) read(ctx context.Context) (entries, string, error) {
	data, version, err := l.store.ReadData(ctx, name)
	if err != nil {
		return nil, "", err
	}
	var out entries
	if err := json.Unmarshal([]byte(cmp.Or(data[field], "[]")), &out); err != nil {
		return nil, version, nil
	}
	l.remember(slices.Clone(out))
	return out, version, nil
}

// entry is a mark with when it was made, from which the next period follows.
type entry struct {
	catalog.Mark
	Since time.Time `json:"since"`
}

type entries []entry

func (e entries) marks() []catalog.Mark {
	out := make([]catalog.Mark, 0, len(e))
	for _, m := range e {
		out = append(out, m.Mark)
	}
	slices.SortFunc(out, compare)
	return out
}

// all reports whether each of the marks was made for that long just now.
func (e entries) all(marks []catalog.Mark, period time.Duration, now time.Time) bool {
	return !slices.ContainsFunc(marks, func(m catalog.Mark) bool { return !e.marked(m, period, now) })
}

// marked reports whether the same was marked for that long just now, so that marking it again changes next to nothing.
func (e entries) marked(k catalog.Mark, period time.Duration, now time.Time) bool {
	return slices.ContainsFunc(e, func(m entry) bool { return compare(m.Mark, k) == 0 && !m.Until.Before(now.Add(period-period/renewals)) })
}

func compare(a, b catalog.Mark) int {
	return cmp.Or(cmp.Compare(a.CapacityType, b.CapacityType), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Scope, b.Scope))
}

// merge adds marks to what is stored. Entries are forgotten when marking them again would start afresh.
func merge(old entries, marks []catalog.Mark, period time.Duration, now time.Time) entries {
	out := slices.DeleteFunc(slices.Clone(old), func(e entry) bool { return !now.Before(e.fresh()) })
	var added []catalog.Mark
	for _, m := range marks {
		same := func(k catalog.Mark) bool { return compare(k, m) == 0 }
		if slices.ContainsFunc(added, same) {
			continue // named twice in one refusal is one refusal
		}
		added = append(added, m)
		i := slices.IndexFunc(out, func(e entry) bool { return same(e.Mark) })
		if i < 0 {
			out = append(out, entry{Mark: catalog.Mark{Offer: m.Offer, Scope: m.Scope}})
			i = len(out) - 1
		}
		out[i] = out[i].again(m, period, now)
	}
	if len(out) > maxMarks {
		slices.SortStableFunc(out, func(a, b entry) int { return b.Until.Compare(a.Until) })
		out = out[:maxMarks]
	}
	slices.SortFunc(out, func(a, b entry) int { return compare(a.Mark, b.Mark) })
	return out
}

// fresh is when the entry no longer makes the next period longer: twice its period after it began.
func (e entry) fresh() time.Time { return e.Since.Add(2 * e.Until.Sub(e.Since)) }

// again is the entry after one more refusal.
func (e entry) again(m catalog.Mark, period time.Duration, now time.Time) entry {
	times := max(e.Times, 1)
	if e.Times > 0 && !now.Before(e.Until) {
		times++
	}
	until := now.Add(lasts(period, times))
	if e.Until.After(until) {
		until = e.Until
	}
	e.Until, e.Since, e.Times, e.Why = until.UTC(), now.UTC(), times, m.Why[:min(len(m.Why), maxWhy)]
	return e
}

// lasts is how long the mark of an offer counts that was refused so many times in a row. A period above 30 minutes stays
// what it is.
func lasts(period time.Duration, times int) time.Duration {
	for range min(times-1, maxDoubled) {
		if 2*period > longest {
			return max(period, longest)
		}
		period *= 2
	}
	return period
}

func isConflict(err error) bool {
	c, ok := errors.AsType[interface {
		error
		Conflict() bool
	}](err)
	return ok && c.Conflict()
}
