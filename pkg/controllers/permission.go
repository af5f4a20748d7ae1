package controllers

import (
	"context"
	"sync"
)

// passPermission is what one pass was told about its permission to write.
type passPermission struct {
	mu      sync.Mutex
	refused bool
}

type passKey struct{}

// BeginPass is the context of a pass, in which MayWrite stands by its refusals. Within a pass it is that of the same pass.
func BeginPass(ctx context.Context) context.Context {
	if _, begun := ctx.Value(passKey{}).(*passPermission); begun {
		return ctx
	}
	return context.WithValue(ctx, passKey{}, &passPermission{})
}

// MayWrite reports whether the pass of ctx may write to the cluster and EC2 now. It asks each time, so that a long pass stops when the permission
// ends. What was refused once stays refused until the pass ends: what came after a refusal was only pretended, and nothing may build upon it.
func MayWrite(ctx context.Context, ask func(context.Context) (bool, error)) (bool, error) {
	p, begun := ctx.Value(passKey{}).(*passPermission)
	if !begun {
		return ask(ctx)
	}
	p.mu.Lock()
	refused := p.refused
	p.mu.Unlock()
	if refused {
		return false, nil
	}
	may, err := ask(ctx)
	if err == nil && !may {
		p.mu.Lock()
		p.refused = true
		p.mu.Unlock()
	}
	return may, err
}
