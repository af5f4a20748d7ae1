package lifecycle

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// podIndex finds the pods of a node. It looks at all pods when it is asked first: most passes ask for none, and a large
// cluster has many.
type podIndex struct {
	all    []cluster.Pod
	places map[string][]int32       // in all, by node name; nil before the first question
	found  map[string][]cluster.Pod // of nodes that were asked for
}

// onNode returns the pods of the node, in the order of all.
func (x *podIndex) onNode(name string) []cluster.Pod {
	if x.places == nil {
		x.places, x.found = map[string][]int32{}, map[string][]cluster.Pod{}
		for i := range x.all {
			if node := x.all[i].NodeName; node != "" {
				x.places[node] = append(x.places[node], int32(i))
			}
		}
	}
	if pods, ok := x.found[name]; ok {
		return pods
	}
	pods := lists.Of(x.places[name], func(i int32) cluster.Pod { return x.all[i] })
	x.found[name] = pods
	return pods
}
