package report

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
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// PlanLaunches writes down the new nodes. Pods of a node that nothing can be are without a place: a mistake in placing
// them is theirs alone.
func (pw *PlanWriter) PlanLaunches() []plan.Launch {
	list, impossible := pw.plannedNodes()
	for _, b := range impossible {
		for i := len(b.Load) - 1; i >= 0; i-- {
			pw.Solution.TakeOut(b, i, len(b.Load[i].Pods),
				"no instance type suits all pods that were planned for the same node")
		}
	}
	out := make([]plan.Launch, len(list))
	for i, node := range list {
		out[i] = node.asLaunch(pw.Solution.W.S.Devices)
	}
	slices.SortStableFunc(out, func(x, y plan.Launch) int {
		return cmp.Or(strings.Compare(x.Pool, y.Pool), podclass.CompareNatural(x.Pods[0], y.Pods[0]),
			slices.Compare(x.Pods, y.Pods))
	})
	return out
}

// plannedNodes are the new nodes, each with every type that may stand in for the cheapest one, and the nodes that
// nothing can be. What the pools use is counted anew meanwhile, node by node, with the types that each may become.
func (pw *PlanWriter) plannedNodes() (list []plannedNode, impossible []*capacity.Bin) {
	pw.used = slices.Clone(pw.Solution.Used.Pools)
	for _, b := range pw.Solution.Bins {
		if b.Offering == nil {
			continue
		}
		p := b.Offering.InstanceType.Pool
		for _, l := range b.Load {
			pw.Solution.W.Stages.Tell(cluster.StageOptions, l.Pod.Class, p.Name)
		}
		u := &pw.used[p.ID]
		u.List = u.List.Sub(b.Takes)
		u.Nodes--
		if b.Offering.Limited() {
			u.List = u.List.Add(b.Takes)
			u.Nodes++
			list = append(list, limitedOpening(b, pw.Solution.W.Options.RequirementsOf(p, b.Load)))
			continue
		}
		opts, set := pw.Solution.W.Options.LaunchOptions(p, *u, b.Load, p.MinValues())
		set = b.Low.ApplyTo(set)
		if opts = pw.Solution.W.Options.ChooseOptions(opts, set); len(opts) == 0 {
			impossible = append(impossible, b)
			continue
		}
		var most resources.List
		for _, o := range opts {
			most = most.Max(o.Model.Type.Capacity)
		}
		u.List = u.List.Add(most)
		u.Nodes++
		list = append(list, plannedNode{bin: b, opts: opts, set: set, choice: opts[0].Best})
	}
	pw.diversifyLaunches(list)
	for i := range list {
		node := &list[i]
		node.ensureEveryCombinationFits(pw.Solution.W.Options)
		if node.lowerMinValues(); len(node.low) > 0 && !pw.Solution.W.S.Rules.RelaxMinValues {
			node.opts = nil
		}
		if len(node.opts) == 0 {
			impossible = append(impossible, node.bin)
		}
	}
	return slices.DeleteFunc(list, func(node plannedNode) bool { return len(node.opts) == 0 }), impossible
}

// LaunchCost returns the cost of the new nodes as they would be launched, NoPrice for each that cannot be.
func (pw *PlanWriter) LaunchCost() float64 {
	list, impossible := pw.plannedNodes()
	sum := float64(len(impossible)) * capacity.NoPrice
	for _, node := range list {
		sum += node.choice.Price + pw.Solution.Strategy.NodeCost
	}
	return sum
}

// limitedOpening is a new node in reserved capacity or of a type that a commitment covers: it can be nothing else, and
// what a commitment covers is covered with one of the values only that the type leaves open.
func limitedOpening(b *capacity.Bin, set requirements.Set) plannedNode {
	for _, r := range b.Open.All() {
		if v, own := b.Offering.Label(r.Key); own {
			set = set.And(requirements.Of(r.Key, v))
		}
	}
	if r := b.Offering.Reservation; r != nil {
		set = set.And(requirements.Of(instancetypes.LabelReservationID, r.ID))
	}
	return plannedNode{bin: b, set: b.Low.ApplyTo(set), choice: b.Offering, opts: b.Offering.OnlyOption()}
}

// lowerMinValues lowers the MinValues to what the options leave, which may be fewer than pods were placed by.
func (node *plannedNode) lowerMinValues() {
	node.low = maps.Clone(node.bin.Low)
	if low := capacity.LowerMinValues(node.set, node.opts); low != nil {
		if node.low == nil {
			node.low = capacity.LoweredMinValues{}
		}
		maps.Copy(node.low, low)
		node.set = low.ApplyTo(node.set)
	}
}

// asLaunch is the opening as a node to make.
func (node plannedNode) asLaunch(devices cluster.Devices) plan.Launch {
	b, opts, set := node.bin, node.opts, node.set
	p := b.Offering.InstanceType.Pool
	l := plan.Launch{
		Pool: p.Name, Class: p.Class, Taints: p.Taints, Startup: p.StartupTaints, Choice: node.choice.Offering,
		Labels: maps.Clone(p.Labels), Annotations: maps.Clone(p.Annotations), Requests: node.choice.DaemonNeed,
	}
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	var zones, capacities []string
	for _, o := range opts {
		l.Types = append(l.Types, o.Model.Type.Name)
		overlays.AnnotateClaim(l.Annotations, *o.Model.Type)
		for _, x := range o.Offerings {
			zones, capacities = append(zones, x.Zone), append(capacities, x.CapacityType)
		}
	}
	set = set.And(requirements.Of(instancetypes.LabelType, l.Types...),
		requirements.Of(instancetypes.LabelZone, zones...),
		requirements.Of(instancetypes.LabelCapacityType, capacities...))
	set = withoutRestricted(set.AndSet(capacity.ChooseCustomLabels(b.Open,
		func(r requirements.Requirement) string { return p.CustomLabelValues(r)[0] })))
	set = withoutAbsent(set, p.Required)
	for _, r := range set.All() {
		if v, ok := r.Single(); ok && !podclass.IsWellKnownLabel(r.Key) {
			l.Labels[r.Key] = v
		}
	}
	l.Labels[api.LabelNodePool], l.Labels[aws.LabelEC2NodeClass] = p.Name, p.Class
	for _, x := range b.Load {
		l.Pods = append(l.Pods, x.Pods...)
		l.Requests = l.Requests.Add(x.Pod.Class.Pod.Need.Times(int64(len(x.Pods))))
	}
	slices.SortFunc(l.Pods, podclass.CompareNatural)
	l.Annotations[api.AnnotationMinValuesRelaxed] = strconv.FormatBool(len(node.low) > 0)
	l.Annotations[api.AnnotationNominatedPods] = strings.Join(l.Pods, ",")
	if drivers := devices.DriversOf(l.Requests); len(drivers) > 0 {
		l.Annotations[api.AnnotationRequestedDRADrivers] = strings.Join(drivers, ",")
	}
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

// ExistingPlacements says which pods go to which node that exists or is on its way.
func (pw *PlanWriter) ExistingPlacements() []plan.Placement {
	var out []plan.Placement
	for _, b := range pw.Solution.Bins {
		if b.Offering != nil {
			continue
		}
		for _, l := range b.Load {
			for _, p := range l.Pods {
				out = append(out, plan.Placement{Pod: p, Node: b.Name})
			}
		}
	}
	slices.SortFunc(out, func(x, y plan.Placement) int {
		return cmp.Or(strings.Compare(x.Node, y.Node), strings.Compare(x.Pod, y.Pod))
	})
	return out
}
