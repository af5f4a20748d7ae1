package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

const (
	name       = "joiner-sold-out" // of the data in the store
	field      = "marks"           // its one entry, a JSON list
	maxEntries = 2000              // the longest lived stay; an entry takes about 150 bytes, the store holds 1 MiB
	maxWhy     = 120               // bytes
	maxSaid    = 400               // bytes of kube-scheduler's words; a class has few such entries
	maxTries   = 8                 // against other writers
	renewals   = 10                // of an entry within its period, at most
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

// UnavailableOfferings is the list of offerings that are unavailable. Its methods may be called concurrently.
type UnavailableOfferings struct {
	store Store
	now   func() time.Time

	mu   sync.Mutex
	last storedEntries // as read or written last; they are never changed, and entries never get shorter
}

// NewUnavailableOfferings makes a ledger on a store.
func NewUnavailableOfferings(store Store, now func() time.Time) *UnavailableOfferings {
	return &UnavailableOfferings{store: store, now: now}
}

// ListUnavailable returns the entries that still count, sorted by offering.
func (l *UnavailableOfferings) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	all, _, err := l.readEntries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read unavailable offerings: %w", err)
	}
	now := l.now()
	return slices.DeleteFunc(all, func(e storedEntry) bool { return !now.Before(e.Until) }).activeOfferings(), nil
}

// MarkUnavailable marks offerings as unavailable for a time, of which each one's OfferingKey and Why are read. An
// offering that is refused again after its entry ended, but within twice that entry's period, counts as failing still:
// the period doubles, up to 30 minutes, and Times tells how often. A refusal while an entry counts is the same failure
// seen twice, by launches side by side or by a repeated call: it renews the entry. An entry never shortens another.
// Entries of other writers at the same time are kept.
func (l *UnavailableOfferings) MarkUnavailable(ctx context.Context, unavailable []instancetypes.UnavailableOffering,
	period time.Duration) error {
	// a minute with many notices would have everybody ask for the same
	if len(unavailable) == 0 || l.readLately().markedJustNow(unavailable, period, l.now()) {
		return nil
	}
	if err := retryConflicts(ctx, func() error { return l.addEntries(ctx, unavailable, period) }); err != nil {
		return fmt.Errorf("mark %d offerings as unavailable, %s first: %w", len(unavailable), unavailable[0], err)
	}
	return nil
}

func (l *UnavailableOfferings) addEntries(ctx context.Context, unavailable []instancetypes.UnavailableOffering,
	period time.Duration) error {
	old, version, err := l.readEntries(ctx)
	if err != nil {
		return err
	}
	if old.markedJustNow(unavailable, period, l.now()) {
		return nil // or write
	}
	next := mergeEntries(old, unavailable, period, l.now())
	return l.writeEntries(ctx, next, version)
}

// writeEntries stores the entries in place of those of that version.
func (l *UnavailableOfferings) writeEntries(ctx context.Context, e storedEntries, version string) error {
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := l.store.WriteData(ctx, name, map[string]string{field: string(body)}, version); err != nil {
		return err
	}
	l.rememberEntries(e)
	return nil
}

func (l *UnavailableOfferings) readLately() storedEntries {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

func (l *UnavailableOfferings) rememberEntries(e storedEntries) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = e
}

// readEntries returns the stored entries. Text that is no list of entries counts as none: whoever broke it must not
// stop launches, and the next write mends it.
func (l *UnavailableOfferings) readEntries(ctx context.Context) (storedEntries, string, error) {
	data, version, err := l.store.ReadData(ctx, name)
	if err != nil {
		return nil, "", err
	}
	var out storedEntries
	if err := json.Unmarshal([]byte(cmp.Or(data[field], "[]")), &out); err != nil {
		return nil, version, nil
	}
	l.rememberEntries(slices.Clone(out))
	return out, version, nil
}

// storedEntry is an entry with the time of its last refusal, from which the next period follows.
type storedEntry instancetypes.UnavailableEntry

type storedEntries []storedEntry

func (e storedEntries) activeOfferings() []instancetypes.UnavailableOffering {
	out := lists.Of(e, func(m storedEntry) instancetypes.UnavailableOffering { return m.UnavailableOffering })
	slices.SortFunc(out, compareOfferings)
	return out
}

