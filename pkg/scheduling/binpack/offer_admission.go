package binpack

import (
	"fmt"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// nodeAdmission is one answer to "may a pod with these demands be on that node", asked for many nodes.
type nodeAdmission struct {
	id          string
	number      int
	alternative []requirements.Set
	tolerations []cluster.Toleration
	exclusions  []exclusion
	byPool      []*offerAnswers // nil until a pool is asked
	byModel     [][]int8        // by alternative and model: 0 unknown, 1 yes, -1 no
	pinned      map[domainPin]*nodeAdmission
	wider       *nodeAdmission // what it was pinned from, nil when it was not; where that says no, this does
	pin         domainPin
	table       *admissions
}

// offerAnswers are those about the offers of one pool.
type offerAnswers struct {
	no      bool    // the pool's taints or labels keep the pod from all of them
	byOffer []int16 // 0 unknown, -1 no, else 1 + the alternative that holds
}

// hostAnswers are those about one host: by number of the admission 0 for unknown, else 2 more than the alternative.
type hostAnswers struct{ byAdmission []int16 }

// hasSingleValue reports whether the key has one value on all nodes that the admission allows.
func (a *nodeAdmission) hasSingleValue(key string) bool {
	value := ""
	for _, alt := range a.alternative {
		r, ok := alt.Get(key)
		if !ok {
			return false
		}
		one, single := r.Single()
		if !single || value != "" && one != value {
			return false
		}
		value = one
	}
	return value != ""
}

// firstAlternative returns the first alternative that lets the pod run on a node of the offer, -1 for none.
func (a *nodeAdmission) firstAlternative(o *poolOffering) int {
	x := a.answersFor(o.model.pool)
	if x.no {
		return -1
	}
	if o.index >= len(x.byOffer) { // the pool is still being stocked
		x.byOffer = append(x.byOffer, make([]int16, o.index+1-len(x.byOffer))...)
	}
	if x.byOffer[o.index] == 0 {
		x.byOffer[o.index] = -1
		if a.wider != nil && a.wider.firstAlternative(o) < 0 {
			return -1
		}
		for i := range a.alternative {
			if a.alternativeHolds(i, o) {
				x.byOffer[o.index] = int16(min(i, 1<<14)) + 1
				break
			}
		}
	}
	if n := x.byOffer[o.index]; n > 0 {
		return int(n) - 1
	}
	return -1
}

// firstAlternativeOn is firstAlternative for a node whose open labels are limited by its pods already.
func (a *nodeAdmission) firstAlternativeOn(o *poolOffering, open requirements.Set) int {
	first := a.firstAlternative(o)
	if first < 0 || open.Len() == 0 {
		return first
	}
	for i := first; i < len(a.alternative); i++ {
		if a.alternativeHolds(i, o) {
			if _, ok := narrowOpenLabels(open, a.alternative[i]); ok {
				return i
			}
		}
	}
	return -1
}

// alternativeOn returns the first alternative that lets the pod run on an existing host or claim, -1 for none. A host
// remembers the answer.
func (a *nodeAdmission) alternativeOn(b *bin) int {
	x := b.answers
	if x == nil {
		return a.findAlternativeOn(b)
	}
	if a.number >= len(x.byAdmission) {
		x.byAdmission = append(x.byAdmission, make([]int16, a.number+1-len(x.byAdmission))...)
	}
	if x.byAdmission[a.number] == 0 {
		x.byAdmission[a.number] = int16(min(a.findAlternativeOn(b), 1<<14)) + 2
	}
	return int(x.byAdmission[a.number]) - 2
}

// findAlternativeOn is alternativeOn for a host that remembers nothing.
func (a *nodeAdmission) findAlternativeOn(b *bin) int {
	if len(cluster.Untolerated(b.taints, a.tolerations)) > 0 || slices.ContainsFunc(a.exclusions, b.awaits) {
		return -1
	}
	for i, alt := range a.alternative {
		if b.known.Within(alt, b.surelyLacks) {
			return i
		}
	}
	return -1
}

// surelyLacks reports whether a host of which no value of the label is known has none, or none that a pod can mean. The
// labels of an instance type stand on a claim once it is launched, the partition of its placement group comes later.
// The name of its node comes later too, and is new.
func (b *bin) surelyLacks(key string) bool {
	return b.exact || !isWellKnownLabel(key) || key == labelHost || b.typed && key != labelPartition
}

func (a *nodeAdmission) answersFor(p *pool) *offerAnswers {
	if p.id < len(a.byPool) && a.byPool[p.id] != nil {
		return a.byPool[p.id]
	}
	if p.id >= len(a.byPool) {
		a.byPool = append(a.byPool, make([]*offerAnswers, p.id+1-len(a.byPool))...)
	}
	x := p.refused
	if len(cluster.Untolerated(p.Taints, a.tolerations)) == 0 && slices.ContainsFunc(a.alternative, p.req.Intersects) {
		x = &offerAnswers{byOffer: make([]int16, len(p.offers))}
	}
	a.byPool[p.id] = x
	return x
}

// refusesPool reports that no offer of the pool admits the pod, whatever it sells.
func (a *nodeAdmission) refusesPool(p *pool) bool { return a.answersFor(p).no }

// inTiedDomain reports whether the offer is in the domain to which the admission is tied, as far as offers of a type
// differ in that.
func (a *nodeAdmission) inTiedDomain(o *poolOffering) bool {
	switch a.pin.key {
	case labelZone:
		return o.Zone == a.pin.domain
	case labelCapacity:
		return o.CapacityType == a.pin.domain
	}
	return true
}

// alternativeHolds reports whether alternative i holds on the offer; what does not differ between a model's offers is
// asked once.
func (a *nodeAdmission) alternativeHolds(i int, o *poolOffering) bool {
	alt := a.alternative[i]
	if !a.inTiedDomain(o) || !o.Meets(alt) || a.excludes(o) {
		return false
	}
	number := o.model.number
	if number >= len(a.byModel[i]) {
		a.byModel[i] = append(a.byModel[i], make([]int8, max(number+1, a.table.models)-len(a.byModel[i]))...)
	}
	if a.byModel[i][number] == 0 {
		ok := true
		for _, r := range alt.All() {
			if perOffer(r.Key) {
				continue
			}
			ok = ok && o.model.mayMeet(r)
		}
		a.byModel[i][number] = -1
		if ok {
			a.byModel[i][number] = 1
		}
	}
	return a.byModel[i][number] > 0
}

// mayMeet reports whether nodes of the model can meet the requirement, which is about no label in which its offers
// differ.
func (m *poolInstanceType) mayMeet(r requirements.Requirement) bool {
	mine, defined := m.labelValues(r.Key)
	if !defined {
		return r.AllowsAbsent() || r.Key == api.LabelRegistered || r.Key == api.LabelInitialized
	}
	return mine.Overlaps(r)
}

// admissions are all admissions that were asked for, each once, and the DaemonSets that keep pods off nodes.
type admissions struct {
	byID       map[string]*nodeAdmission
	daemons    []daemonOverhead
	namespaces []cluster.Namespace
	models     int // of instance types in pools, so far
}

// forSnapshot is the table with the same answers for a snapshot that may have other namespaces.
func (as *admissions) forSnapshot(s cluster.Snapshot) *admissions {
	out := *as
	out.namespaces = s.Namespaces
	return &out
}

func (as *admissions) admissionFor(alternatives []requirements.Set, tolerations []cluster.Toleration) *nodeAdmission {
	return as.admissionBeside(alternatives, tolerations, nil)
}

// admissionOf is the admission of the wish, with what keeps its pod off nodes of DaemonSets.
func (as *admissions) admissionOf(x constraints) *nodeAdmission {
	return as.admissionBeside(x.nodeAlternatives(true), x.effectiveTolerations(), as.exclusions(&x.pod))
}

func (as *admissions) admissionBeside(alternatives []requirements.Set, tolerations []cluster.Toleration,
	exclusions []exclusion) *nodeAdmission {
	parts := make([]string, len(alternatives))
	for i, s := range alternatives {
		parts[i] = requirementText(s)
	}
	id := fmt.Sprintf("%d|%s|%v", len(parts), strings.Join(parts, "|"), tolerations)
	if len(exclusions) > 0 {
		id += fmt.Sprintf("|%v", exclusions)
	}
	if a, ok := as.byID[id]; ok {
		return a
	}
	a := &nodeAdmission{id: id, number: len(as.byID), alternative: alternatives, tolerations: tolerations,
		exclusions: exclusions,
		byModel:    make([][]int8, len(alternatives)), table: as}
	as.byID[id] = a
	return a
}

// pinnedAdmission is the admission with every alternative tied to the domains.
func (as *admissions) pinnedAdmission(a *nodeAdmission, pins []domainPin) *nodeAdmission {
	for _, p := range pins {
		next := a.pinned[p]
		if next == nil {
			var alts []requirements.Set
			at := requirements.Of(p.key, p.domain)
			if p.domain == "" {
				at = requirements.None(p.key) // outside of every domain
			}
			for _, s := range a.alternative {
				if s = s.And(at); len(s.Impossible()) == 0 {
					alts = append(alts, s)
				}
			}
			next = as.admissionBeside(alts, a.tolerations, a.exclusions)
			if next.wider == nil && next != a {
				next.wider, next.pin = a, p
			}
			if a.pinned == nil {
				a.pinned = map[domainPin]*nodeAdmission{}
			}
			a.pinned[p] = next
		}
		a = next
	}
	return a
}

// requirementText is a requirement set in full; its String is shortened for people.
func requirementText(s requirements.Set) string {
	var b strings.Builder
	for _, r := range s.All() {
		fmt.Fprintf(&b, "%s %t %t %q", r.Key, r.Not, r.Present, r.Values)
		for _, n := range []*int64{r.Min, r.Max} {
			if n != nil {
				fmt.Fprintf(&b, " %d", *n)
			} else {
				b.WriteString(" -")
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}
