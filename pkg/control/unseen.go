package control

import (
	"context"
	"slices"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
)

// unseen wakes refresh, once in an invocation, when there is a class or a pool that it has not looked at as it is now. Otherwise a new
// class, and a pool that somebody has edited, would launch nothing until the next run of refresh.
type unseen struct{ woken bool }

// show reports whether there is such a class or pool.
func (u *unseen) show(ctx context.Context, s cluster.Snapshot, refresh Waker) (bool, error) {
	if !slices.ContainsFunc(s.Classes, func(c catalog.Class) bool { return c.Unseen }) &&
		!slices.ContainsFunc(s.Pools, func(p cluster.Pool) bool { return p.Unseen }) {
		return false, nil
	}
	if u.woken {
		return true, nil
	}
	u.woken = true
	return true, refresh.Wake(ctx)
}
