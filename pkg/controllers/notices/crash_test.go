package notices_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

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
			controllertest.EachFault(t,
				func(t *testing.T) *controllertest.Functions {
					f := controllertest.RunningPods(t)
					n = interruption.Notice{Kind: c.kind, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
					node = controllertest.ClaimOf(f, n.Instance).NodeName
					if countPods(t, f, node) == 0 {
						t.Fatal("no pod is on the node")
					}
					f.World.StopInstance(n.Instance, c.state)
					return f
				},
				func(f *controllertest.Functions, p *fake.Ports) error {
					return f.Interruption(p).HandleNotices(context.Background(), n)
				},
				func(t *testing.T, f *controllertest.Functions) {
					controllertest.HandleNotices(t, f, n)
					if n := countPods(t, f, node); n != 0 {
						t.Errorf("%d pods are still on the node after the notice", n)
					}
					if controllertest.ClaimOf(f, n.Instance).Name != "" && c.release {
						t.Error("the claim of an instance that is gone is still there")
					}
					if slices.Contains(strings.Fields(f.World.Nodes()), node) && c.release {
						t.Error("the node of an instance that is gone is still there")
					}
					for _, k := range c.more {
						n.Kind = k
						controllertest.HandleNotices(t, f, n)
					}
					n.Kind = c.kind
					f.ComeToRest(t)
					for _, i := range f.World.Instances() {
						if i.ID == n.Instance {
							t.Errorf("instance %s is %s", i.ID, i.State)
						}
					}
				})
		})
	}
}

// countPods counts the pods of a node that are not being deleted.
func countPods(t *testing.T, f *controllertest.Functions, node string) (n int) {
	t.Helper()
	pods, err := f.World.Ports(fake.Fault{}).PodsOn(context.Background(), node)
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

func TestRunningSurvivesEveryFault(t *testing.T) {
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := controllertest.WaitingPods(t)
			if err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
				t.Fatal(err)
			}
			f.World.Advance(10 * time.Second)
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			before := len(p.Calls())
			err := f.Interruption(p).HandleNotices(context.Background(), interruption.Notice{Kind: interruption.Running, Instance: controllertest.FirstInstance(f)},
				interruption.Notice{Kind: interruption.Running, Instance: controllertest.FirstInstance(f)}, interruption.Notice{Kind: interruption.Running, Instance: controllertest.FirstInstance(f)},
				interruption.Notice{Kind: interruption.Running, Instance: controllertest.FirstInstance(f)}) // eachFault wants some calls
			if before+5 != len(p.Calls()) && err == nil {
				t.Errorf("calls %v", p.Calls())
			}
			return err
		},
		func(t *testing.T, f *controllertest.Functions) {
			if f.World.CountWakeups("lifecycle") < 1 {
				t.Error("lifecycle was not woken")
			}
			f.ComeToRest(t)
		})
}

func TestRebalanceSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *controllertest.Functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Rebalance, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
	})
}

func TestScheduledChangeSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *controllertest.Functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Scheduled, Instance: controllertest.FirstInstance(f), Time: f.World.Now(), At: f.World.Now().Add(72 * time.Hour)}
	})
}

func TestUrgentScheduledChangeSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *controllertest.Functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Scheduled, Instance: controllertest.FirstInstance(f), Time: f.World.Now(), At: f.World.Now().Add(30 * time.Minute)}
	})
}

func TestReservationInterruptionSurvivesEveryFault(t *testing.T) {
	survivesLeaving(t, func(f *controllertest.Functions) interruption.Notice {
		return interruption.Notice{Kind: interruption.Reservation, Instance: controllertest.FirstInstance(f), Time: f.World.Now(), At: f.World.Now().Add(2 * time.Minute)}
	})
}

// survivesLeaving has the notice handled with every fault, then once more, and expects another node in the instance's
// place.
func survivesLeaving(t *testing.T, about func(f *controllertest.Functions) interruption.Notice) {
	t.Helper()
	var n interruption.Notice
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := controllertest.Aged(t)
			n = about(f)
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			return f.Interruption(p).HandleNotices(context.Background(), n)
		},
		func(t *testing.T, f *controllertest.Functions) {
			controllertest.HandleNotices(t, f, n)
			f.Rest(t, 6)
			f.ComeToRest(t)
			if c := controllertest.ClaimOf(f, n.Instance); c.Name != "" {
				t.Errorf("claim %s was not left; its annotations: %v", c.Name, c.Annotations)
			}
		})
}

// TestLeavingSurvivesEveryFaultOfProvision lets the invocation fail that deletes the node's claim once its replacement
// is ready.
func TestLeavingSurvivesEveryFaultOfProvision(t *testing.T) {
	var n interruption.Notice
	controllertest.EachFault(t,
		func(t *testing.T) *controllertest.Functions {
			f := controllertest.Aged(t)
			n = interruption.Notice{Kind: interruption.Scheduled, Instance: controllertest.FirstInstance(f), At: f.World.Now().Add(72 * time.Hour)}
			controllertest.HandleNotices(t, f, n)
			ctx := context.Background()
			if err := f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once()); err != nil {
				t.Fatal(err)
			}
			f.World.Advance(30 * time.Second)
			if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(ctx, f.World.Now().Add(3*time.Second)); err != nil {
				t.Fatal(err)
			}
			if c := controllertest.ClaimOf(f, n.Instance); !c.Deleting.IsZero() {
				t.Fatal("the node was marked for deletion before its replacement was in service")
			}
			return f
		},
		func(f *controllertest.Functions, p *fake.Ports) error {
			err := f.Provision(p).Run(context.Background(), f.Once())
			if err == nil && controllertest.ClaimOf(f, n.Instance).Deleting.IsZero() {
				t.Error("the node was not marked for deletion although its replacement is in service")
			}
			return err
		},
		func(t *testing.T, f *controllertest.Functions) {
			f.World.Advance(2 * time.Minute)
			f.Rest(t, 4)
			f.ComeToRest(t)
			if c := controllertest.ClaimOf(f, n.Instance); c.Name != "" {
				t.Errorf("claim %s was not left", c.Name)
			}
		})
}
