package provision_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// sharing is a world in which three launches are alike and share a request, beside one that is not.
func sharing(*testing.T) *controllertest.Functions {
	w := controllertest.NewWorld()
	w.RunApp("web", 3, controllertest.InZone("us-west-2b", unshared(controllertest.PodOf(1500, 3000))))
	w.RunApp("db", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	return &controllertest.Functions{World: w, ShareFrom: 2}
}

func TestLaunchesThatAreAlikeShareARequest(t *testing.T) {
	f := sharing(t)
	p := f.World.Ports(fake.Fault{})
	if err := f.Provision(p).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if n, m := count(p.Calls(), "launch batch"), count(p.Calls(), "launch"); n != 1 || m != 1 {
		t.Errorf("%d requests for batches and %d for single claims, want one for the three alike and one for the fourth", n, m)
	}
	f.ComeToRest(t)
	if got, want := f.World.DescribeLeftovers(), "4 claims, 4 nodes, 4 instances, 4 pods"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Whatever call of a pass fails, before or after the deed, with or without the invocation: nothing is launched that no
// claim has, and nothing is launched a second time.
func TestABatchSurvivesEveryFault(t *testing.T) {
	controllertest.EachFault(t, sharing,
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Provision(p).Run(context.Background(), f.Once())
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.World.Advance(2 * time.Minute)
			f.ComeToRest(t)
			if n := len(f.World.Claims()); f.World.CountStarted() != n {
				t.Errorf("%d instances were started for %d claims", f.World.CountStarted(), n)
			}
		})
}

// What is sold out in the midst of a batch leaves some claims without an instance; they ask for something else,
// together.
func TestWhatABatchIsRefusedIsAskedForElsewhere(t *testing.T) {
	some := func(t *testing.T) *controllertest.Functions {
		f := sharing(t)
		n := 0
		f.World.Refuse = func(instancetypes.Offer) bool { n++; return n > 2 && n < 9 }
		return f
	}
	controllertest.EachFault(t, some,
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Provision(p).Run(context.Background(), f.World.Now().Add(5*time.Second))
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.World.Advance(2 * time.Minute)
			f.ComeToRest(t)
			if n := len(f.World.Claims()); f.World.CountStarted() != n {
				t.Errorf("%d instances were started for %d claims", f.World.CountStarted(), n)
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
	f.World.FailLaunch = func(launch.Order) error { return spentError{} }
	err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once())
	if _, ok := errors.AsType[spentError](err); !ok {
		t.Errorf("the pass ends with %v", err)
	}
	if len(f.World.Claims()) != 4 {
		t.Fatalf("%d claims", len(f.World.Claims()))
	}
	for _, c := range f.World.Claims() {
		if k := c.Condition("Launched"); k.Status != "Unknown" || k.Reason != "LaunchFailed" || c.Annotations["joiner.sh/launch-attempt"] != "1" {
			t.Errorf("claim %s: %+v, attempt %s", c.Name, k, c.Annotations["joiner.sh/launch-attempt"])
		}
	}
	f.World.FailLaunch = nil
	f.ComeToRest(t)
	if f.World.CountStarted() != 4 {
		t.Errorf("%d instances were started", f.World.CountStarted())
	}
}

// A claim that is deleted before its instance is known takes nobody else along: its instance ends as leaked.
func TestAClaimOfABatchThatIsDeletedMeanwhile(t *testing.T) {
	f := sharing(t)
	p := f.World.Ports(fake.Fault{})
	dies := f.World.Ports(fake.Fault{Call: callOf(t, sharing(t), "launch batch"), Lost: true, Fatal: true})
	if err := f.Provision(dies).Run(context.Background(), f.Once()); err == nil {
		t.Fatal("the invocation did not die")
	}
	for _, c := range f.World.Claims() {
		if _, shared := c.Batch(); shared {
			if err := p.DeleteClaim(context.Background(), c); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	f.World.Advance(2 * time.Minute)
	f.ComeToRest(t)
}

// callOf is the number of the first such call of an invocation.
func callOf(t *testing.T, f *controllertest.Functions, call string) int {
	t.Helper()
	p := f.World.Ports(fake.Fault{})
	if err := f.Provision(p).Run(context.Background(), f.Once()); err != nil {
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
