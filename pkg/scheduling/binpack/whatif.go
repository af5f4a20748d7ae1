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

// WhatIf holds what pools can launch, found once for many questions about one cluster: what if these nodes were gone,
// what if those pods waited. It remembers which offerings suit which pods. It may not be used concurrently.
type WhatIf struct {
	sells Offerings
	from  *packing.Problem       // with every pod as if it waited
	few   *capacity.ShareRanking // what is to be had in small numbers
	sold  func(cluster.Pool) []instancetypes.Type
	pools []*capacity.Pool // in each form that PlanEdited met
	worth cachedPrices     // once asked
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
	st := newStock(resolveAllPools(allWaiting(s), sells), sells)
	st.few = rankScarceOfferings(st.from)
	return st
}

// NewWhatIfEdited is the stock for PlanEdited about s.
func NewWhatIfEdited(s cluster.Snapshot, sells Offerings) *WhatIf {
	w := packing.NewSharedDemand(s)
	w.ResolveOfferings(sells, capacity.ManyPools)
	st := newStock(w, sells)
	st.pools = slices.Clone(w.Catalog.Pools)
	return st
}

func newStock(from *packing.Problem, sells Offerings) *WhatIf {
	return &WhatIf{sells: sells, from: from, sold: overlays.ByPool(from.S, sells), faces: capacity.NodeLabelsByName{},
		seen: &podclass.IdentityCache{}, size: countRemembered(from)}
}

// resolveAllPools is a problem that knows what pools can launch, and no more.
func resolveAllPools(s cluster.Snapshot, sells Offerings) *packing.Problem {
	w := packing.NewSharedDemand(s)
	w.ResolveOfferings(sells, capacity.ManyPools)
	asks := asksOf(w, w)
	for _, p := range w.Catalog.Pools {
		p.CullOfferings(asks)
	}
	return w
}

// asksOf are the admissions for which the pods of the other problem may ask this one.
func asksOf(w *packing.Problem, other *packing.Problem) []*podclass.Admission {
	var asks []*podclass.Admission
	softTaint := other.S.HasSoftTaints()
	for _, k := range other.Classes.List {
		for _, x := range podclass.RelaxationSteps(k.Pod, w.S.Rules.IgnorePreferences, softTaint) {
			asks = append(asks, w.Admissions.AdmissionOf(x))
		}
	}
	return podclass.DistinctAdmissions(asks)
}

// rankScarceOfferings ranks the offerings that are to be had in small numbers: reserved, or covered by a commitment.
func rankScarceOfferings(w *packing.Problem) *capacity.ShareRanking {
	_, w.Committed = w.S.AllotCommitments()
	slots := w.Catalog.ReservationSlots(w.All, w.Committed)
	var list []*capacity.Offering
	for _, p := range w.Catalog.Pools {
		list = append(list, slices.DeleteFunc(slices.Clone(p.Reserved),
			func(o *capacity.Offering) bool { return slots[o.Reservation.ID] <= 0 })...)
		list = append(list, slices.DeleteFunc(slices.Clone(p.Paid),
			func(o *capacity.Offering) bool { _, n := o.CoveringCommitment(slots); return n == 0 })...)
	}
	return capacity.NewRanking(list, len(w.Dims))
}

// OfferedDomains are the values of a topology key that what pools can launch may have. Nobody may change them.
func (st *WhatIf) OfferedDomains(key string) []string {
	return st.from.Catalog.Sold.DomainsOf(podclass.CanonicalKey(key), st.from.Catalog.Offerings)
}

// PlanPods returns the plan that PodsFrom makes for the snapshot.
func (st *WhatIf) PlanPods(s cluster.Snapshot) plan.Plan {
	if st.from.Catalog.HasMany() { // which of so many pools are looked at depends on the pods that wait
		return PodsFrom(s, st.sells)
	}
	return search.SolveProblem(st.problemOf(s))
}

// PlanEdited returns the plan that PodsFrom makes, without reasons, for a snapshot in which pods, pools and settings
// were edited. What pools can launch is found once for each form of a pool. It is false where neither a pool nor a host
// could take the pod namespace/name that it is asked for, were it alone.
func (st *WhatIf) PlanEdited(s cluster.Snapshot, about string) (p plan.Plan, ok bool) {
	w := packing.NewSharedDemand(s)
	cat := st.editedCatalog(w)
	if cat == nil {
		return PodsFrom(s, st.sells), true
	}
	st.supplyOfferings(w, cat)
	if about != "" && !slices.ContainsFunc(w.Classes.List, func(k *podclass.Class) bool {
		v := k.LastRelaxation()
		return slices.Contains(k.Pods, about) && (w.RoomFor(v) || w.Catalog.ForSome(v))
	}) {
		return p, false
	}
	return search.PlacePods(w), true
}

