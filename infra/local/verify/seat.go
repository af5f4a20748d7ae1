package verify

import "joiner.sh/pkg/model/plan"

// seat is the node that a plan has for a pod.
type seat struct{ pod, node string }

// seatsOf lists the pods that the plan of a round places.
func seatsOf(round int, p plan.Plan) []seat {
	var out []seat
	for i, l := range p.Launches {
		for _, pod := range l.Pods {
			out = append(out, seat{pod: pod, node: nodeName(round, i)})
		}
	}
	for _, e := range p.Existing {
		out = append(out, seat{pod: e.Pod, node: e.Node})
	}
	return out
}
