package binpack

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	aws "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// planWriter writes a solution down as a plan.
type planWriter struct {
	a    *solution
	used []poolUsage // what pools use, counted anew with the types that each new node may become
}

// planLaunches writes down the new nodes. Pods of a node that nothing can be are without a place: a mistake in placing
// them is theirs alone.
func (pw *planWriter) planLaunches() []plan.Launch {
	list, impossible := pw.plannedNodes()
	for _, b := range impossible {
		for i := len(b.load) - 1; i >= 0; i-- {
			pw.a.takeOut(b, i, len(b.load[i].pods),
				"no instance type suits all pods that were planned for the same node")
		}
	}
	out := make([]plan.Launch, len(list))
	for i, x := range list {
		out[i] = x.asLaunch()
	}
	slices.SortStableFunc(out, func(x, y plan.Launch) int {
		return cmp.Or(strings.Compare(x.Pool, y.Pool), podclass.CompareNatural(x.Pods[0], y.Pods[0]),
			slices.Compare(x.Pods, y.Pods))
	})
	return out
}

// plannedNodes are the new nodes, each with every type that may stand in for the cheapest one, and the nodes that
// nothing can be. What the pools use is counted anew meanwhile, node by node, with the types that each may become.
func (pw *planWriter) plannedNodes() (list []plannedNode, impossible []*bin) {
	pw.used = slices.Clone(pw.a.used.pools)
	for _, b := range pw.a.bins {
		if b.offer == nil {
			continue
		}
		p := b.offer.model.pool
		for _, l := range b.load {
			pw.a.w.stages.Tell(cluster.StageOptions, l.view.Class, p.Name)
		}
		u := &pw.used[p.id]
		u.list = u.list.Sub(b.takes)
		u.nodes--
		if b.offer.Limited() {
			u.list = u.list.Add(b.takes)
			u.nodes++
			list = append(list, limitedOpening(b, pw.a.w.options.requirementsOf(p, b.load).set))
			continue
		}
		opts, set := pw.a.w.options.launchOptions(p, *u, b.load, p.minValues())
		set = b.low.applyTo(set)
		if opts = pw.a.w.options.chooseOptions(opts, set); len(opts) == 0 {
			impossible = append(impossible, b)
			continue
		}
		var most resources.List
		for _, o := range opts {
			most = most.Max(o.model.typ.Capacity)
		}
		u.list = u.list.Add(most)
		u.nodes++
		list = append(list, plannedNode{bin: b, opts: opts, set: set, choice: opts[0].best})
	}
	pw.diversifyLaunches(list)
	for i := range list {
		x := &list[i]
		x.ensureEveryCombinationFits(pw.a.w.options)
		if x.lowerMinValues(); len(x.low) > 0 && !pw.a.w.s.Rules.RelaxMinValues {
			x.opts = nil
		}
		if len(x.opts) == 0 {
			impossible = append(impossible, x.bin)
		}
	}
	return slices.DeleteFunc(list, func(x plannedNode) bool { return len(x.opts) == 0 }), impossible
}

// launchCost is what the new nodes cost as they would be launched, more than anything where one of them cannot be.
func (pw *planWriter) launchCost() float64 {
	list, impossible := pw.plannedNodes()
	sum := float64(len(impossible)) * noPrice
	for _, x := range list {
		sum += x.choice.Price + pw.a.strategy.nodeCost
	}
	return sum
}

// limitedOpening is a new node in reserved capacity or of a type that a commitment covers: it can be nothing else, and
// what a commitment covers is covered with one of the values only that the type leaves open.
func limitedOpening(b *bin, set requirements.Set) plannedNode {
	for _, r := range b.open.All() {
		if v, own := b.offer.Label(r.Key); own {
			set = set.And(requirements.Of(r.Key, v))
		}
	}
	if r := b.offer.Reservation; r != nil {
		set = set.And(requirements.Of(instancetypes.LabelReservationID, r.ID))
	}
	return plannedNode{bin: b, set: b.low.applyTo(set), choice: b.offer, opts: onlyOption(b.offer)}
}

// plannedNode is a new node with what may stand in for its offer.
type plannedNode struct {
	bin    *bin
	opts   []typeOption     // cheapest first
	set    requirements.Set // what a node must meet
	choice *poolOffering
	low    loweredMinValues      // minValues that are less than its pool asks for
	avoid  []instancetypes.Offer // pools of capacity that it is to stay out of
}

