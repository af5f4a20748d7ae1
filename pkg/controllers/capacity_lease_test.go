package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// leaseFunc is a lease made of one function, which counts its releases.
type leaseFunc struct {
	acquire  func() (bool, error)
	released int
}

func (l *leaseFunc) Acquire(context.Context, string, string, time.Duration) (func(context.Context) error, bool, error) {
	ok, err := l.acquire()
	return func(context.Context) error { l.released++; return nil }, ok, err
}

// A pass may take longer than the lease lasts; it is renewed meanwhile, and not any more once it was given back.
func TestALongPassKeepsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, last, longest := 0, time.Now(), time.Duration(0)
		l := &leaseFunc{acquire: func() (bool, error) {
			longest, last = max(longest, time.Since(last)), time.Now()
			asked++
			return true, nil
		}}
		p := CapacityLease{Lease: l}
		busy, held, err := p.RunUnderLease(t.Context(), func(ctx context.Context) (bool, error) {
			time.Sleep(time.Minute)
			return true, ctx.Err()
		})
		if !busy || !held || err != nil || l.released != 1 {
			t.Errorf("busy %v held %v error %v, released %d times", busy, held, err, l.released)
		}
		if longest > 5*time.Second {
			t.Errorf("renewed after %s, the lease lasts 15s", longest)
		}
		after := asked
		time.Sleep(time.Minute)
		if asked != after {
			t.Error("renewed after its release")
		}
	})
}

func TestAPassEndsWhenItsLeaseIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		then func() (bool, error)
		most time.Duration // the pass may last
		says string
	}{
		"taken":       {func() (bool, error) { return false, nil }, 5 * time.Second, "another invocation has it"},
		"unreachable": {func() (bool, error) { return false, errors.New("get lease: connection refused") }, 15 * time.Second, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				l := &leaseFunc{acquire: func() (bool, error) {
					if first {
						first = false
						return true, nil
					}
					return c.then()
				}}
				p, began := CapacityLease{Lease: l}, time.Now()
				_, _, err := p.RunUnderLease(t.Context(), func(ctx context.Context) (bool, error) {
					<-ctx.Done()
					return false, ctx.Err()
				})
				if took := time.Since(began); took > c.most || err == nil || !strings.Contains(err.Error(), c.says) {
					t.Errorf("the pass ended after %s with %v", took, err)
				}
			})
		})
	}
}

// One renewal that fails is no loss yet.
func TestOneFailedRenewalIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := &leaseFunc{acquire: func() (bool, error) {
			if n++; n == 2 {
				return false, errors.New("time-out")
			}
			return true, nil
		}}
		_, _, err := CapacityLease{Lease: l}.RunUnderLease(t.Context(), func(ctx context.Context) (bool, error) {
			time.Sleep(30 * time.Second)
			return false, ctx.Err()
		})
		if err != nil {
			t.Error(err)
		}
	})
}
