package sim

import (
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// A pod that may not be one more in its zone is looked at again when one after it has come to the other zone, as
// kube-scheduler does, though nothing else happens.
func TestAPodThatIsBoundMakesRoomForOneBeforeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peaceful(t)
		defer w.endInvocations()
		pass := func(d time.Duration) { w.runUntil(time.Now().Add(d), w.network.admitRequest) }
		app := func(name, zone string, replicas int, milliCPU int64) *app {
			a := heavy(name, replicas)
			a.pattern.Need.CPU = milliCPU
			if zone != "" {
				a.pattern.NodeSelector = map[string]string{labelZone: zone}
			}
			return a
		}
		zones := w.catalog.zoneNames()
		w.workloads.startApp(app("filler", zones[0], 1, 1200))
		w.workloads.startApp(app("fuller", zones[1], 1, 1650)) // beside which one of late has room and none of early
		pass(3 * time.Minute)
		early, late := app("early", "", 2, 350), app("late", zones[1], 1, 50)
		late.pattern.Labels = early.pattern.Labels
		early.pattern.Spread = []cluster.Spread{{Key: labelZone, MaxSkew: 1, Selector: early.appSelector()}}
		w.workloads.startApp(early)
		w.workloads.startApp(late)
		pass(time.Second)
		for _, p := range w.workloads.podsOf(early) {
			if p.NodeName == "" {
				t.Errorf("pod %s has no node%s", p.Key(), whyNot(w, p))
			}
		}
	})
}
