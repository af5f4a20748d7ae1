package sim

import (
	api "joiner/pkg/api/v1"
	"maps"
	"slices"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// runStorm lets users and EC2 do things at random until the time given. A long one is quiet until nodes are old enough
// to be left on a recommendation.
func (w *world) runStorm(end time.Time) {
	for range w.drawInt(1, 3) {
		w.startApp(w.drawApp())
	}
	w.changeSupply()
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
		if w.drawChance(mishaps) || !w.focusedAct() {
			w.causeMishap()
		}
		w.runAfter(w.drawDuration(time.Second, most), next)
	}
	w.runAfter(w.drawDuration(time.Second, 60*time.Second), next)
}

// causeMishap is one thing that happens.
func (w *world) causeMishap() {
	if w.drawChance(0.5) {
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
			w.setReplicas(a, int(w.drawInt(0, 7)))
		}
	case 4:
		if a := w.anyApp(); a != nil && w.drawChance(0.5) {
			w.stopApp(a)
		}
	case 5:
		if names := slices.Sorted(maps.Keys(w.claims)); len(names) > 0 {
			c := w.claims[names[w.rng.IntN(len(names))]]
			w.addTrace("somebody deletes claim %s", c.Name)
			w.deleteClaim(c, nil)
		}
	case 6:
		if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
			if n := w.nodes[names[w.rng.IntN(len(names))]]; n.machine != nil {
				w.addTrace("somebody deletes node %s", n.Name)
				w.deleteNode(n, nil)
			}
		}
	case 7:
		if pods := slices.Sorted(maps.Keys(w.pods)); len(pods) > 0 {
			p := w.pods[pods[w.rng.IntN(len(pods))]]
			w.addTrace("somebody deletes pod %s", p.Name)
			w.endPod(p, p.GraceSec)
		}
	case 8, 9:
		w.changeStatic()
	case 10:
		if names := slices.Sorted(maps.Keys(w.nodes)); len(names) > 0 {
			w.guardNode(w.nodes[names[w.rng.IntN(len(names))]], w.drawDuration(30*time.Second, 4*time.Minute))
		}
	}
}

func (w *world) awsActs() {
	m := w.anyMachine(w.livingInstances())
	what := w.rng.IntN(10)
	switch {
	case what == 0:
		w.changeSupply()
	case what == 1:
		w.emitEvent(Event{Kind: []string{EventSpot, EventReservation, EventRebalance, EventHealth}[w.rng.IntN(4)],
			Instance: "i-foreign"})
	case m == nil:
	case what == 2:
		w.recommendRebalance(m)
	case what == 3:
		w.announceChange(m, w.drawDuration(time.Minute, 6*time.Minute)+time.Duration(w.rng.IntN(2))*3*time.Hour)
	case what == 4 && w.drawChance(0.5):
		w.stopInstance(m)
	case what == 5 && w.drawChance(0.5):
		w.endInstance(m, "somebody")
	case what == 6 && w.drawChance(0.5):
		w.impairInstance(m)
	case m.CapacityType == instancetypes.Spot || w.drawChance(0.4):
		w.interruptInstance(m)
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

// changeSupply changes what EC2 has: now and then it has no spot at all, or nothing in a zone.
func (w *world) changeSupply() {
	w.scarce = map[instancetypes.Offer]bool{}
	share := []float64{0, 0.2, 0.6, 1}[w.rng.IntN(4)]
	noSpot, zones := w.drawChance(0.15), w.zoneNames()
	dry := ""
	if w.drawChance(0.15) {
		dry = zones[w.rng.IntN(len(zones))]
	}
	for _, name := range slices.Sorted(maps.Keys(w.types)) {
		for _, o := range w.types[name].Offerings {
			offer := instancetypes.Offer{CapacityType: o.CapacityType, Type: name, Zone: o.Zone}
			w.scarce[offer] = w.drawChance(share) || noSpot && o.CapacityType == instancetypes.Spot || o.Zone == dry
		}
	}
	w.addTrace("EC2 has changed what it sells: share %.1f sold out, no spot %t, zone %q dry", share, noSpot, dry)
}

// endTrouble ends all trouble: no fault comes any more, EC2 sells everything, and what would go on for ever is undone.
func (w *world) endTrouble() {
	w.addTrace("-- calm --")
	w.calmed = time.Now()
	w.faults.on = false
	w.plan.lost, w.plan.double, w.plan.slow = 0, 0, 0
	w.scarce = map[instancetypes.Offer]bool{}
	for i := range w.pools {
		w.pools[i].ExpireAfter, w.pools[i].Disruption.Never = 0, true
		if w.account.edited {
			// or nodes that drifted go for long
			w.pools[i].Disruption.Budgets = []cluster.NodeBudget{{Nodes: "0", Every: true}}
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
		if a.budget != nil && (w.limitReached() || a.replicas == 0 || a.bare || a.disks > 0 &&
			len(a.pattern.Spread) > 0) {
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

// dropLate takes back what would happen at rest only because it began before: claims that expire, and nodes that are to
// be left once a limit or a budget has room.
func (w *world) dropLate() {
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		c := w.claims[name]
		if c.ExpireAfter > 0 {
			w.deleteClaim(c, nil)
		}
		if !w.plan.drifts && c.Annotations[api.AnnotationReplaceRequested] != "" &&
			(w.limitReached() || time.Since(w.calmed) > restFor/2) {
			c.Annotations = mergeAnnotations(c.Annotations, nil)
			delete(c.Annotations, api.AnnotationReplaceRequested)
			if m := w.instanceOf(c); m != nil {
				w.callOff(m)
			}
			w.writeClaim(c, nil)
		}
	}
}
