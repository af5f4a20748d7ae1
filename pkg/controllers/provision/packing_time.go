package provision

import (
	"context"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
)

// Limits of what goes into making a plan cheaper.
const (
	packingPart = 6 // the part of what is left of an invocation
	// packingWait is the longest wait of pods for it, and packingWaitPerPod the addition for each pod that waits: the
	// more nodes a plan buys, the more it saves. With a part of a core, work takes longer than its time of a core.
	packingWait, packingWaitPerPod = 1200 * time.Millisecond, 5 * time.Millisecond
	// crowdedPart is the part of it beside a namespace that has most of the pods: a search takes up to six times the
	// work that it counts where no two pods are alike. Others wait 1.5 s for 1,000 such pods in a function of 512 MiB,
	// and plans for 12 bursts of 2,000 usual pods are 0.4 % dearer, see BenchmarkBurst. With 8 it is 2.6 s and 0.1 %,
	// with 32 as long and 1.0 %, of one of them 7 %.
	crowdedPart = 16
)

// packingMilliseconds returns how much of a core's time there is to make a plan for the waiting pods cheaper. It is a
// power of two, so that passes with about as much time make the same plan; 0 where no limit is known.
func (c *Controller) packingMilliseconds(ctx context.Context, pods []cluster.Pod) int {
	waiting, crowded := countUnbound(pods)
	end, limited := ctx.Deadline()
	if !limited || c.VCPUs == 0 {
		return 0
	}
	wait := min(end.Sub(c.Now())/packingPart, packingWait+time.Duration(waiting)*packingWaitPerPod)
	most, out := float64(wait.Milliseconds())*c.VCPUs, 1
	for float64(out*2) <= most {
		out *= 2
	}
	if crowded {
		return max(1, out/crowdedPart)
	}
	return out
}

// countUnbound counts the pods that wait. Those of a namespace that has more than all others together, and a few, count
// so far: the others do not wait for the search of a thousand, and are crowded.
func countUnbound(pods []cluster.Pod) (n int, crowded bool) {
	// Chosen, not measured: it is half a second of waiting, and half or double of it a quarter or a whole.
	const few = 100
	by, provisionable, most := map[string]int{}, 0, 0
	for i := range pods {
		if pods[i].NodeName == "" {
			n++
		}
		if pods[i].Provisionable() {
			provisionable++
			by[pods[i].Namespace]++
			most = max(most, by[pods[i].Namespace])
		}
	}
	if others := provisionable - most; others > 0 && most > others+few {
		return n - (most - others - few), true
	}
	return n, false
}

// countDecision has a decision counted for Prometheus, on the lease under which it was made.
func (c *Controller) countDecision(took time.Duration) {
	if c.Totals == nil {
		return
	}
	now := c.Now()
	c.Totals.ChangeTotals(controllers.CapacityLeaseName, func(t timeseries.Totals) {
		t.CountScheduling("provisioner", took, now)
	})
}
