package interruption

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
)

// DeleteReplaced are the actions that delete the claims of nodes which go now: all their pods have room on nodes that
// are ready, or there is no time left. The plan is that of packing Empty.
func DeleteReplaced(s cluster.Snapshot, going []PendingReplacement, p plan.Plan) []plan.Action {
	stays := findRoom(s, going, p).stays
	var out []plan.Action
	for _, g := range going {
		due := g.Leave.isDue(s.Now)
		if g.Wait != "" || !due && stays[g.Node] {
			continue
		}
		why := "its pods have room on nodes that are ready"
		if due {
			why = "EC2 disturbs it at " + reasonText(g.Leave.Until)
		}
		if by := drainDeadline(s, g); !by.IsZero() {
			out = append(out, plan.Action{Do: plan.SetDeadline, Claim: g.Claim, Deadline: by,
				Reason: string(g.Leave.Cause), Why: why})
		}
		out = append(out, plan.Action{Do: plan.DeleteClaim, Claim: g.Claim, Reason: string(g.Leave.Cause), Why: why})
	}
	return out
}

// room holds the places that the plan has for pods now, and not only once more nodes are ready.
type room struct {
	s     cluster.Snapshot
	all   topology.Namespaces
	on    map[string][]*cluster.Pod // by node
	place map[string]string         // node by pod, for pods that have one there
	ready map[string]bool           // nodes that take pods now
	later []*cluster.Pod            // pods that come to where the plan has them only when more nodes are ready
	stays map[string]bool           // nodes to be left whose pods have no room yet
}

// findRoom says which nodes that are to be left cannot be yet. A pod that leans on one that comes later has no room
// before that, and a node that stays keeps its pods where they are, on which others may lean.
func findRoom(s cluster.Snapshot, going []PendingReplacement, p plan.Plan) room {
	if len(going) == 0 {
		return room{}
	}
	r := room{s: s, all: topology.IndexNamespaces(s.Namespaces),
		on: s.PodsByNode(), place: p.NodeByPod(), ready: nodesTakingPods(s), stays: map[string]bool{}}
	launched := map[string]bool{}
	for _, l := range p.Launches {
		for _, key := range l.Pods {
			launched[key] = true
		}
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		at, placed := r.place[pod.Key()]
		if launched[pod.Key()] || placed && !r.ready[at] {
			r.later = append(r.later, pod)
		}
	}
	for again := true; again; {
		again = false
		for _, g := range going {
			if g.Node == "" || g.Wait != "" || g.Leave.isDue(s.Now) || r.stays[g.Node] || r.allPodsPlaced(g.Node) {
				continue
			}
			r.stays[g.Node], again = true, true
			r.later = append(r.later, podsOn(r.on, g.Node)...)
		}
	}
	return r
}

// nodesTakingPods are the nodes that are ready to take pods. Where another pod is still ending it may be in the way, as
// one that pods must not be beside is until it is gone: that node is not ready for them yet.
func nodesTakingPods(s cluster.Snapshot) map[string]bool {
	ready := map[string]bool{}
	for _, node := range s.StateNodes() {
		ready[node.Name()] = node.Node != nil && node.Node.Ready && node.Initialized()
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if pod.Terminating() && !pod.Terminal() {
			delete(ready, pod.NodeName)
		}
	}
	return ready
}

// allPodsPlaced reports whether every pod of the node that needs another has room.
func (r room) allPodsPlaced(node string) bool {
	return !slices.ContainsFunc(podsOn(r.on, node),
		func(p *cluster.Pod) bool { return !r.ready[r.place[p.Key()]] || r.dependsOnUnplaced(p) })
}

func (r room) dependsOnUnplaced(p *cluster.Pod) bool {
	return len(p.Spread)+len(p.Affinity) > 0 && slices.ContainsFunc(r.later, func(other *cluster.Pod) bool {
		return other != p && topology.DependsOn(*p, *other, r.all)
	})
}

// podsOn are the pods of the node that need another when it goes; on are all pods by node.
func podsOn(on map[string][]*cluster.Pod, node string) []*cluster.Pod {
	return lists.Where(on[node], func(p *cluster.Pod) bool { return p.Reschedulable() })
}
