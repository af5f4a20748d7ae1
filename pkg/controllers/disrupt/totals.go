package disrupt

import (
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
)

// countPass has the pass counted for Prometheus, on the lease under which it runs.
func (c *Controller) countPass(s cluster.Snapshot, p disruption.Plan, took time.Duration) {
	if c.Totals == nil {
		return
	}
	counted, now := disruptionOf(s, p, took), c.Now()
	c.Totals.ChangeTotals(controllers.CapacityLeaseName, func(t timeseries.Totals) { t.CountDisruption(counted, now) })
}

// disruptionOf returns what is counted of a pass.
func disruptionOf(s cluster.Snapshot, p disruption.Plan, took time.Duration) timeseries.Disruption {
	pools, replaced := map[string]string{}, map[string]bool{}
	for _, c := range s.Claims {
		pools[c.Name] = c.Pool
		replaced[c.Annotations[disruption.AnnotationReplaces]] = true
	}
	decision := func(reason v1.DisruptionReason, claims []string, replaces bool) timeseries.Decision {
		out := timeseries.Decision{Reason: lowerReason(reason), Replaces: replaces, Claims: len(claims)}
		for _, c := range claims {
			out.Pools = append(out.Pools, pools[c])
		}
		slices.Sort(out.Pools)
		out.Pools = slices.Compact(out.Pools)
		return out
	}
	out := timeseries.Disruption{Took: took, Eligible: map[string]int{}, Ineligible: countIneligible(p)}
	for _, pool := range s.Pools {
		out.Pools = append(out.Pools, pool.Name)
	}
	for _, c := range p.Begin {
		out.Begun = append(out.Begun, decision(c.Reason, c.Claims, len(c.Launches) > 0))
	}
	for _, e := range p.RollBack {
		if e.Command != "" { // else a taint that nobody knows the command of
			out.RolledBack = append(out.RolledBack, decision(e.Reason, e.Claims, replaced[e.Command]))
		}
	}
	for _, w := range p.Withdrawn {
		out.Withdrawn = append(out.Withdrawn, decision(w.Reason, w.Claims, false))
	}
	for _, reason := range countedReasons() {
		out.Eligible[lowerReason(reason)] = len(p.Eligible[reason])
	}
	return out
}

// countIneligible counts the nodes that stay, by reason.
func countIneligible(p disruption.Plan) map[string]int {
	out := map[string]int{}
	for _, s := range p.NotDisrupted {
		out[string(s.Reason)]++
	}
	for _, c := range p.Reported {
		out[string(disruption.IneligibleReported)] += len(c.Claims)
	}
	return out
}

func countedReasons() []v1.DisruptionReason {
	return []v1.DisruptionReason{v1.DisruptionDrifted, v1.DisruptionEmpty, v1.DisruptionUnderutilized}
}

func lowerReason(r v1.DisruptionReason) string { return strings.ToLower(string(r)) }
