package binpack

import (
	"reflect"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/scheduling/search"
)

// mostLearnt is the number of answers that a stock may hold, beyond twice those it began with, until it is made anew.
const mostLearnt = 2_000

// WhatIf holds what pools can launch, found once for many questions about one cluster: what if these nodes were gone,
// what if those pods waited. It remembers which offerings suit which pods. It may not be used concurrently.
type WhatIf struct {
	sells Offerings
	from  *packing.Problem       // with every pod as if it waited
	few   *capacity.ShareRanking // what is to be had in small numbers
	sold  func(cluster.Pool) []instancetypes.Type
	pools []*capacity.OfferingPool // in each form that PlanEdited met
	worth cachedPrices             // once asked
	faces capacity.NodeLabelsByName
	seen  *podclass.IdentityCache
	size  int // of what it remembered at first
	given answeredPlans
}

// answeredPlans are the plans of questions about one cluster, by the digests that the asker gave them.
type answeredPlans struct {
	world uint64
	plans map[uint64]plan.Plan
}

// mostAnswers caps the plans that are kept.
const mostAnswers = 64

// newWhatIf is the stock for snapshots that differ from s in their nodes, in their claims, and in where pods are, and
// in nothing else.
func newWhatIf(s cluster.Snapshot, sells Offerings) *WhatIf {
	w := newStock(resolveAllPools(allWaiting(s), sells), sells)
	w.few = rankScarceOfferings(w.from)
	return w
}

// NewWhatIfEdited is the stock for PlanEdited about s.
func NewWhatIfEdited(s cluster.Snapshot, sells Offerings) *WhatIf {
	p := packing.NewSharedDemand(s)
	p.ResolveOfferings(sells, capacity.ManyPools)
	w := newStock(p, sells)
	w.pools = slices.Clone(p.Catalog.Pools)
	return w
}

func newStock(from *packing.Problem, sells Offerings) *WhatIf {
	return &WhatIf{sells: sells, from: from, sold: overlays.ByPool(from.S, sells), faces: capacity.NodeLabelsByName{},
		seen: &podclass.IdentityCache{}, size: countRemembered(from)}
}

// resolveAllPools is a problem that knows what pools can launch, and no more.
func resolveAllPools(s cluster.Snapshot, sells Offerings) *packing.Problem {
	problem := packing.NewSharedDemand(s)
	problem.ResolveOfferings(sells, capacity.ManyPools)
	asks := asksOf(problem, problem)
	for _, p := range problem.Catalog.Pools {
		p.CullOfferings(asks)
	}
	return problem
}

// asksOf are the admissions for which the pods of the other problem may ask this one.
func asksOf(p *packing.Problem, other *packing.Problem) []*podclass.Admission {
	var asks []*podclass.Admission
	softTaint := other.S.HasSoftTaints()
	for _, class := range other.Classes.List {
		for _, x := range podclass.RelaxationSteps(class.Pod, p.S.Rules.IgnorePreferences, softTaint) {
			asks = append(asks, p.Admissions.AdmissionOf(x))
		}
	}
	return podclass.DistinctAdmissions(asks)
}

// rankScarceOfferings ranks the offerings that are to be had in small numbers: reserved, or covered by a commitment.
func rankScarceOfferings(problem *packing.Problem) *capacity.ShareRanking {
	_, problem.Committed = problem.S.AllotCommitments()
	slots := problem.Catalog.ReservationSlots(problem.All, problem.Committed)
	var list []*capacity.Offering
	for _, p := range problem.Catalog.Pools {
		list = append(list, slices.DeleteFunc(slices.Clone(p.Reserved),
			func(o *capacity.Offering) bool { return slots[o.Reservation.ID] <= 0 })...)
		list = append(list, slices.DeleteFunc(slices.Clone(p.Paid),
			func(o *capacity.Offering) bool { _, n := o.CoveringCommitment(slots); return n == 0 })...)
	}
	return capacity.NewRanking(list, len(problem.Dims))
}