// lowerMinValues lowers the minValues to what the options leave, which may be fewer than pods were placed by.
func (x *plannedNode) lowerMinValues() {
	x.low = maps.Clone(x.bin.low)
	if low := lowerMinValues(x.set, x.opts); low != nil {
		if x.low == nil {
			x.low = loweredMinValues{}
		}
		maps.Copy(x.low, low)
		x.set = low.applyTo(x.set)
	}
}

// asLaunch is the opening as a node to make.
func (x plannedNode) asLaunch() plan.Launch {
	b, opts, set := x.bin, x.opts, x.set
	p := b.offer.model.pool
	l := plan.Launch{
		Pool: p.Name, Class: p.Class, Taints: p.Taints, Startup: p.StartupTaints, Choice: x.choice.Offering,
		Labels: maps.Clone(p.Labels), Annotations: maps.Clone(p.Annotations), Requests: x.choice.list,
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	var zones, capacities []string
	for _, o := range opts {
		l.Types = append(l.Types, o.model.typ.Name)
		overlays.AnnotateClaim(l.Annotations, *o.model.typ)
		for _, x := range o.offers {
			zones, capacities = append(zones, x.Zone), append(capacities, x.CapacityType)
		}
	}
	set = set.And(requirements.Of(instancetypes.LabelType, l.Types...),
		requirements.Of(instancetypes.LabelZone, zones...),
		requirements.Of(instancetypes.LabelCapacityType, capacities...))
	set = withoutRestricted(set.AndSet(chooseCustomLabels(b.open,
		func(r requirements.Requirement) string { return p.customLabelValues(r)[0] })))
	set = withoutAbsent(set, p.req)
	for _, r := range set.All() {
		if v, ok := r.Single(); ok && !podclass.IsWellKnownLabel(r.Key) {
			l.Labels[r.Key] = v
		}
	}
	l.Labels[api.LabelNodePool], l.Labels[aws.LabelEC2NodeClass] = p.Name, p.Class
	for _, x := range b.load {
		l.Pods = append(l.Pods, x.pods...)
		l.Requests = l.Requests.Add(x.view.Class.Pod.Need.Times(int64(len(x.pods))))
	}
	slices.SortFunc(l.Pods, podclass.CompareNatural)
	l.Annotations[api.AnnotationMinValuesRelaxed] = strconv.FormatBool(len(x.low) > 0)
	l.Annotations[api.AnnotationNominatedPods] = strings.Join(l.Pods, ",")
	l.Requirements = set
	return l
}

// fewRequirements are written as they are. The API server takes a hundred of a NodeClaim, and one may be three entries.
const fewRequirements = 60

// withoutAbsent is the set without what pods do not want of labels that no node of the pool has, where it is much: the
// API server would refuse the NodeClaim, to all pods that are to be there.
func withoutAbsent(set, pool requirements.Set) requirements.Set {
	if len(set.All()) <= fewRequirements {
		return set
	}
	return requirements.Sorted(slices.DeleteFunc(slices.Clone(set.All()), func(r requirements.Requirement) bool {
		_, has := pool.Get(r.Key)
		return r.AllowsAbsent() && !has && !podclass.IsWellKnownLabel(r.Key)
	}))
}

// withoutRestricted is the set without what no NodeClaim may ask for. All that pods may demand of such labels is their
// absence, and that their node is not a certain one; each new node is so.
func withoutRestricted(set requirements.Set) requirements.Set {
	return requirements.Sorted(slices.DeleteFunc(slices.Clone(set.All()),
		func(r requirements.Requirement) bool { return aws.RestrictedLabel(r.Key) }))
}

// existingPlacements says which pods go to which node that exists or is on its way.
func (pw *planWriter) existingPlacements() []plan.Placement {
	var out []plan.Placement
	for _, b := range pw.a.bins {
		if b.offer != nil {
			continue
		}
		for _, l := range b.load {
			for _, p := range l.pods {
				out = append(out, plan.Placement{Pod: p, Node: b.name})
			}
		}
	}
	slices.SortFunc(out, func(x, y plan.Placement) int {
		return cmp.Or(strings.Compare(x.Node, y.Node), strings.Compare(x.Pod, y.Pod))
	})
	return out
}
