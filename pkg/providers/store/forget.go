package store

import (
	"context"
	"fmt"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
)

// ListRemembered lists all entries, also those that no longer count but have the next one come sooner or last longer.
func (l *UnavailableOfferings) ListRemembered(ctx context.Context) ([]instancetypes.UnavailableEntry, error) {
	all, _, err := l.readEntries(ctx)
	if err != nil {
		return nil, fmt.Errorf("read unavailable offerings: %w", err)
	}
	now := l.now()
	all = slices.DeleteFunc(all, func(e storedEntry) bool {
		return !now.Before(e.Until) && !now.Before(e.remembersUntil())
	})
	return all.notedOfferings(), nil
}

// ForgetUnavailable removes the entries about the same, with all that is remembered of them. Other entries, and those
// of other writers at the same time, are kept. Forgetting again changes nothing.
func (l *UnavailableOfferings) ForgetUnavailable(ctx context.Context, gone []instancetypes.UnavailableOffering) error {
	if err := retryConflicts(ctx, func() error { return l.removeEntries(ctx, gone) }); err != nil {
		return fmt.Errorf("forget %d unavailable offerings: %w", len(gone), err)
	}
	return nil
}

func (l *UnavailableOfferings) removeEntries(ctx context.Context, gone []instancetypes.UnavailableOffering) error {
	old, version, err := l.readEntries(ctx)
	if err != nil {
		return err
	}
	next := slices.DeleteFunc(slices.Clone(old), func(e storedEntry) bool {
		return slices.ContainsFunc(gone, func(u instancetypes.UnavailableOffering) bool {
			return compareOfferings(e.UnavailableOffering, u) == 0
		})
	})
	if len(next) == len(old) {
		return nil
	}
	return l.writeEntries(ctx, next, version)
}
