package nomination

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// How long nodes are held for pods that are to be evicted.
const (
	drainsFor  = 2 * time.Minute  // from the beginning of the drain on
	standbyFor = 15 * time.Minute // from Ready on, whatever becomes of the drain
)

// CanNominateOwners reports whether new nodes can be held for what comes in the stead of the pods: not where a pod has
// no controller, and needlessly where one makes them all, so that it does not matter which of them goes where.
func CanNominateOwners(settings cluster.Settings, pods []*cluster.Pod) bool {
	some := false
	for _, p := range pods {
		if p.Controller == "" {
			return false
		}
		some = some || p.Controller != pods[0].Controller
	}
	return settings.NominatedPodsOnly && some
}

// NominateOwners returns the launches of a disruption with a hold on each: it keeps the nodes for the pods that the
// controllers of those planned for them make in their stead. pod finds a pod by its key.
func NominateOwners(pod func(key string) *cluster.Pod, id string, launches []plan.Launch) []plan.Launch {
	out := slices.Clone(launches)
	for i := range out {
		l := &out[i]
		count := map[string]int{}
		for _, name := range l.Pods {
			if p := pod(name); p != nil && p.Controller != "" {
				count[p.Controller]++
			}
		}
		l.Startup = append(slices.Clone(l.Startup), nominationTaint(fmt.Sprintf("%s,%d", id, i)))
		l.Annotations = lists.CopyMap(l.Annotations)
		l.Annotations[api.AnnotationNominatedOwners] = ownersAnnotation(count)
	}
	return out
}

func ownersAnnotation(count map[string]int) string {
	out := lists.Of(slices.Sorted(maps.Keys(count)),
		func(uid string) string { return fmt.Sprintf("%s=%d", uid, count[uid]) })
	return strings.Join(out, ",")
}

// heldFor reads AnnotationNominatedOwners: pods by the UID of their controller. An entry that cannot be read counts
// nothing.
func heldFor(c cluster.Claim) map[string]int {
	out := map[string]int{}
	for part := range strings.SplitSeq(c.Annotations[api.AnnotationNominatedOwners], ",") {
		uid, count, _ := strings.Cut(part, "=")
		if n, err := strconv.Atoi(count); err == nil && n > 0 {
			out[uid] = n
		}
	}
	return out
}

// ResolveOwnerNominations returns the snapshot in which each held replacement is nominated for the pods that it is held
// for: those that wait, and those that are about to go with the nodes they stand on. Those that it was held for and
// that have another node need it no more.
func ResolveOwnerNominations(s cluster.Snapshot) cluster.Snapshot {
	var held []cluster.StateNode
	leaving := map[string]bool{}
	for _, node := range s.StateNodes() {
		if node.AwaitsNominated() {
			held = append(held, node)
		}
		if node.Node != nil && node.MarkedForDeletion() {
			leaving[node.Node.Name] = true
		}
	}
	if len(held) == 0 {
		return s
	}
	slices.SortFunc(held, func(a, b cluster.StateNode) int { return strings.Compare(a.Claim.Name, b.Claim.Name) })
	wait := podsByOwner(s.Pods, leaving)
	names := map[string][]string{}
	taken := map[string]bool{}
	left := remainingByOwner(s.Pods, held)
	for _, own := range []bool{true, false} { // who tolerates the hold already comes first
		for i, node := range held {
			t, _ := TaintOf(*node.Claim)
			for uid := range left[i] {
				for _, p := range wait[uid] {
					if left[i][uid] > 0 && !taken[p.Key()] && (!own || slices.Contains(p.Holds, t.Value)) {
						names[node.Claim.Name] = append(names[node.Claim.Name], p.Key())
						taken[p.Key()] = true
						left[i][uid]--
					}
				}
			}
		}
	}
	s.Claims = slices.Clone(s.Claims)
	for i := range s.Claims {
		if list := names[s.Claims[i].Name]; len(list) > 0 {
			slices.Sort(list)
			s.Claims[i].Annotations = maps.Clone(s.Claims[i].Annotations)
			s.Claims[i].Annotations[api.AnnotationNominatedPods] = strings.Join(list, ",")
		}
	}
	return s
}

// podsByOwner are the pods that look for a node or will, by controller, in the order in which they get one.
func podsByOwner(pods []cluster.Pod, leaving map[string]bool) map[string][]cluster.Pod {
	out := map[string][]cluster.Pod{}
	for _, p := range pods {
		if p.Controller != "" && !p.Virtual && p.Active() && (p.NodeName == "" || leaving[p.NodeName]) {
			out[p.Controller] = append(out[p.Controller], p)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b cluster.Pod) int {
			return cmp.Or(lists.TrueFirst(a.NodeName == "", b.NodeName == ""), strings.Compare(a.Key(), b.Key()))
		})
	}
	return out
}

// remainingByOwner returns by host how many more pods of each controller it is held for than stand there.
func remainingByOwner(pods []cluster.Pod, held []cluster.StateNode) []map[string]int {
	out := make([]map[string]int, len(held))
	at := map[string]map[string]int{}
	for i, node := range held {
		out[i] = heldFor(*node.Claim)
		if node.Node != nil {
			at[node.Node.Name] = out[i]
		}
	}
	for i := range pods {
		p := &pods[i]
		if left := at[p.NodeName]; p.NodeName != "" && left[p.Controller] > 0 && p.Active() {
			left[p.Controller]--
		}
	}
	return out
}

// OwnerNominations tells for which pods nodes are held beside those that tolerate their hold.
type OwnerNominations struct {
	now    time.Time
	drains map[string]bool // disruptions of which pods are evicted, or are about to be, by id
	young  map[string]bool // controllers of which a pod has waited for a node for less than a minute
}

// FindOwnerNominations finds them.
func FindOwnerNominations(s cluster.Snapshot) OwnerNominations {
	e := OwnerNominations{now: s.Now, drains: map[string]bool{}, young: map[string]bool{}}
	for _, c := range s.Claims {
		if id := c.Disruption(); id != "" && (c.Deleting.IsZero() || s.Now.Before(c.Deleting.Add(drainsFor))) {
			e.drains[id] = true
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" && p.Active() && p.Controller != "" && s.Now.Before(p.Created.Add(longest)) {
			e.young[p.Controller] = true
		}
	}
	return e
}

// AwaitsPods reports whether the claim's node, which is Ready, is held on: pods that it is for are about to come, or
// have come and not been let onto it yet.
func (e OwnerNominations) AwaitsPods(c cluster.Claim, n cluster.Node) bool {
	if c.Annotations[api.AnnotationNominatedOwners] == "" || !e.now.Before(n.ReadySince.Add(standbyFor)) {
		return false
	}
	if e.drains[c.Annotations[api.AnnotationReplaces]] {
		return true
	}
	for uid := range heldFor(c) {
		if e.young[uid] {
			return true
		}
	}
	return false
}