// editedCatalog returns what pools can launch for the problem, nil where all has to be found anew.
func (st *WhatIf) editedCatalog(w *packing.Problem) *capacity.Catalog {
	was := st.from.Catalog
	unknown := func(resource string) bool { return !slices.Contains(st.from.Dims, resource) }
	aside := func(p *capacity.Pool) bool { return p.Aside != "" }
	overlaid := len(w.S.Overlays) > 0 && !slices.EqualFunc(w.S.Pools, st.from.S.Pools, capacity.OfferingAlike)
	if was.HasMany() || slices.ContainsFunc(was.Pools, aside) || overlaid ||
		slices.ContainsFunc(w.Classes.NeededResources(), unknown) {
		return nil
	}
	b := &capacity.CatalogBuilder{S: &w.S, All: w.All, Classes: w.Classes, Stages: w.Stages}
	return b.FindEdited(was, &st.pools, st.sells)
}

// CachedPlan is Pods for the question about that world, or what it was when the same was asked last. The digests must
// tell apart all that differs, also what changes with time; a world that is 0 is not known. Nobody may change the plan.
func (st *WhatIf) CachedPlan(world, question uint64, ask func() cluster.Snapshot) plan.Plan {
	if world == 0 {
		return st.PlanPods(ask())
	}
	p, ok := st.given.plans[question]
	if ok && st.given.world == world {
		return p
	}
	p = st.PlanPods(ask())
	if st.given.world != world || len(st.given.plans) >= mostAnswers {
		st.given = answeredPlans{world, map[uint64]plan.Plan{}}
	}
	st.given.plans[question] = p
	return p
}

// problemOf is NewProblem with what is in stock.
func (st *WhatIf) problemOf(s cluster.Snapshot) *packing.Problem {
	w := packing.NewDemand(s, st.from.Classes.Aside)
	st.supplyOfferings(w, st.from.Catalog)
	return w
}

// supplyOfferings completes a problem that knows who needs a place.
func (st *WhatIf) supplyOfferings(w *packing.Problem, cat *capacity.Catalog) {
	from := st.from
	w.Classes.Shapes = from.Classes.Shapes
	w.Options.ShareAnswers(from.Options)
	w.SetDims(from.Dims)
	w.Admissions, w.Catalog = from.Admissions.ForSnapshot(w.S), cat
	w.Catalog.ByWeight() // found once for all questions
	w.NodeLabels, w.Identities = st.faces, st.seen
	w.Catalog.CountUse(&w.S, w.All, st.sold)
	w.AddClusterState()
}

// MinPodPrice returns the cost of the pod on the new node of which it takes the cheapest share, in USD per hour, as if
// nobody had use for the rest. PodPrices says less where pods of other shapes have it. It is false where no pool can
// launch a node for it.
func (st *WhatIf) MinPodPrice(p cluster.Pod) (usd float64, ok bool) {
	w := st.from
	list := podclass.RelaxationSteps(p, w.S.Rules.IgnorePreferences, false)
	x := list[len(list)-1]
	admit, need := w.Admissions.AdmissionOf(x), w.Dims.VectorOf(p.NextNeed())
	usd = min(w.Catalog.Sale.MinShareOf(admit, need), st.few.MinShareOf(admit, need))
	return usd, usd < capacity.NoPrice
}

// PodPrices returns the worth of each pod that may move, in USD per hour by key. Whatever new nodes these pools make
// for some of them, those cost no less than these pods are worth together. Pods on nodes outside mayEmpty stay and are
// no part of that; no node keeps its pods where it is nil. Pods that nobody sells a node for are left out, and all of
// them where there are so many pools that not each is looked at.
func (st *WhatIf) PodPrices(s cluster.Snapshot, mayEmpty map[string]bool) map[string]float64 {
	out := map[string]float64{}
	if st.from.Catalog.HasMany() {
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
	w := packing.NewDemand(s, st.from.Classes.Aside)
	if !st.worth.pricesFor(w) {
		st.supplyOfferings(w, st.from.Catalog)
		st.worth = cachedPrices{namespaces: s.Namespaces, classes: w.Classes.List}
		worth := prices.FindShadowPrices(w, func(k *podclass.Class) int { return len(k.Pods) }, false)
		for _, k := range w.Classes.List {
			st.worth.usd = append(st.worth.usd, min(worth.LowestPrice(k),
				st.few.MinShareOf(k.LastRelaxation().Admission, k.Need)))
		}
	}
	for i, k := range w.Classes.List {
		if st.worth.usd[i] <= 0 {
			continue
		}
		for _, p := range k.Pods {
			out[p] = st.worth.usd[i]
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
func (x cachedPrices) pricesFor(w *packing.Problem) bool {
	return len(x.classes) > 0 && reflect.DeepEqual(x.namespaces, w.S.Namespaces) &&
		slices.EqualFunc(x.classes, w.Classes.List, func(a, b *podclass.Class) bool {
			return a.Text == b.Text &&
				len(a.Pods) == len(b.Pods)
		})
}
