package report

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
)

// PlanWriter writes a solution down as a plan.
type PlanWriter struct {
	Solution *packing.Solution
	used     []capacity.PoolUsage // what pools use, counted anew with the types that each new node may become
}

// plannedNode is a new node with what may stand in for its offering.
type plannedNode struct {
	bin    *capacity.Bin
	opts   []capacity.TypeOption // cheapest first
	set    requirements.Set      // what a node must meet
	choice *capacity.Offering
	low    capacity.LoweredMinValues   // MinValues that are less than its pool asks for
	avoid  []instancetypes.OfferingKey // pools of capacity that it is to stay out of
}

// keepOfferings are the options with those of their offerings that are ok, without options that have none.
func keepOfferings(opts []capacity.TypeOption, ok func(*capacity.Offering) bool) []capacity.TypeOption {
	var out []capacity.TypeOption
	for _, opt := range opts {
		opt.Offerings = slices.DeleteFunc(slices.Clone(opt.Offerings),
			func(o *capacity.Offering) bool { return !ok(o) })
		if len(opt.Offerings) > 0 {
			opt.Best = opt.Offerings[0]
			opt.Spot = slices.ContainsFunc(opt.Offerings,
				func(o *capacity.Offering) bool { return o.CapacityType == instancetypes.Spot })
			out = append(out, opt)
		}
	}
	return out
}

func spotOptions(opts []capacity.TypeOption) int {
	return lists.Count(opts, func(o capacity.TypeOption) bool { return o.Spot })
}

// ensureEveryCombinationFits makes sure that a claim allows no mix of its types, zones and capacity types that does not
// hold its pods. A claim lists the three apart, so every mix is allowed, and where a DaemonSet runs in some zones only,
// a type may be too small in those. The zone goes first, then the capacity type, then the type; what was chosen stays.
func (node *plannedNode) ensureEveryCombinationFits(f *capacity.OptionFinder) {
	if node.bin.Offering.Limited() || !slices.ContainsFunc(node.opts,
		func(o capacity.TypeOption) bool { return o.Model.DiffersByOffering() }) {
		return
	}
	used, ports := f.SumLoads(node.bin.Load)
	keep := func(ok func(*capacity.Offering) bool) { node.opts = keepOfferings(node.opts, ok) }
	for bad := node.tooSmall(used, ports); bad != nil; bad = node.tooSmall(used, ports) {
		switch {
		case bad.Zone != node.choice.Zone:
			keep(func(o *capacity.Offering) bool { return o.Zone != bad.Zone })
		case bad.CapacityType != node.choice.CapacityType:
			keep(func(o *capacity.Offering) bool { return o.CapacityType != bad.CapacityType })
		default:
			keep(func(o *capacity.Offering) bool { return o.InstanceType != bad.InstanceType })
		}
	}
	slices.SortFunc(node.opts, capacity.TypeOption.ComparePrice)
}

// tooSmall finds an offering that the claim would allow, now or later, and that does not hold its pods.
func (node *plannedNode) tooSmall(used []int64, ports []cluster.HostPort) *capacity.Offering {
	zones, capacities := map[string]bool{}, map[string]bool{}
	for _, opt := range node.opts {
		for _, o := range opt.Offerings {
			zones[o.Zone], capacities[o.CapacityType] = true, true
		}
	}
	for _, opt := range node.opts {
		for _, o := range opt.Model.Sells {
			if zones[o.Zone] && capacities[o.CapacityType] && o.Meets(node.set) &&
				(!capacity.AtLeast(o.Room, used) || cluster.PortsConflict(ports, o.Ports) ||
					excluded(node.bin.Load, o)) {
				return o
			}
		}
	}
	return nil
}

// excluded reports whether DaemonSets that nodes of the offering run keep any of the loads away.
func excluded(loads []capacity.PodLoad, o *capacity.Offering) bool {
	return slices.ContainsFunc(loads, func(l capacity.PodLoad) bool { return o.KeepsOff(l.Admission) })
}

