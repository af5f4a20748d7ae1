package instancetypes_test

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/resources"
)

func resolveWith(t *testing.T, change func(*instancetypes.Class)) map[string]instancetypes.Type {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	class := instancetypes.DefaultClass(c)
	change(&class)
	out := map[string]instancetypes.Type{}
	for _, x := range instancetypes.ResolveTypes(c, class, nil, time.Time{}) {
		out[x.Name] = x
	}
	return out
}

// TestExpressionsOfTheKubelet: maxPods is computed of what a type has without it, reserved amounts of the pods that come of
// that, and rounded up to 10m and 16Mi.
func TestExpressionsOfTheKubelet(t *testing.T) {
	plain := resolveWith(t, func(*instancetypes.Class) {})
	types := resolveWith(t, func(c *instancetypes.Class) {
		c.MaxPodsExpression = "min(50, max_pods)"
		c.KubeReserved = map[string]string{"cpu": "vcpus * 33", "memory": "max_pods * 11 + 1", "pid": "max_pods"}
		c.SystemReserved = map[string]string{"cpu": "100m", "ephemeral-storage": "instance_type.startsWith('m5.') ? 2 : 0"}
	})
	for name, want := range map[string]struct {
		pods           int64
		reserved       instancetypes.KubeletReserved
		cpu, ephemeral int64 // kept
	}{
		"m5.large":   {29, instancetypes.KubeletReserved{Kube: "cpu=70m,memory=320Mi,pid=29", System: "cpu=100m,ephemeral-storage=2Gi"}, 170, 3},
		"m5.2xlarge": {50, instancetypes.KubeletReserved{Kube: "cpu=270m,memory=560Mi,pid=50", System: "cpu=100m,ephemeral-storage=2Gi"}, 370, 3},
		"c5.large":   {29, instancetypes.KubeletReserved{Kube: "cpu=70m,memory=320Mi,pid=29", System: "cpu=100m,ephemeral-storage=0Gi"}, 170, 1},
	} {
		got := types[name]
		if got.MaxPods != want.pods || got.Capacity.Pods != want.pods || got.Reserved != want.reserved {
			t.Errorf("%s: %d pods, %+v, want %d, %+v", name, got.MaxPods, got.Reserved, want.pods, want.reserved)
		}
		if kept := got.Capacity.CPU - got.Allocatable.CPU; kept != want.cpu {
			t.Errorf("%s keeps %d millicores, want %d", name, kept, want.cpu)
		}
		kept := (got.Capacity.Ephemeral - got.Allocatable.Ephemeral) - (plain[name].Capacity.Ephemeral - plain[name].Allocatable.Ephemeral)
		if kept != (want.ephemeral-1)<<30 {
			t.Errorf("%s keeps %d bytes more of its disk, want %d GiB", name, kept, want.ephemeral-1)
		}
		if kept := got.Capacity.Memory - got.Allocatable.Memory - 100*resources.MiB; kept != map[string]int64{"m5.2xlarge": 560}[name]*resources.MiB && kept != 320*resources.MiB {
			t.Errorf("%s keeps %d MiB", name, kept/resources.MiB)
		}
	}
}

// TestPodsPerCoreBoundsAnExpression as it bounds a number.
func TestPodsPerCoreBoundsAnExpression(t *testing.T) {
	types := resolveWith(t, func(c *instancetypes.Class) { c.MaxPodsExpression, c.PodsPerCore = "max_pods * 100", 10 })
	if got := types["m5.large"].MaxPods; got != 20 {
		t.Errorf("%d pods on two cores, want 20", got)
	}
}

// TestATypeForWhichAnExpressionMakesNoSense cannot be had, and says why; others go on.
func TestATypeForWhichAnExpressionMakesNoSense(t *testing.T) {
	for text, change := range map[string]func(*instancetypes.Class){
		`kubelet maxPods: expression "100 / (vcpus - 2)" for m5.large: division by zero`: func(c *instancetypes.Class) { c.MaxPodsExpression = "100 / (vcpus - 2)" },
		"kubelet maxPods: -1 is no number of pods":                                       func(c *instancetypes.Class) { c.MaxPodsExpression = "vcpus - 3" },
		"kubelet kubeReserved cpu: -1 is no amount of a node":                            func(c *instancetypes.Class) { c.KubeReserved = map[string]string{"cpu": "vcpus - 3"} },
		"kubelet systemReserved memory: 2199023255552 is no amount of a node": func(c *instancetypes.Class) {
			c.SystemReserved = map[string]string{"memory": "vcpus == 2 ? 2199023255552 : 0"}
		},
	} {
		types := resolveWith(t, change)
		for _, o := range types["m5.large"].Offerings {
			if o.Available || !strings.Contains(o.Why, text) {
				t.Errorf("m5.large in %s: available %t, because %q, want %q", o.Zone, o.Available, o.Why, text)
			}
		}
		available := false
		for _, o := range types["m5.xlarge"].Offerings {
			available = available || o.Available
		}
		if !available || len(types["m5.large"].Offerings) == 0 {
			t.Errorf("%s: m5.xlarge cannot be had", text)
		}
	}
}
