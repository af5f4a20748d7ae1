package store

import (
	"context"
	"fmt"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

// NoteUnusedNodes notes nodes that were bought in vain, and by their instance ids those of which pods came to run after
// all: see instancetypes.NoteUnusedNodes. It returns the entries about the types that are left out now. Noting the same
// again changes nothing.
func (l *UnavailableOfferings) NoteUnusedNodes(ctx context.Context, unused []instancetypes.UnusedNode,
	used []string) (out []instancetypes.UnavailableOffering, err error) {
	err = retryConflicts(ctx, func() (err error) { out, err = l.addUnused(ctx, unused, used); return err })
	if err != nil {
		return nil, fmt.Errorf("note %d nodes that were bought in vain: %w", len(unused), err)
	}
	return out, nil
}

func (l *UnavailableOfferings) addUnused(ctx context.Context, unused []instancetypes.UnusedNode,
	used []string) ([]instancetypes.UnavailableOffering, error) {
	old, version, err := l.readEntries(ctx)
	if err != nil {
		return nil, err
	}
	now := l.now()
	old = slices.DeleteFunc(old, func(e storedEntry) bool { return !now.Before(e.remembersUntil()) })
	for i := range unused {
		unused[i].Why = unused[i].Why[:min(len(unused[i].Why), maxSaid)]
	}
	next, changed := instancetypes.NoteUnusedNodes(old.notedOfferings(), unused, used, now)
	entries := make(storedEntries, 0, len(next))
	for _, m := range next {
		entries = append(entries, storedEntry(m))
	}
	slices.SortFunc(entries, compareEntries)
	if changed {
		if err := l.writeEntries(ctx, entries, version); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(entries.activeOfferings(), func(u instancetypes.UnavailableOffering) bool {
		return !u.LeavesOut() || !now.Before(u.Until)
	}), nil
}

func (e storedEntries) notedOfferings() []instancetypes.UnavailableEntry {
	return lists.Of(e, func(m storedEntry) instancetypes.UnavailableEntry { return instancetypes.UnavailableEntry(m) })
}
