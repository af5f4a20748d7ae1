package interruption

import (
	api "joiner.sh/pkg/api/v1"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// firstFor bounds how long pods stay for that: a launch takes seconds, and the notice leaves less than two minutes.
const firstFor = 20 * time.Second

// FirstUntil is until when the pods of the claim stay where they are for their replacement; zero if they need not.
func FirstUntil(c cluster.Claim) time.Time {
	t, err := time.Parse(time.RFC3339, c.Annotations[api.AnnotationDrainAfterReplacement])
	if err != nil || c.Deleting.IsZero() {
		return time.Time{}
	}
	return t
}

// AwaitsReplacement reports whether a drain waits for a replacement to be asked for.
func AwaitsReplacement(claims []cluster.Claim, now time.Time) bool {
	return slices.ContainsFunc(claims, func(c cluster.Claim) bool { return now.Before(FirstUntil(c)) })
}

// WaitingDrains holds the drains that wait until each of their pods has a place on a node that there is or that EC2 has
// accepted to make.
type WaitingDrains struct {
	of    map[string]*waitingDrain // by pod that has none yet
	ready []cluster.Claim          // not told yet
}

type waitingDrain struct {
	claim cluster.Claim
	lacks int // pods that have no place yet
}

// DrainsWaiting are the drains that wait as long as nothing of the plan was launched.
func DrainsWaiting(s cluster.Snapshot, p plan.Plan) *WaitingDrains {
	accepted, on := map[string]bool{}, map[string]*waitingDrain{}
	d := &WaitingDrains{of: map[string]*waitingDrain{}}
	var all []*waitingDrain
	for _, node := range s.StateNodes() {
		accepted[node.Name()] = node.Node != nil || node.Claim != nil && node.Claim.ProviderID != ""
		if node.Claim != nil && s.Now.Before(FirstUntil(*node.Claim)) {
			waits := &waitingDrain{claim: *node.Claim}
			if all = append(all, waits); node.Node != nil {
				on[node.Node.Name] = waits
			}
		}
	}
	if len(all) == 0 {
		return d
	}
	place := p.NodeByPod()
	for i := range s.Pods {
		pod := &s.Pods[i]
		if waits := on[pod.NodeName]; waits != nil && pod.Reschedulable() && !accepted[place[pod.Key()]] {
			waits.lacks++
			d.of[pod.Key()] = waits
		}
	}
	for _, waits := range all {
		if waits.lacks == 0 {
			d.ready = append(d.ready, waits.claim)
		}
	}
	return d
}

// AcceptLaunches notes that EC2 accepted these launches of the plan and returns the claims, sorted, whose drain need
// not wait any more, each once.
func (d *WaitingDrains) AcceptLaunches(launched []plan.Launch) []cluster.Claim {
	for _, l := range launched {
		for _, pod := range l.Pods {
			if waits := d.of[pod]; waits != nil {
				delete(d.of, pod)
				if waits.lacks--; waits.lacks == 0 {
					d.ready = append(d.ready, waits.claim)
				}
			}
		}
	}
	out := slices.SortedFunc(slices.Values(d.ready),
		func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
	d.ready = nil
	return out
}

// replacementDeadline is until when the pods of a claim that is marked for deletion now stay, in whole seconds and for
// firstFor at least, because the annotation knows no parts of a second; zero when there is no time for it. The deadline
// on the claim may be that of a handler that died before it deleted it.
func replacementDeadline(c cluster.Claim, deadline, now time.Time) time.Time {
	until := now.Add(firstFor + time.Second - 1).Truncate(time.Second)
	if have := c.Deadline(); !have.IsZero() && have.Before(deadline) {
		deadline = have
	}
	if !c.Deleting.IsZero() || !until.Before(deadline) {
		return time.Time{}
	}
	return until
}
