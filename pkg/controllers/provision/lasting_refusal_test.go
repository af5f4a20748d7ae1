package provision_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// refusal is EC2's no to a whole request.
type refusal struct{ code string }

func (e refusal) Error() string { return e.code + ": no" }
func (e refusal) Refused() bool { return e.code != "RequestLimitExceeded" }

// passesUntil makes passes of provision and lifecycle, 20 seconds apart, until instances run or so much time is over,
// and says how long that took.
func passesUntil(t *testing.T, f *controllertest.Functions, instances int, most time.Duration) time.Duration {
	t.Helper()
	began := f.World.Now()
	for f.World.Now().Sub(began) < most && len(f.World.Instances()) < instances {
		if err := f.Provision(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			if _, ok := errors.AsType[refusal](err); !ok {
				t.Fatal(err)
			}
		}
		if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		f.World.SkipTime(20 * time.Second)
	}
	return f.World.Now().Sub(began)
}

// A request that EC2 refuses as a whole, such as every one for spot, is given up after half of the launch time-out:
// other offerings of the claim are asked for.
func TestALastingRefusalLeadsToOtherOfferings(t *testing.T) {
	for name, f := range map[string]*controllertest.Functions{
		"single": {World: controllertest.NewWorld()}, "batch": {World: controllertest.NewWorld(), ShareFrom: 2},
	} {
		f.World.RunApp("web", 3, unshared(controllertest.PodOf(1500, 3000)))
		f.World.FailLaunch = func(o launch.Order) error {
			if o.CapacityType == instancetypes.Spot {
				return refusal{"UnauthorizedOperation"}
			}
			return nil
		}
		took := passesUntil(t, f, 3, 10*time.Minute)
		if took < 150*time.Second || took > 200*time.Second {
			t.Errorf("%s: %d instances after %s, want three after half of five minutes", name, len(f.World.Instances()), took)
		}
		marks, err := f.World.Ports(fake.Fault{}).ListUnavailable(t.Context())
		if err != nil || len(marks) == 0 {
			t.Fatalf("%s: marks %v, error %v", name, marks, err)
		}
		for _, u := range marks {
			if u.CapacityType != instancetypes.Spot || u.Scope != "ec2nodeclass/default" ||
				u.Why != "Unauthorized: no policy allows the call" {
				t.Errorf("%s: mark %+v", name, u)
			}
		}
	}
}

// A claim of which everything is refused is given up, its pods learn why, and nothing is asked for while the marks
// hold. Once the cause is mended the pods have their node soon.
func TestAClaimOfWhichEverythingIsRefused(t *testing.T) {
	w := controllertest.NewWorld()
	f := &controllertest.Functions{World: w}
	spot := controllertest.PodOf(1500, 3000)
	spot.NodeSelector = map[string]string{"karpenter.sh/capacity-type": "spot"}
	w.RunApp("web", 1, spot)
	asked, refused := 0, true
	w.FailLaunch = func(launch.Order) error {
		if asked++; refused {
			return refusal{"InvalidParameterValue"}
		}
		return nil
	}
	passesUntil(t, f, 1, 4*time.Minute)
	before := asked
	passesUntil(t, f, 1, time.Minute)
	if n := len(w.Claims()); n != 0 || asked != before {
		t.Errorf("%d claims and %d further requests after four minutes", n, asked-before)
	}
	const want = "EC2 refuses it; it is left alone until"
	if !slices.ContainsFunc(w.Events("Pod"), func(e string) bool {
		return strings.Contains(e, want) && strings.Contains(e, "LaunchFailed: InvalidParameterValue: no")
	}) {
		t.Errorf("no pod says %q: %q", want, w.Events("Pod"))
	}
	refused = false
	if took := passesUntil(t, f, 1, 10*time.Minute); took > 2*time.Minute {
		t.Errorf("%d instances %s after the cause was mended", len(w.Instances()), took)
	}
}

// A throttle is no answer about offerings, however long it lasts; and a refusal that came just now may pass.
func TestWhatPassesMarksNothing(t *testing.T) {
	for code, lasts := range map[string]time.Duration{"RequestLimitExceeded": 4 * time.Minute, "InvalidParameterValue": 2 * time.Minute} {
		f := &controllertest.Functions{World: controllertest.NewWorld()}
		f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		f.World.FailLaunch = func(launch.Order) error { return refusal{code} }
		passesUntil(t, f, 1, lasts)
		if marks, err := f.World.Ports(fake.Fault{}).ListUnavailable(t.Context()); err != nil || len(marks) > 0 {
			t.Errorf("%s for %s: %d marks, error %v", code, lasts, len(marks), err)
		}
	}
}
