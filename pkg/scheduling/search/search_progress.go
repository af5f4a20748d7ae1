package search

const (
	// patience caps the steps that a search goes on without having saved enough.
	patience = 100
	// stepsPerNode is the same for each node, where there is work to spare or more steps are asked for than usual. Half
	// costs the workloads of the bench 0.1 % more for a sixth less CPU, double 0.1 % less for a quarter more.
	stepsPerNode = 4
)

// searchProgress records the steps and the savings of a search so far.
type searchProgress struct {
	since int     // steps for which it goes on without having saved enough
	saved float64 // USD per hour, not enough yet
}

// countStep counts a step that saves the gain, after which the plan costs the total. What is enough is a small gap.
func (p *searchProgress) countStep(gain, total float64) {
	p.saved += gain
	p.since++
	if p.saved > smallGap*total {
		*p = searchProgress{}
	}
}

// patienceFor returns the steps for which the search goes on without having saved enough.
func (s *localSearch) patienceFor(most searchLimit) int {
	if most.work == 0 && most.steps <= defaultSearchSteps {
		return patience
	}
	return max(patience, stepsPerNode*len(s.nodes))
}
