package verify

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"joiner/pkg/plan"
	"joiner/pkg/workload"
)

// seat is the node that a plan has for a pod.
type seat struct{ pod, node, zone string }

// seatsOf lists the pods that the plan of a round places. Zones are those of the nodes made so far and of the plan's own.
func (t *trial) seatsOf(round int, p plan.Plan) []seat {
	var out []seat
	for i, l := range p.Launches {
		for _, pod := range l.Pods {
			out = append(out, seat{pod: pod, node: nodeName(round, i), zone: l.Choice.Zone})
		}
	}
	zones := map[string]string{}
	for _, n := range slices.Concat(t.Workload.Nodes, t.planned) {
		zones[n.Name] = n.Zone
	}
	for _, e := range p.Existing {
		out = append(out, seat{pod: e.Pod, node: e.Node, zone: zones[e.Node]})
	}
	return out
}

// alternate lets the pods of each group change seats so that, in the order in which they arrive, they fill the zones evenly. A
// spread over zones would not let the scheduler follow a plan that fills one zone after the other.
func (t *trial) alternate(seats []seat) []seat {
	order := make(map[string]int, len(t.pods))
	for i, p := range t.pods {
		order[workload.Key(p)] = i
	}
	groups := map[string][]seat{}
	for _, s := range seats {
		g := t.names.Group(s.pod)
		groups[g] = append(groups[g], s)
	}
	var out []seat
	for _, group := range groups {
		var pods []string
		left := map[string][]seat{} // by zone
		for _, s := range group {
			pods = append(pods, s.pod)
			left[s.zone] = append(left[s.zone], s)
		}
		slices.SortFunc(pods, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
		for _, pod := range pods {
			zone := fullest(left)
			s := left[zone][0]
			left[zone] = left[zone][1:]
			out = append(out, seat{pod: pod, node: s.node, zone: zone})
		}
	}
	return out
}

// fullest is the zone with the most seats left.
func fullest(left map[string][]seat) string {
	best := ""
	for zone, seats := range left { // the order does not matter: the first name wins among equals
		if n := len(seats) - len(left[best]); n > 0 || n == 0 && len(seats) > 0 && strings.Compare(zone, best) < 0 {
			best = zone
		}
	}
	return best
}

// gated are the pods with a gate of ours, those excepted that wait for one of their own.
func gated(pods []*corev1.Pod) []*corev1.Pod {
	var out []*corev1.Pod
	for _, p := range pods {
		p = p.DeepCopy()
		if len(p.Spec.SchedulingGates) == 0 {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
		}
		out = append(out, p)
	}
	return out
}
