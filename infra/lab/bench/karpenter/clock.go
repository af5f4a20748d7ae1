package karpenter

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// jumping is a clock that stands still until somebody waits, and then is there at once.
type jumping struct {
	clock.Clock // nil: a call that is not below must be loud

	mu  sync.Mutex
	now time.Time
}

func (c *jumping) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *jumping) setTime(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *jumping) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c *jumping) After(d time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	out := make(chan time.Time, 1)
	out <- c.now
	return out
}

func (c *jumping) Sleep(d time.Duration) { <-c.After(d) }
