package controllers

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"joiner.sh/pkg/model/trace"
)

const (
	// sendSpansWithin bounds what sending the spans of an invocation takes, and sendSpansBefore is what is left of the
	// invocation then.
	sendSpansWithin = 2 * time.Second
	sendSpansBefore = 500 * time.Millisecond
	// restAfterFailure is how long nothing is sent after a failure: an invocation that waits for nothing at its end
	// keeps the next one of its function waiting.
	restAfterFailure = 5 * time.Minute
)

// SpanWriter sends spans. Repeating it sends the same spans.
type SpanWriter interface {
	// WriteSpans sends them, and returns with the context at the latest.
	WriteSpans(ctx context.Context, spans []trace.Span) error
}

// Tracer sends the spans of invocations when these are done. A nil Tracer collects and sends nothing. It belongs to a
// process.
type Tracer struct {
	Writer SpanWriter
	Now    func() time.Time
	Log    *slog.Logger

	mu      sync.Mutex
	failing Outage
	failed  time.Time // last
}

// BeginInvocation collects the spans of an invocation of the function. The invocation calls end when all else is done,
// with its error: it sends them, or gives up within two seconds. A failure is told of once an hour, and is never an
// error of the invocation.
func (t *Tracer) BeginInvocation(ctx context.Context, function string, about ...trace.Attribute) (under context.Context,
	end func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	under, spans := BeginTrace(ctx, function, t.Now, about...)
	return under, func(err error) { t.send(ctx, spans.EndTrace(err)) }
}

func (t *Tracer) send(ctx context.Context, spans []trace.Span) {
	if len(spans) == 0 || t.isResting() {
		return
	}
	end := time.Now().Add(sendSpansWithin)
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-sendSpansBefore).Before(end) {
		end = deadline.Add(-sendSpansBefore)
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer cancel()
	err := t.Writer.WriteSpans(ctx, spans)
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.Now()
	if err != nil {
		t.failed = now
	}
	t.failing.NoteOutcome(t.Log, "traces", err, now)
}

// isResting reports whether a send failed lately.
func (t *Tracer) isResting() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.failed.IsZero() && t.Now().Sub(t.failed) < restAfterFailure
}
