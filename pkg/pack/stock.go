package pack

import (
	"reflect"
	"slices"
	"time"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/overlay"
	"joiner/pkg/plan"
)

// Stock is what pools can launch, found once for many questions about one cluster: what if these nodes were gone, what if those pods
// waited. It remembers which offers suit which pods. It may not be used concurrently.
type Stock struct {
	sells Market
	from  *world   // with every pod as if it waited
	few   *ranking // what is to be had in small numbers
	sold  func(cluster.Pool) []catalog.Type
	worth valued // once asked
	faces faces
	seen  *sightings
	size  int // of what it remembered at first
	given answered
}

// answered are the plans of questions about one cluster, by the digests that the asker gave them.
type answered struct {
	world uint64
	plans map[uint64]plan.Plan
}

// mostAnswers is how many plans are kept.
const mostAnswers = 64

// Stocked is the stock for snapshots that differ from s in their nodes, in their claims, and in where pods are, and in nothing else.
func Stocked(s cluster.Snapshot, sells Market) *Stock {
	from := stocked(allWaiting(s), sells)
	return &Stock{sells: sells, from: from, few: from.scarce(), sold: overlay.Market(s, sells), faces: faces{}, seen: &sightings{}, size: from.size()}
}

// Domains are the values of a topology key that what pools can launch may have. Nobody may change them.
func (st *Stock) Domains(key string) []string {
	return st.from.sold.of(canonicalKey(key), st.from.offers)
}

// stocked is a world that knows what pools can launch, and no more.
func stocked(s cluster.Snapshot, sells Market) *world {
	w := newWorld(s, manyPools)
	w.ask()
	w.measure(w.needed())
	w.addDaemons()
	w.findPools(sells)
	asks := w.asksOf(w)
	for _, p := range w.pools {
		p.cull(asks)
	}
	return w
}

// asksOf are the admissions for which the pods of the other world may ask this one.
func (w *world) asksOf(other *world) []*admission {
	var asks []*admission
	softTaint := other.softTaints()
	for _, k := range other.kinds {
		for _, x := range wishes(k.pod, w.s.Rules.IgnorePreferences, softTaint) {
			asks = append(asks, w.admissionOf(x))
		}
	}
	return distinct(asks)
}

// scarce ranks the offers that are to be had in small numbers: reserved, or covered by a commitment.
func (w *world) scarce() *ranking {
	_, w.room = w.s.Allot()
	a := w.attempt(nil, byShares)
	var list []*offer
	for _, p := range w.pools {
		list = append(list, slices.DeleteFunc(slices.Clone(p.reserved), func(o *offer) bool { return a.slots[o.Reservation.ID] <= 0 })...)
		list = append(list, slices.DeleteFunc(slices.Clone(p.paid), func(o *offer) bool { _, n := a.covered(o); return n == 0 })...)
	}
	return newRanking(list, len(w.dims))
}

// Pods is what PodsFrom decides about the snapshot.
func (st *Stock) Pods(s cluster.Snapshot) plan.Plan {
	if len(st.from.pools) > st.from.few { // which of so many pools are looked at depends on the pods that wait
		return PodsFrom(s, st.sells)
	}
	return decided(st.survey(s))
}

// Answer is Pods for the question about that world, or what it was when the same was asked last. The digests must tell apart all that differs,
// also what changes with time; a world that is 0 is not known. Nobody may change the plan.
func (st *Stock) Answer(world, question uint64, ask func() cluster.Snapshot) plan.Plan {
	if world == 0 {
		return st.Pods(ask())
	}
	p, ok := st.given.plans[question]
	if ok && st.given.world == world {
		return p
	}
	p = st.Pods(ask())
	if st.given.world != world || len(st.given.plans) >= mostAnswers {
		st.given = answered{world, map[uint64]plan.Plan{}}
	}
	st.given.plans[question] = p
	return p
}

// survey is survey with what is in stock.
func (st *Stock) survey(s cluster.Snapshot) *world {
	w := newWorld(s, manyPools)
	st.supply(w, w.ask())
	return w
}

