package sim

import (
	"context"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass"
)

// world is a cluster and an AWS account, made of parts around one engine. The loop alone touches it.
type world struct {
	*engine
	api       *apiServer
	scheduler *scheduler
	kubelets  *kubelets
	workloads *workloads
	volumes   *volumes
	ec2       *ec2
	catalog   *catalog
	account   *account
	lambda    *lambda
	network   *network
	state     *productState
	users     *users
	storm     *storm
	bill      *bill

	calmed     time.Time         // since when nothing goes wrong
	trial      *rolloutTrial     // of a NodeRollout; nil without one
	stopped    *stoppedTrial     // of stopped capacity; nil without
	short      *shortNodes       // of nodes smaller than estimated; nil without
	unusable   *unusableNodes    // of nodes that never become usable; nil without
	hostile    *hostileTrial     // of a hostile tenant; nil without
	book       *disruptionReport // of a day; nil in a storm
	ceilings   ceilings
	invariants []invariant
}

func newWorld(seed uint64, market instancetypes.Catalog, keepAll bool) *world {
	e := newEngine(seed, keepAll)
	w := &world{engine: e, api: newAPIServer(e), catalog: newCatalog(market), state: &productState{},
		invariants: stepInvariants()}
	w.network = &network{engine: e, faults: newFaultSource(e), api: w.api, account: newAccount(),
		refused: map[string]int{}}
	w.lambda = &lambda{engine: e, functions: map[string]*Function{}, caches: drawCaches(seed),
		newPorts: w.newPorts, ceiling: w.ceilings.current}
	w.volumes = drawVolumes(e, seed, w.catalog.zoneNames())
	w.account = &account{engine: e, catalog: w.catalog, image: 1, before: 1, profiles: map[string]nodeclass.Profile{}}
	w.scheduler = &scheduler{engine: e, api: w.api, volumes: w.volumes, mostTried: drawMostTried(seed)}
	w.workloads = &workloads{engine: e, api: w.api, catalog: w.catalog, scheduler: w.scheduler, volumes: w.volumes,
		used: map[string]bool{}}
	w.kubelets = &kubelets{e, w.api, w.account, w.catalog, w.scheduler, w.volumes, w.workloads, nil, nil}
	w.ec2 = &ec2{engine: e, api: w.api, catalog: w.catalog, kubelets: w.kubelets, lambda: w.lambda,
		machines: map[string]*machine{}, tokens: map[string]fleetAnswer{}, scarce: map[instancetypes.OfferingKey]bool{}}
	w.users = &users{e, w.api, w.account, w.kubelets, w.scheduler, w.workloads}
	w.storm = &storm{e, w.api, w.ec2, w.lambda, w.users, w.workloads}
	w.bill = &bill{e, w.api, w.catalog, w.ec2, w.state, w.volumes}
	w.network.lambda, w.scheduler.kubelets, w.workloads.kubelets = w.lambda, w.kubelets, w.kubelets
	w.api.network, w.api.kubelets, w.api.scheduler, w.api.volumes, w.api.workloads = w.network, w.kubelets, w.scheduler,
		w.volumes, w.workloads
	w.ec2.launched, e.observe = w.users.startOtherVersion, w.checkStep
	return w
}

// setUp draws what the seed is about, and starts the schedules.
func (w *world) setUp(s Scenario) {
	w.plan = drawPlan(w.engine)
	w.rules = drawRules(w.engine, w.plan.share > 0)
	if s.Notices != nil {
		w.plan.share = stackShare
	}
	if s.Short || s.Unusable || s.Hostile || s.Edit != nil {
		w.plan.share = 0
	}
	if s.Short || s.Unusable {
		w.rules.InitializationTimeout = 30 * time.Minute // as the stack has it
	}
	if s.Day > 0 || s.Notices != nil || s.Edit != nil {
		// as the stack has it
		w.rules.NominatedPodsOnly, w.rules.MaxClaims, w.rules.ConsolidationPayback,
			w.rules.ConsolidationMaxEvaluations = true, 100, 0, 0
		// six types are sold
		w.rules.MinSpotInstanceTypes = 2
		w.volumes.most = 0
	}
	w.trouble = true
	w.network.faults.aims, w.network.faults.rate = slices.Clone(s.Aims), []float64{0, 0.003, 0.02}[w.rng.IntN(3)]
	if len(s.Aims) > 0 {
		w.plan.focus = s.Aims[0].Function
	}
	w.focusPlan()
	w.drawDrift()
	w.drawPools()
	w.focusPools()
	w.drawClasses()
	w.drawCommitment()
	if s.Day == 0 && s.Notices == nil && s.Trial == nil && s.Stopped == nil && !s.Short && !s.Unusable && !s.Hostile &&
		s.Edit == nil {
		w.deployCeilings(s.Seed, s.Ceiling)
	}
	for _, f := range Functions(w.rules, w.plan.share) {
		w.lambda.order = append(w.lambda.order, &f)
		w.lambda.functions[f.Name] = &f
		if f.Every > 0 {
			w.lambda.scheduleFunction(&f, w.drawDuration(0, f.Every))
		}
	}
}

// playScenario is the story of every run: a storm, rest, silence, and the end of everything.
func (w *world) playScenario(seed uint64) {
	w.workloads.drawDaemons()
	end := time.Now().Add(w.plan.storm)
	w.drawDenial(seed)
	w.storm.runStorm(end)
	w.runUntil(end, w.network.admitRequest)
	w.endTrouble()
	rest := restFor
	if w.plan.drifts {
		rest = driftRest
	}
	w.restBesideDenied(rest)
	w.runUntilEmpty(rest, fullRound, "not at rest", w.restProblems)
	w.runSilently(silentFor)
	if len(w.bad) > 0 {
		return
	}
	w.endEverything()
}

// endEverything ends apps, pools and claims, after which nothing may be left.
func (w *world) endEverything() {
	w.addTrace("-- the end of everything --")
	for len(w.workloads.apps) > 0 {
		w.workloads.stopApp(w.workloads.apps[0])
	}
	if p := w.api.staticPool(); p != nil {
		p.Replicas = 0
		w.runUntilEmpty(restFor/2, aWhile, "a static pool keeps nodes", func() []string { return staticProblems(w) })
	}
	w.runUntil(time.Now().Add(time.Minute), w.network.admitRequest)
	for _, name := range slices.Sorted(maps.Keys(w.api.claims)) {
		w.api.deleteClaim(w.api.claims[name], nil)
	}
	w.runUntilEmpty(restFor/2, aWhile, "something is left", func() []string { return remainingObjects(w) })
}

// endInvocations ends all invocations, so that no goroutine is left.
func (w *world) endInvocations() {
	w.lambda.over = true
	for len(w.lambda.alive) > 0 {
		w.lambda.killInvocation(w.lambda.alive[0], "is stopped with the simulation")
	}
	synctest.Wait()
	w.admitPosted(func(r *portRequest) {
		if !r.ending {
			r.reply <- portAnswer{err: context.Canceled}
		}
	})
	synctest.Wait()
}
