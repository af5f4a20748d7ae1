package capacity

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// mostTypes is the number of types that one launch can name.
const mostTypes = 60

// PriceFlexibility returns the price factor, over the cheapest type, up to which a launch names other types, and how
// many types a spot launch names at any price.
func (f *OptionFinder) PriceFlexibility() (margin float64, minSpotInstanceTypes int) {
	return f.Rules.PriceFactor(), f.Rules.LeastSpotTypes()
}

// ChooseOptions keeps the cheapest options: those within the price margin, more where spot needs them, and those that
// the pool's MinValues need.
func (f *OptionFinder) ChooseOptions(opts []TypeOption, set requirements.Set) []TypeOption {
	margin, minSpotInstanceTypes := f.PriceFlexibility()
	keep := MarkNeededForMinValues(opts, set)
	n := 0
	for _, is := range keep {
		if is {
			n++
		}
	}
	for i, o := range opts {
		if !keep[i] && n < mostTypes && (o.Best.Price <= opts[0].Best.Price*margin || o.Spot &&
			n < minSpotInstanceTypes) {
			keep[i] = true
			n++
		}
	}
	var out []TypeOption
	for i, o := range opts {
		if keep[i] {
			out = append(out, o)
		}
	}
	return out
}

// optionLimit tells when no launch would name any more options.
type optionLimit struct {
	margin               float64
	minSpotInstanceTypes int // to be named at any price
}

func (f *OptionFinder) optionLimitFor(set requirements.Set) optionLimit {
	margin, minSpotInstanceTypes := f.PriceFlexibility()
	if !set.Has(instancetypes.LabelCapacityType, instancetypes.Spot) {
		minSpotInstanceTypes = 0
	}
	return optionLimit{margin, minSpotInstanceTypes}
}

// reachedAt reports whether the options are enough when all others cost the price at least.
func (l optionLimit) reachedAt(list []TypeOption, price float64) bool {
	if len(list) == 0 {
		return false
	}
	least := list[0].Best.Price
	for _, o := range list {
		least = min(least, o.Best.Price)
	}
	n := 0
	for _, o := range list {
		if o.Best.Price <= min(price, least*l.margin) || o.Spot && o.Best.Price <= price {
			n++
		}
	}
	return n >= mostTypes || price > least*l.margin && n >= l.minSpotInstanceTypes
}

// OptionFinder tells what may stand in for the offering of a new node.
type OptionFinder struct {
	Dims  podclass.Dims                // of the vectors of needs and room
	Rules *cluster.Settings            // settings: the price factor and how many types a spot launch names
	known map[string]*loadRequirements // once some was asked for
	asked []int64                      // of the loads asked about last
	last  lastOptions
}

// ShareAnswers shares what the other was asked and will be.
func (f *OptionFinder) ShareAnswers(other *OptionFinder) { f.known = other.rememberAnswers() }

func (f *OptionFinder) rememberAnswers() map[string]*loadRequirements {
	if f.known == nil {
		f.known = map[string]*loadRequirements{}
	}
	return f.known
}

// AnswerCount returns the number of answers that are remembered.
func (f *OptionFinder) AnswerCount() int { return len(f.known) }

// LaunchOptions lists the models of the pool that can hold the loads as things are sold now, cheapest first, where the
// pool has that in use. The list may end where the rest is so dear that no launch names it, unless all are asked for.
func (f *OptionFinder) LaunchOptions(p *OfferingPool, inUse PoolUsage, loads []PodLoad, all bool) ([]TypeOption,
	requirements.Set) {
	r := f.requirementsOf(p, loads)
	used, ports := f.SumLoads(loads)
	alone := len(p.Limited) == 0 && len(ports) == 0 // then the same node was perhaps asked for just before
	if alone && f.last.id == r.id && f.last.all == all && slices.Equal(f.last.used, used) {
		return f.last.options, r.Set
	}
	var out []TypeOption
	l := f.optionLimitFor(r.Set)
	for i, t := range p.ForSale { // by the cheapest offering that each has
		if !all && l.reachedAt(out, t.sale[0].Price) {
			break
		}
		if !t.hasRoomFor(used) {
			continue
		}
		opt, ok := r.optionFor(i).holding(used, ports)
		if ok && len(p.ExceededLimits(inUse, t.Type.Capacity)) == 0 {
			out = append(out, opt)
		}
	}
	slices.SortFunc(out, TypeOption.ComparePrice)
	if alone {
		f.last = lastOptions{r.id, all, used, out}
	}
	return out, r.Set
}

// RequirementsOf tells what a node of the pool must meet to hold the loads: the pool's own requirements and, of each
// load, the alternative that was chosen for it.
func (f *OptionFinder) RequirementsOf(p *OfferingPool, loads []PodLoad) requirements.Set {
	return f.requirementsOf(p, loads).Set
}

