package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

const (
	// classRests is the time for which a class is left alone at first.
	classRests = 5 * time.Minute
	// failureCounts is the time for which a failed launch is held against its class.
	failureCounts = time.Hour
)

// NoteFailedLaunch holds against a class that one of its instances ended before its node joined. From the second on
// within an hour the class is unavailable, each time for longer, up to 30 minutes: an instance costs money
// whatever becomes of it. Noting the same instance again changes nothing.
func (l *UnavailableOfferings) NoteFailedLaunch(ctx context.Context, class, instance, why string) error {
	if err := retryConflicts(ctx, func() error { return l.addFailure(ctx, class, instance, why) }); err != nil {
		return fmt.Errorf("note failed launch of instance %s: %w", instance, err)
	}
	return nil
}

func (l *UnavailableOfferings) addFailure(ctx context.Context, class, instance, why string) error {
	old, version, err := l.readEntries(ctx)
	if err != nil {
		return err
	}
	next, changed := noteFailure(old, class, instance+" ended: "+why, l.now())
	if !changed {
		return nil
	}
	return l.writeEntries(ctx, next, version)
}

// noteFailure adds a failure to the entry of its class. The first one makes an entry that is over already.
func noteFailure(old storedEntries, class, why string, now time.Time) (next storedEntries, changed bool) {
	why, scope := why[:min(len(why), maxWhy)], instancetypes.ClassScope(class)
	out := slices.DeleteFunc(slices.Clone(old), func(e storedEntry) bool { return !now.Before(e.remembersUntil()) })
	i := slices.IndexFunc(out, func(e storedEntry) bool { return e.Class() == class && e.Cause == "" })
	if i < 0 {
		out = append(out, storedEntry{UnavailableOffering: instancetypes.UnavailableOffering{Scope: scope,
			Until: now.UTC(), Why: why, Times: 1}, Since: now.UTC()})
		slices.SortFunc(out, compareEntries)
		return out, true
	}
	e := out[i]
	if e.Why == why {
		return old, false
	}
	e.Why, e.Since = why, now.UTC()
	if !now.Before(e.Until) { // those that were under way when the class became unavailable make it no longer
		e.Times++
		e.Until = now.Add(unavailableFor(classRests, e.Times-1)).UTC()
	}
	out[i] = e
	return out, true
}
