package notices

import (
	"context"
	"errors"
	"sync"

	"joiner.sh/pkg/controllers"
)

// sharedWaker wakes a function for many notices. Calls that come while a wake-up is under way share the next one, which
// begins after what they wrote.
type sharedWaker struct {
	controllers.Waker
	turn chan struct{} // held by the wake-up that is under way

	mu   sync.Mutex
	next *sharedWakeUp // nil for none
}

// sharedWakeUp is one that has not begun as long as others may join it.
type sharedWakeUp struct {
	done chan struct{}
	err  error
}

func newSharedWaker(w controllers.Waker) *sharedWaker {
	return &sharedWaker{Waker: w, turn: make(chan struct{}, 1)}
}

// IsWatched reports what the Waker reports, and false where it cannot tell.
func (w *sharedWaker) IsWatched(ctx context.Context) bool {
	aware, can := w.Waker.(WatchAwareWaker)
	return can && aware.IsWatched(ctx)
}

// Wake returns when a wake-up has ended that began after the call.
func (w *sharedWaker) Wake(ctx context.Context) error {
	w.mu.Lock()
	joined := w.next
	mine := &sharedWakeUp{done: make(chan struct{}), err: errors.New("the shared wake-up did not end")}
	if joined == nil {
		w.next = mine
	}
	w.mu.Unlock()
	if joined != nil {
		select {
		case <-joined.done:
			return joined.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer close(mine.done)
	w.turn <- struct{}{} // whoever holds it ends with its context, which is the same
	defer func() { <-w.turn }()
	w.mu.Lock()
	w.next = nil
	w.mu.Unlock()
	mine.err = w.Waker.Wake(ctx)
	return mine.err
}