// requirementsOf is RequirementsOf with what can meet them.
func (f *OptionFinder) requirementsOf(p *OfferingPool, loads []PodLoad) *loadRequirements {
	f.asked = f.asked[:0]
	for _, l := range loads {
		f.asked = append(f.asked, int64(l.Admission.Number)*math.MaxInt32+int64(l.Alt))
	}
	slices.Sort(f.asked)
	f.asked = slices.Compact(f.asked)
	id := binary.AppendVarint(nil, int64(p.number))
	for _, x := range f.asked {
		id = binary.AppendVarint(id, x)
	}
	if r, ok := f.known[string(id)]; ok {
		return r
	}
	reqs := &loadRequirements{id: string(id), Set: p.Required, pool: p, options: make([]*TypeOption, len(p.ForSale))}
	keys := map[string]int{} // how many ask for it
	for i, l := range loads {
		if slices.ContainsFunc(loads[:i],
			func(o PodLoad) bool { return o.Admission == l.Admission && o.Alt == l.Alt }) {
			continue
		}
		reqs.loads = append(reqs.loads, PodLoad{Admission: l.Admission, Alt: l.Alt})
		alt := l.Admission.Alternatives[l.Alt]
		reqs.Set = reqs.Set.AndSet(alt)
		for _, r := range alt.All() {
			keys[r.Key]++
		}
	}
	for _, r := range reqs.Set.All() {
		if keys[r.Key] > 1 && !podclass.VariesByOffering(r.Key) {
			reqs.joint = append(reqs.joint, r)
		}
	}
	f.rememberAnswers()[reqs.id] = reqs
	return reqs
}

// loadRequirements holds what a node of a pool must meet to hold some loads, and the models that can, as far as they
// were asked for.
type loadRequirements struct {
	id    string
	Set   requirements.Set
	pool  *OfferingPool
	loads []PodLoad
	joint []requirements.Requirement // what one alone may leave room for, and all together not
	// by place of the model among those for sale; nil until asked, without offerings when it cannot be
	options []*TypeOption
}

// optionFor is the pool's model for sale at that place with the offerings, cheapest first, that every load and the
// joint requirements of all allow.
func (r *loadRequirements) optionFor(i int) *TypeOption {
	if r.options[i] == nil {
		t := r.pool.ForSale[i]
		opt := &TypeOption{Model: t}
		if t.meetsRequirements(r.joint) {
			for _, o := range t.sale {
				if o.AllowsLoads(r.loads) {
					opt.Offerings = append(opt.Offerings, o)
				}
			}
		}
		r.options[i] = opt
	}
	return r.options[i]
}

// holding is the option with those of its offerings, cheapest first, that have so much room and the ports free; false
// when none has.
func (o *TypeOption) holding(used []int64, ports []cluster.HostPort) (TypeOption, bool) {
	opt := TypeOption{Model: o.Model}
	for _, offering := range o.Offerings {
		if !AtLeast(offering.Room, used) || cluster.PortsConflict(ports, offering.Ports) {
			continue
		}
		if opt.Best == nil {
			opt.Best = offering
		}
		opt.Offerings = append(opt.Offerings, offering)
		opt.Spot = opt.Spot || offering.CapacityType == instancetypes.Spot
	}
	return opt, opt.Best != nil
}

// lastOptions holds the last answer of options.
type lastOptions struct {
	id      string
	all     bool
	used    []int64
	options []TypeOption
}

// ComparePrice orders options by price, among equals by name.
func (o TypeOption) ComparePrice(y TypeOption) int {
	return cmp.Or(cmp.Compare(o.Best.Price, y.Best.Price), strings.Compare(o.Model.Type.Name, y.Model.Type.Name))
}

// hasRoomFor reports whether some node of the model has so much room.
func (t *InstanceType) hasRoomFor(used []int64) bool {
	return slices.ContainsFunc(t.sale, func(o *Offering) bool { return AtLeast(o.Room, used) })
}

// AllowsLoads reports whether each of the loads may be on a node of the offering.
func (o *Offering) AllowsLoads(loads []PodLoad) bool {
	for _, l := range loads {
		if !o.meetsAlternative(l.Admission, l.Alt) {
			return false
		}
	}
	return true
}

// meetsRequirements reports whether the model's nodes can have labels that meet the requirements.
func (t *InstanceType) meetsRequirements(list []requirements.Requirement) bool {
	for _, r := range list {
		mine, ok := t.labelValues(r.Key)
		if !ok && !r.AllowsAbsent() || ok && !mine.Overlaps(r) {
			return false
		}
	}
	return true
}

// SumLoads returns what the loads need together, and their host ports.
func (f *OptionFinder) SumLoads(loads []PodLoad) (used []int64, ports []cluster.HostPort) {
	used = make([]int64, len(f.Dims))
	for _, l := range loads {
		for i, x := range l.Pod.Class.Need {
			used[i] += x * int64(len(l.Pods))
		}
		ports = append(ports, l.Pod.Class.Pod.HostPorts...)
	}
	AddSharedVolumes(f.Dims, used, loads)
	return used, ports
}
