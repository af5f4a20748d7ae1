package provision_test

import (
	"context"
	"errors"
	"testing"
	"time"

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
	p := f.Provision(w.Ports(fake.Fault{}))
	p.Fleet = &slowFleet{p.Fleet, func() {
		w.StopApp("brief")
		w.SkipTime(30 * time.Second)
	}}
	if err := p.Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if all := w.Claims(); len(all) != 1 {
		t.Errorf("%d NodeClaims, want that of web alone: %+v", len(all), all)
	}
}
