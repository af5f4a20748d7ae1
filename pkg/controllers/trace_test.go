package controllers_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/trace"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// spanSink is an endpoint, with a clock that goes on by a millisecond whenever it is looked at.
type spanSink struct {
	mu    sync.Mutex
	ticks int
	start time.Time
	sends int
	spans []trace.Span
	err   error
}

func (s *spanSink) now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ticks++
	return s.start.Add(time.Duration(s.ticks) * time.Millisecond)
}

func (s *spanSink) WriteSpans(_ context.Context, spans []trace.Span) error {
	s.sends++
	if s.err == nil {
		s.spans = append(s.spans, spans...)
	}
	return s.err
}

// traced runs an invocation and returns its spans.
func traced(t *testing.T, function string, now time.Time, run func(context.Context) error) []trace.Span {
	t.Helper()
	to := &spanSink{start: now}
	tracer := &controllers.Tracer{Writer: to, Now: to.now, Log: slog.New(slog.DiscardHandler)}
	ctx, end := tracer.BeginInvocation(t.Context(), function)
	err := run(ctx)
	end(err)
	if err != nil {
		t.Fatal(err)
	}
	return to.spans
}

func named(all []trace.Span, name string) (out []trace.Span) {
	for _, s := range all {
		if s.Name == name {
			out = append(out, s)
		}
	}
	return out
}

func textOf(s trace.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return strings.Join(a.Texts, ",")
		}
	}
	return ""
}

// childrenOf are the spans below one, by their beginning.
func childrenOf(all []trace.Span, parent trace.Span) (out []trace.Span) {
	for _, s := range all {
		if s.Trace == parent.Trace && s.Parent == parent.Span {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b trace.Span) int { return cmp.Compare(a.Start.UnixNano(), b.Start.UnixNano()) })
	return out
}

// checkStages fails unless the stages follow on each other from the beginning of the pass to its end, and what is below
// them lies within them. It returns their names.
func checkStages(t *testing.T, all []trace.Span, pass trace.Span) (names []string) {
	t.Helper()
	at := pass.Start
	for _, stage := range childrenOf(all, pass) {
		if !stage.Start.Equal(at) || stage.End.Before(stage.Start) {
			t.Errorf("stage %q goes from %s to %s, want from %s", stage.Name, stage.Start, stage.End, at)
		}
		at = stage.End
		names = append(names, stage.Name)
		for _, c := range childrenOf(all, stage) {
			if c.Start.Before(stage.Start) || c.End.After(stage.End) || !c.End.After(c.Start) {
				t.Errorf("%q goes from %s to %s, beyond its stage %q", c.Name, c.Start, c.End, stage.Name)
			}
		}
	}
	if !at.Equal(pass.End) {
		t.Errorf("the stages end at %s, the pass at %s", at, pass.End)
	}
	return names
}

// TestAPassIsTraced: its stages add up to it, and each NodeClaim is named where it is written.
func TestAPassIsTraced(t *testing.T) {
	f := controllertest.WaitingPods(t)
	f.World.Advance(7 * time.Second)
	all := traced(t, "provision", f.World.Now(), func(ctx context.Context) error {
		return f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once())
	})
	root, passes := named(all, "provision"), named(all, "pass")
	if len(root) != 1 || root[0].Parent != (trace.SpanID{}) || len(passes) == 0 || passes[0].Parent != root[0].Span {
		t.Fatalf("spans %+v", all)
	}
	pass := passes[0]
	want := "reading the cluster, taking the lease, reading the cluster, reading the catalog, reading the cluster, " +
		"resuming launches, deciding, " +
		"applying the plan, launching, applying the plan, recording the pass, waking other functions, recording the pass, " +
		"returning the lease"
	if got := strings.Join(checkStages(t, all, pass), ", "); got != want {
		t.Errorf("stages %s\nwant   %s", got, want)
	}
	for _, c := range f.World.Claims() {
		for _, name := range []string{"create NodeClaim", "CreateFleet", "write NodeClaim"} {
			i := slices.IndexFunc(named(all, name), func(s trace.Span) bool { return textOf(s, trace.KeyNodeClaim) == c.Name })
			if i < 0 {
				t.Errorf("no span %q of NodeClaim %s", name, c.Name)
			}
		}
		own := trace.OfClaim(c)
		for _, name := range []string{trace.PodsWait, trace.LaunchSpan} {
			i := slices.IndexFunc(named(all, name), func(s trace.Span) bool {
				return s.Trace == own.Trace && s.Parent == own.Span && textOf(s, trace.KeyNodeClaim) == c.Name
			})
			if i < 0 {
				t.Errorf("no span %q in the trace of NodeClaim %s", name, c.Name)
				continue
			}
			s := named(all, name)[i]
			if len(s.Links) != 1 || s.Links[0] != pass.Place {
				t.Errorf("%q links to %v, want to the pass", name, s.Links)
			}
			if name == trace.PodsWait && (s.End.Sub(s.Start) != 7*time.Second || !s.End.Equal(c.Created)) {
				t.Errorf("pods waited from %s to %s", s.Start, s.End)
			}
		}
	}
	if idle := traced(t, "provision", f.World.Now(), func(ctx context.Context) error {
		p := f.Provision(f.World.Ports(fake.Fault{}))
		p.Read = noPods{p.Read}
		return p.Run(ctx, f.Once())
	}); len(idle) > 0 {
		t.Errorf("an invocation that changes nothing sends %+v", idle)
	}
}

// noPods is a cluster in which no pod waits.
type noPods struct{ controllers.Reader }

// PendingPods lists none.
func (noPods) PendingPods(context.Context) ([]cluster.Pod, error) { return nil, nil }

