package disruption

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/binpack"
)

// filled is a cluster of one NodePool as `make scale` makes it: on each node four pods of DaemonSets and 26 of apps with
// 50 replicas each, in spot nodes of few instance types, whose disruption is only reported.
func filled(b testing.TB, nodes int) cluster.Snapshot {
	b.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		b.Fatal(err)
	}
	class := instancetypes.DefaultClass(c)
	names := []string{"m5.2xlarge", "m5a.2xlarge", "m6i.2xlarge", "m6a.2xlarge"}
	y := yard{s: cluster.Snapshot{
		Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Catalog: c, Classes: []instancetypes.Class{class},
		Rules:      cluster.Settings{ReportDisruption: true},
		Namespaces: []cluster.Namespace{{Name: "default"}},
		Pools: []cluster.Pool{{Name: "general", Class: class.Name, Ready: true,
			Requirements: requirements.NewSet(requirements.Of(corev1.LabelInstanceTypeStable, append(names, "m7i.2xlarge")...),
				requirements.Of(v1.LabelCapacityType, instancetypes.Spot)),
			Disruption: cluster.Disruption{Policy: string(v1.ConsolidationWhenEmptyOrUnderutilized),
				Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}}},
	}}
	for _, t := range instancetypes.ResolveTypes(c, class, nil, y.s.Now) {
		for _, name := range names {
			if t.Name == name {
				y.types = append(y.types, t)
			}
		}
	}
	daemon := cluster.Pod{Namespace: "kube-system", Name: "agent", Owner: cluster.OwnerDaemonSet,
		Need: resources.List{CPU: 40, Memory: 64 * resources.MiB, Pods: 1}, Tolerations: []cluster.Toleration{{Operator: "Exists"}}}
	for i := range 4 {
		daemon.Name = fmt.Sprintf("agent-%d", i)
		y.s.Daemons = append(y.s.Daemons, daemon)
	}
	made := 0
	for i := range nodes {
		y.addNode(i, y.types[i%len(y.types)], instancetypes.Spot, "us-west-2"+string("abc"[i%3]))
		node := y.s.Nodes[i].Name
		for _, d := range y.s.Daemons {
			d.NodeName, d.Phase, d.Ready, d.Name = node, "Running", true, fmt.Sprintf("%s-%05d", d.Name, i)
			d.UID = d.Name
			y.s.Pods = append(y.s.Pods, d)
		}
		for range 26 {
			app := made * 7919 % (nodes * 26) / 50
			p := cluster.Pod{Namespace: "default", Name: fmt.Sprintf("app-%05d-%07d", app, made), Owner: "ReplicaSet",
				NodeName: node, Phase: "Running", Ready: true, Created: y.s.Now.Add(-time.Hour),
				Labels: map[string]string{"app": fmt.Sprintf("app-%05d", app)},
				Need:   resources.List{CPU: int64(220 + app*37%91), Memory: 256 * resources.MiB, Pods: 1}}
			p.UID = p.Name
			y.s.Pods = append(y.s.Pods, p)
			made++
		}
	}
	return y.s
}

// watched measures what a pass takes about a cluster in which nothing changes, everything but reading it.
func watched(b *testing.B, nodes int) {
	s, m, cache := filled(b, nodes), Memory{}, Cache{}
	sells := binpack.ResolveOfferings(s)
	for range 3 {
		_, m = NextFrom(s, m, sells, &cache)
	}
	b.ReportAllocs()
	before, last := spent(b), Plan{}
	for b.Loop() {
		s.Now = s.Now.Add(time.Minute)
		last, m = NextFrom(s, m, sells, &cache)
	}
	b.ReportMetric((spent(b)-before)/float64(b.N), "cpu-s/op")
	for _, c := range last.Reported {
		b.ReportMetric(float64(len(c.Claims)), "nodes-reported")
	}
}

func BenchmarkWatched500(b *testing.B)  { watched(b, 500) }
func BenchmarkWatched2000(b *testing.B) { watched(b, 2000) }
func BenchmarkWatched5000(b *testing.B) { watched(b, 5000) }
