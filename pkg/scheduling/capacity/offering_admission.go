package capacity

import (
	"math"
	"slices"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// mostAlternatives bounds the alternatives of which the first is remembered: the sum with 2 is an int16.
const mostAlternatives = math.MaxInt16 - 2

// hostAnswers holds one host's answers, by number of the admission: 0 for unknown, else 2 more than the alternative.
type hostAnswers struct{ byAdmission []int16 }

// FirstAlternative returns the first alternative of the admission that lets its pods run on a node of the offering, -1
// for none.
func (o *Offering) FirstAlternative(a *podclass.Admission) int {
	x := o.InstanceType.Pool.answersFor(a)
	if x.No {
		return -1
	}
	if o.index >= len(x.ByOffering) { // the pool is still being stocked
		x.ByOffering = append(x.ByOffering, make([]int16, o.index+1-len(x.ByOffering))...)
	}
	if x.ByOffering[o.index] == 0 {
		x.ByOffering[o.index] = -1
		if a.Wider != nil && o.FirstAlternative(a.Wider) < 0 {
			return -1
		}
		for i := range a.Alternatives {
			if o.meetsAlternative(a, i) {
				x.ByOffering[o.index] = int16(min(i, mostAlternatives)) + 1
				break
			}
		}
	}
	if n := x.ByOffering[o.index]; n > 0 {
		return int(n) - 1
	}
	return -1
}

// FirstAlternativeBeside is FirstAlternative for a node whose open labels are limited by its pods already.
func (o *Offering) FirstAlternativeBeside(a *podclass.Admission, open requirements.Set) int {
	first := o.FirstAlternative(a)
	if first < 0 || open.Len() == 0 {
		return first
	}
	for i := first; i < len(a.Alternatives); i++ {
		if o.meetsAlternative(a, i) {
			if _, ok := NarrowOpenLabels(open, a.Alternatives[i]); ok {
				return i
			}
		}
	}
	return -1
}

// Lacks lists what new nodes of the pool do not have of what a pod requires.
func (p *OfferingPool) Lacks(required []string) (out []string) {
	for _, part := range required {
		if !p.provides(part) {
			out = append(out, part)
		}
	}
	return out
}

func (p *OfferingPool) answersFor(a *podclass.Admission) *podclass.OfferingAnswers {
	if p.number < len(a.ByPool) && a.ByPool[p.number] != nil {
		return a.ByPool[p.number]
	}
	if p.number >= len(a.ByPool) {
		a.ByPool = append(a.ByPool, make([]*podclass.OfferingAnswers, p.number+1-len(a.ByPool))...)
	}
	x := p.refused
	if len(cluster.Untolerated(p.Taints, a.Tolerations)) == 0 && len(p.Lacks(a.Requires)) == 0 &&
		slices.ContainsFunc(a.Alternatives, p.Required.Intersects) {
		x = &podclass.OfferingAnswers{ByOffering: make([]int16, len(p.Offerings))}
	}
	a.ByPool[p.number] = x
	return x
}

// refuses reports that no offering of the pool can have pods of the admission, whatever it sells.
func (p *OfferingPool) refuses(a *podclass.Admission) bool { return p.answersFor(a).No }

// inTiedDomain reports whether the offering is in the domain to which the admission is tied, as far as offerings of a
// type differ in that.
func (o *Offering) inTiedDomain(a *podclass.Admission) bool {
	switch a.Pin.Key {
	case instancetypes.LabelZone:
		return o.Zone == a.Pin.Domain
	case instancetypes.LabelCapacityType:
		return o.CapacityType == a.Pin.Domain
	}
	return true
}

// meetsAlternative reports whether alternative i of the admission holds on the offering; what does not differ between a
// model's offerings is asked once.
func (o *Offering) meetsAlternative(a *podclass.Admission, i int) bool {
	alt := a.Alternatives[i]
	if !o.inTiedDomain(a) || !o.Meets(alt) || o.KeepsOff(a) {
		return false
	}
	number := o.InstanceType.number
	if number >= len(a.ByModel[i]) {
		a.ByModel[i] = append(a.ByModel[i], make([]int8, max(number+1, a.Table.Models)-len(a.ByModel[i]))...)
	}
	if a.ByModel[i][number] == 0 {
		ok := true
		for _, r := range alt.All() {
			if podclass.VariesByOffering(r.Key) {
				continue
			}
			ok = ok && o.InstanceType.mayMeet(r)
		}
		a.ByModel[i][number] = -1
		if ok {
			a.ByModel[i][number] = 1
		}
	}
	return a.ByModel[i][number] > 0
}

// mayMeet reports whether nodes of the model can meet the requirement, which is about no label in which its offerings
// differ.
func (t *InstanceType) mayMeet(r requirements.Requirement) bool {
	mine, defined := t.labelValues(r.Key)
	if !defined {
		return r.AllowsAbsent() || r.Key == api.LabelRegistered || r.Key == api.LabelInitialized
	}
	return mine.Overlaps(r)
}

// NarrowOpenLabels limits the open labels to what the alternative allows; false when that leaves no value of one.
func NarrowOpenLabels(open, alt requirements.Set) (requirements.Set, bool) {
	if open.Len() == 0 {
		return open, true
	}
	for _, r := range alt.All() {
		if mine, ok := open.Get(r.Key); ok {
			if !mine.Overlaps(r) {
				return open, false
			}
			open = open.And(r)
		}
	}
	return open, true
}

// KeepsOff reports whether pods of the admission may not be on nodes of the offering because of the DaemonSets that
// those run. Both are sorted by DaemonSet, and gone through together: a tenant may have 200, and 1,000 such admissions.
func (o *Offering) KeepsOff(a *podclass.Admission) bool {
	rest := o.Daemons
	for _, x := range a.Exclusions {
		for len(rest) > 0 && rest[0] < x.Daemon {
			rest = rest[1:]
		}
		if len(rest) == 0 {
			return false
		}
		if rest[0] == x.Daemon && o.hasDomain(x.Key) {
			return true
		}
	}
	return false
}

// Runs reports whether nodes of the offering have a pod of the DaemonSet and a value for the key.
func (o *Offering) Runs(x podclass.Exclusion) bool {
	_, runs := slices.BinarySearch(o.Daemons, x.Daemon)
	return runs && o.hasDomain(x.Key)
}

func (o *Offering) hasDomain(key string) bool {
	return key == podclass.LabelHost || len(o.domainsFor(key)) > 0
}
