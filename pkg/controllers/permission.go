package controllers

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
)

// Permission reports whether this process may write to the cluster and EC2 now. It may be asked often and by several
// goroutines. A nil one always permits.
type Permission func(ctx context.Context) (bool, error)

// passPermission is the permission of one pass.
type passPermission struct {
	ask     Permission
	refused atomic.Bool
}

type passKey struct{}

// passOf is the pass of ctx, nil outside of one.
func passOf(ctx context.Context) *passPermission {
	p, _ := ctx.Value(passKey{}).(*passPermission)
	return p
}

// ErrPermissionEnded ends an action in whose middle the permission ended.
var ErrPermissionEnded = errors.New("the permission to write ended")

// BeginPass is the context of a pass that may do what the permission allows. Within a pass it is that of the same pass.
func BeginPass(ctx context.Context, ask Permission) context.Context {
	if passOf(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, passKey{}, &passPermission{ask: ask})
}

// MayWrite reports whether the pass of ctx may write to the cluster and EC2 now; outside of a pass nothing may. It asks
// each time, so that a long pass stops when the permission ends. What was refused once stays refused until the pass
// ends: a pass that only observed part of what it decided must not act on the rest.
func MayWrite(ctx context.Context) (bool, error) {
	p := passOf(ctx)
	if p == nil || p.refused.Load() {
		return false, nil
	}
	if p.ask == nil {
		return true, nil
	}
	may, err := p.ask(ctx)
	if err == nil && !may {
		p.refused.Store(true)
	}
	return may && err == nil, err
}

// WasRefused reports whether the pass of ctx could not write something for want of permission.
func WasRefused(ctx context.Context) bool {
	p := passOf(ctx)
	return p != nil && p.refused.Load()
}

// MayBegin reports whether an action may be begun. Where the pass may not write, it logs the action instead.
func MayBegin(ctx context.Context, log *slog.Logger, action string) (bool, error) {
	may, err := MayWrite(ctx)
	if err == nil && !may {
		LogDryRun(log, action)
	}
	return may, err
}

// LogDryRun logs actions that a pass without permission would carry out.
func LogDryRun(log *slog.Logger, actions ...string) {
	for _, a := range actions {
		log.Info("dry-run: " + a)
	}
}
