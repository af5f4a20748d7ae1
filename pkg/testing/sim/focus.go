package sim

import (
	"slices"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
)

// focusPlan gives the function that a run is about the time and the peace that it needs to get anywhere.
func (w *world) focusPlan() {
	switch {
	case w.plan.focus == "rebalance":
		w.plan.storm = longStorm
	case w.plan.focus == "disrupt" && w.drawChance(0.7):
		w.plan.storm, w.plan.patient = longStorm, true
		w.plan.lost, w.plan.slow, w.plan.neverJoins, w.plan.neverReady, w.plan.budget = 0, 0, 0, 0, 0
		w.faults.rate = 0
	}
}

// focusPools makes pools of which that function has something to do.
func (w *world) focusPools() {
	general := slices.IndexFunc(w.pools, func(p cluster.Pool) bool { return p.Name == "general" })
	p := &w.pools[general]
	switch {
	case w.plan.focus == "refresh": // nodes that drift are a story of their own
		for i := range w.pools {
			w.pools[i].Disruption = cluster.Disruption{Never: true,
				Budgets: []cluster.NodeBudget{{Nodes: "0", Every: true}}}
		}
	case w.plan.focus == "reservationinterruption":
		p.Requirements = p.Requirements.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
	case w.plan.patient:
		p.Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized",
			After: w.drawDuration(0, 20*time.Second).Truncate(time.Second)}
		p.ExpireAfter = 0
	}
}

// focusedAct does what invokes the function that the run is about. It is false if there is nothing of that kind to do.
func (w *world) focusedAct() bool {
	living := w.livingInstances()
	if w.drawChance(0.4) { // those that are on their way out already
		going := slices.DeleteFunc(slices.Clone(living), func(m *machine) bool {
			c := w.byUID[m.owner]
			return c == nil || c.Deleting.IsZero()
		})
		if len(going) > 0 {
			living = going
		}
	}
	m := w.anyMachine(living)
	switch {
	case w.plan.drifts && w.drawChance(0.25):
		w.causeDrift()
	case w.plan.focus == "refresh":
		w.changeClasses()
	case m == nil:
		return false
	case w.plan.focus == "disrupt" && m.node != nil && w.drawChance(0.15):
		w.guardNode(m.node, w.drawDuration(time.Minute, 6*time.Minute))
	case w.plan.focus == "rebalance" || w.plan.drifts && w.drawChance(0.1):
		w.recommendRebalance(m)
	case w.plan.focus == "reservationinterruption":
		w.interruptInstance(m)
	case w.plan.focus == "disrupt" && w.anyApp() != nil:
		a := w.anyApp()
		w.setReplicas(a, max(0, a.replicas+int(w.drawInt(-4, 2))))
	case w.plan.focus == "scheduledchange":
		w.announceChange(m, w.drawDuration(time.Minute, 6*time.Minute))
	case w.plan.focus == "lifecycle":
		return w.impairOrAnnounce(m)
	case w.plan.focus == "statechange" && w.drawChance(0.5):
		w.stopInstance(m)
	case w.plan.focus == "statechange":
		w.endInstance(m, "somebody")
	default:
		return false
	}
	return true
}

// impairOrAnnounce has the instance fail its status checks, or announces that it will go, or does neither.
func (w *world) impairOrAnnounce(m *machine) bool {
	if w.drawChance(0.3) {
		w.impairInstance(m)
		return true
	}
	if w.drawChance(0.3) {
		w.announceChange(m, w.drawDuration(time.Minute, 6*time.Minute)+time.Duration(w.rng.IntN(2))*3*time.Hour)
		return true
	}
	return false
}
