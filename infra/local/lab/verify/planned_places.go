package verify

import "joiner.sh/pkg/model/plan"

// podPlace is the node that a plan has for a pod.
type podPlace struct{ pod, node string }

// plannedPlaces lists the pods that the plan of a round places.
func plannedPlaces(round int, p plan.Plan) []podPlace {
	var out []podPlace
	for i, l := range p.Launches {
		for _, pod := range l.Pods {
			out = append(out, podPlace{pod: pod, node: nodeName(round, i)})
		}
	}
	for _, e := range p.Existing {
		out = append(out, podPlace{pod: e.Pod, node: e.Node})
	}
	return out
}
