package lifecycle

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// workLane is rows of objects. The steps of those in one row are taken one after another, the rows side by side, so
// many at a time.
type workLane struct {
	rows [][]string
	most int
	all  bool // however long it takes
}

// singleRows are rows of one.
func singleRows(keys []string) [][]string {
	return lists.Of(keys, func(k string) []string { return []string{k} })
}

// splitIntoLanes returns the lanes in which the steps on the objects are taken, so that what waits for somebody else
// keeps nothing else waiting. Evictions wait for the others under their budget, names of instances for EC2, which takes
// few a second. Claims that end do not wait for the many that come into service.
func splitIntoLanes(objects *objectIndex, groups map[string][]plan.Action, keys []string) []workLane {
	late, evictions := workLane{most: parallelSteps, all: true}, workLane{most: parallelEvictions}
	ending, names, others := workLane{most: parallelSteps}, workLane{most: parallelSteps}, workLane{most: parallelSteps}
	type row struct {
		podBudget string
		turn      int
	}
	under, at := map[string]int{}, map[row]int{} // evictions so far; the place among the rows
	for _, k := range keys {
		a := groups[k][0]
		claim, ofClaim := objects.claims[a.Claim]
		switch {
		case a.Do == plan.DeletePod: // its node ends soon
			late.rows = append(late.rows, []string{k})
		case a.Do == plan.Evict && a.Budget == "":
			evictions.rows = append(evictions.rows, []string{k})
		case a.Do == plan.Evict:
			n := under[a.Budget]
			under[a.Budget]++
			turn := row{a.Budget, n % turnsOfPodBudget}
			if n < turnsOfPodBudget {
				at[turn] = len(evictions.rows)
				evictions.rows = append(evictions.rows, nil)
			}
			evictions.rows[at[turn]] = append(evictions.rows[at[turn]], k)
		case ofClaim && !claim.Deleting.IsZero():
			ending.rows = append(ending.rows, []string{k})
		case slices.ContainsFunc(groups[k], func(a plan.Action) bool { return a.Do == plan.TagInstance }):
			names.rows = append(names.rows, []string{k})
		default:
			others.rows = append(others.rows, []string{k})
		}
	}
	return []workLane{late, evictions, ending, names, others}
}

// laneRank is 0 for pools and 1 for everything else.
func laneRank(subject string) int {
	if strings.HasPrefix(subject, "pool ") {
		return 0
	}
	return 1
}

// actionSubject is the object whose actions must stay in order.
func actionSubject(a plan.Action) string {
	switch {
	case a.Pool != "":
		return "pool " + a.Pool
	case a.Pod != "":
		return "pod " + a.Pod
	case a.Claim != "":
		return "claim " + a.Claim
	case a.Node != "":
		return "node " + a.Node
	}
	return "instance " + a.Instance
}
