package controllers_test

import (
	"context"
	api "joiner/pkg/api/v1"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/testing/fake"
)

// first is the instance that web's notices are about.
func first(f *functions) string { return f.w.Instances()[0].ID }

// again delivers the notices once more, as Lambda does after an error, and fails on an error of its own.
func again(t *testing.T, f *functions, notices ...interruption.Notice) {
	t.Helper()
	if err := f.interruption(f.w.Ports(fake.Fault{})).HandleNotices(context.Background(), notices...); err != nil {
		t.Fatal(err)
	}
}

// TestStateChangesSurviveEveryFault: an instance goes behind our back, in every way and order that EC2 has.
func TestStateChangesSurviveEveryFault(t *testing.T) {
	for name, c := range map[string]struct {
		state   string
		kind    interruption.Kind
		more    []interruption.Kind // that come later
		release bool                // nothing is left of it after the notice
	}{
		"stopping":              {state: "stopping", kind: interruption.Stopping, more: []interruption.Kind{interruption.Stopped}},
		"stopped":               {state: "stopped", kind: interruption.Stopped, more: []interruption.Kind{interruption.Stopping}},
		"shutting-down":         {state: "shutting-down", kind: interruption.Ending, more: []interruption.Kind{interruption.Ended, interruption.Ending}},
		"terminated":            {state: "terminated", kind: interruption.Ended, more: []interruption.Kind{interruption.Ending}, release: true},
		"running after the end": {state: "terminated", kind: interruption.Ended, more: []interruption.Kind{interruption.Running}, release: true},
	} {
		t.Run(name, func(t *testing.T) {
			var n interruption.Notice
			var node string
			eachFault(t,
				func(t *testing.T) *functions {
					f := running(t)
					n = interruption.Notice{Kind: c.kind, Instance: first(f), Time: f.w.Now()}
					node = claimOf(f, n.Instance).NodeName
					if f.podsOn(t, node) == 0 {
						t.Fatal("no pod is on the node")
					}
					f.w.StopInstance(n.Instance, c.state)
					return f
				},
				func(f *functions, p *fake.Ports) error {
					return f.interruption(p).HandleNotices(context.Background(), n)
				},
				func(t *testing.T, f *functions) {
					again(t, f, n)
					if n := f.podsOn(t, node); n != 0 {
						t.Errorf("%d pods are still on the node after the notice", n)
					}
					if claimOf(f, n.Instance).Name != "" && c.release {
						t.Error("the claim of an instance that is gone is still there")
					}
					if slices.Contains(strings.Fields(f.w.Nodes()), node) && c.release {
						t.Error("the node of an instance that is gone is still there")
					}
					for _, k := range c.more {
						n.Kind = k
						again(t, f, n)
					}
					n.Kind = c.kind
					f.comeToRest(t)
					for _, i := range f.w.Instances() {
						if i.ID == n.Instance {
							t.Errorf("instance %s is %s", i.ID, i.State)
						}
					}
				})
		})
	}
}

// podsOn counts the pods of a node that are not being deleted.
func (f *functions) podsOn(t *testing.T, node string) (n int) {
	t.Helper()
	pods, err := f.w.Ports(fake.Fault{}).PodsOn(context.Background(), node)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if !p.Terminating() {
			n++
		}
	}
	return n
}

// claimOf is the claim of an instance, without a name if there is none.
func claimOf(f *functions, instance string) cluster.Claim {
	for _, c := range f.w.Claims() {
		if c.ProviderID != "" && instanceOf(c) == instance {
			return c
		}
	}
	return cluster.Claim{}
}

