package kube

import (
	"testing"
	"testing/synctest"
	"time"
)

// What people write is listed once in a while by looks at the cache, by each proven look, and again after an own write.
func TestConfigurationIsNotListedByEachLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newAPIServer(1).client()
		cache := c.NewClusterCache()
		cache.Resume(t.Context())
		defer cache.Freeze()
		time.Sleep(time.Millisecond)
		lists := func(what string, want int, look func() error) {
			t.Helper()
			c.TakeTraffic()
			if err := look(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if got := c.TakeTraffic()["nodepools"].Requests; got != want {
				t.Errorf("%s: %d lists of pools, want %d", what, got, want)
			}
		}
		cached := func() error { _, err := cache.CachedSnapshot(t.Context()); return err }
		proven := func() error { _, err := cache.ReadSnapshot(t.Context()); return err }
		lists("the first look", 1, cached)
		lists("the next", 0, cached)
		lists("a proven look", 1, proven)
		lists("one after it", 0, cached)
		c.own.noteOther(poolPath())
		time.Sleep(time.Millisecond)
		lists("after an own write", 1, cached)
		c.own.noteOther(leasePath())
		lists("after a lease was renewed", 0, cached)
		cache.Invalidate()
		time.Sleep(time.Millisecond)
		lists("after Invalidate", 1, cached)
		time.Sleep(maxConfigurationAge)
		lists("some seconds later", 1, cached)
	})
}
