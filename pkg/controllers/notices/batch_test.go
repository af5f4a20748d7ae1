package notices_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// stateEvent is the event that an instance has a new state.
func stateEvent(id, state string) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":"1","detail-type":"EC2 Instance State-change Notification","source":"aws.ec2","account":"111122223333","time":"2026-01-01T12:00:00Z","region":"us-west-2",`+
		`"resources":["arn:aws:ec2:us-west-2:111122223333:instance/%s"],"detail":{"instance-id":"%s","state":"%s"}}`, id, id, state)
}

// TestABatchOfStateChanges: a hundred instances of others cost one question, and none when they are heard of again. A
// malformed event, or one of a state that means nothing, is nothing to try again; where the question fails all others are.
func TestABatchOfStateChanges(t *testing.T) {
	f := controllertest.RunningPods(t)
	batch := [][]byte{[]byte("{"), stateEvent("i-0abcdef0123456789", "pending")}
	for i := range 100 {
		batch = append(batch, stateEvent(fmt.Sprintf("i-0f%015x", i), "terminated"))
	}
	handle := func(p *fake.Ports, foreign *notices.ForeignInstances) []error {
		c := f.Interruption(p)
		c.Foreign = foreign
		return c.HandleBatch(context.Background(), events.KindStateChange, batch)
	}
	foreign := &notices.ForeignInstances{}
	p := f.World.Ports(fake.Fault{})
	if err := errors.Join(handle(p, foreign)...); err != nil || len(p.Calls()) != 1 {
		t.Errorf("error %v, asked %v; want one question", err, p.Calls())
	}
	p = f.World.Ports(fake.Fault{})
	if err := errors.Join(handle(p, foreign)...); err != nil || len(p.Calls()) != 0 {
		t.Errorf("once more: error %v, asked %v; want nothing", err, p.Calls())
	}
	failing := handle(f.World.Ports(fake.Fault{Call: 1}), &notices.ForeignInstances{})
	again := 0
	for _, err := range failing {
		if err != nil {
			again++
		}
	}
	if again != 100 || failing[0] != nil || failing[1] != nil {
		t.Errorf("%d of %d events come again, want the 100 about which somebody was asked", again, len(batch))
	}
}

// stateNotice says that an instance of the world has a new state.
func stateNotice(f *controllertest.Functions, kind interruption.Kind) interruption.Notice {
	n := controllertest.SpotNotice(f.World)
	n.Kind = kind
	return n
}

// A batch that comes when its invocation has no time left is left to the next one, untouched.
func TestABatchWithoutTimeIsLeft(t *testing.T) {
	f := controllertest.RunningPods(t)
	p := f.World.Ports(fake.Fault{})
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	errs := f.Interruption(p).HandleTogether(ctx, stateNotice(f, interruption.Ended))
	if errs[0] == nil || len(p.Calls()) != 1 {
		t.Errorf("error %v, asked %v; want an error and one question", errs[0], p.Calls())
	}
}

// withoutTime has no time left once the pods of a node were listed.
type withoutTime struct {
	notices.NodePods
	ctx *endingContext
}

func (p withoutTime) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	p.ctx.ends = true
	return p.NodePods.PodsOn(ctx, node)
}

// endingContext has time until it ends.
type endingContext struct {
	context.Context
	ends bool
}

func (c *endingContext) Deadline() (time.Time, bool) {
	if c.ends {
		return time.Now().Add(time.Second), true
	}
	return time.Time{}, false
}

// Pods for whose removal there is no time are left, with the node and its claim, and the notice comes again.
func TestPodsWithoutTimeAreLeft(t *testing.T) {
	f := controllertest.RunningPods(t)
	p, ctx := f.World.Ports(fake.Fault{}), &endingContext{Context: t.Context()}
	c, claims := f.Interruption(p), len(f.World.Claims())
	c.Pods = withoutTime{p, ctx}
	errs := c.HandleTogether(ctx, stateNotice(f, interruption.Ended))
	if errs[0] == nil || slices.Contains(p.Calls(), "remove pod") || len(f.World.Claims()) != claims {
		t.Errorf("error %v, asked %v, %d of %d claims left", errs[0], p.Calls(), len(f.World.Claims()), claims)
	}
}

