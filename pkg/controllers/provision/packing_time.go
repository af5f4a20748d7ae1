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
	// packingWait is how long pods wait for it at most, and packingWaitPerPod how much longer for each pod that waits:
	// the more nodes a plan buys, the more it saves. With a part of a core, work takes longer than its time of a core.
	packingWait, packingWaitPerPod = 1200 * time.Millisecond, 5 * time.Millisecond
)

// packingMilliseconds is how much of a core's time there is to make a plan for the waiting pods cheaper, a power of
// two, so that passes with about as much time make the same plan; 0 where no limit is known.
func (p *Controller) packingMilliseconds(ctx context.Context, waiting int) int {
	end, limited := ctx.Deadline()
	if !limited || p.VCPUs == 0 {
		return 0
	}
	wait := min(end.Sub(p.Now())/packingPart, packingWait+time.Duration(waiting)*packingWaitPerPod)
	most, out := float64(wait.Milliseconds())*p.VCPUs, 1
	for float64(out*2) <= most {
		out *= 2
	}
	return out
}

// countUnbound counts the pods that wait. Those of a namespace that has more than all others together, and a few, count
// so far: the others do not wait for the search of a thousand.
func countUnbound(pods []cluster.Pod) (n int) {
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
	if others := provisionable - most; others > 0 {
		n -= max(0, most-others-few)
	}
	return n
}

// countDecision has a decision counted for Prometheus, on the lease under which it was made.
func (p *Controller) countDecision(took time.Duration) {
	if p.Totals == nil {
		return
	}
	now := p.Now()
	p.Totals.ChangeTotals(controllers.CapacityLeaseName, func(t timeseries.Totals) {
		t.CountScheduling("provisioner", took, now)
	})
}
