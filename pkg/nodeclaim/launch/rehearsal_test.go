package launch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/bootstrap"
	"joiner.sh/pkg/nodeclaim/launch"
)

func TestRehearsal(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"p5.48xlarge od=0.01 gpu=8", "m5.xlarge od=0.192 spot=0.05", "m5.large od=0.096 spot=0.03", "c5.large od=0.085"} {
		w.addType(t, line)
	}
	first := func(in launch.Input) (launch.Order, bool, error) {
		all, err := launch.DryRunOrders(in, []cluster.Claim{in.Claim})
		if len(all) == 0 {
			return launch.Order{}, false, err
		}
		return all[0], true, err
	}
	rehearse := func() (launch.Order, bool, error) {
		if _, err := w.choose(t); err != nil { // resolves the types
			t.Fatal(err)
		}
		in := w.in
		in.Types, in.Resolved.Ready = w.types, false // which is yet to be decided
		return first(in)
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
	slices.Reverse(w.in.Class.Status.Subnets)
	if again, _, err := rehearse(); err != nil || !slices.Equal(got(again), want) {
		t.Errorf("with the class's subnets in another order: %v, error %v", got(again), err)
	}
	cheapest := o.Templates[0].Overrides[0]
	if o.ClaimName != w.in.Claim.Name || o.ClaimUID != w.in.Claim.UID || o.Templates[0].ImageID != "ami-1" || cheapest.ImageID != "ami-1" || cheapest.Price != 0.085 {
		t.Errorf("order for %s (%s) with image %s, first override %+v", o.ClaimName, o.ClaimUID, o.Templates[0].ImageID, cheapest)
	}
	w.in.Claim.Requirements = w.in.Claim.Requirements.And(demand(t, []string{"node.kubernetes.io/instance-type", "In", "m5.xlarge", "p5.48xlarge"}))
	if o, _, err = rehearse(); err != nil || got(o)[1] != "m5.xlarge a subnet-a1" {
		t.Errorf("what the pool allows: %v, error %v", got(o), err)
	}
	w.class(t, `{spec: {userData: "MIME-Version: 1.0\nContent-Type: multipart/mixed\n\nx"}}`)
	in := w.in
	in.Types = w.types
	_, _, err = first(in)
	if bad, ok := errors.AsType[*bootstrap.Error](err); !ok || bad.Reason != "UserDataMalformed" || !strings.Contains(bad.Message, "boundary") {
		t.Errorf("user data that is none: %v", err)
	}
	in.Types = nil
	if _, found, err := first(in); found || err != nil {
		t.Errorf("without types: found %t, error %v", found, err)
	}
}

// Other types come after the first, of other families and for every pool in turn, each in one subnet. A pool that has no
// further type leaves its turn to others.
func TestFurtherTypesOfARehearsal(t *testing.T) {
	w := newWorld(t)
	for _, line := range []string{"p5.48xlarge od=0.01 gpu=8", "m5.xlarge od=0.192", "m5.large od=0.096", "c5.large od=0.085", "r5.large od=0.126", "x1.large od=0.5"} {
		w.addType(t, line)
	}
	if _, err := w.choose(t); err != nil { // resolves the types
		t.Fatal(err)
	}
	in := w.in
	in.Types = w.types
	pool := func(name string, types ...string) cluster.Claim {
		c := w.in.Claim
		c.Pool = name
		if len(types) > 0 {
			c.Requirements = c.Requirements.And(demand(t, append([]string{"node.kubernetes.io/instance-type", "In"}, types...)))
		}
		return c
	}
	for _, c := range []struct {
		name  string
		pools []cluster.Claim
		want  string
	}{
		{"one pool", []cluster.Claim{pool("a")}, "c5.large 3, m5.large 1, r5.large 1, x1.large 1"},
		{"one family", []cluster.Claim{pool("a", "m5.large", "m5.xlarge")}, "m5.large 3, m5.xlarge 1"},
		{"two pools", []cluster.Claim{pool("a", "x1.large"), pool("b", "m5.large", "r5.large")}, "x1.large 3, m5.large 1, r5.large 1"},
		{"a pool without types", []cluster.Claim{pool("a", "none"), pool("b", "m5.large")}, "c5.large 3, m5.large 1"},
	} {
		orders, err := launch.DryRunOrders(in, c.pools)
		var got []string
		for _, o := range orders {
			got = append(got, fmt.Sprint(o.Templates[0].Overrides[0].Type, " ", len(o.Templates[0].Overrides)))
		}
		if d := cmp.Diff(c.want, strings.Join(got, ", ")); d != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", c.name, err, d)
		}
	}
}

func TestUnusable(t *testing.T) {
	resolve := func(prepare func(w *world)) string {
		w := newWorld(t)
		for _, line := range []string{"m5.large od=0.096 spot=0.03", "m5.xlarge od=0.192", "c5.large od=0.085"} {
			w.addType(t, line)
		}
		prepare(w)
		c := instancetypes.Catalog{Region: "r", Zones: map[string]string{"a": "r-1", "b": "r-2", "c": "r-3"}, Types: w.facts}
		return launch.UnusableReason(instancetypes.ResolveTypes(c, w.in.Resolved, nil, time.Time{}))
	}
	for _, test := range []struct {
		name, want string
		prepare    func(w *world)
	}{
		{"a plain class", "", func(*world) {}},
		{"no price yet", "", func(w *world) {
			for i := range w.facts {
				w.facts[i].OnDemandUSD, w.facts[i].SpotUSD = 0, nil
			}
			w.in.Resolved.NitroOnly, w.facts[0].Hypervisor = true, "xen"
		}},
		{"no type", "", func(w *world) { w.facts = nil }},
		{"no image fits", "no AMI of the class fits this type (3 types)", func(w *world) {
			w.in.Resolved.Images[0].Requirements = requirements.NewSet(requirements.Of(instancetypes.LabelArch, "arm64"))
		}},
		{"two reasons", "connectionTracking needs the Nitro hypervisor (2 types); networkInterfaces needs a type with ENA (1 types)", func(w *world) {
			w.in.Resolved.NitroOnly, w.in.Resolved.Interfaces = true, []instancetypes.Interface{{}}
			w.facts[0].Hypervisor, w.facts[1].Hypervisor, w.facts[2].NoENA = "xen", "xen", true
		}},
	} {
		if got := resolve(test.prepare); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
