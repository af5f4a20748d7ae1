package controllers_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"joiner/pkg/model/instancetypes"
	"joiner/pkg/nodeclaim/launch"
	"joiner/pkg/testing/fake"
)

// sharing is a world in which three launches are alike and share a request, beside one that is not.
func sharing(*testing.T) *functions {
	w := newWorld()
	w.Run("web", 3, inZone("us-west-2b", unshared(pattern(1500, 3000))))
	w.Run("db", 1, inZone("us-west-2a", pattern(1500, 3000)))
	return &functions{w: w, shared: 2}
}

func TestLaunchesThatAreAlikeShareARequest(t *testing.T) {
	f := sharing(t)
	p := f.w.Ports(fake.Fault{})
	if err := f.provision(p).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if n, m := count(p.Calls(), "launch batch"), count(p.Calls(), "launch"); n != 1 || m != 1 {
		t.Errorf("%d requests for batches and %d for single claims, want one for the three alike and one for the fourth", n, m)
	}
	f.comeToRest(t)
	if got, want := f.w.Left(), "4 claims, 4 nodes, 4 instances, 4 pods"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Whatever call of a pass fails, before or after the deed, with or without the invocation: nothing is launched that no
// claim has, and nothing is launched a second time.
func TestABatchSurvivesEveryFault(t *testing.T) {
	eachFault(t, sharing,
		func(f *functions, p *fake.Ports) error {
			return f.provision(p).Run(context.Background(), f.once())
		},
		func(t *testing.T, f *functions) {
			f.w.Tick(2 * time.Minute)
			f.comeToRest(t)
			if n := len(f.w.Claims()); f.w.Started() != n {
				t.Errorf("%d instances were started for %d claims", f.w.Started(), n)
			}
		})
}

// What is sold out in the midst of a batch leaves some claims without an instance; they ask for something else,
// together.
func TestWhatABatchIsRefusedIsAskedForElsewhere(t *testing.T) {
	some := func(t *testing.T) *functions {
		f := sharing(t)
		n := 0
		f.w.Refuse = func(instancetypes.Offer) bool { n++; return n > 2 && n < 9 }
		return f
	}
	eachFault(t, some,
		func(f *functions, p *fake.Ports) error {
			return f.provision(p).Run(context.Background(), f.w.Now().Add(5*time.Second))
		},
		func(t *testing.T, f *functions) {
			f.w.Tick(2 * time.Minute)
			f.comeToRest(t)
			if n := len(f.w.Claims()); f.w.Started() != n {
				t.Errorf("%d instances were started for %d claims", f.w.Started(), n)
			}
		})
}

// spent is an answer that its token brings for ever.
type spentError struct{}

func (spentError) Error() string    { return "made up" }
func (spentError) TokenSpent() bool { return true }

// An error is said on every claim of the batch, and the next pass asks with another token.
func TestAnErrorIsSaidOnEveryClaimOfABatch(t *testing.T) {
	f := sharing(t)
	f.w.FailLaunch = func(launch.Order) error { return spentError{} }
	err := f.provision(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once())
	if _, ok := errors.AsType[spentError](err); !ok {
		t.Errorf("the pass ends with %v", err)
	}
	if len(f.w.Claims()) != 4 {
		t.Fatalf("%d claims", len(f.w.Claims()))
	}
	for _, c := range f.w.Claims() {
		if k := c.Condition("Launched"); k.Status != "Unknown" || k.Reason != "LaunchFailed" || c.Annotations["joiner.sh/launch-attempt"] != "1" {
			t.Errorf("claim %s: %+v, attempt %s", c.Name, k, c.Annotations["joiner.sh/launch-attempt"])
		}
	}
	f.w.FailLaunch = nil
	f.comeToRest(t)
	if f.w.Started() != 4 {
		t.Errorf("%d instances were started", f.w.Started())
	}
}

// A claim that is deleted before its instance is known takes nobody else along: its instance ends as leaked.
func TestAClaimOfABatchThatIsDeletedMeanwhile(t *testing.T) {
	f := sharing(t)
	p := f.w.Ports(fake.Fault{})
	dies := f.w.Ports(fake.Fault{Call: callOf(t, sharing(t), "launch batch"), Lost: true, Fatal: true})
	if err := f.provision(dies).Run(context.Background(), f.once()); err == nil {
		t.Fatal("the invocation did not die")
	}
	for _, c := range f.w.Claims() {
		if _, shared := c.Batch(); shared {
			if err := p.DeleteClaim(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	f.w.Tick(2 * time.Minute)
	f.comeToRest(t)
}

// callOf is the number of the first such call of an invocation.
func callOf(t *testing.T, f *functions, call string) int {
	t.Helper()
	p := f.w.Ports(fake.Fault{})
	if err := f.provision(p).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	for i, c := range p.Calls() {
		if c == call {
			return i + 1
		}
	}
	t.Fatalf("no call %q in %v", call, p.Calls())
	return 0
}
