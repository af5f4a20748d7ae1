package cluster

import "reflect"

// ExpectUnscheduled counts pods as Unscheduled that kube-scheduler has not tried yet and will find no node for: it found
// none for another pod of the same controller that asks for the same. kube-scheduler says so of some dozens of pods a
// second, and those of a burst are to be packed together. A plan gives free room away first, so that nothing is
// bought for pods that still fit in.
func ExpectUnscheduled(pods []Pod) {
	refused := map[string]*Pod{} // by controller, one of its pods
	for i := range pods {
		if p := &pods[i]; p.Controller != "" && p.Provisionable() && refused[p.Controller] == nil {
			refused[p.Controller] = p
		}
	}
	if len(refused) == 0 {
		return
	}
	for i := range pods {
		if p := &pods[i]; p.Untried && p.NodeName == "" && p.asksAs(refused[p.Controller]) {
			p.Unscheduled = true
		}
	}
}

// asksAs reports whether the pod asks for what the other one does, by all that a controller's template says about it.
func (p *Pod) asksAs(other *Pod) bool {
	return other != nil && p.Namespace == other.Namespace && p.Priority == other.Priority &&
		reflect.DeepEqual(p.asks(), other.asks())
}

// asks is what kube-scheduler looks at. Volume claims of a StatefulSet's pods have their own names.
func (p *Pod) asks() [9]any {
	return [...]any{p.Need, p.NodeSelector, p.NodeAffinity, p.Tolerations, p.Spread, p.Affinity, p.AntiAffinity,
		p.HostPorts, p.Unmodelled}
}
