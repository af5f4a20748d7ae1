package prices

import (
	"fmt"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// provingRounds caps the rounds that improve the prices of pods. Half costs 0.02 % more in the mean of the families of
// infra/lab/ablation, double the same.
const provingRounds = 60

// FindShadowPrices finds what pods are worth, where count tells how many of each pod class are to be placed: on new
// nodes, or on those that are there too.
func FindShadowPrices(p *packing.Problem, count func(*podclass.Class) int, hosts bool) *ShadowPrices {
	return findViewPrices(p, count, (*podclass.Class).LastRelaxation, hosts)
}

// findViewPrices is FindShadowPrices for pods as far as they are relaxed in the view of their class.
func findViewPrices(problem *packing.Problem, count func(*podclass.Class) int,
	view func(*podclass.Class) *podclass.RelaxedPod, hosts bool) *ShadowPrices {
	out := &ShadowPrices{Units: problem.Dims.Units()}
	p := &out.Problem
	p.Rounds = provingRounds
	g := newSpreadGroups(problem.Classes, view)
	p.Caps = g.caps
	byID := map[string]int32{}
	kinds := map[*podclass.Admission]int32{}
	kindOf := func(admit *podclass.Admission) int32 {
		if _, ok := kinds[admit]; !ok {
			kinds[admit] = int32(len(kinds))
		}
		return kinds[admit]
	}
	classOf := func(class *podclass.Class, admit *podclass.Admission) int32 {
		id := fmt.Sprintf("%s|%v|%d", admit.ID, class.Need, g.group[class.ID])
		if g.most[class.ID] > 0 {
			// pod classes that keep apart from themselves alone share no price class
			id = fmt.Sprintf("%s|%d", admit.ID, class.ID)
		}
		c, ok := byID[id]
		if !ok {
			c = int32(len(p.Classes))
			byID[id] = c
			p.Classes = append(p.Classes,
				cover.Class{Need: packing.ScaleNeed(class.Need, out.Units), Kind: kindOf(admit),
					Group: g.group[class.ID], Most: g.most[class.ID]})
			out.Classes = append(out.Classes, priceClass{class.Need, admit})
		}
		return c
	}
	for _, class := range problem.Classes.List {
		problem.Stages.Tell(cluster.StagePrice, class, "")
		pod := view(class)
		m := classMembership{EvenSplit: problem.Topology.SpreadSplitsEvenly(pod)}
		n := count(class)
		if m.Key == "" {
			m.class = classOf(class, pod.Admission)
			p.Classes[m.class].Count += float64(n)
		}
		for d, domain := range m.Domains {
			m.tied = append(m.tied, classOf(class,
				problem.Admissions.PinnedAdmission(pod.Admission, []podclass.DomainPin{{Key: m.Key, Domain: domain}})))
			p.Classes[m.tied[d]].Count += float64((n + d) / len(m.Domains))
		}
		out.members = append(out.members, m)
	}
	asked := addUsefulOfferings(problem, out)
	if hosts {
		hostOfferings{problem, out}.addHosts()
	}
	out.solver = lowerbound.NewSolver(*p)
	out.Prices = out.solver.Solve()
	out.Fill = make(map[*capacity.InstanceType]float64, len(asked))
	for i, o := range asked {
		out.Fill[o.InstanceType] = max(out.Fill[o.InstanceType], out.Prices.Fill[i])
	}
	return out
}

// addUsefulOfferings adds the offerings to the problem that may be the best for some class, and returns them.
func addUsefulOfferings(problem *packing.Problem, out *ShadowPrices) []*capacity.Offering {
	p := &out.Problem
	var asks []*podclass.Admission
	for _, c := range out.Classes {
		asks = append(asks, c.admit)
	}
	var added []*capacity.Offering
	for _, x := range problem.Catalog.UndominatedOf(asks) {
		o := cover.Offering{Price: x.Price, Room: packing.ScaleNeed(x.Room, out.Units)}
		for i, c := range out.Classes {
			if p.Classes[i].Count > 0 && x.FirstAlternative(c.admit) >= 0 && capacity.FitCount(c.need, x.Room) > 0 {
				o.Holds = append(o.Holds, int32(i))
			}
		}
		if len(o.Holds) > 0 {
			problem.Stages.Tell(cluster.StagePrice, nil, x.InstanceType.Pool.Name)
			p.Offerings = append(p.Offerings, o)
			added = append(added, x)
		}
	}
	return added
}

// spreadGroups are the groups of pod classes of which a node takes a few pods only: those that spread over hostnames or
// keep away from each other.
type spreadGroups struct {
	group []int32   // by pod class: the group of several pod classes, -1 for none
	most  []float64 // by pod class: how many of it a node takes, 0 for no such limit
	caps  []float64 // by group
}

// leastPart is the part of all pods, one of so many, that a group of several classes has which prices reckon with.
// Reckoning with all groups costs 0.1 % more in the mean of the bench's workloads and a fifth more CPU.
const leastPart = 20

func newSpreadGroups(cs *podclass.Classes, view func(*podclass.Class) *podclass.RelaxedPod) spreadGroups {
	type ground struct{ counter, limit int }
	out := spreadGroups{group: make([]int32, len(cs.List)), most: make([]float64, len(cs.List))}
	members := map[ground]int{}
	each := func(class *podclass.Class, do func(ground)) {
		for _, r := range view(class).HostRules {
			switch {
			case !r.Self:
			case r.Kind == podclass.Spread:
				do(ground{r.Counter, r.MaxSkew})
			case r.Kind == podclass.Avoid:
				do(ground{r.Counter, 1})
			}
		}
	}
	pods, all := map[ground]int{}, 0
	for _, class := range cs.List {
		all += len(class.Pods)
		each(class, func(g ground) {
			members[g]++
			pods[g] += len(class.Pods)
		})
	}
	ids := map[ground]int32{}
	for i, class := range cs.List {
		out.group[i] = -1
		if len(class.Pod.HostPorts) > 0 {
			out.most[i] = 1
		}
		each(class, func(g ground) {
			id, ok := ids[g]
			switch {
			case members[g] == 1:
				if out.most[i] == 0 || float64(g.limit) < out.most[i] {
					out.most[i] = float64(g.limit)
				}
			case ok:
				out.group[i] = id
			case pods[g] >= all/leastPart:
				ids[g] = int32(len(ids))
				out.group[i] = ids[g]
				out.caps = append(out.caps, float64(g.limit))
			}
		})
	}
	return out
}
