package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// missed is what the metric of the lines says; -1 where there is none.
func missed(l *controllertest.MetricLines) int {
	for _, line := range l.All {
		if _, after, ok := strings.Cut(line, `"joiner_push_missed_total":`); ok {
			return int(after[0] - '0')
		}
	}
	return -1
}

// TestWhatPushMissed: pods and deletions that wait since the invocation before, and longer than an announcement takes.
func TestWhatPushMissed(t *testing.T) {
	began := controllertest.Noon()
	for _, c := range []struct {
		name                 string
		since                time.Time
		waits                time.Duration
		provision, lifecycle int
	}{
		{"nothing is counted without push", time.Time{}, 30 * time.Second, -1, -1},
		{"nobody came for thirty seconds", began, 30 * time.Second, 2, 1},
		{"the announcement may be on its way", began, 2 * time.Second, 0, 0},
		{"an invocation after that saw it", began.Add(time.Second), 30 * time.Second, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := controllertest.NewWorld()
			f := &controllertest.Functions{World: w}
			w.RunApp("web", 2, controllertest.PodOf(900, 512))
			w.RunApp("giant", 1, controllertest.PodOf(900_000, 512)) // waits with a reason, announced or not
			w.Advance(c.waits)
			got := &controllertest.MetricLines{}
			controller := f.Provision(w.Ports(fake.Fault{}))
			controller.Metrics, controller.Hints.Since = got, c.since
			if err := controller.Run(t.Context(), f.World.Now().Add(5*time.Second)); err != nil { // only the first pass counts
				t.Fatal(err)
			}
			if n := missed(got); n != c.provision {
				t.Errorf("provision counted %d, want %d", n, c.provision)
			}

			f.Rest(t, 6)
			deleted := w.Now()
			w.DeleteClaims()
			w.Advance(c.waits)
			got = &controllertest.MetricLines{}
			l := f.Lifecycle(w.Ports(fake.Fault{}))
			l.Metrics = got
			if !c.since.IsZero() {
				l.Hints.Since = deleted.Add(c.since.Sub(began))
			}
			if err := l.Run(t.Context(), f.World.Now().Add(5*time.Second)); err != nil {
				t.Fatal(err)
			}
			if n := missed(got); n != c.lifecycle {
				t.Errorf("lifecycle counted %d, want %d", n, c.lifecycle)
			}
		})
	}
}

// TestAnAnnouncementIsWaitedFor: a webhook is called before what it announces is stored.
func TestAnAnnouncementIsWaitedFor(t *testing.T) {
	w := controllertest.NewWorld()
	f := &controllertest.Functions{World: w}
	late := &latecomer{Ports: w.Ports(fake.Fault{}), come: func() { w.RunApp("web", 1, controllertest.PodOf(900, 512)) }}
	c := f.Provision(late.Ports)
	c.Read = late
	if err := c.Run(t.Context(), w.Now().Add(50*time.Second)); err != nil {
		t.Fatal(err)
	}
	if late.waits != 0 {
		t.Error("an invocation that nothing was announced to stayed without work")
	}
	c = f.Provision(late.Ports)
	c.Read, c.Hints = late, controllers.PushHints{Until: w.Now().Add(2 * time.Second)}
	if err := c.Run(t.Context(), w.Now().Add(50*time.Second)); err != nil {
		t.Fatal(err)
	}
	if late.waits == 0 || len(w.Instances()) != 1 {
		t.Errorf("waited %d times and launched %d instances, want one for the pod that came", late.waits, len(w.Instances()))
	}
	w.DeleteClaims()
	f.Rest(t, 6)
	began, l := w.Now(), f.Lifecycle(w.Ports(fake.Fault{}))
	l.Hints.Until = began.Add(2 * time.Second)
	if err := l.Run(t.Context(), began.Add(50*time.Second)); err != nil {
		t.Fatal(err)
	}
	if stayed := w.Now().Sub(began); stayed < 2*time.Second || stayed > 3*time.Second {
		t.Errorf("lifecycle stayed %s for an announcement, want about two seconds", stayed)
	}
}

// latecomer has something happen while it waits for the first time.
type latecomer struct {
	*fake.Ports
	come  func()
	waits int
}

func (l *latecomer) Wait(ctx context.Context) error {
	if l.waits++; l.waits == 1 {
		l.come()
	}
	return l.Ports.Wait(ctx)
}
