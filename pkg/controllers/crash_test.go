package controllers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/requirements"
	"joiner/pkg/testing/fake"
)

// faults are the four ways in which the n-th call of an invocation can fail.
func faults(n int) []fake.Fault {
	return []fake.Fault{
		{Call: n}, {Call: n, Lost: true}, {Call: n, Fatal: true}, {Call: n, Lost: true, Fatal: true},
	}
}

// eachFault runs the invocation on a fresh world with every fault it can have, and then hands the world on for the
// check.
func eachFault(t *testing.T, prepare func(t *testing.T) *functions, run func(f *functions, p *fake.Ports) error, check func(t *testing.T, f *functions)) {
	f := prepare(t)
	p := f.w.Ports(fake.Fault{})
	if err := run(f, p); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	check(t, f)
	calls := p.Calls()
	if len(calls) < 5 {
		t.Fatalf("only %d calls: %v", len(calls), calls)
	}
	// A fault may lead to more calls than there were without one.
	for n := 1; n <= len(calls)+10; n++ {
		for _, fault := range faults(n) {
			f := prepare(t)
			p := f.w.Ports(fault)
			err := run(f, p)
			calls := p.Calls()
			if n > len(calls) {
				continue
			}
			if err == nil && fault.Fatal && !harmless(calls[n-1]) {
				t.Errorf("%s (%s): the invocation says all is well", fault, calls[n-1])
			}
			check(t, f)
			if t.Failed() {
				t.Fatalf("%s (%s); calls: %v", fault, calls[n-1], calls)
			}
		}
	}
}

// harmless calls are those whose failure the invocation may pass over: their loss costs nobody a pod.
func harmless(call string) bool { return call == "write event" || call == "wait" }

// podsWaiting is a world with pods without a home in two zones.
func podsWaiting(t *testing.T) *functions {
	t.Helper()
	w := newWorld()
	w.Run("web", 3, inZone("us-west-2b", pattern(1500, 3000)))
	w.Run("db", 1, inZone("us-west-2a", pattern(1500, 3000)))
	return &functions{w: w}
}

func TestProvisionSurvivesEveryFault(t *testing.T) {
	claims := -1
	eachFault(t, podsWaiting,
		func(f *functions, p *fake.Ports) error {
			return f.provision(p).Run(context.Background(), f.once())
		},
		func(t *testing.T, f *functions) {
			f.w.Tick(2 * time.Minute) // the lease of an invocation that died runs out
			f.comeToRest(t)
			if n := len(f.w.Claims()); claims < 0 {
				claims = n
			} else if n != claims {
				t.Errorf("%d claims instead of %d", n, claims)
			}
		})
}

// TestProvisionSurvivesFaultsWhileOffersAreSoldOut has more calls between the claim and its instance.
func TestProvisionSurvivesFaultsWhileOffersAreSoldOut(t *testing.T) {
	eachFault(t,
		func(t *testing.T) *functions {
			f := podsWaiting(t)
			f.w.Refuse = cheapest(f.w)
			return f
		},
		func(f *functions, p *fake.Ports) error {
			return f.provision(p).Run(context.Background(), f.w.Now().Add(5*time.Second))
		},
		func(t *testing.T, f *functions) {
			f.w.Tick(2 * time.Minute)
			f.comeToRest(t)
		})
}

// running is a world in service.
func running(t *testing.T) *functions {
	t.Helper()
	f := podsWaiting(t)
	f.rest(t, 4)
	noProblems(t, f.w)
	return f
}

func TestLifecycleSurvivesEveryFaultOfRegistration(t *testing.T) {
	eachFault(t,
		func(t *testing.T) *functions {
			f := podsWaiting(t)
			if err := f.provision(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once()); err != nil {
				t.Fatal(err)
			}
			f.w.Tick(30 * time.Second)
			return f
		},
		func(f *functions, p *fake.Ports) error {
			return f.lifecycle(p).Run(context.Background(), f.w.Now().Add(4*time.Second))
		},
		func(t *testing.T, f *functions) {
			f.comeToRest(t)
			for _, c := range f.w.Claims() {
				if !c.Is("Initialized") {
					t.Errorf("claim %s is not initialized", c.Name)
				}
			}
		})
}

