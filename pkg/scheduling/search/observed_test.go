package search_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/scenario"
)

// Nodes that join with less than their type is estimated to have, of whatever resource: two of a type tell, and the
// next pass takes another type. A node that says what no such type can have is not believed.
func TestNodesThatTurnOutSmallerAreNotBoughtForEver(t *testing.T) {
	for _, c := range []struct {
		name, need string
		shrink     func(*resources.List)
		want       string
	}{
		{"cpu", "cpu=15900 mem=500", func(l *resources.List) { l.CPU = l.CPU * 99 / 100 }, "small small big -"},
		{"memory", "cpu=500 mem=130000", func(l *resources.List) { l.Memory = l.Memory * 95 / 100 }, "small small big -"},
		{"pods", "cpu=100 mem=10 n=60", func(l *resources.List) { l.Pods = l.Pods * 9 / 10 }, "small small -"},
		{"devices", "cpu=100 mem=10", func(l *resources.List) { *l = l.With("nvidia.com/gpu", l.Get("nvidia.com/gpu")-1) }, "small small big -"},
		{"none", "cpu=15900 mem=500", func(*resources.List) {}, "small -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			gpus := int64(0)
			if c.name == "devices" {
				gpus = 8
			}
			if got := typesBought(t, c.need, gpus, c.shrink); got != c.want {
				t.Errorf("bought %s, want %s", got, c.want)
			}
		})
	}
}

// typesBought is which types six passes buy for the pods, one word each up to the first pass that buys none.
func typesBought(t *testing.T, need string, gpus int64, shrink func(*resources.List)) string {
	w := scenario.New()
	datadriven.RunTestFromString(t, fmt.Sprintf(`type small cpu=16000 mem=131072 pods=60 milliusd=1152
----
ok

type big cpu=32000 mem=262144 pods=120 milliusd=2304
----
ok

pool default
----
ok

pods batch %s
----
ok
`, need), func(t *testing.T, d *datadriven.TestData) string {
		if _, err := w.Do(d); err != nil {
			t.Fatal(err)
		}
		return "ok\n"
	})
	for i := range w.Types {
		x := &w.Types[i]
		x.Capacity = x.Capacity.With("nvidia.com/gpu", gpus<<i)
		x.Allocatable = x.Allocatable.With("nvidia.com/gpu", gpus<<i)
	}
	for i := range w.Snapshot.Pods {
		w.Snapshot.Pods[i].Need = w.Snapshot.Pods[i].Need.With("nvidia.com/gpu", gpus)
	}
	var out []string
	for range 6 {
		p := decide(w)
		if len(p.Launches) == 0 {
			out = append(out, "-")
			break
		}
		for _, l := range p.Launches {
			out = append(out, l.Choice.Type)
		}
		w = w.Launched(p)
		w.Snapshot.Now = w.Snapshot.Now.Add(2 * time.Minute)
		for i := range w.Snapshot.Claims {
			c := &w.Snapshot.Claims[i]
			if c.NodeName != "" {
				continue
			}
			c.NodeName = "node-" + c.Name
			n := cluster.Node{Name: c.NodeName, ProviderID: c.ProviderID, Capacity: c.Capacity, Allocatable: c.Allocatable,
				Ready: true, ReadySince: w.Snapshot.Now.Add(-time.Minute), Labels: map[string]string{}}
			for k, v := range c.Labels {
				n.Labels[k] = v
			}
			n.Labels["kubernetes.io/hostname"], n.Labels[api.LabelNodePool] = n.Name, c.Pool
			n.Labels[api.LabelRegistered], n.Labels[api.LabelInitialized] = "true", "true"
			shrink(&n.Allocatable)
			w.Snapshot.Nodes = append(w.Snapshot.Nodes, n)
		}
	}
	return strings.Join(out, " ")
}
