package provision_test

import (
	"context"
	"errors"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// slowFleet has something happen while the first instance is launched.
type slowFleet struct {
	provision.Launcher
	meanwhile func()
}

func (f *slowFleet) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	if f.meanwhile != nil {
		f.meanwhile()
		f.meanwhile = nil
	}
	return f.Launcher.LaunchInstances(ctx, o, token)
}

// While an unfinished launch is resumed, which may take long, the cluster changes. What is decided next is about the
// cluster as it is then.
func TestPodsThatWentDuringAResumedLaunchGetNoNode(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	w.FailLaunch = func(launch.Order) error { return errors.New("InternalError") }
	if _, err := controllertest.InvokeProvision(t, w, 0); err == nil || len(w.Claims()) != 1 {
		t.Fatalf("error %v, claims %+v; want one that is not launched", err, w.Claims())
	}
	w.FailLaunch = nil
	w.RunApp("brief", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	f := controllertest.Functions{World: w}
	c := f.Provision(w.Ports(fake.Fault{}))
	c.Fleet = &slowFleet{c.Fleet, func() {
		w.StopApp("brief")
		w.SkipTime(30 * time.Second)
	}}
	if err := c.Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if all := w.Claims(); len(all) != 1 {
		t.Errorf("%d NodeClaims, want that of web alone: %+v", len(all), all)
	}
}

// Shortly before the launch time-out no launch is resumed: lifecycle gives the claim up meanwhile, and an instance would
// start for nobody. One whose instance runs already gets it.
func TestNoLaunchIsResumedShortlyBeforeItsTimeOut(t *testing.T) {
	for _, started := range []bool{false, true} {
		w := controllertest.NewWorld()
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		w.FailLaunch = func(launch.Order) error { return errors.New("InternalError") }
		if _, err := controllertest.InvokeProvision(t, w, 0); err == nil || len(w.Claims()) != 1 {
			t.Fatalf("error %v, claims %+v; want one that is not launched", err, w.Claims())
		}
		w.FailLaunch = nil
		w.SkipTime(4*time.Minute + 35*time.Second)
		if started {
			f := controllertest.Functions{World: w}
			c := w.Claims()[0]
			c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionLaunched, Status: "Unknown", Reason: "InstanceStarted"})
			if _, err := f.Provision(w.Ports(fake.Fault{})).Claims.WriteClaimStatus(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
			t.Fatal(err)
		}
		if got := w.Claims()[0].ProviderID != ""; got != started {
			t.Errorf("its instance runs already: %t; launched: %t", started, got)
		}
	}
}
