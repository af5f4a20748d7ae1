package controllers

import (
	"testing"
	"time"
)

func TestALongPassEndsTheWatchEarlier(t *testing.T) {
	for _, c := range []struct{ left, took, want time.Duration }{
		{10 * time.Second, 0, 10 * time.Second},
		{10 * time.Second, 3 * time.Second, 10 * time.Second},
		{10 * time.Second, 8 * time.Second, 2 * time.Second},
		{5 * time.Second, 8 * time.Second, -3 * time.Second},
	} {
		if got := TimeToWatch(c.left, c.took); got != c.want {
			t.Errorf("%s left after a pass of %s: %s to spare, want %s", c.left, c.took, got, c.want)
		}
	}
}
