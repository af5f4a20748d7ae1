package provision_test

import (
	"context"
	"errors"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

var errPlanted = errors.New("planted: time-out")

// unreadableClass is a reader that cannot read EC2NodeClasses.
type unreadableClass struct{ *fake.Ports }

func (unreadableClass) ReadClass(context.Context, string) (*awsv1.EC2NodeClass, error) {
	return nil, errPlanted
}

// unwritableMarks are marks that cannot be stored.
type unwritableMarks struct{ *fake.Ports }

func (unwritableMarks) MarkUnavailable(context.Context, []instancetypes.UnavailableOffering, time.Duration) error {
	return errPlanted
}

// A launch ends with the first of its steps that fails: its claim stays, EC2 is not asked again with the same token or
// for offerings whose refusal is stored nowhere, and a later pass goes on, with one instance in the end.
func TestALaunchEndsWithItsFirstFailure(t *testing.T) {
	all := func(instancetypes.OfferingKey) bool { return true }
	first := func() func(instancetypes.OfferingKey) bool {
		asked := 0
		return func(instancetypes.OfferingKey) bool { asked++; return asked == 1 }
	}
	for name, c := range map[string]struct {
		refuse   func(instancetypes.OfferingKey) bool
		fail     func(*provision.Controller, *fake.Ports)
		launches int
	}{
		"the class cannot be read":                                {nil, func(c *provision.Controller, p *fake.Ports) { c.Read = unreadableClass{p} }, 0},
		"what is unavailable cannot be marked":                    {all, func(c *provision.Controller, p *fake.Ports) { c.Unavailable = unwritableMarks{p} }, 1},
		"what is unavailable beside an instance cannot be marked": {first(), func(c *provision.Controller, p *fake.Ports) { c.Unavailable = unwritableMarks{p} }, 1},
		"the next token cannot be noted": {all, func(_ *provision.Controller, p *fake.Ports) {
			p.Deny = func(call, _ string) error {
				if call == "annotate claim" {
					return errPlanted
				}
				return nil
			}
		}, 1},
	} {
		w := controllertest.NewWorld()
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		w.Refuse = c.refuse
		f := &controllertest.Functions{World: w}
		p := w.Ports(fake.Fault{})
		run := f.Provision(p)
		c.fail(run, p)
		err := run.Run(t.Context(), f.Once())
		if n := count(p.Calls(), "launch"); !errors.Is(err, errPlanted) || n != c.launches || len(w.Claims()) != 1 {
			t.Errorf("%s: %d launches, want %d; %d claims, want one; error %v", name, n, c.launches, len(w.Claims()), err)
		}
		w.Refuse = nil
		f.Rest(t, 4)
		if n := len(w.Instances()); n != 1 {
			t.Errorf("%s: %d instances in the end", name, n)
		}
		controllertest.NoProblems(t, w)
	}
}
