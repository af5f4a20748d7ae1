package rollout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

const (
	// mostRemembered caps the controllers that are remembered whose pods leave old nodes.
	mostRemembered = 300
	// soughtRate is the part of pods that fare badly beyond those on old nodes, for which the power is told.
	soughtRate = 0.2
)

// rememberOld brings what is remembered of pods on old nodes up to date: the counts when most were there. Where those
// that stay got worse since, those that left count as badly: what goes wrong everywhere is not the fault of new nodes.
func rememberOld(before []cluster.OldPods, all []cluster.WorkloadHealth, now time.Time) []cluster.OldPods {
	at := lists.Index(before, func(o cluster.OldPods) string { return o.Controller })
	for _, w := range all {
		o, known := at[w.Controller]
		switch {
		case w.Old == 0 && known && o.Left.IsZero():
			o.Left = now
		case w.Old == 0:
			continue
		case w.Old > o.Pods:
			o = cluster.OldPods{Controller: w.Controller, Pods: w.Old, Bad: max(w.OldBad, o.Bad)}
		default:
			if o.Left = (time.Time{}); w.OldBad > o.Bad {
				o.Bad = (o.Pods*w.OldBad + w.Old - 1) / w.Old
			}
		}
		if known || len(at) < mostRemembered {
			at[w.Controller] = o
		}
	}
	return slices.SortedFunc(maps.Values(at), func(a, b cluster.OldPods) int {
		return strings.Compare(a.Controller, b.Controller)
	})
}

// compared returns the workloads that have pods on new nodes and pods to compare them with: those on old nodes, and
// those that have left them, as they are remembered. Where none stays, they count until readyWithin after they left.
func compared(r cluster.Rollout, now time.Time) (out []cluster.WorkloadHealth) {
	at := map[string]cluster.OldPods{}
	for _, o := range r.Status.OldPods {
		if o.Left.IsZero() || now.Before(o.Left.Add(r.ReadyWithin)) {
			at[o.Controller] = o
		}
	}
	for _, w := range r.Workloads {
		o := at[w.Controller]
		if left := o.Pods - w.Old; left > 0 {
			w.Old, w.OldBad = w.Old+left, w.OldBad+min(max(o.Bad-w.OldBad, 0), left)
		}
		if w.New > 0 && w.Old > 0 {
			out = append(out, w)
		}
	}
	return out
}

// arriving says which pods are about to show something on new nodes: those of old nodes that are being replaced, and
// those that start on new ones.
func arriving(s cluster.Snapshot, r cluster.Rollout) string {
	isNew := map[string]bool{}
	revision := revisionOf(r)
	for _, c := range claimsOf(s, r) {
		switch {
		case revision(c) == r.Status.Revision:
			isNew[c.NodeName] = c.Deleting.IsZero()
		case c.Annotations[api.AnnotationDisruptionCommand] != "":
			return "pods of old nodes that are being replaced"
		}
	}
	for _, p := range s.Pods {
		if p.Controller != "" && p.NodeName != "" && isNew[p.NodeName] && !p.Terminating() && !p.Virtual && !p.Ready &&
			p.Phase != "Succeeded" && !faresBadly(p, s.Now) {
			return "pods that start on new nodes"
		}
	}
	return ""
}

func sumOf(all []cluster.WorkloadHealth) (sum cluster.WorkloadHealth) {
	for _, w := range all {
		sum.New, sum.NewBad = sum.New+w.New, sum.NewBad+w.NewBad
		sum.Old, sum.OldBad = sum.Old+w.Old, sum.OldBad+w.OldBad
	}
	return sum
}

// powerOf is the chance that a look at the end of a step finds a revision on which soughtRate of the good pods fare
// badly as well, with so many pods on new and on old nodes.
func powerOf(all []cluster.WorkloadHealth) float64 {
	sum := sumOf(all)
	if sum.New == 0 || sum.Old == 0 {
		return 0
	}
	base := float64(sum.OldBad) / float64(sum.Old)
	rate, power := base+soughtRate*(1-base), 0.0
	for k := sum.New; k > 0; k-- {
		if sum.NewBad = k; chanceOf([]cluster.WorkloadHealth{sum}) > mostChanceAtEnd {
			break
		}
		power += math.Exp(logChoose(sum.New, k) + float64(k)*math.Log(rate) +
			float64(sum.New-k)*math.Log(1-rate))
	}
	return min(power, 1)
}

// tellPower says what was compared before a revision is trusted, and how much that shows.
func tellPower(all []cluster.WorkloadHealth) string {
	sum := sumOf(all)
	if sum.New == 0 {
		return "no pods could be compared"
	}
	return fmt.Sprintf("%d pods on new nodes were compared with %d on old ones, which finds one on which %.0f %% more "+
		"fare badly in %.0f %% of the cases", sum.New, sum.Old, 100*soughtRate, 100*powerOf(all))
}
