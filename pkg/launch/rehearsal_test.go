package launch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner/pkg/bootstrap"
	"joiner/pkg/launch"
)

func TestRehearsal(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"p5.48xlarge od=0.01 gpu=8", "m5.xlarge od=0.192 spot=0.05", "m5.large od=0.096 spot=0.03", "c5.large od=0.085"} {
		w.addType(t, line)
	}
	rehearse := func() (launch.Order, bool, error) {
		if _, err := w.choose(t); err != nil { // resolves the types
			t.Fatal(err)
		}
		in := w.in
		in.Types, in.Resolved.Ready = w.types, false // which is yet to be decided
		return launch.Rehearsal(in)
	}
	got := func(o launch.Order) []string {
		out := []string{o.CapacityType + " " + o.Strategy}
		for _, v := range o.Templates[0].Overrides {
			out = append(out, v.Type+" "+v.Zone+" "+v.SubnetID)
		}
		return out
	}
	o, found, err := rehearse()
	if err != nil || !found {
		t.Fatal(found, err)
	}
	want := []string{"on-demand lowest-price", "c5.large a subnet-a1", "c5.large a subnet-a2", "c5.large b subnet-b"}
	if d := cmp.Diff(want, got(o)); d != "" || len(o.Templates) != 1 || o.Templates[0].Name == "" || len(o.InstanceTags) != len(o.Tags)+2 {
		t.Errorf("order %v (-want +got):\n%s", o, d)
	}
	w.in.Claim.Requirements = w.in.Claim.Requirements.And(demand(t, []string{"node.kubernetes.io/instance-type", "In", "m5.xlarge", "p5.48xlarge"}))
	if o, _, err = rehearse(); err != nil || got(o)[1] != "m5.xlarge a subnet-a1" {
		t.Errorf("what the pool allows: %v, error %v", got(o), err)
	}
	w.class(t, `{spec: {userData: "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx"}}`)
	in := w.in
	in.Types = w.types
	_, _, err = launch.Rehearsal(in)
	if bad, ok := errors.AsType[*bootstrap.Error](err); !ok || bad.Reason != "UserDataMalformed" || !strings.Contains(bad.Message, "boundary") {
		t.Errorf("user data that is none: %v", err)
	}
	in.Types = nil
	if _, found, err := launch.Rehearsal(in); found || err != nil {
		t.Errorf("without types: found %t, error %v", found, err)
	}
}