// TestTheWayOfANodeClaimIsOneTrace, which several functions write.
func TestTheWayOfANodeClaimIsOneTrace(t *testing.T) {
	f := controllertest.WaitingPods(t)
	var all []trace.Span
	for range 6 {
		all = append(all, traced(t, "provision", f.World.Now(), func(ctx context.Context) error {
			return f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once())
		})...)
		f.World.Advance(5 * time.Second)
		all = append(all, traced(t, "lifecycle", f.World.Now(), func(ctx context.Context) error {
			return f.Lifecycle(f.World.Ports(fake.Fault{})).Run(ctx, f.Once())
		})...)
		f.World.Advance(15 * time.Second)
	}
	for _, pass := range named(all, "pass") {
		checkStages(t, all, pass)
	}
	if len(f.World.Claims()) == 0 {
		t.Fatal("there is no NodeClaim")
	}
	for _, c := range f.World.Claims() {
		own := trace.OfClaim(c)
		var whole []trace.Span
		for _, s := range named(all, trace.ClaimWay) {
			if s.Place == own {
				whole = append(whole, s)
			}
		}
		if len(whole) != 1 || textOf(whole[0], trace.KeyNodeClaim) != c.Name || textOf(whole[0], trace.KeyNode) == "" {
			t.Fatalf("NodeClaim %s: %+v", c.Name, whole)
		}
		at, names := whole[0].Start, ""
		for _, s := range childrenOf(all, whole[0]) {
			names += s.Name + " "
			if s.Start.After(at) || at.Sub(s.Start) > time.Second {
				t.Errorf("%s of NodeClaim %s begins at %s, want at %s", s.Name, c.Name, s.Start, at)
			}
			at = s.End
		}
		if want := "launch boot registration initialization "; names != want || at.Before(whole[0].End.Add(-time.Second)) {
			t.Errorf("NodeClaim %s: %s until %s, want %s until %s", c.Name, names, at, want, whole[0].End)
		}
	}
}

// TestChangesAreBounded: what has no room is counted, and passes keep theirs.
func TestChangesAreBounded(t *testing.T) {
	to := &spanSink{start: controllertest.Noon()}
	ctx, spans := controllers.BeginTrace(t.Context(), "lifecycle", to.now)
	d := &controllers.Deps{Log: slog.New(slog.DiscardHandler), Now: to.now}
	for range 3 {
		_, _ = d.LimitPass(func(ctx context.Context) (bool, error) {
			for i := range 1000 {
				controllers.BeginChange(ctx, "evict", fmt.Sprint("claim-", i)).End(nil)
			}
			return false, nil
		})(ctx)
	}
	all := spans.EndTrace(nil)
	if len(all) > 2000 || len(named(all, "evict")) != 1500 || len(named(all, "pass")) != 3 {
		t.Errorf("%d spans, %d of changes, %d of passes", len(all), len(named(all, "evict")), len(named(all, "pass")))
	}
	root := all[len(all)-1]
	if root.Name != "lifecycle" || len(root.Attributes) != 1 || root.Attributes[0].Number != 1500 {
		t.Errorf("the invocation is %+v", root)
	}
	for range 2000 {
		_, _ = d.LimitPass(func(context.Context) (bool, error) { return false, errors.New("refused") })(ctx)
	}
	if n := len(spans.EndTrace(nil)); n > 2000 {
		t.Errorf("%d spans of many passes", n)
	}
}

// TestWithoutATraceNothingIsCollected, and nothing is allocated for it.
func TestWithoutATraceNothingIsCollected(t *testing.T) {
	var none *controllers.Tracer
	ctx, end := none.BeginInvocation(t.Context(), "provision")
	if ctx != t.Context() {
		t.Error("the context is another")
	}
	d := &controllers.Deps{Log: slog.New(slog.DiscardHandler), Now: time.Now}
	_, _ = d.LimitPass(func(ctx context.Context) (bool, error) {
		if n := testing.AllocsPerRun(100, func() {
			controllers.NoteStage(ctx, controllers.StageDeciding)
			controllers.NoteStage(ctx, controllers.StageApplying)
			controllers.BeginChange(ctx, "CreateFleet", "claim").End(nil)
			controllers.TraceClaim(ctx, func(trace.Place, time.Time) []trace.Span { panic("asked for") })
		}); n > 0 {
			t.Errorf("%v allocations", n)
		}
		return false, nil
	})(ctx)
	end(nil)
}

// TestAnEndpointThatTakesNoSpansIsToldOfOnceAnHour, is left alone for five minutes after each failure, and fails no
// invocation.
func TestAnEndpointThatTakesNoSpansIsToldOfOnceAnHour(t *testing.T) {
	var log bytes.Buffer
	to, now := &spanSink{err: errors.New("it is throttled")}, controllertest.Noon()
	tracer := &controllers.Tracer{Writer: to, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil))}
	invoke := func() {
		_, end := tracer.BeginInvocation(t.Context(), "provision")
		now = now.Add(time.Minute)
		end(nil)
	}
	for range 150 {
		invoke()
	}
	if got := strings.Count(log.String(), "traces cannot be sent"); got != 3 || !strings.Contains(log.String(), "it is throttled") {
		t.Errorf("told %d times in two and a half hours:\n%s", got, log.String())
	}
	if to.sends != 30 {
		t.Errorf("%d sends in 150 minutes, want one in five", to.sends)
	}
	to.err = nil
	for range 10 {
		invoke()
	}
	if strings.Count(log.String(), "traces are sent again") != 1 || len(to.spans) == 0 {
		t.Errorf("told when it is over:\n%s", log.String())
	}
}