// OfferedDomains are the values of a topology key that what pools can launch may have. Nobody may change them.
func (w *WhatIf) OfferedDomains(key string) []string {
	return w.from.Catalog.Sold.DomainsOf(podclass.CanonicalKey(key), w.from.Catalog.Offerings)
}

// PlanPods returns the plan that PodsFrom makes for the snapshot.
func (w *WhatIf) PlanPods(s cluster.Snapshot) plan.Plan {
	if w.from.Catalog.HasMany() { // which of so many pools are looked at depends on the pods that wait
		return PodsFrom(s, w.sells)
	}
	return search.SolveProblem(w.problemOf(s))
}

// PlanEdited returns the plan that PodsFrom makes, without reasons, for a snapshot in which pods, pools and settings
// were edited. What pools can launch is found once for each form of a pool. It is false where neither a pool nor a host
// could take the pod namespace/name that it is asked for, were it alone.
func (w *WhatIf) PlanEdited(s cluster.Snapshot, about string) (p plan.Plan, ok bool) {
	problem := packing.NewSharedDemand(s)
	cat := w.editedCatalog(problem)
	if cat == nil {
		return PodsFrom(s, w.sells), true
	}
	w.supplyOfferings(problem, cat)
	if about != "" && !slices.ContainsFunc(problem.Classes.List, func(class *podclass.Class) bool {
		pod := class.LastRelaxation()
		return slices.Contains(class.Pods, about) && (problem.RoomFor(pod) || problem.Catalog.ForSome(pod))
	}) {
		return p, false
	}
	return search.PlacePods(problem), true
}

// editedCatalog returns what pools can launch for the problem, nil where all has to be found anew.
func (w *WhatIf) editedCatalog(problem *packing.Problem) *capacity.Catalog {
	was := w.from.Catalog
	unknown := func(resource string) bool { return !slices.Contains(w.from.Dims, resource) }
	aside := func(p *capacity.OfferingPool) bool { return p.Aside != "" }
	overlaid := len(problem.S.Overlays) > 0 &&
		!slices.EqualFunc(problem.S.Pools, w.from.S.Pools, capacity.OfferingAlike)
	if was.HasMany() || slices.ContainsFunc(was.Pools, aside) || overlaid ||
		slices.ContainsFunc(problem.Classes.NeededResources(), unknown) {
		return nil
	}
	b := &capacity.CatalogBuilder{S: &problem.S, All: problem.All, Classes: problem.Classes, Stages: problem.Stages}
	return b.FindEdited(was, &w.pools, w.sells)
}

// CachedPlan is Pods for the question about that world, or what it was when the same was asked last. The digests must
// tell apart all that differs, also what changes with time; a world that is 0 is not known. Nobody may change the plan.
func (w *WhatIf) CachedPlan(world, question uint64, ask func() cluster.Snapshot) plan.Plan {
	if world == 0 {
		return w.PlanPods(ask())
	}
	p, ok := w.given.plans[question]
	if ok && w.given.world == world {
		return p
	}
	p = w.PlanPods(ask())
	if w.given.world != world || len(w.given.plans) >= mostAnswers {
		w.given = answeredPlans{world, map[uint64]plan.Plan{}}
	}
	w.given.plans[question] = p
	return p
}

// problemOf is NewProblem with what is in stock.
func (w *WhatIf) problemOf(s cluster.Snapshot) *packing.Problem {
	p := packing.NewDemand(s, w.from.Classes.Aside)
	w.supplyOfferings(p, w.from.Catalog)
	return p
}

// supplyOfferings completes a problem that knows who needs a place.
func (w *WhatIf) supplyOfferings(p *packing.Problem, cat *capacity.Catalog) {
	from := w.from
	p.Classes.Shapes = from.Classes.Shapes
	p.Options.ShareAnswers(from.Options)
	p.SetDims(from.Dims)
	p.Admissions, p.Catalog = from.Admissions.ForSnapshot(p.S), cat
	p.Catalog.ByWeight() // found once for all questions
	p.NodeLabels, p.Identities = w.faces, w.seen
	p.Catalog.CountUse(&p.S, p.All, w.sold)
	p.AddClusterState()
}

