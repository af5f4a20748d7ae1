package controllers_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

func TestProvisionSurvivesEveryFault(t *testing.T) {
	claims := -1
	controllertest.EachFault(t, controllertest.WaitingPods,
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Provision(p).Run(context.Background(), f.Once())
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.World.Advance(2 * time.Minute) // the lease of an invocation that died runs out
			f.ComeToRest(t)
			if n := len(f.World.Claims()); claims < 0 {
				claims = n
			} else if n != claims {
				t.Errorf("%d claims instead of %d", n, claims)
			}
		})
}

// TestProvisionSurvivesFaultsWhileOfferingsAreUnavailable has more calls between the claim and its instance.
func TestProvisionSurvivesFaultsWhileOfferingsAreUnavailable(t *testing.T) {
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := controllertest.WaitingPods(t)
			f.World.Refuse = controllertest.CheapestOffering(f.World)
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Provision(p).Run(context.Background(), f.World.Now().Add(5*time.Second))
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.World.Advance(2 * time.Minute)
			f.ComeToRest(t)
		})
}

func TestLifecycleSurvivesEveryFaultOfRegistration(t *testing.T) {
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := controllertest.WaitingPods(t)
			if err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
				t.Fatal(err)
			}
			f.World.Advance(30 * time.Second)
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(4*time.Second))
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.ComeToRest(t)
			for _, c := range f.World.Claims() {
				if !c.Is("Initialized") {
					t.Errorf("claim %s is not initialized", c.Name)
				}
			}
		})
}

func TestLifecycleSurvivesEveryFaultOfTermination(t *testing.T) {
	for name, mark := range map[string]func(w *fake.World){
		"claims deleted": (*fake.World).DeleteClaims, "nodes deleted": (*fake.World).DeleteNodes,
	} {
		t.Run(name, func(t *testing.T) {
			controllertest.EachFault(t,
				func(t *testing.T) *controllertest.Functions {
					f := &controllertest.Functions{World: controllertest.NewWorld()} // one pod for each of two nodes, so that the budget matters
					f.World.ChangePool(func(p *cluster.Pool) {
						p.Requirements = p.Requirements.And(requirements.Of("node.kubernetes.io/instance-type", "c5.large", "m5.large"))
					})
					f.World.RunApp("web", 2, controllertest.PodOf(1500, 3000))
					f.ComeToRest(t)
					f.World.ProtectApp("web", 1)
					mark(f.World)
					return f
				},
				func(f *controllertest.Functions, p *fake.Ports) error {
					return f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(12*time.Second))
				},
				func(t *testing.T, f *controllertest.Functions) {
					f.ComeToRest(t) // the pods run on new nodes, and the budget held
					f.World.StopApp("web")
					f.World.DeleteClaims()
					f.Rest(t, 3)
					if left := f.World.DescribeLeftovers(); left != "0 claims, 0 nodes, 0 instances, 0 pods" {
						t.Errorf("left are %s", left)
					}
				})
		})
	}
}

func TestInterruptionSurvivesEveryFault(t *testing.T) {
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := controllertest.RunningPods(t)
			f.World.ProtectApp("web", 2)
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Interruption(p).HandleNotices(context.Background(), controllertest.SpotNotice(f.World))
		},
		func(t *testing.T, f *controllertest.Functions) {
			again := controllertest.SpotNotice(f.World) // an asynchronous invocation that failed is tried again
			for _, c := range f.World.Claims() {
				if !c.Deleting.IsZero() {
					again.Instance = c.InstanceID()
				}
			}
			if err := f.Interruption(f.World.Ports(fake.Fault{})).HandleNotices(context.Background(), again); err != nil {
				t.Fatal(err)
			}
			f.Rest(t, 6)
			f.World.InterruptInstance(again.Instance)
			f.ComeToRest(t)
			if len(f.World.MarkedOfferings()) == 0 {
				t.Error("the offering was not marked")
			}
		})
}

// TestLeaseRunsOutWithItsHolder shows that the tests above need the lease's end: before it, nothing is created.
func TestLeaseRunsOutWithItsHolder(t *testing.T) {
	f := controllertest.WaitingPods(t)
	p := f.World.Ports(fake.Fault{Call: 4, Fatal: true, Lost: true})
	if err := f.Provision(p).Run(context.Background(), f.Once()); err == nil {
		t.Fatal("no error")
	}
	next := f.World.Ports(fake.Fault{})
	if err := f.Provision(next).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if n := len(f.World.Claims()); n != 0 {
		t.Errorf("%d claims were created without the lease, by calls %v", n, next.Calls())
	}
}

// TestLaunchOfADeletedClaimIsCollected deletes a claim whose launch's reply was lost, while EC2 does not list the
// instance yet.
func TestLaunchOfADeletedClaimIsCollected(t *testing.T) {
	one := func() *controllertest.Functions {
		f := &controllertest.Functions{World: controllertest.NewWorld()}
		f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		return f
	}
	dry := one()
	p := dry.World.Ports(fake.Fault{})
	if err := dry.Provision(p).Run(context.Background(), dry.Once()); err != nil {
		t.Fatal(err)
	}
	f := one()
	lost := fake.Fault{Call: slices.Index(p.Calls(), "launch") + 1, Lost: true, Fatal: true}
	if err := f.Provision(f.World.Ports(lost)).Run(context.Background(), f.Once()); err == nil {
		t.Fatal("no error")
	}
	f.World.StopApp("web")
	f.World.DeleteClaims()
	if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if len(f.World.Claims()) != 0 || len(f.World.Instances()) != 1 {
		t.Fatalf("the claim was to be gone and the instance to run: %s", f.World.DescribeLeftovers())
	}
	f.World.Advance(20 * time.Second)
	if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if len(f.World.Instances()) != 1 {
		t.Error("an instance of 20 seconds was called leaked")
	}
	f.Rest(t, 4)
	if left := f.World.DescribeLeftovers(); left != "0 claims, 0 nodes, 0 instances, 0 pods" {
		t.Errorf("left are %s", left)
	}
}
