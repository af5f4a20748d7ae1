package sim

import (
	"math"
	"time"

	"joiner/pkg/cluster"
)

// day is many hours without disasters: what disruption does to a cluster whose load follows the clock. All invariants of a storm
// hold, and the cluster must come to rest at the end.
func (w *world) day(s Scenario) {
	w.faults.on, w.plan.together, w.plan.lost, w.plan.slow = false, 1, 0, 0
	for i := range w.pools {
		w.pools[i].ExpireAfter, w.pools[i].Limited = 0, nil
		w.pools[i].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", After: 5 * time.Minute,
			Budgets: []cluster.NodeBudget{{Nodes: "20%", Every: true}}}
	}
	w.drawDaemons()
	sizes := map[*app]int{}
	for range 8 {
		a := w.drawApp()
		if a.budget != nil {
			a.budget.minAvailable = min(a.budget.minAvailable, 1)
		}
		a.bare, a.stopTime, a.pattern.DoNotDisrupt = false, 5*time.Second, ""
		sizes[a] = int(w.int(2, 12))
		a.replicas = 2
		w.startApp(a)
	}
	apps := w.apps
	began := w.total()
	for hour := range s.Day {
		load := 0.55 - 0.45*math.Cos(2*math.Pi*float64(hour)/24) // least at midnight, most at noon
		for _, a := range apps {
			if n := max(1, int(math.Round(float64(sizes[a])*load))); !a.daemon && n != a.replicas {
				w.in(w.between(0, 50*time.Minute), func() { w.setReplicas(a, n) })
			}
		}
		w.run(time.Now().Add(time.Hour), w.admit)
		if s.Hour != nil {
			s.Hour(w.hour(hour, began))
		}
		began = w.total()
	}
	w.calm()
	w.settle(restFor, "not at rest", w.problems)
}

func (w *world) hour(n, began int) Hour {
	out := Hour{Hour: n, Mutations: w.total() - began}
	for _, m := range w.living() {
		out.Nodes++
		for _, o := range w.types[m.Type].Offerings {
			if o.Zone == m.Zone && o.CapacityType == m.CapacityType {
				out.USD += o.Price
			}
		}
	}
	for _, p := range w.pods {
		if p.NodeName != "" {
			out.Pods++
		} else {
			out.Waiting++
		}
	}
	return out
}
