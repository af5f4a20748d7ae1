package provision_test

import (
	"context"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// Each launch of a pass takes an address, so a zone with two gets two nodes, however many come at once and whatever is
// cheapest there. Launches know of those beside them: EC2, which this world does not have refuse, is not asked for a
// third.
func TestAPassCountsTheAddressesThatItTakes(t *testing.T) {
	w := controllertest.NewWorld()
	w.Free = map[string]int64{"subnet-us-west-2a": 2, "subnet-us-west-2b": 3, "subnet-us-west-2c": 0, "subnet-us-west-2d": 0}
	w.RunApp("web", 7, unshared(controllertest.PodOf(1500, 2048)))
	f := controllertest.Functions{World: w}
	for range 3 {
		p := w.Ports(fake.Fault{})
		provision := f.Provision(p)
		provision.Levels = p
		if err := provision.Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
		w.Advance(time.Second)
	}
	got := map[string]int{}
	for _, i := range w.Instances() {
		got[i.Zone]++
	}
	if len(got) != 2 || got["us-west-2a"] != 2 || got["us-west-2b"] != 3 {
		t.Errorf("instances by zone: %v, want 2 in a, 3 in b and none elsewhere", got)
	}
}

// unshared has the pod share its node with nobody.
func unshared(p cluster.Pod) cluster.Pod {
	p.HostPorts = []cluster.HostPort{{Protocol: "TCP", Port: 80}}
	return p
}