// diversifyLaunches gives nodes of pools of capacity that have more than their share another choice, the cheapest spot
// offering that there is. A node that has none stays.
func (pw *PlanWriter) diversifyLaunches(list []plannedNode) {
	use := pw.Solution.W.Nodes.StandingSpot()
	for i := range list {
		use.Add(list[i].choice.OfferingKey, list[i].choice.InstanceType.Type.Capacity.CPU, 1)
	}
	var full []instancetypes.OfferingKey
	for i := len(list) - 1; i >= 0; i-- {
		node := &list[i]
		from := node.choice.OfferingKey
		if !use.ExceedsShare(from) {
			continue
		}
		if !slices.Contains(full, from) {
			full = append(full, from)
		}
		use.Add(from, -node.choice.InstanceType.Type.Capacity.CPU, 0)
		var best *capacity.Offering
		for _, opt := range node.opts {
			for _, o := range opt.Offerings { // cheapest first
				if best != nil && o.Price >= best.Price {
					break
				}
				cpu := o.InstanceType.Type.Capacity.CPU
				use.Add(o.OfferingKey, cpu, 0)
				if o.CapacityType == instancetypes.Spot && !slices.Contains(full, o.OfferingKey) &&
					!use.ExceedsShare(o.OfferingKey) {
					best = o
				}
				use.Add(o.OfferingKey, -cpu, 0)
			}
		}
		if best != nil {
			node.choice, node.avoid = best, slices.Clone(full)
		}
		use.Add(node.choice.OfferingKey, node.choice.InstanceType.Type.Capacity.CPU, 0)
	}
	for i := range list {
		list[i].keepOut(pw)
	}
}

// keepOut leaves out of what a launch names the pools of capacity that the node is to stay out of: the type where
// enough others are left, else the zone. Where neither can be missed the choice of EC2 has to do.
func (node *plannedNode) keepOut(pw *PlanWriter) {
	_, enough := pw.Solution.W.Options.PriceFlexibility()
	p := node.bin.Offering.InstanceType.Pool
	strict := p.MinValues() // then every type may be needed
	if len(node.avoid) > 0 && !strict && len(p.Limited) == 0 {
		node.replaceTypes(pw)
	}
	for _, from := range node.avoid {
		types := slices.DeleteFunc(slices.Clone(node.opts),
			func(o capacity.TypeOption) bool { return o.Model.Type.Name == from.Type })
		zones := keepOfferings(node.opts, func(o *capacity.Offering) bool { return o.Zone != from.Zone })
		switch {
		case from.Type != node.choice.InstanceType.Type.Name && spotOptions(types) >= enough && !strict:
			node.opts = types
		case from.Zone != node.choice.Zone && spotOptions(zones) >= min(enough, spotOptions(node.opts)) &&
			(!strict || len(zones) == len(node.opts) && capacity.LowerMinValues(node.set, zones) == nil):
			node.opts = zones
		}
	}
	slices.SortFunc(node.opts, capacity.TypeOption.ComparePrice)
	if best := node.opts[0].Best; node.choice.Price > best.Price {
		node.choice = best // the price of a claim is that of the cheapest it may become, crowded or not
	}
}

// replaceTypes puts other types in the place of those that are to be avoided.
func (node *plannedNode) replaceTypes(pw *PlanWriter) {
	p := node.bin.Offering.InstanceType.Pool
	all, _ := pw.Solution.W.Options.LaunchOptions(p, pw.used[p.ID], node.bin.Load, true)
	others := slices.DeleteFunc(slices.Clone(all), func(o capacity.TypeOption) bool {
		return o.Model != node.choice.InstanceType && slices.ContainsFunc(node.avoid,
			func(from instancetypes.OfferingKey) bool { return from.Type == o.Model.Type.Name })
	})
	opts := pw.Solution.W.Options.ChooseOptions(others, node.set)
	if spotOptions(opts) >= spotOptions(node.opts) &&
		slices.ContainsFunc(opts, func(o capacity.TypeOption) bool { return o.Model == node.choice.InstanceType }) {
		node.opts = opts
	}
}