// supply completes a world that knows who needs a place.
func (st *Stock) supply(w *world, sig signer) {
	from := st.from
	w.shapes = from.shapes
	w.measure(from.dims)
	w.daemons, w.admissions, w.models = from.daemons, from.admissions, from.models
	w.pools, w.offers, w.skipped, w.sold = from.pools, from.offers, from.skipped, from.sold
	w.sale, w.weights, w.faces, w.seen = from.sale, from.byWeight(), st.faces, st.seen
	w.bookable, w.lets, w.holders = from.bookable, from.lets, from.holders
	w.countUse(st.sold)
	w.complete(sig)
}

// Floor is what the pod costs on the new node of which it takes the cheapest share, USD per hour, as if nobody had use for the rest of a
// resource that it leaves: Worth is less where pods of other shapes do. It is false where no pool can launch a node for it.
func (st *Stock) Floor(p cluster.Pod) (usd float64, ok bool) {
	w := st.from
	list := wishes(p, w.s.Rules.IgnorePreferences, false)
	x := list[len(list)-1]
	admit, need := w.admissionOf(x), w.vector(p.Need)
	usd = min(w.sale.share(admit, need), st.few.share(admit, need))
	return usd, usd < noPrice
}

// Worth is what each pod that may move is worth, USD per hour by key: whatever new nodes these pools make for some of them, those cost no
// less than these pods are worth together. Pods that nobody sells a node for are left out, and all of them where there are so many pools
// that not each is looked at.
func (st *Stock) Worth(s cluster.Snapshot) map[string]float64 {
	out := map[string]float64{}
	if len(st.from.pools) > st.from.few {
		return out
	}
	s.Nodes, s.Claims = nil, nil
	pods := make([]cluster.Pod, 0, len(s.Pods))
	for _, p := range s.Pods {
		if p.Reschedulable() {
			p.NodeName, p.Nominated, p.Unscheduled, p.Deleting = "", "", true, time.Time{}
			pods = append(pods, p)
		}
	}
	s.Pods = pods
	w := newWorld(s, manyPools)
	sig := w.ask()
	if !st.worth.of(w) {
		st.supply(w, sig)
		st.worth = valued{namespaces: s.Namespaces, kinds: w.kinds}
		worth := w.price(func(k *kind) int { return len(k.pods) })
		for _, k := range w.kinds {
			st.worth.usd = append(st.worth.usd, min(worth.lowest(k), st.few.share(k.last().admit, k.need)))
		}
	}
	for i, k := range w.kinds {
		if st.worth.usd[i] <= 0 {
			continue
		}
		for _, p := range k.pods {
			out[p] = st.worth.usd[i]
		}
	}
	return out
}

// valued is what pods are worth among others.
type valued struct {
	namespaces []cluster.Namespace
	kinds      []*kind
	usd        []float64 // by kind: of one pod
}

// of reports whether it is about as many pods of the same kinds as the world's.
func (x valued) of(w *world) bool {
	return len(x.kinds) > 0 && reflect.DeepEqual(x.namespaces, w.s.Namespaces) &&
		slices.EqualFunc(x.kinds, w.kinds, func(a, b *kind) bool { return a.text == b.text && len(a.pods) == len(b.pods) })
}

// lowest is what a pod of the kind is worth where that is least.
func (p *worth) lowest(k *kind) float64 {
	x := p.kinds[k.id]
	if x.key == "" {
		return p.prices.Value[x.class]
	}
	usd := noPrice
	for _, c := range x.tied {
		usd = min(usd, p.prices.Value[c])
	}
	return usd
}

// domainsSold are the domains in which offers are, sorted, by topology key, once they were asked for.
type domainsSold map[string][]string

func (d domainsSold) of(key string, offers []*offer) []string {
	all, ok := d[key]
	if ok {
		return all
	}
	for _, o := range offers {
		all = append(all, o.domains(key)...)
		if len(all) > 1<<12 {
			slices.Sort(all)
			all = slices.Compact(all)
		}
	}
	slices.Sort(all)
	d[key] = slices.Compact(all)
	return d[key]
}
