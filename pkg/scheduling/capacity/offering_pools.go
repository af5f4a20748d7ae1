package capacity

import (
	"cmp"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	aws "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// undominatedOfferings are the offerings of a pool's sale of which some may be undominated for some of the admissions,
// and for those of these that are tied to a zone or a capacity type. Without admissions they are not found yet.
type undominatedOfferings struct {
	offerings []*Offering
	Asks      map[*podclass.Admission]bool
	Known     map[string][]*Offering // what is undominated for admissions, by their numbers
}

// OfferingPool is a NodePool that takes part.
type OfferingPool struct {
	cluster.Pool
	ID        int                       // its place in the catalog
	number    int                       // of all that the admissions know answers about
	relaxed   bool                      // MinValues may be lowered
	Required  requirements.Set          // requirements and template labels
	open      []string                  // custom keys for which pods may choose the value
	named     map[string][]string       // for those: the values that any pod names, sorted
	refused   *podclass.OfferingAnswers // of those that may never be here
	provides  func(part string) bool    // whether new nodes have what a pod requires
	Aside     string                    // why nobody looks what it can launch, empty when somebody does
	allowed   []*InstanceType           // by its requirements, of those some that it has no offerings of
	Models    []*InstanceType           // of those, the ones that it has offerings of, sorted by name
	Offerings []*Offering               // of all Models, unavailable ones too
	Sale      []*Offering               // those available now, see ForSale
	ForSale   []*InstanceType           // the models that those are of, in the same order
	Reserved  []*Offering               // of them, those in capacity reservations, which sale does not have
	Paid      []*Offering               // of them, those that commitments cover, which sale does not have
	Used      PoolUsage                 // by its nodes and claims that are not being deleted

	// a launch may name a single type, as those into capacity reservations do: MinValues ask for no more, or may be
	// lowered
	MayBeOneType bool
	inflexible   bool // its MinValues ask for more values than all its types have

	Some    undominatedOfferings // see CullOfferings
	Largest resources.List       // what any node takes of the limits at most, where there are any

	oversized []int // DaemonSets that fit none of its types, by place among all
}

// PoolUsage holds the resources and the number of nodes that a pool has already.
type PoolUsage struct {
	List  resources.List // capacity of the nodes; with cluster.LimitUSD where the pool limits that
	Nodes int64          // claims without a node among them
}

// InstanceType is an instance type as a node of one pool.
type InstanceType struct {
	id     int                 // within the pool
	Pool   *OfferingPool       // the NodePool whose nodes it is
	number int                 // over all pools
	Type   *instancetypes.Type // with NodeOverlays; its capacity has a price where the pool limits USD
	Open   requirements.Set    // see openLabels
	Sells  []*Offering         // offerings that the pool's requirements allow, unavailable ones too
	// a new node is expected to attach, by driver; those not named have no limit
	Volumes map[string]int64
	sale    []*Offering // of them, those of the pool's sale
}

// Offering is a model in a zone under a capacity type: a node that could be made.
type Offering struct {
	index        int           // within the pool
	InstanceType *InstanceType // with the NodePool
	instancetypes.Offering
	DaemonNeed resources.List     // of the daemons that it would run
	Room       []int64            // allocatable less the daemons
	Ports      []cluster.HostPort // host ports that those daemons take
	Daemons    []int              // that nodes of it run, by place among all
}

// offeredAs reports whether all that the pool can launch is what the other can, of which nothing is known yet.
func (p *OfferingPool) offeredAs(other *OfferingPool, named map[string][]string, relaxed bool) bool {
	return p.relaxed == relaxed && OfferingAlike(p.Pool, other.Pool) &&
		!slices.ContainsFunc(p.open, func(key string) bool { return !slices.Equal(p.named[key], named[key]) })
}

// OfferingAlike reports whether the pools can launch the same, but for their limits.
func OfferingAlike(a, b cluster.Pool) bool {
	a.Limits, a.Disruption = b.Limits, b.Disruption
	return a.Name == b.Name && reflect.DeepEqual(a, b)
}

// readRequirements finds what the pool asks of its nodes, and which labels it leaves to pods.
func (p *OfferingPool) readRequirements() {
	p.MayBeOneType = p.relaxed ||
		!slices.ContainsFunc(p.Requirements.All(), func(r requirements.Requirement) bool { return r.MinValues > 1 })
	p.Required = p.Requirements.AndSet(requirements.FromLabels(p.Labels)).And(requirements.Of(api.LabelNodePool,
		p.Name),
		requirements.Of(aws.LabelEC2NodeClass, p.Class))
	for _, r := range p.Required.All() {
		if _, single := r.Single(); !single && !podclass.IsWellKnownLabel(r.Key) {
			p.open = append(p.open, r.Key)
		}
	}
}

// domainsFor are the values that a node of the offering may have for the label.
func (o *Offering) domainsFor(key string) []string {
	if v, own := o.Label(key); own && v == "" {
		return nil
	} else if own {
		return []string{v}
	}
	r, ok := o.InstanceType.labelValues(key)
	switch {
	case !ok:
		return nil
	case r.Not && !podclass.IsWellKnownLabel(key):
		return o.InstanceType.Pool.CustomLabelValues(r) // pods may choose
	}
	return r.Values
}

// CustomLabelValues are the values that nodes of the pool may get for a custom label: those that pods name, else one
// that is made up.
func (p *OfferingPool) CustomLabelValues(r requirements.Requirement) []string {
	out := slices.DeleteFunc(slices.Clone(p.named[r.Key]), func(v string) bool { return !r.Has(v) })
	if len(out) == 0 || !r.Not {
		return []string{r.AnyValue()}
	}
	return out
}

// choosesGPUs reports whether the pool names the types or families of its nodes, or says how much memory a GPU of
// theirs has. Only then it gets types with a part of a GPU: elsewhere pods that ask for one mean a whole one.
func (p *OfferingPool) choosesGPUs() bool {
	named := func(key string) bool {
		r, ok := p.Required.Get(key)
		return ok && r.Operator() == requirements.In
	}
	_, sized := p.Required.Get(instancetypes.LabelGPUMemory)
	return sized || named(corev1.LabelInstanceTypeStable) || named(instancetypes.LabelFamily)
}

// ofInstance reports whether the instance alone, and neither the pool nor a pod, decides the label's value.
func ofInstance(key string) bool {
	return podclass.IsWellKnownLabel(key) && key != api.LabelNodePool && key != aws.LabelEC2NodeClass
}

// labelValues returns the known values of a label of the model's nodes, many where offerings or pods decide; false when
// they do not carry it.
func (t *InstanceType) labelValues(key string) (requirements.Requirement, bool) {
	mine, ok := t.Pool.Required.Get(key)
	theirs, defined := t.Type.Requirements.Get(key)
	switch {
	case ok && defined:
		return mine.Intersect(theirs), true
	case defined:
		return theirs, true
	}
	return mine, ok && !ofInstance(key)
}

// openLabels are the labels of the model's nodes that the pods of a node decide: those for which the pool's author or
// the instance type leaves several values, but for those in which offerings differ, for a node is of one offering.
func (t *InstanceType) openLabels() requirements.Set {
	var s requirements.Set
	for _, key := range t.Pool.open {
		if r, ok := t.labelValues(key); ok {
			s = s.And(r)
		}
	}
	for _, r := range t.Type.Requirements.All() {
		if _, single := r.Single(); single || len(r.Values) == 0 || podclass.VariesByOffering(r.Key) {
			continue
		}
		r, _ = t.labelValues(r.Key)
		if _, single := r.Single(); !single {
			s = s.And(r)
		}
	}
	return s
}

// countUsage counts the capacity of a pool's hosts that are not being deleted. A claim that is not launched yet counts
// as the largest type it may become, so that limits hold whatever EC2 gives.
func (p *OfferingPool) countUsage(hosts []cluster.StateNode, types func() []instancetypes.Type) PoolUsage {
	var u PoolUsage
	for _, node := range hosts {
		if node.Deleting() {
			continue
		}
		u.Nodes++
		c := node.Capacity()
		if c.IsZero() && node.Claim != nil {
			for _, t := range types() {
				if node.Claim.Requirements.Has(instancetypes.LabelType, t.Name) &&
					node.Claim.Requirements.Intersects(t.Requirements) {
					c = c.Max(t.Capacity)
				}
			}
			c = c.Max(node.Claim.Requests)
		}
		u.List = u.List.Add(c)
		if p.LimitsPrice() {
			u.List = u.List.Add(resources.List{}.With(cluster.LimitUSD, node.LimitCharge(types())))
		}
	}
	return u
}

// ExceededLimits names the limits of the pool that one more node of this capacity would break.
func (p *OfferingPool) ExceededLimits(u PoolUsage, capacity resources.List) []string {
	var out []string
	for _, name := range p.Limited {
		if name == string(api.LimitNodes) {
			if u.Nodes+1 > p.Limits.Get(name) {
				out = append(out, name)
			}
			continue
		}
		if more := capacity.Get(name); more > 0 && u.List.Get(name)+more > p.Limits.Get(name) {
			out = append(out, name)
		}
	}
	return out
}

// DiffersByOffering reports whether nodes of the model have more room, or other ports taken, in one place than in
// another.
func (t *InstanceType) DiffersByOffering() bool {
	return slices.ContainsFunc(t.Sells, func(o *Offering) bool {
		return !slices.Equal(o.Daemons, t.Sells[0].Daemons) || !slices.Equal(o.Room, t.Sells[0].Room)
	})
}

// ForParties are the offerings that a node for certain pods may be of, cheapest first.
func (p *OfferingPool) ForParties() []*Offering {
	if len(p.Reserved) == 0 || !p.MayBeOneType {
		return p.Sale
	}
	return byPrice(slices.Concat(p.Reserved, p.Sale))
}

// ChooseCustomLabels is one value for each label of the set that the launch has to choose: for those that instances
// have EC2 decides, and what must not exist gets none.
func ChooseCustomLabels(set requirements.Set, value func(requirements.Requirement) string) (chosen requirements.Set) {
	for _, r := range set.All() {
		if !podclass.IsWellKnownLabel(r.Key) && r.Key != aws.LabelEC2NodeClass &&
			r.Operator() != requirements.DoesNotExist {
			chosen = chosen.And(requirements.Of(r.Key, value(r)))
		}
	}
	return chosen
}

// LimitsPrice reports whether the pool bounds what its nodes cost.
func (p *OfferingPool) LimitsPrice() bool { return slices.Contains(p.Limited, cluster.LimitUSD) }

// byPrice are the offerings, the cheapest first, among equals those with more room.
func byPrice(offerings []*Offering) []*Offering {
	type tag struct { // what decides nearly always, beside the pointer: looking behind each takes its time
		price    float64
		offering *Offering
	}
	tags := make([]tag, 0, len(offerings))
	for _, o := range offerings {
		tags = append(tags, tag{o.Price, o})
	}
	slices.SortFunc(tags, func(x, y tag) int {
		if x.price != y.price {
			return cmp.Compare(x.price, y.price)
		}
		a, b := x.offering, y.offering
		return cmp.Or(slices.Compare(b.Room, a.Room), cmp.Compare(a.InstanceType.Pool.ID, b.InstanceType.Pool.ID),
			cmp.Compare(a.index, b.index))
	})
	out := make([]*Offering, len(tags))
	for i, t := range tags {
		out[i] = t.offering
	}
	return out
}
