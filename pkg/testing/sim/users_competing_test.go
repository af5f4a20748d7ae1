package sim

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// peaceful is a world in which nothing fails, with one pool that takes everything.
func peaceful(t *testing.T) *world {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	small := c
	small.Types = nil
	for _, k := range c.Types {
		if k.Name == "c5.large" {
			small.Types = append(small.Types, k)
		}
	}
	w := newWorld(1, small, false)
	w.setUp(Scenario{Seed: 1, Catalog: small})
	w.trouble, w.network.faults.rate = false, 0
	w.plan.lost, w.plan.slow, w.plan.double, w.plan.together, w.plan.drifts = 0, 0, 0, 1, false
	w.catalog.market.Commitments = nil
	w.api.pools = []cluster.Pool{{Name: "general", UID: "uid-general", Class: "default", Ready: true, Uncounted: true, Hash: "1", Disruption: cluster.Disruption{Never: true}}}
	return w
}

// heavy is an app of that many pods, each of which needs more than half of a node.
func heavy(name string, replicas int) *app {
	return &app{name: name, replicas: replicas, bootTime: time.Second, stopTime: time.Second, pattern: cluster.Pod{Namespace: firstNamespace, Labels: map[string]string{"app": name},
		Owner: cluster.OwnerOther, GraceSec: 5, Need: resources.List{CPU: 1200, Memory: 512 * resources.MiB, Pods: 1}}}
}

// planned is the zone of the node that starts for a pod of the app which has none; empty while there is no such node.
func planned(w *world, a *app) string {
	for _, p := range w.workloads.podsOf(a) {
		for _, m := range w.ec2.livingInstances() {
			if c := w.api.byUID[m.owner]; p.NodeName == "" && c != nil && slices.Contains(c.pods, p.UID) {
				return m.Zone
			}
		}
	}
	return ""
}

// TestAPodThatIsKeptOffItsNodeGetsAnother: while a node starts for the third pod of an app that is spread over three
// zones, two others with its labels come to that zone. The scheduler keeps the pod off its node for good, so that its
// claim must not be trusted to bring it a place for ever.
func TestAPodThatIsKeptOffItsNodeGetsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peaceful(t)
		defer w.endInvocations()
		pass := func(d time.Duration) { w.runUntil(time.Now().Add(d), w.network.admitRequest) }
		zones := w.catalog.zoneNames()[:3]
		for _, z := range zones {
			filler := heavy("filler-"+z, 1)
			filler.pattern.NodeSelector = map[string]string{labelZone: z}
			w.workloads.startApp(filler)
		}
		web := heavy("web", 2)
		web.pattern.NodeAffinity = [][]requirements.Requirement{{requirements.Of(labelZone, zones...)}}
		web.pattern.Spread = []cluster.Spread{{Key: labelZone, MaxSkew: 1, Selector: web.appSelector()}}
		pass(3 * time.Minute)
		w.workloads.startApp(web)
		pass(3 * time.Minute)
		w.workloads.setReplicas(web, 3)
		for range 180 {
			if pass(time.Second); planned(w, web) != "" {
				break
			}
		}
		canary := heavy("canary", 2)
		canary.pattern.Labels, canary.pattern.Need = web.pattern.Labels, resources.List{CPU: 50, Memory: 64 * resources.MiB, Pods: 1}
		canary.pattern.NodeSelector = map[string]string{labelZone: planned(w, web)}
		w.workloads.startApp(canary)
		pass(10 * time.Second)
		if w.workloads.activePods(canary) != 2 || planned(w, web) == "" {
			t.Fatalf("it does not come to the point:\n%s", w.trace.asText())
		}
		pass(5 * time.Minute)
		for _, p := range w.workloads.podsOf(web) {
			if !p.Ready {
				t.Errorf("pod %s on %q does not run%s\n%s", p.Key(), p.NodeName, whyNot(w, p), w.trace.asText())
			}
		}
		for _, v := range w.bad {
			t.Error(v)
		}
	})
}
