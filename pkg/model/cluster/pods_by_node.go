package cluster

// PodsByNode returns the pods that are bound to a node and have not ended, by its name, in the order of the snapshot.
// Pods that stand for room to be kept free are none of them.
func (s Snapshot) PodsByNode() map[string][]*Pod {
	onNode := func(p *Pod) bool { return p.NodeName != "" && !p.Terminal() && !p.Virtual }
	counts, all := map[string]int{}, 0
	for i := range s.Pods {
		if p := &s.Pods[i]; onNode(p) {
			counts[p.NodeName]++
			all++
		}
	}
	places, out := make([]*Pod, all), make(map[string][]*Pod, len(counts))
	for i := range s.Pods {
		p := &s.Pods[i]
		if !onNode(p) {
			continue
		}
		list, begun := out[p.NodeName]
		if n := counts[p.NodeName]; !begun {
			list, places = places[:0:n], places[n:]
		}
		out[p.NodeName] = append(list, p)
	}
	return out
}