// MinPodPrice returns the cost of the pod on the new node of which it takes the cheapest share, in USD per hour, as if
// nobody had use for the rest. PodPrices says less where pods of other shapes have it. It is false where no pool can
// launch a node for it.
func (w *WhatIf) MinPodPrice(p cluster.Pod) (usd float64, ok bool) {
	problem := w.from
	list := podclass.RelaxationSteps(p, problem.S.Rules.IgnorePreferences, false)
	x := list[len(list)-1]
	admit, need := problem.Admissions.AdmissionOf(x), problem.Dims.VectorOf(p.NextNeed())
	usd = min(problem.Catalog.Sale.MinShareOf(admit, need), w.few.MinShareOf(admit, need))
	return usd, usd < capacity.NoPrice
}

// PodPrices returns the worth of each pod that may move, in USD per hour by key. Whatever new nodes these pools make
// for some of them, those cost no less than these pods are worth together. Pods on nodes outside mayEmpty stay and are
// no part of that; no node keeps its pods where it is nil. Pods that nobody sells a node for are left out, and all of
// them where there are so many pools that not each is looked at.
func (w *WhatIf) PodPrices(s cluster.Snapshot, mayEmpty map[string]bool) map[string]float64 {
	out := map[string]float64{}
	if w.from.Catalog.HasMany() {
		return out
	}
	s.Nodes, s.Claims = nil, nil
	pods := make([]cluster.Pod, 0, len(s.Pods))
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Reschedulable() && (p.NodeName == "" || mayEmpty == nil || mayEmpty[p.NodeName]) {
			pods = append(pods, *p)
			p = &pods[len(pods)-1]
			p.NodeName, p.Nominated, p.Unscheduled, p.Deleting = "", "", true, time.Time{}
			p.Need = p.NextNeed()
		}
	}
	s.Pods = pods
	problem := packing.NewDemand(s, w.from.Classes.Aside)
	if !w.worth.pricesFor(problem) {
		w.supplyOfferings(problem, w.from.Catalog)
		w.worth = cachedPrices{namespaces: s.Namespaces, classes: problem.Classes.List}
		worth := prices.FindShadowPrices(problem, func(class *podclass.Class) int { return len(class.Pods) }, false)
		for _, class := range problem.Classes.List {
			w.worth.usd = append(w.worth.usd, min(worth.LowestPrice(class),
				w.few.MinShareOf(class.LastRelaxation().Admission, class.Need)))
		}
	}
	for i, class := range problem.Classes.List {
		if w.worth.usd[i] <= 0 {
			continue
		}
		for _, p := range class.Pods {
			out[p] = w.worth.usd[i]
		}
	}
	return out
}

// cachedPrices holds the prices of pods among others, by class.
type cachedPrices struct {
	namespaces []cluster.Namespace
	classes    []*podclass.Class
	usd        []float64 // by class: of one pod
}

// pricesFor reports whether it is about as many pods of the same classes as the problem's.
func (p cachedPrices) pricesFor(problem *packing.Problem) bool {
	return len(p.classes) > 0 && reflect.DeepEqual(p.namespaces, problem.S.Namespaces) &&
		slices.EqualFunc(p.classes, problem.Classes.List, func(a, b *podclass.Class) bool {
			return a.Text == b.Text &&
				len(a.Pods) == len(b.Pods)
		})
}

// allWaiting is the snapshot with every pod waiting that may move.
func allWaiting(s cluster.Snapshot) cluster.Snapshot {
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Reschedulable() {
			p.NodeName, p.Nominated, p.Unscheduled = "", "", true
			p.Need = p.NextNeed()
		}
	}
	return s
}

// countRemembered returns the number of answers that the problem remembers.
func countRemembered(problem *packing.Problem) int {
	n := len(problem.Admissions.ByID) + len(problem.Classes.Shapes) + problem.Options.AnswerCount()
	for _, p := range problem.Catalog.Pools {
		n += len(p.Some.Known)
	}
	return n
}
