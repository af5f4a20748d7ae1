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

func TestALastPassIsBegunOnlyIfItFits(t *testing.T) {
	for _, c := range []struct {
		left, longest time.Duration
		fits          bool
	}{
		{-time.Second, 100 * time.Millisecond, true}, // the end is kept free of watching, not of a short look
		{-4 * time.Second, 100 * time.Millisecond, false},
		{23 * time.Second, 20 * time.Second, true},
		{10 * time.Second, 40 * time.Second, false},
	} {
		if got := fitsLastPass(c.left, c.longest); got != c.fits {
			t.Errorf("%s left, a pass takes %s: fits is %t, want %t", c.left, c.longest, got, c.fits)
		}
	}
}
