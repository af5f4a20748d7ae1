package kube_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
)

func TestEventsAreToldOnce(t *testing.T) {
	c := newEnv(t)
	now := time.Now().Truncate(time.Second)
	clock := func(k *kube.Config) { k.Now = func() time.Time { return now } }
	first, r := c.clientWith(t, clock)
	second, _ := c.clientWith(t, clock)
	e := cluster.Event{Kind: "Pod", Namespace: c.name, Name: "web", UID: "u1", Warning: true, Reason: "FailedScheduling", Message: "no zone"}
	tell := func(k *kube.Client) {
		t.Helper()
		if err := k.RecordEvent(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	tell(first)
	r.take()
	tell(first)
	if got := r.take(); len(got) != 0 {
		t.Errorf("telling the same at once cost %v, want nothing", got)
	}
	tell(second)
	if diff := cmp.Diff([]string{"Warning FailedScheduling x1: no zone"}, c.events(t, c.name, "web")); diff != "" {
		t.Errorf("told by two within two minutes (-want +got):\n%s", diff)
	}
	now = now.Add(2 * time.Minute)
	tell(second)
	tell(first)
	if diff := cmp.Diff([]string{"Warning FailedScheduling x2: no zone"}, c.events(t, c.name, "web")); diff != "" {
		t.Errorf("told by two after two minutes (-want +got):\n%s", diff)
	}
	e.Message = "no type"
	tell(first)
	if got := c.events(t, c.name, "web"); len(got) != 2 {
		t.Errorf("another message: %v, want an event of its own", got)
	}
	e = cluster.Event{Kind: "Node", Name: c.name, Reason: "Registered", Message: "hello"}
	tell(first)
	if diff := cmp.Diff([]string{"Normal Registered x1: hello"}, c.events(t, "default", c.name)); diff != "" {
		t.Errorf("of a node (-want +got):\n%s", diff)
	}
}

// Of many who want the lease at once exactly one gets it, whether it is new, expired or given back.
func TestLeaseHasOneHolder(t *testing.T) {
	c := newEnv(t)
	now := time.Now()
	k, _ := c.clientWith(t, func(k *kube.Config) { k.Now = func() time.Time { return now } })
	t.Cleanup(func() {
		_ = c.CoordinationV1().Leases(kube.Namespace).Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
	release := func(context.Context) error { return errors.New("nobody has it") }
	race := func(when string) string {
		t.Helper()
		var winners atomic.Int32
		var holder string
		g := errgroup.Group{}
		for i := range 8 {
			g.Go(func() error {
				me := fmt.Sprintf("%s-%d", when, i)
				give, ok, err := k.Acquire(t.Context(), c.name, me, time.Minute)
				if ok {
					winners.Add(1)
					holder, release = me, give
				}
				return err
			})
		}
		if err := g.Wait(); err != nil || winners.Load() != 1 {
			t.Fatalf("%s: %d holders, error %v; want one", when, winners.Load(), err)
		}
		return holder
	}
	first := race("new")
	now = now.Add(59 * time.Second)
	if _, ok, err := k.Acquire(t.Context(), c.name, "late", time.Minute); ok || err != nil {
		t.Errorf("one second before the end: %t %v, want the lease to be taken", ok, err)
	}
	if _, ok, err := k.Acquire(t.Context(), c.name, first, time.Minute); !ok || err != nil {
		t.Errorf("the holder itself: %t %v, want a renewal", ok, err)
	}
	stale := release
	now = now.Add(59 * time.Second)
	if _, ok, _ := k.Acquire(t.Context(), c.name, "late", time.Minute); ok {
		t.Error("the renewal did not count")
	}
	now = now.Add(time.Second)
	race("expired")
	if err := stale(t.Context()); err != nil {
		t.Errorf("release of a lease that was lost: %v", err)
	}
	if _, ok, _ := k.Acquire(t.Context(), c.name, "late", time.Minute); ok {
		t.Error("whoever lost the lease gave away another's")
	}
	for range 2 {
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	race("given back")
}

func TestDataHasOneWriterAtATime(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	t.Cleanup(func() {
		_ = c.CoreV1().ConfigMaps(kube.Namespace).Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
	data, version, err := k.ReadData(t.Context(), c.name)
	if data != nil || version != "" || err != nil {
		t.Fatalf("data that does not exist: %v %q %v", data, version, err)
	}
	if err := k.WriteData(t.Context(), c.name, map[string]string{"a": "1", "b": "2"}, version); err != nil {
		t.Fatal(err)
	}
	err = k.WriteData(t.Context(), c.name, map[string]string{"a": "2"}, version)
	if !isConflict(err) {
		t.Errorf("making it twice: %v, want a ConflictError", err)
	}
	_, version, err = k.ReadData(t.Context(), c.name)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.WriteData(t.Context(), c.name, map[string]string{"c": "3"}, version); err != nil {
		t.Fatal(err)
	}
	err = k.WriteData(t.Context(), c.name, map[string]string{"d": "4"}, version)
	if !isConflict(err) {
		t.Errorf("writing over another: %v, want a ConflictError", err)
	}
	data, _, err = k.ReadData(t.Context(), c.name)
	if diff := cmp.Diff(map[string]string{"c": "3"}, data); diff != "" || err != nil {
		t.Errorf("data %v (-want +got):\n%s", err, diff)
	}
}

// forgetUnavailable removes the marks that the test is about to make when it is over.
func (c env) forgetUnavailable(t *testing.T) {
	t.Cleanup(func() {
		_ = c.CoreV1().ConfigMaps(kube.Namespace).Delete(context.Background(), "joiner-sold-out", metav1.DeleteOptions{})
	})
}

func TestLedgersShareTheCluster(t *testing.T) {
	c := newEnv(t)
	c.forgetUnavailable(t)
	g := errgroup.Group{}
	for i := range 4 {
		k, _ := c.client(t)
		l := store.NewUnavailableOfferings(k, time.Now)
		g.Go(func() error {
			return l.MarkUnavailable(t.Context(), []instancetypes.UnavailableOffering{{OfferingKey: instancetypes.OfferingKey{CapacityType: "spot", Type: fmt.Sprintf("m%d.large", i), Zone: "us-west-2a"}}}, time.Minute)
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	k, _ := c.client(t)
	marks, err := store.NewUnavailableOfferings(k, time.Now).ListUnavailable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range marks {
		got = append(got, m.OfferingKey.String())
	}
	want := []string{"spot m0.large in us-west-2a", "spot m1.large in us-west-2a", "spot m2.large in us-west-2a", "spot m3.large in us-west-2a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("marks of four writers at once (-want +got):\n%s", diff)
	}
}