func TestLifecycleSurvivesEveryFaultOfTermination(t *testing.T) {
	for name, condemn := range map[string]func(w *fake.World){
		"claims deleted": (*fake.World).DeleteClaims, "nodes deleted": (*fake.World).DeleteNodes,
	} {
		t.Run(name, func(t *testing.T) {
			eachFault(t,
				func(t *testing.T) *functions {
					f := &functions{w: newWorld()} // one pod for each of two nodes, so that the budget matters
					f.w.ChangePool(func(p *cluster.Pool) {
						p.Requirements = p.Requirements.And(requirements.Of("node.kubernetes.io/instance-type", "c5.large", "m5.large"))
					})
					f.w.Run("web", 2, pattern(1500, 3000))
					f.comeToRest(t)
					f.w.Protect("web", 1)
					condemn(f.w)
					return f
				},
				func(f *functions, p *fake.Ports) error {
					return f.lifecycle(p).Run(context.Background(), f.w.Now().Add(12*time.Second))
				},
				func(t *testing.T, f *functions) {
					f.comeToRest(t) // the pods run on new nodes, and the budget held
					f.w.Stop("web")
					f.w.DeleteClaims()
					f.rest(t, 3)
					if left := f.w.Left(); left != "0 claims, 0 nodes, 0 instances, 0 pods" {
						t.Errorf("left are %s", left)
					}
				})
		})
	}
}

func TestInterruptionSurvivesEveryFault(t *testing.T) {
	eachFault(t,
		func(t *testing.T) *functions {
			f := running(t)
			f.w.Protect("web", 2)
			return f
		},
		func(f *functions, p *fake.Ports) error {
			return f.interruption(p).HandleNotices(context.Background(), notice(f.w))
		},
		func(t *testing.T, f *functions) {
			again := notice(f.w) // an asynchronous invocation that failed is tried again
			for _, c := range f.w.Claims() {
				if !c.Deleting.IsZero() {
					again.Instance = instanceOf(c)
				}
			}
			if err := f.interruption(f.w.Ports(fake.Fault{})).HandleNotices(context.Background(), again); err != nil {
				t.Fatal(err)
			}
			f.rest(t, 6)
			f.w.Interrupt(again.Instance)
			f.comeToRest(t)
			if len(f.w.Marks()) == 0 {
				t.Error("the offer was not marked")
			}
		})
}

// TestLeaseRunsOutWithItsHolder shows that the tests above need the lease's end: before it, nothing is created.
func TestLeaseRunsOutWithItsHolder(t *testing.T) {
	f := podsWaiting(t)
	p := f.w.Ports(fake.Fault{Call: 4, Fatal: true, Lost: true})
	if err := f.provision(p).Run(context.Background(), f.once()); err == nil {
		t.Fatal("no error")
	}
	next := f.w.Ports(fake.Fault{})
	if err := f.provision(next).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if n := len(f.w.Claims()); n != 0 {
		t.Errorf("%d claims were created without the lease, by calls %v", n, next.Calls())
	}
}

// TestLaunchOfADeletedClaimIsCollected deletes a claim whose launch's reply was lost, while EC2 does not list the
// instance yet.
func TestLaunchOfADeletedClaimIsCollected(t *testing.T) {
	one := func() *functions {
		f := &functions{w: newWorld()}
		f.w.Run("web", 1, pattern(1500, 3000))
		return f
	}
	dry := one()
	p := dry.w.Ports(fake.Fault{})
	if err := dry.provision(p).Run(context.Background(), dry.once()); err != nil {
		t.Fatal(err)
	}
	f := one()
	lost := fake.Fault{Call: slices.Index(p.Calls(), "launch") + 1, Lost: true, Fatal: true}
	if err := f.provision(f.w.Ports(lost)).Run(context.Background(), f.once()); err == nil {
		t.Fatal("no error")
	}
	f.w.Stop("web")
	f.w.DeleteClaims()
	if err := f.lifecycle(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if len(f.w.Claims()) != 0 || len(f.w.Instances()) != 1 {
		t.Fatalf("the claim was to be gone and the instance to run: %s", f.w.Left())
	}
	f.w.Tick(20 * time.Second)
	if err := f.lifecycle(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once()); err != nil {
		t.Fatal(err)
	}
	if len(f.w.Instances()) != 1 {
		t.Error("an instance of 20 seconds was called leaked")
	}
	f.rest(t, 4)
	if left := f.w.Left(); left != "0 claims, 0 nodes, 0 instances, 0 pods" {
		t.Errorf("left are %s", left)
	}
}
