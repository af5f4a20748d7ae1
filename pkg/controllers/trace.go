package controllers

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/trace"
)

const (
	// mostSpans bounds the spans of one invocation. What changes one object is left out first, so that the last of them
	// are for passes and their stages.
	mostSpans     = 2000
	keptForPasses = 500
	// slowFrom is how long a pass or an invocation takes that is of interest although it changes nothing and ends well.
	slowFrom = time.Second
)

// Trace collects the spans of one invocation: one of the invocation, below it one of each pass, below that one of each
// stage, and below that one of each call that changes something.
type Trace struct {
	now func() time.Time

	mu      sync.Mutex
	root    trace.Span
	ended   []trace.Span
	details int   // begun or ended
	dropped int64 // for want of room
	isKept  bool  // a pass of it was kept
}

type traceKey struct{}

// BeginTrace begins the span of an invocation, and collects what is done under the context.
func BeginTrace(ctx context.Context, name string, now func() time.Time, about ...trace.Attribute) (context.Context,
	*Trace) {
	t := &Trace{now: now, root: trace.Span{Name: name, Start: now(), Attributes: about}}
	_, _ = rand.Read(t.root.Trace[:]) // never fails
	t.root.Span = newSpanID()
	return context.WithValue(ctx, traceKey{}, t), t
}

func newSpanID() (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// EndTrace ends the span of the invocation, and returns all spans: none of an invocation that changed nothing, ended
// well and took less than a second.
func (t *Trace) EndTrace(err error) []trace.Span {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.root.End, t.root.Error = t.now(), errorText(err)
	if !t.isKept && err == nil && t.root.End.Sub(t.root.Start) < slowFrom {
		return nil
	}
	if t.dropped > 0 {
		t.root.Attributes = append(t.root.Attributes, trace.Number(trace.KeyDropped, t.dropped))
	}
	return append(t.ended, t.root)
}

// hasRoom reports whether another change may have a span.
func (t *Trace) hasRoom(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.details+n > mostSpans-keptForPasses {
		t.dropped += int64(n)
		return false
	}
	t.details += n
	return true
}

// keep takes the spans of a pass.
func (t *Trace) keep(pass []trace.Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.isKept = true
	if len(t.ended)+len(pass) >= mostSpans {
		t.dropped += int64(len(pass))
		return
	}
	t.ended = append(t.ended, pass...)
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// passSpans are the spans of one pass. Who calls its methods holds the lock of its passStage.
type passSpans struct {
	to      *Trace
	pass    trace.Span // the span of the invocation where that has no passes
	stage   trace.Span
	ended   []trace.Span
	changed bool
}

// newPassSpans begins the span of a pass and of its first stage; nil where nothing is collected.
func newPassSpans(ctx context.Context, pass, stage string) *passSpans {
	t, ok := ctx.Value(traceKey{}).(*Trace)
	if !ok {
		return nil
	}
	s := &passSpans{to: t, pass: t.root}
	if pass != "" {
		s.pass = trace.Span{Place: trace.Place{Trace: t.root.Trace, Span: newSpanID()}, Parent: t.root.Span, Name: pass,
			Start: t.now()}
	}
	s.beginStage(stage, s.pass.Start)
	return s
}

func (s *passSpans) beginStage(name string, at time.Time) { s.stage = s.newSpan(name, s.pass.Span, at) }

func (s *passSpans) newSpan(name string, parent trace.SpanID, at time.Time) trace.Span {
	return trace.Span{Place: trace.Place{Trace: s.pass.Trace, Span: newSpanID()}, Parent: parent, Name: name, Start: at}
}

// nextStage ends the stage at the moment when the next one begins, so that stages add up to their pass.
func (s *passSpans) nextStage(name string) {
	now := s.to.now()
	s.endStage(now, nil)
	s.beginStage(name, now)
}

func (s *passSpans) endStage(at time.Time, err error) {
	s.stage.End, s.stage.Error = at, errorText(err)
	s.ended = append(s.ended, s.stage)
}

// end ends the pass and its last stage. One that changed nothing, ended well and was quick is left out.
func (s *passSpans) end(err error) {
	now := s.to.now()
	s.endStage(now, err)
	if s.pass.Span != s.to.root.Span {
		s.pass.End, s.pass.Error = now, errorText(err)
		s.ended = append(s.ended, s.pass)
	}
	if s.changed || err != nil || now.Sub(s.pass.Start) >= slowFrom {
		s.to.keep(s.ended)
	}
}

// TraceStages collects the stages of an invocation that has no passes, beginning with the first. It ends with end. In a
// context under which nothing is collected it does nothing.
func TraceStages(ctx context.Context, first string) (under context.Context, end func(error)) {
	s := newPassSpans(ctx, "", first)
	if s == nil {
		return ctx, func(error) {}
	}
	stage := &passStage{name: first, spans: s}
	return context.WithValue(ctx, stageKey{}, stage), stage.endSpans
}

// endSpans ends the spans of the pass.
func (s *passStage) endSpans(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spans != nil {
		s.spans.end(err)
	}
}

// Change is the span of a call that changes something. A nil one is of no interest to anybody.
type Change struct {
	of   *passStage
	span trace.Span
}

// BeginChange begins the span of a change to the NodeClaim of that name, if it has one, in the stage that the pass of
// ctx is at. It ends with End. In a context under which nothing is collected it does nothing.
func BeginChange(ctx context.Context, name, claim string) *Change {
	stage, ok := ctx.Value(stageKey{}).(*passStage)
	if !ok || stage.spans == nil {
		return nil
	}
	stage.mu.Lock()
	defer stage.mu.Unlock()
	stage.spans.changed = true
	if !stage.spans.to.hasRoom(1) {
		return nil
	}
	c := &Change{of: stage, span: stage.spans.newSpan(name, stage.spans.stage.Span, stage.spans.to.now())}
	if claim != "" {
		c.AboutClaims(claim)
	}
	return c
}

// AboutClaims names the NodeClaims that the change is about, where BeginChange was not told.
func (c *Change) AboutClaims(names ...string) {
	if c != nil {
		c.span.Attributes = []trace.Attribute{trace.NodeClaims(names...)}
	}
}

// AboutBatch names the NodeClaims that the change is about.
func (c *Change) AboutBatch(claims []cluster.Claim) {
	if c == nil {
		return
	}
	names := make([]string, len(claims))
	for i := range claims {
		names[i] = claims[i].Name
	}
	c.AboutClaims(names...)
}

// End ends the span.
func (c *Change) End(err error) {
	if c == nil {
		return
	}
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.span.End, c.span.Error = c.of.spans.to.now(), errorText(err)
	c.of.spans.ended = append(c.of.spans.ended, c.span)
}

// TraceClaim collects spans of a NodeClaim's own trace, which are made at the place of the pass of ctx. In a context
// under which nothing is collected nothing is made.
func TraceClaim(ctx context.Context, spans func(pass trace.Place, now time.Time) []trace.Span) {
	stage, ok := ctx.Value(stageKey{}).(*passStage)
	if !ok || stage.spans == nil {
		return
	}
	stage.mu.Lock()
	defer stage.mu.Unlock()
	s := stage.spans
	made := spans(s.pass.Place, s.to.now())
	if len(made) == 0 {
		return
	}
	s.changed = true
	if s.to.hasRoom(len(made)) {
		s.ended = append(s.ended, made...)
	}
}