func TestRunningSurvivesEveryFault(t *testing.T) {
	eachFault(t,
		func(t *testing.T) *functions {
			f := podsWaiting(t)
			if err := f.provision(f.w.Ports(fake.Fault{})).Run(context.Background(), f.once()); err != nil {
				t.Fatal(err)
			}
			f.w.Tick(10 * time.Second)
			return f
		},
		func(f *functions, p *fake.Ports) error {
			before := len(p.Calls())
			err := f.interruption(p).HandleNotices(context.Background(), interruption.Notice{Kind: interruption.Running, Instance: first(f)},
				interruption.Notice{Kind: interruption.Running, Instance: first(f)}, interruption.Notice{Kind: interruption.Running, Instance: first(f)},
				interruption.Notice{Kind: interruption.Running, Instance: first(f)}) // eachFault wants some calls
			if before+5 != len(p.Calls()) && err == nil {
				t.Errorf("calls %v", p.Calls())
			}
			return err
		},
		func(t *testing.T, f *functions) {
			if f.w.Woken("lifecycle") < 1 {
				t.Error("lifecycle was not woken")
			}
			f.comeToRest(t)
		})
}

// aged is a world in service whose nodes are old enough to be left, and whose pool replaces on recommendations.
func aged(t *testing.T) *functions {
	t.Helper()
	f := running(t)
	f.w.Quota = 5
	f.w.AnnotatePool(api.AnnotationRebalance, "replace")
	f.w.Protect("web", 2)
	f.w.Skip(16 * time.Minute)
	return f
}

func TestRebalanceSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Rebalance, Instance: first(f), Time: f.w.Now()}
	})
}

func TestScheduledChangeSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Scheduled, Instance: first(f), Time: f.w.Now(), At: f.w.Now().Add(72 * time.Hour)}
	})
}

func TestUrgentScheduledChangeSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Scheduled, Instance: first(f), Time: f.w.Now(), At: f.w.Now().Add(30 * time.Minute)}
	})
}

func TestReservationInterruptionSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Reservation, Instance: first(f), Time: f.w.Now(), At: f.w.Now().Add(2 * time.Minute)}
	})
}

// survivesLeaving has the notice handled with every fault, then once more, and expects another node in the instance's
// place.
func survivesLeaving(t *testing.T, about func(f *functions) interruption.Notice) {
	t.Helper()
	var n interruption.Notice
	eachFault(t,
		func(t *testing.T) *functions {
			f := aged(t)
			n = about(f)
			return f
		},
		func(f *functions, p *fake.Ports) error {
			return f.interruption(p).HandleNotices(context.Background(), n)
		},
		func(t *testing.T, f *functions) {
			again(t, f, n)
			f.rest(t, 6)
			f.comeToRest(t)
			if c := claimOf(f, n.Instance); c.Name != "" {
				t.Errorf("claim %s was not left; its annotations: %v", c.Name, c.Annotations)
			}
		})
}

// TestLeavingSurvivesEveryFaultOfProvision lets the invocation fail that condemns the node once its replacement is
// ready.
func TestLeavingSurvivesEveryFaultOfProvision(t *testing.T) {
	var n interruption.Notice
	eachFault(t,
		func(t *testing.T) *functions {
			f := aged(t)
			n = interruption.Notice{Kind: interruption.Scheduled, Instance: first(f), At: f.w.Now().Add(72 * time.Hour)}
			again(t, f, n)
			ctx := context.Background()
			if err := f.provision(f.w.Ports(fake.Fault{})).Run(ctx, f.once()); err != nil {
				t.Fatal(err)
			}
			f.w.Tick(30 * time.Second)
			if err := f.lifecycle(f.w.Ports(fake.Fault{})).Run(ctx, f.w.Now().Add(3*time.Second)); err != nil {
				t.Fatal(err)
			}
			if c := claimOf(f, n.Instance); !c.Deleting.IsZero() {
				t.Fatal("the node was condemned before its replacement was in service")
			}
			return f
		},
		func(f *functions, p *fake.Ports) error {
			err := f.provision(p).Run(context.Background(), f.once())
			if err == nil && claimOf(f, n.Instance).Deleting.IsZero() {
				t.Error("the node was not condemned although its replacement is in service")
			}
			return err
		},
		func(t *testing.T, f *functions) {
			f.w.Tick(2 * time.Minute)
			f.rest(t, 4)
			f.comeToRest(t)
			if c := claimOf(f, n.Instance); c.Name != "" {
				t.Errorf("claim %s was not left", c.Name)
			}
		})
}
