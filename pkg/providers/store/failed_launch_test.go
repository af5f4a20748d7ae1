package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/providers/store"
)

func note(t *testing.T, l *store.UnavailableOfferings, class, instance string) {
	t.Helper()
	if err := l.NoteFailedLaunch(t.Context(), class, instance, "Client.InternalError: Client error on launch"); err != nil {
		t.Fatal(err)
	}
}

// TestAClassWhoseInstancesEndRests from the second one on, longer each time, so that launches in an hour are bounded
// however many pods wait.
func TestAClassWhoseInstancesEndRests(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	began, launches, got := clock.now(), 0, []string{}
	for clock.now().Sub(began) < 3*time.Hour {
		clock.pass(time.Minute) // to launch it, and for EC2 to end it
		launches++
		note(t, l, "default", fmt.Sprintf("i-%d", launches))
		for _, u := range unavailable(t, l) {
			if u.Scope != instancetypes.ClassScope("default") || u.Type != "" {
				t.Errorf("mark %+v", u)
			}
			rest := u.Until.Sub(clock.now())
			got = append(got, rest.String())
			clock.pass(rest)
		}
		if clock.now().Sub(began) < time.Hour && launches > 6 {
			t.Fatalf("%d launches in the first hour", launches)
		}
	}
	want := []string{"5m0s", "10m0s", "20m0s", "30m0s", "30m0s", "30m0s", "30m0s", "30m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("it rests (-want +got):\n%s", diff)
	}
}

// TestOneFailedLaunchIsNoPattern: nor is the same one told twice, one of another class, or one of long ago.
func TestOneFailedLaunchIsNoPattern(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	note(t, l, "default", "i-1")
	note(t, l, "default", "i-1")
	note(t, l, "gpu", "i-2")
	add(t, l, offering("spot", "m5.large", "us-west-2a")) // another writer keeps what there is
	clock.pass(59 * time.Minute)
	if got := unavailable(t, l); len(got) != 0 {
		t.Errorf("marks %v, want none", got)
	}
	clock.pass(time.Minute)
	note(t, l, "default", "i-3")
	if got := unavailable(t, l); len(got) != 0 {
		t.Errorf("an hour later: marks %v, want none", got)
	}
	clock.pass(time.Minute)
	note(t, l, "default", "i-4")
	note(t, l, "default", "i-5") // of the same pass
	if got := unavailable(t, l); len(got) != 1 || got[0].Until.Sub(clock.now()) != 5*time.Minute {
		t.Errorf("two within an hour: %v, want five minutes", got)
	}
}

// TestARefusalForAClassRestsTheSameEachTime, as somebody may mend its cause at any time, and is none of the instances
// of the class that ended early.
func TestARefusalForAClassRestsTheSameEachTime(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	u := offering("spot", "m5.large", "us-west-2a")
	u.Scope = instancetypes.ClassScope("default")
	var got []string
	for range 3 {
		add(t, l, u)
		rest := unavailable(t, l)[0].Until.Sub(clock.now())
		got = append(got, rest.String())
		clock.pass(rest + 10*time.Second)
	}
	if d := cmp.Diff([]string{"3m0s", "3m0s", "3m0s"}, got); d != "" {
		t.Errorf("rests (-want +got):\n%s", d)
	}
	add(t, l, u)
	note(t, l, "default", "i-1")
	if all := unavailable(t, l); len(all) != 1 || all[0].Type != "m5.large" {
		t.Errorf("after one instance that ended early: %v", all)
	}
}
