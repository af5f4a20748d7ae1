package controllers

import (
	"context"
	"log/slog"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// StaleStatus wakes refresh, once in an invocation, when there is a class or a pool that it has not looked at as it is
// now. Otherwise a new class, and a pool that somebody has edited, would launch nothing until the next run of refresh.
type StaleStatus struct{ woken bool }

// WakeRefresh reports whether there is such a class or pool.
func (u *StaleStatus) WakeRefresh(ctx context.Context, s cluster.Snapshot, refresh Waker, log *slog.Logger) (bool,
	error) {
	if !slices.ContainsFunc(s.Classes, func(c instancetypes.Class) bool { return c.Unseen }) &&
		!slices.ContainsFunc(s.Pools, func(p cluster.Pool) bool { return p.Unseen }) {
		return false, nil
	}
	if u.woken {
		return true, nil
	}
	if may, err := MayBegin(ctx, log, "wake refresh"); err != nil || !may {
		return true, err
	}
	u.woken = true
	return true, refresh.Wake(ctx)
}
