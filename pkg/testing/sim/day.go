package sim

import (
	"math"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// lookEvery is the time between two looks at what a day costs and what it must cost.
const lookEvery = 15 * time.Minute

// simulateDay is many hours without disasters: what disruption does to a cluster whose work breathes. Services follow
// the clock and are deployed anew, jobs come and go every hour, and now and then a service gets three times its load
// for a while. All invariants of a storm hold, those of invariants_day.go too, and the cluster must come to rest at the
// end.
func (w *world) simulateDay(s Scenario) {
	w.trouble, w.plan.together, w.plan.lost, w.plan.slow = false, 1, 0, 0
	w.plan.budget, w.plan.neverJoins, w.plan.neverReady, w.plan.throttle, w.plan.spent = 0, 0, 0, 0, 0
	w.catalog.market.Commitments = nil // what is paid already has no price to compare
	w.api.pools = slices.DeleteFunc(w.api.pools, func(p cluster.Pool) bool { return p.Static })
	for i := range w.api.pools {
		w.api.pools[i].ExpireAfter, w.api.pools[i].Limited = 0, nil
		w.api.pools[i].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", After: time.Minute,
			Budgets: []cluster.NodeBudget{{Nodes: "20%", Every: true}}}
	}
	w.book = &disruptionReport{}
	w.workloads.drawDaemons()
	services, job := w.drawServices(), w.drawJob()
	for i := range s.Day {
		w.changeOfHour(time.Duration(i)*time.Hour, s.From+i, services, job)
	}
	began := w.totalMutations()
	for hour := s.From; hour < s.From+s.Day; hour++ {
		out := Hour{Hour: hour, Wasted: map[string]float64{}}
		for end := time.Now().Add(time.Hour); time.Now().Before(end) && len(w.bad) == 0; {
			w.runUntil(time.Now().Add(lookEvery), w.network.admitRequest)
			w.bill.addCost(&out)
		}
		if len(w.bad) > 0 {
			return // nothing goes on after a violation
		}
		out.Mutations = w.totalMutations() - began
		if began = w.totalMutations(); s.Hour != nil {
			s.Hour(out)
		}
	}
	w.endTrouble()
	w.runUntilEmpty(restFor, fullRound, "not at rest", w.restProblems)
}

// changeOfHour has happen what an hour of the day brings, which begins then. All of it is drawn before the day begins,
// so that a seed has the same work whatever is decided about it, and days can be compared.
func (w *world) changeOfHour(then time.Duration, hour int, services []dayService, job dayService) {
	load := 0.55 - 0.45*math.Cos(2*math.Pi*float64(hour)/24) // least at midnight, most at noon
	for i, a := range services {
		n := max(1, int(math.Round(float64(a.size)*load)))
		w.runAfter(then+w.drawDuration(0, 50*time.Minute), func() { w.workloads.setReplicas(a.app, n) })
		if w.drawChance(0.1) {
			w.runAfter(then+w.drawDuration(0, 50*time.Minute), func() { w.restartApp(a.app) })
		}
		if i == hour%len(services) && w.drawChance(0.3) {
			w.runAfter(then+w.drawDuration(0, 30*time.Minute), func() {
				w.workloads.setReplicas(a.app,
					3*a.app.replicas)
			})
			w.runAfter(then+w.drawDuration(40*time.Minute, 50*time.Minute), func() {
				w.workloads.setReplicas(a.app,
					n)
			})
		}
	}
	w.runAfter(then+5*time.Minute, func() { w.workloads.setReplicas(job.app, job.size) })
	w.runAfter(then+15*time.Minute, func() { w.workloads.setReplicas(job.app, 0) })
}

// dayService is an app with its usual size.
type dayService struct {
	app  *app
	size int
}

func (w *world) drawServices() []dayService {
	var out []dayService
	for range 16 {
		a := w.workloads.drawApp()
		if a.budget != nil {
			a.budget.minAvailable = min(a.budget.minAvailable, 1)
		}
		a.bare, a.stopTime, a.pattern.DoNotDisrupt = false, 5*time.Second, ""
		out = append(out, dayService{a, int(w.drawInt(4, 24))})
		a.replicas = 2
		w.workloads.startApp(a)
	}
	return out
}

// drawJob makes what a cron job starts.
func (w *world) drawJob() dayService {
	a := w.workloads.drawApp()
	a.bare, a.stateful, a.budget, a.stopTime, a.pattern.DoNotDisrupt, a.pattern.Spread, a.pattern.AntiAffinity = false,
		false, nil, time.Second, "", nil, nil
	a.pattern.Owner, a.replicas = cluster.OwnerOther, 0
	w.workloads.startApp(a)
	return dayService{a, int(w.drawInt(2, 8))}
}

// restartApp is kubectl rollout restart of an app that may miss one pod: they are replaced one after the other.
func (w *world) restartApp(a *app) {
	w.addTrace("app %s is deployed anew", a.key())
	for i, p := range w.workloads.podsOf(a) {
		w.runAfter(time.Duration(i)*15*time.Second, func() {
			w.book.deployed = time.Now()
			if w.api.pods[p.Key()] == p && p.Active() {
				w.kubelets.endPod(p, p.GraceSec)
			}
		})
	}
}