// Of an instance that goes down and has ended meanwhile the end alone is handled.
func TestAnEndThatIsOvertaken(t *testing.T) {
	asked := func(kinds ...interruption.Kind) []string {
		f := controllertest.RunningPods(t)
		p := f.World.Ports(fake.Fault{})
		var all []interruption.Notice
		for _, kind := range kinds {
			all = append(all, stateNotice(f, kind))
		}
		if err := errors.Join(f.Interruption(p).HandleTogether(t.Context(), all...)...); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(slices.Values(p.Calls()))
	}
	end := asked(interruption.Ended)
	if both := asked(interruption.Ending, interruption.Ended); !slices.Equal(both, end) || len(end) < 5 {
		t.Errorf("asked %v, want what the end alone asks: %v", both, end)
	}
	if alone := asked(interruption.Ending); slices.Equal(alone, end) {
		t.Errorf("an instance that goes down is handled as one that has ended: %v", alone)
	}
}

// slowWaker takes a second to wake.
type slowWaker struct {
	mu    sync.Mutex
	began []time.Time
	err   error
}

func (w *slowWaker) Wake(context.Context) error {
	w.mu.Lock()
	w.began = append(w.began, time.Now())
	w.mu.Unlock()
	time.Sleep(time.Second)
	return w.err
}

// Many wake a function with few wake-ups, of which one begins after each of them asked; an error is told to all who
// share it.
func TestWakeUpsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := &slowWaker{err: errors.New("throttled")}
		shared := notices.NewSharedWaker(slow)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				asked := time.Now()
				if err := shared.Wake(t.Context()); !errors.Is(err, slow.err) {
					t.Errorf("call %d: error %v, want %v", i, err, slow.err)
				}
				slow.mu.Lock()
				defer slow.mu.Unlock()
				if last := slow.began[len(slow.began)-1]; last.Before(asked) {
					t.Errorf("call %d: asked at %v, the last wake-up began at %v", i, asked, last)
				}
			})
		}
		all.Wait()
		if n := len(slow.began); n < 2 || n > 6 {
			t.Errorf("%d wake-ups, want one a second", n)
		}
	})
}

// An event that names more instances than any of AWS is handled for the first of them, in a few lines of log.
func TestAnEventOfTooManyInstances(t *testing.T) {
	var named []string
	for n := range 40_000 {
		named = append(named, fmt.Sprintf(`{"entityValue":"i-0f%015x","status":"PENDING"}`, n))
	}
	event := fmt.Appendf(nil, `{"id":"1","detail-type":"AWS Health Event","source":"aws.health","time":"2026-01-01T12:00:00Z","detail":{"service":"EC2",`+
		`"eventTypeCategory":"scheduledChange","statusCode":"upcoming","startTime":"Thu, 1 Jan 2026 12:10:00 GMT","affectedEntities":[%s]}}`, strings.Join(named, ","))
	f, log := controllertest.RunningPods(t), bytes.Buffer{}
	p := f.World.Ports(fake.Fault{})
	c := f.Interruption(p)
	c.Foreign, c.Log = &notices.ForeignInstances{}, slog.New(slog.NewTextHandler(&log, nil))
	if err := c.Handle(t.Context(), events.KindScheduledChange, event); err != nil || len(p.Calls()) != 1 {
		t.Errorf("error %v, asked %v; want one question", err, p.Calls())
	}
	if lines := strings.Count(log.String(), "\n"); lines != 2 || !strings.Contains(log.String(), "named=40000 handled=5000") || !strings.Contains(log.String(), "not ours\" count=5000") {
		t.Errorf("%d lines of log: %.300s", lines, log.String())
	}
}
