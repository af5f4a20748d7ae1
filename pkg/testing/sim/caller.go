package sim

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
)

// logHandler writes what an invocation logs into the trace.
type logHandler struct {
	*engine
	inv *invocation
}

// Enabled leaves debugging out.
func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle keeps the line for the loop.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s says: %s", h.inv, strings.ReplaceAll(r.Message, "\n", " / "))
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.inv.dead {
		h.said = append(h.said, b.String())
	}
	return nil
}

// WithAttrs is not used by controllers.
func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup is not used by controllers.
func (h *logHandler) WithGroup(string) slog.Handler { return h }

// caller makes the calls of one invocation.
type caller struct {
	*engine
	inv  *invocation
	seen map[objectKind]int // the last change of each kind that a read has shown
}

// deadError is the error of calls of a process that is no more.
type deadError struct{}

func (deadError) Error() string { return "the process is dead" }

// FaultError is the error of a call that the simulation lets fail.
type FaultError struct{ Call string }

// Error names the call.
func (e *FaultError) Error() string { return e.Call + ": the connection broke" }

// callPort makes one call: the deed is done by the loop, at a time and with an outcome that the loop draws.
func callPort[T any](ctx context.Context, c *caller, call, key string, deed func() (T, error)) (T, error) {
	r := &portRequest{inv: c.inv, call: call, key: key, reply: make(chan portAnswer, 1)}
	if deed == nil {
		r.waiting, r.seen = true, maps.Clone(c.seen)
	} else {
		r.effect = func() (any, error) { return deed() }
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", call, err)
	}
	if !c.postRequest(r) {
		return none, deadError{}
	}
	select {
	case a := <-r.reply:
		if a.err != nil {
			return none, a.err
		}
		return a.value.(T), nil
	case <-ctx.Done():
		c.abandonRequest(r)
		return none, fmt.Errorf("%s: %w", call, ctx.Err())
	}
}

// tryPort is callPort for a call without a result.
func tryPort(ctx context.Context, c *caller, call, key string, deed func() error) error {
	_, err := callPort(ctx, c, call, key, func() (struct{}, error) { return struct{}{}, deed() })
	return err
}
