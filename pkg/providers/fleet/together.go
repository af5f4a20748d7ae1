package fleet

import (
	"context"
	"sync"
	"time"
)

// Windows in which calls about single instances are gathered into one.
const (
	gatherIdle = 50 * time.Millisecond
	gatherMost = time.Second
)

// callBatcher gathers ids that are asked for side by side, and has one call made for all. The zero value is ready.
type callBatcher[T any] struct {
	mu   sync.Mutex
	open *batchedCall[T]
}

// batchedCall is one call that is about to be made.
type batchedCall[T any] struct {
	ids  []string
	last time.Time     // when the last one joined
	done chan struct{} // closed once answer and err are set

	answer T
	err    error
}

// askTogether asks about id, together with whoever asks within 50 ms, and returns the answer for all of them. The first
// who asks makes the call, under its own context: should that end, the others get the error, as if their call had been
// lost.
func (t *callBatcher[T]) askTogether(ctx context.Context, id string, most int,
	call func(ctx context.Context, ids []string) (T, error)) (T, error) {
	t.mu.Lock()
	g := t.open
	if g == nil || len(g.ids) >= most {
		g = &batchedCall[T]{done: make(chan struct{})}
		t.open = g
	}
	g.ids, g.last = append(g.ids, id), time.Now()
	first := len(g.ids) == 1
	t.mu.Unlock()
	if !first {
		select {
		case <-g.done:
			return g.answer, g.err
		case <-ctx.Done():
			var none T
			return none, ctx.Err()
		}
	}
	defer close(g.done)
	g.err = t.closeBatch(ctx, g)
	if g.err == nil {
		g.answer, g.err = call(ctx, g.ids)
	}
	return g.answer, g.err
}

// closeBatch waits until nobody joins any more, and closes the gathering.
func (t *callBatcher[T]) closeBatch(ctx context.Context, g *batchedCall[T]) (err error) {
	for end := time.Now().Add(gatherMost); err == nil; {
		t.mu.Lock()
		wait := min(time.Until(g.last.Add(gatherIdle)), time.Until(end))
		if wait <= 0 {
			break
		}
		t.mu.Unlock()
		if err = waitFor(ctx, wait); err != nil {
			t.mu.Lock()
		}
	}
	if t.open == g {
		t.open = nil
	}
	t.mu.Unlock()
	return err
}