// markedJustNow reports whether each of the entries was made for that long just now.
func (e storedEntries) markedJustNow(unavailable []instancetypes.UnavailableOffering, period time.Duration,
	now time.Time) bool {
	return !slices.ContainsFunc(unavailable,
		func(u instancetypes.UnavailableOffering) bool { return !e.alreadyMarked(u, period, now) })
}

// alreadyMarked reports whether the same was marked for that long just now, so that marking it again changes next to
// nothing.
func (e storedEntries) alreadyMarked(u instancetypes.UnavailableOffering, period time.Duration, now time.Time) bool {
	return slices.ContainsFunc(e, func(m storedEntry) bool {
		return compareOfferings(m.UnavailableOffering, u) == 0 && !m.Until.Before(now.Add(period-period/renewals))
	})
}

func compareEntries(a, b storedEntry) int {
	return compareOfferings(a.UnavailableOffering, b.UnavailableOffering)
}

func compareOfferings(a, b instancetypes.UnavailableOffering) int {
	return cmp.Or(cmp.Compare(a.CapacityType, b.CapacityType), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone),
		cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Resource, b.Resource),
		cmp.Compare(min(len(a.Cause), 1), min(len(b.Cause), 1)))
}

// mergeEntries adds entries to what is stored. Entries are forgotten when marking them again would start afresh.
func mergeEntries(old storedEntries, unavailable []instancetypes.UnavailableOffering, period time.Duration,
	now time.Time) storedEntries {
	out := slices.DeleteFunc(slices.Clone(old), func(e storedEntry) bool { return !now.Before(e.remembersUntil()) })
	var added []instancetypes.UnavailableOffering
	for _, u := range unavailable {
		same := func(entry instancetypes.UnavailableOffering) bool { return compareOfferings(entry, u) == 0 }
		if slices.ContainsFunc(added, same) {
			continue // named twice in one refusal is one refusal
		}
		added = append(added, u)
		i := slices.IndexFunc(out, func(e storedEntry) bool { return same(e.UnavailableOffering) })
		if i < 0 {
			out = append(out, storedEntry{UnavailableOffering: instancetypes.UnavailableOffering{
				OfferingKey: u.OfferingKey, Scope: u.Scope}})
			i = len(out) - 1
		}
		out[i] = out[i].afterRefusal(u, period, now)
	}
	if len(out) > maxEntries {
		slices.SortStableFunc(out, func(a, b storedEntry) int { return b.Until.Compare(a.Until) })
		out = out[:maxEntries]
	}
	slices.SortFunc(out, compareEntries)
	return out
}

// remembersUntil returns when the entry no longer makes the next period longer: twice its period after it began, for a
// class an hour after its last failure. A refusal is forgotten with its entry: somebody may mend its cause at any time.
func (e storedEntry) remembersUntil() time.Time {
	if until, of := instancetypes.UnavailableEntry(e).RemembersUnused(); of {
		return until
	}
	switch {
	case e.Class() != "":
		return e.Since.Add(failureCounts)
	case e.RefusedForClass():
		return e.Until
	}
	return e.Since.Add(2 * e.Until.Sub(e.Since))
}

// afterRefusal is the entry after one more refusal.
func (e storedEntry) afterRefusal(u instancetypes.UnavailableOffering, period time.Duration,
	now time.Time) storedEntry {
	times := max(e.Times, 1)
	if e.Times > 0 && !now.Before(e.Until) {
		times++
	}
	until := now.Add(unavailableFor(period, times))
	if e.Until.After(until) {
		until = e.Until
	}
	e.Until, e.Since, e.Times, e.Why = until.UTC(), now.UTC(), times, u.Why[:min(len(u.Why), maxWhy)]
	return e
}

// unavailableFor returns the time for which the entry of an offering counts that was refused so many times in a row. A
// period above 30 minutes stays what it is.
func unavailableFor(period time.Duration, times int) time.Duration {
	for range min(times-1, maxDoubled) {
		if 2*period > longest {
			return max(period, longest)
		}
		period *= 2
	}
	return period
}

// retryConflicts repeats a change that somebody else was faster with, as long as the context lasts, maxTries times at
// most. It returns the error of the last try.
func retryConflicts(ctx context.Context, change func() error) (err error) {
	for range maxTries {
		if err = change(); err == nil || !isConflict(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func isConflict(err error) bool {
	c, ok := errors.AsType[interface {
		error
		Conflict() bool
	}](err)
	return ok && c.Conflict()
}
