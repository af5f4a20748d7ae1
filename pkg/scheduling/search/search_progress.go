package search

const (
	// patience is how many steps a search goes on without having saved enough.
	patience = 100
	// patientPart is the part of the steps that are asked for, if they are more than usual, that may pass like that.
	patientPart = 4
	// stepsPerNode is the same for each node, where there is work to spare or more steps are asked for than usual.
	stepsPerNode = 8
	// patienceStages is in how many parts a search with work to spare is given that: one in the beginning, and one more
	// each time that it has saved enough.
	patienceStages = 8
	// mostWithoutGain caps the work of steps that do not save enough.
	mostWithoutGain = 1000 * millisecond
	// enoughSaved is the part of the price that steps have to save while patience lasts.
	enoughSaved = 0.001
)

// searchProgress records the steps, the savings and the work of a search so far.
type searchProgress struct {
	since int     // steps for which it goes on without having saved enough
	saved float64 // USD per hour, not enough yet
	paid  int     // work until enough was saved last
	times int     // that enough was saved
}

// countStep counts a step that saves the gain, after which the plan costs the total and so much work is done; true when
// enough is saved. A search that has a budget of work also goes on while what it saves is worth the work.
func (p *searchProgress) countStep(gain, total float64, work int, budget bool) bool {
	p.saved += gain
	p.since++
	if p.saved > enoughSaved*total {
		*p = searchProgress{paid: work, times: p.times + 1}
		return true
	}
	if budget && gain > 0 && p.saved*workPerUSD >= float64(work-p.paid) {
		p.since = 0
	}
	return false
}

// patienceFor returns the steps for which the search goes on without having saved enough, after so many times.
func (s *localSearch) patienceFor(most searchLimit, times int) int {
	if most.work == 0 && most.steps <= defaultSearchSteps {
		return patience
	}
	all := max(patience, stepsPerNode*len(s.nodes))
	if most.work == 0 {
		return max(all, most.steps/patientPart)
	}
	return max(min(all, defaultSearchSteps), all*min(1+times, patienceStages)/patienceStages)
}
