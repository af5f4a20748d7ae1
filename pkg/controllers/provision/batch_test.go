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

// What is unavailable in the midst of a batch leaves some claims without an instance; they ask for something else,
// together.
func TestWhatABatchIsRefusedIsAskedForElsewhere(t *testing.T) {
	some := func(t *testing.T) *controllertest.Functions {
		f := sharing(t)
		n := 0
		f.World.Refuse = func(instancetypes.OfferingKey) bool { n++; return n > 2 && n < 9 }
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

// spentError is an answer that its token brings for ever.
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

// The labels of claims name their instances, and their status was not written. Another claim of the batch goes: the
// rest get the instances that they name, and no others.
func TestAClaimOfABatchThatNamesItsInstanceGetsNoOther(t *testing.T) {
	for _, gone := range []bool{false, true} { // the other claim, with its instance, or about to go
		for _, refuses := range []bool{false, true} { // EC2 the offering, so that the request is another one by then
			f := sharing(t)
			named := nameWithoutStatus(t, f, gone)
			if refuses {
				f.World.Refuse = controllertest.CheapestOffering(f.World)
			}
			f.World.SkipTime(90 * time.Second)
			if err := f.Provision(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
				t.Fatal(err)
			}
			for _, c := range f.World.Claims() {
				if want, ok := named[c.Name]; ok && c.InstanceID() != want {
					t.Errorf("gone %t, refused %t: claim %s names %s and has %q", gone, refuses, c.Name, want, c.InstanceID())
				}
			}
		}
	}
}

// nameWithoutStatus launches a batch of which all claims are labelled and none has its status, and has the first one
// deleted. It returns the instances of the others, by claim.
func nameWithoutStatus(t *testing.T, f *controllertest.Functions, gone bool) map[string]string {
	t.Helper()
	denied := f.World.Ports(fake.Fault{})
	denied.Deny = func(call, _ string) error {
		if call == "write status of claim" {
			return errors.New("denied")
		}
		return nil
	}
	if err := f.Provision(denied).Run(t.Context(), f.Once()); err == nil {
		t.Fatal("no status was denied")
	}
	named, first := map[string]string{}, true
	p := f.World.Ports(fake.Fault{})
	for _, c := range f.World.Claims() {
		if _, shared := c.Batch(); !shared {
			continue
		}
		if named[c.Name] = c.Labels["joiner.sh/instance"]; !first {
			continue
		}
		first = false
		delete(named, c.Name)
		if err := p.DeleteClaim(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if gone {
			if err := p.ReleaseClaim(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(named) != 2 {
		t.Fatalf("instances of %v are named, want 2", named)
	}
	return named
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
