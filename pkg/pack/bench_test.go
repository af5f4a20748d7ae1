package pack

import (
	"fmt"
	"testing"

	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
	"joiner/pkg/cluster"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// services is a cluster of n pending pods in deployments of 50, of which some spread over zones or stay apart, some want
// on-demand and some arm64, before one pool that may launch nearly everything.
func services(b *testing.B, n int) cluster.Snapshot {
	b.Helper()
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		b.Fatal(err)
	}
	generation, err := require.New("karpenter.k8s.aws/instance-generation", require.Gt, "2")
	if err != nil {
		b.Fatal(err)
	}
	s := cluster.Snapshot{
		Catalog: c, Classes: []catalog.Class{catalog.DefaultClass(c)},
		Pools: []cluster.Pool{{Name: "default", Class: "default", Ready: true, Requirements: require.NewSet(
			require.Of("karpenter.k8s.aws/instance-category", "c", "m", "r"), require.Of("karpenter.sh/capacity-type", "spot", "on-demand"), generation,
		)}},
	}
	for i := range n {
		app := i / 50
		name := fmt.Sprintf("app-%04d", app)
		p := cluster.Pod{
			Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i%50), Phase: "Pending", Unscheduled: true, Labels: map[string]string{"app": name},
			Need: resource.List{CPU: int64(100 + app*37%40*100), Memory: int64(128+app*53%64*128) * resource.MiB, Pods: 1},
		}
		mine := &cluster.Selector{Requirements: []require.Requirement{require.Of("app", name)}}
		switch app % 7 {
		case 1, 2:
			p.Spread = []cluster.Spread{{Key: labelZone, MaxSkew: 1, Selector: mine}}
		case 3:
			p.NodeSelector = map[string]string{labelCapacity: catalog.OnDemand}
		case 4:
			p.NodeSelector = map[string]string{labelArch: "arm64"}
		case 5:
			p.AntiAffinity = []cluster.AffinityTerm{{Key: labelHost, Selector: mine}}
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

func benchmark(b *testing.B, n int) {
	s := services(b, n)
	types := catalog.Resolve(s.Catalog, s.Classes[0], nil, s.Now)
	var price float64
	for b.Loop() {
		p := pods(s, func(string) []catalog.Type { return types })
		if len(p.Unplaced) > 0 {
			b.Fatal(p.Unplaced[0])
		}
		price = p.Price()
	}
	b.ReportMetric(price, "USD/h")
}

func BenchmarkPods1000(b *testing.B)  { benchmark(b, 1000) }
func BenchmarkPods10000(b *testing.B) { benchmark(b, 10000) }
