package sim

import (
	"maps"
	"slices"
	"time"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/interrupt"
)

// storm lets users and EC2 do things at random until the time given. A long one is quiet until nodes are old enough to be left on a
// recommendation.
func (w *world) storm(end time.Time) {
	for range w.int(1, 3) {
		w.startApp(w.drawApp())
	}
	w.drought()
	quiet := time.Now().Add(w.plan.storm - usualStorm)
	var next func()
	next = func() {
		if time.Now().After(end) {
			return
		}
		most, mishaps := 30*time.Second, 0.5
		switch still := time.Now().Before(quiet); {
		case still && w.plan.patient:
			most, mishaps = 90*time.Second, 0.15
		case still:
			most, mishaps = 5*time.Minute, 1
		}
		if w.chance(mishaps) || !w.focusedAct() {
			w.mishap()
		}
		w.in(w.between(time.Second, most), next)
	}
	w.in(w.between(time.Second, 60*time.Second), next)
}

// mishap is one thing that happens.
func (w *world) mishap() {
	if w.chance(0.5) {
		w.usersAct()
	} else {
		w.awsActs()
	}
}

func (w *world) usersAct() {
	switch w.rng.IntN(11) {
	case 0, 1:
		if len(w.apps) < 7 {
			w.startApp(w.drawApp())
		}
	case 2, 3:
		if a := w.anyApp(); a != nil {
			w.setReplicas(a, int(w.int(0, 7)))
		}
	case 4:
		if a := w.anyApp(); a != nil && w.chance(0.5) {
			w.stopApp(a)
		}
	case 5:
		if names := slices.Sorted(maps.Keys(w.claims)); len(names) > 0 {
			c := w.claims[names[w.rng.IntN(len(names))]]
			w.tell("somebody deletes claim %s", c.Name)
			w.deleteClaim(c, nil)
		}
	case 6:
		if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
			if n := w.nodes[names[w.rng.IntN(len(names))]]; n.machine != nil {
				w.tell("somebody deletes node %s", n.Name)
				w.deleteNode(n, nil)
			}
		}
	case 7:
		if pods := slices.Sorted(maps.Keys(w.pods)); len(pods) > 0 {
			p := w.pods[pods[w.rng.IntN(len(pods))]]
			w.tell("somebody deletes pod %s", p.Name)
			w.endPod(p, p.GraceSec)
		}
	case 8, 9:
		w.changeStatic()
	case 10:
		if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
			w.guard(w.nodes[names[w.rng.IntN(len(names))]], w.between(30*time.Second, 4*time.Minute))
		}
	}
}

func (w *world) awsActs() {
	m := w.anyMachine(w.living())
	what := w.rng.IntN(10)
	switch {
	case what == 0:
		w.drought()
	case what == 1:
		w.emit(Event{Kind: []string{EventSpot, EventReservation, EventRebalance, EventHealth}[w.rng.IntN(4)], Instance: "i-foreign"})
	case m == nil:
	case what == 2:
		w.recommend(m)
	case what == 3:
		w.announce(m, w.between(time.Minute, 6*time.Minute)+time.Duration(w.rng.IntN(2))*3*time.Hour)
	case what == 4 && w.chance(0.5):
		w.halt(m)
	case what == 5 && w.chance(0.5):
		w.stop(m, "somebody")
	case what == 6 && w.chance(0.5):
		w.impair(m)
	case m.CapacityType == catalog.Spot || w.chance(0.4):
		w.notice(m)
	}
}

func (w *world) anyApp() *app {
	var out []*app
	for _, a := range w.apps {
		if !a.daemon {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out[w.rng.IntN(len(out))]
}

func (w *world) anyMachine(list []*machine) *machine {
	if len(list) == 0 {
		return nil
	}
	return list[w.rng.IntN(len(list))]
}

// drought changes what EC2 has: now and then it has no spot at all, or nothing in a zone.
func (w *world) drought() {
	w.scarce = map[catalog.Offer]bool{}
	share := []float64{0, 0.2, 0.6, 1}[w.rng.IntN(4)]
	noSpot, zones := w.chance(0.15), w.zones()
	dry := ""
	if w.chance(0.15) {
		dry = zones[w.rng.IntN(len(zones))]
	}
	for _, name := range slices.Sorted(maps.Keys(w.types)) {
		for _, o := range w.types[name].Offerings {
			offer := catalog.Offer{CapacityType: o.CapacityType, Type: name, Zone: o.Zone}
			w.scarce[offer] = w.chance(share) || noSpot && o.CapacityType == catalog.Spot || o.Zone == dry
		}
	}
	w.tell("EC2 has changed what it sells: share %.1f sold out, no spot %t, zone %q dry", share, noSpot, dry)
}

// calm ends all trouble: no fault comes any more, EC2 sells everything, and what would go on for ever is undone.
func (w *world) calm() {
	w.tell("-- calm --")
	w.calmed = time.Now()
	w.faults.on = false
	w.plan.lost, w.plan.double, w.plan.slow = 0, 0, 0
	w.scarce = map[catalog.Offer]bool{}
	for i := range w.pools {
		w.pools[i].ExpireAfter, w.pools[i].Disruption.Never = 0, true
		if w.account.edited {
			w.pools[i].Disruption.Budgets = []cluster.NodeBudget{{Nodes: "0", Every: true}} // or nodes that drifted go for long
		}
	}
	w.dropLate()
	w.calmGuards()
	if w.plan.drifts {
		w.calmDrift()
	} else {
		w.calmStatic()
	}
	for _, a := range w.apps {
		if a.budget != nil && (w.limited() || a.replicas == 0 || a.bare || a.disks > 0 && len(a.pattern.Spread) > 0) {
			a.budget.minAvailable = 0 // some of its pods may have no room, ever
		} else if a.budget != nil {
			a.budget.minAvailable = min(a.budget.minAvailable, a.replicas-1)
		}
		a.pattern.DoNotDisrupt = ""
	}
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		w.pods[key].DoNotDisrupt = ""
	}
}

// dropLate takes back what would happen at rest only because it began before: claims that expire, and nodes that are to be left once
// a limit or a budget has room.
func (w *world) dropLate() {
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		c := w.claims[name]
		if c.ExpireAfter > 0 {
			w.deleteClaim(c, nil)
		}
		if !w.plan.drifts && c.Annotations[interrupt.AnnotationLeave] != "" && (w.limited() || time.Since(w.calmed) > restFor/2) {
			c.Annotations = merged(c.Annotations, nil)
			delete(c.Annotations, interrupt.AnnotationLeave)
			if m := w.instanceOf(c); m != nil {
				w.callOff(m)
			}
			w.write(c, nil)
		}
	}
}
