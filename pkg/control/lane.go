package control

import (
	"slices"
	"strings"

	"joiner/pkg/plan"
)

// lane is rows of objects. The steps of those in one row are taken one after another, the rows side by side, so many at a time.
type lane struct {
	rows [][]string
	most int
	all  bool // however long it takes
}

// alone are rows of one.
func alone(keys []string) (rows [][]string) {
	for _, k := range keys {
		rows = append(rows, []string{k})
	}
	return rows
}

// lanes are those in which the steps on the objects are taken, so that what waits for somebody else keeps nothing else waiting: evictions for
// the others under their budget, names of instances for EC2, which takes few a second. Claims that end do not wait for the many that
// come into service.
func lanes(objects *index, groups map[string][]plan.Action, keys []string) []lane {
	late, evictions := lane{most: parallelSteps, all: true}, lane{most: parallelEvictions}
	ending, names, others := lane{most: parallelSteps}, lane{most: parallelSteps}, lane{most: parallelSteps}
	type row struct {
		budget string
		turn   int
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
			turn := row{a.Budget, n % turnsOfBudget}
			if n < turnsOfBudget {
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
	return []lane{late, evictions, ending, names, others}
}

// rank is 0 for pools and 1 for everything else.
func rank(subject string) int {
	if strings.HasPrefix(subject, "pool ") {
		return 0
	}
	return 1
}

// subject is the object whose actions must stay in order.
func subject(a plan.Action) string {
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
