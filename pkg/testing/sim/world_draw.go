package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
)

// drawClasses makes the class of the pools, which refresh has looked at already in most runs.
func (w *world) drawClasses() {
	w.api.addClass("default")
	if c := w.api.classes["default"]; w.drawChance(0.7) {
		c.Finalizers = []string{awsv1.FinalizerTermination}
		c.Annotations = map[string]string{awsv1.AnnotationHash: c.Hash(caBundle),
			awsv1.AnnotationHashVersion: awsv1.HashVersion}
		nodeclass.UpdateStatus(c, w.account.resolveClass(c), time.Now())
	}
	for _, p := range w.api.pools {
		w.api.addNodePool(p)
	}
}

// addNodePool makes the object of the pool that refresh reads.
func (s *apiServer) addNodePool(p cluster.Pool) {
	np := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: p.Name, ResourceVersion: "1", Generation: 1}}
	np.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind,
		Name: p.Class}
	s.nodePools[p.Name] = np
}

// drawCommitment has the account pay for some capacity in advance, in a part of the runs about no other thing: one
// commitment, so that it is clear what draws on it.
func (w *world) drawCommitment() {
	if w.plan.focus == "" || !w.drawChance(0.25) {
		return
	}
	types := slices.Sorted(maps.Keys(w.catalog.types))
	one := types[w.rng.IntN(len(types))]
	k := instancetypes.Commitment{ID: "paid", Type: one, Room: w.drawInt(1, 3)}
	switch w.rng.IntN(4) {
	case 0:
		zones := w.catalog.zoneNames()
		k.Zone = zones[w.rng.IntN(len(zones))]
	case 1:
		k.Flexible, k.Room = true, 16*w.drawInt(1, 6)
	case 2:
		k = instancetypes.Commitment{ID: "paid", Rates: map[string]float64{}, Room: 10_000 * w.drawInt(1, 40)}
		for i, name := range types {
			k.Rates[name] = float64(40_000+7_000*i) / 1e6
		}
	}
	w.catalog.market.Commitments = []instancetypes.Commitment{k}
	w.addTrace("the account has paid for %d of %s%s %s in advance", k.Room, k.Type, k.Zone,
		strings.Join(slices.Sorted(maps.Keys(k.Rates)), " "))
}

// Times of runs with drift. A drifted node is proposed, replaced, and drained, one after the other; one whose pods had
// no room for ten minutes is left alone for ten more.
const (
	driftStorm = 15 * time.Minute
	driftRest  = 55 * time.Minute
)

// drawDrift makes nodes drift in half of the runs about disrupt and in a few others.
func (w *world) drawDrift() {
	share := 0.08
	switch w.plan.focus {
	case "", "refresh": // a day, and a story of its own
		return
	case "disrupt":
		share = 0.5
	case "rebalance": // which is in vain now and then, and must not keep a node for ever
		share = 0.3
	}
	if w.plan.drifts = w.drawChance(share); w.plan.drifts {
		w.plan.budget = int(w.drawInt(1, 2))
		w.plan.storm = max(w.plan.storm, driftStorm)
	}
}

// focusPlan gives the function that a run is about the time and the peace that it needs to get anywhere.
func (w *world) focusPlan() {
	switch {
	case w.plan.focus == "rebalance":
		w.plan.storm = longStorm
	case w.plan.focus == "disrupt" && w.drawChance(0.7):
		w.plan.storm, w.plan.patient = longStorm, true
		w.plan.lost, w.plan.slow, w.plan.neverJoins, w.plan.neverReady, w.plan.budget = 0, 0, 0, 0, 0
		w.network.faults.rate = 0
	}
}

// focusPools makes pools of which that function has something to do.
func (w *world) focusPools() {
	general := slices.IndexFunc(w.api.pools, func(p cluster.Pool) bool { return p.Name == "general" })
	p := &w.api.pools[general]
	switch {
	case w.plan.focus == "refresh": // nodes that drift are a story of their own
		for i := range w.api.pools {
			w.api.pools[i].Disruption = cluster.Disruption{Never: true,
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

// drawPools makes the pool that takes everything, and sometimes another one.
func (w *world) drawPools() {
	general := cluster.Pool{Name: "general", UID: "uid-general", Class: "default", Ready: true, Uncounted: true,
		Hash: "1"}
	if w.drawChance(0.3) {
		general.Limits, general.Limited = resources.List{CPU: 1000 * w.drawInt(12, 40)}, []string{resources.CPU}
	}
	if w.drawChance(0.15) {
		general.Limits, general.Limited = general.Limits.With("nodes", w.drawInt(4, 10)),
			append(general.Limited, "nodes")
	}
	if w.drawChance(0.45) {
		grace := w.drawDuration(15*time.Second, 90*time.Second).Truncate(time.Second)
		general.TerminationGrace = &grace
	}
	if w.drawChance(0.15) {
		general.ExpireAfter = w.drawDuration(3*time.Minute, 5*time.Minute).Truncate(time.Second)
	}
	general.Disruption.Never = true
	if w.drawChance(0.5) || w.plan.focus == "disrupt" {
		general.Disruption = cluster.Disruption{Policy: []string{"WhenEmpty",
			"WhenEmptyOrUnderutilized"}[w.rng.IntN(2)], After: w.drawDuration(0, time.Minute).Truncate(time.Second)}
	}
	if w.plan.budget > 0 {
		general.Disruption.Budgets = []cluster.NodeBudget{{Nodes: strconv.Itoa(w.plan.budget), Every: true}}
	}
	if w.drawChance(0.2) {
		general.Requirements = general.Requirements.And(requirements.Of(labelCapacity, instancetypes.OnDemand))
	}
	w.api.pools = []cluster.Pool{general}
	if w.drawChance(0.4) {
		w.api.pools = append(w.api.pools, cluster.Pool{Name: "batch", UID: "uid-batch", Class: "default", Ready: true,
			Uncounted: true, Hash: "1", Weight: 10,
			Labels: map[string]string{"team": "batch"},
			Taints: []cluster.Taint{{Key: teamTaint, Value: "batch", Effect: "NoSchedule"}}})
		slices.SortFunc(w.api.pools, func(a, b cluster.Pool) int {
			return slices.Compare([]byte(a.Name),
				[]byte(b.Name))
		})
	}
	w.drawStatic()
}

// drawStatic makes a pool with a fixed number of nodes, sometimes. It comes last: what pods ask for is said of the
// others.
func (w *world) drawStatic() {
	if !w.drawChance(0.35) {
		return
	}
	p := cluster.Pool{Name: "fixed", UID: "uid-fixed", Class: "default", Ready: true, Uncounted: true, Hash: "1",
		Static: true, Replicas: w.drawInt(1, 3),
		TerminationGrace: w.api.pools[0].TerminationGrace, Disruption: w.api.pools[0].Disruption}
	if w.drawChance(0.3) {
		p.ExpireAfter = w.api.pools[0].ExpireAfter
	}
	w.api.pools = append(w.api.pools, p)
}
