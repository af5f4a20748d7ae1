package search

import (
	"cmp"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/prices"
)

// Work is counted in what takes about a nanosecond of one core, by what is gone through, not by a clock: equal
// snapshots get equal plans on every machine.
const (
	// millisecond of work.
	millisecond = int(time.Millisecond)
	// workPerPod is the work that each pod that gets a place is worth: few pods have it soon.
	workPerPod = 2 * millisecond
	// mostWork caps the work of a plan unless the settings leave less. It is worth a USD per hour, as far as the bound
	// lets hope: pods wait that much longer.
	mostWork = 4000 * millisecond
	// unsearchedFleetWork caps the work to choose all nodes together in a plan that nothing searches for: thousands of
	// those are asked for.
	unsearchedFleetWork = 10 * millisecond
	// fleetPerFill and fleetPerPivot are the work to choose all nodes together, by kinds of pods times offerings and by
	// the third power of kinds of pods.
	fleetPerFill, fleetPerPivot = 1500, 200
)

// workBudget holds the work that may still go into a plan.
type workBudget struct {
	left  int
	fleet int  // beside it into choosing all nodes together
	most  int  // that may go into a plan whatever it is worth
	all   *int // that searches may do until none begins another step; nil where the time is not known
}

// newBudget is the work that goes into improving the solution: the more, the more pods and nodes it has and the more
// money is between it and the bound.
func newBudget(s *packing.Solution, px *prices.Pricing) *workBudget {
	p := s.W
	stake := max(0, s.NewNodePrice()-px.LowerBound(s))
	most := effort(p.S.Rules) * min(mostWork, cmp.Or(p.S.Rules.PackingMilliseconds*millisecond, mostWork))
	pods := len(p.Classes.Waiting) - s.Waiting()
	left := min(effort(p.S.Rules)*min(pods*workPerPod, int(stake*float64(mostWork))), most)
	fleet := left
	if p.S.Rules.PackingIterations == cluster.NoIterations {
		fleet = min(fleet, unsearchedFleetWork)
	}
	b := &workBudget{left: left, fleet: fleet, most: most}
	if p.S.Rules.PackingMilliseconds > 0 {
		all := most
		b.all = &all
	}
	return b
}

// effort returns how many times the usual work may go into a plan.
func effort(rules cluster.Settings) int { return max(1, rules.PackingEffort) }

// allowsSearch reports whether anything is left for another search.
func (b *workBudget) allowsSearch() bool { return b.left > 0 }

// allowsFleet reports whether all nodes may be chosen together for about the pods that have new nodes in the solution,
// and takes the work off if so.
func (b *workBudget) allowsFleet(s *packing.Solution, px *prices.Pricing) bool {
	p := px.WorthOf(s)
	kinds := kindsOnNewNodes(p, s)
	work := fleetPerFill*kinds*p.OfferingsForSale() + fleetPerPivot*kinds*kinds*kinds
	if work > b.fleet {
		return false
	}
	b.left = min(b.left, b.most-work)
	return true
}

// kindsOnNewNodes is of how many price classes and admissions the pods on new nodes of the solution are.
func kindsOnNewNodes(p packing.PodPrices, s *packing.Solution) int {
	type kind struct {
		class int32
		admit *podclass.Admission
	}
	kinds := map[kind]bool{}
	for _, b := range s.Bins {
		if b.Offering == nil {
			continue
		}
		for _, l := range b.Load {
			kinds[kind{p.ClassOf(l.Pod.Class, l.Pins), l.Admission}] = true
		}
	}
	return len(kinds)
}
