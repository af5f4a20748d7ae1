package binpack

import (
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// How many nodes of one cause are bought at most that none of their pods come to run on: so many, or where that is more
// so large a part of the pool's nodes.
const (
	leastUnused = 3
	unusedPart  = 100
)

// refusedFitAfter is the time after a node became ready from which it counts as refused for pods that seem to fit:
// kube-scheduler may have many others to place first.
const refusedFitAfter = time.Minute

// UnusedNodes lists the nodes that were bought in vain, sorted by name: Ready for 15 s or more, and for a minute where
// their pods seem to fit; without a pod but those of DaemonSets, while a pod that is older than that and that they were
// nominated for waits. used are the ids of the instances of our nodes that have other pods. Nodes of an older spec or
// image of their class, and those that Joiner itself keeps pods off, say nothing. A cordon says as much as any other
// taint: an agent may put it on each node that comes.
func UnusedNodes(s cluster.Snapshot) (unused []instancetypes.UnusedNode, used []string) {
	u := unusedNodes{s: s, waiting: map[string]*cluster.Pod{}, serving: map[string]bool{},
		taken: map[string]resources.List{}, nodes: map[string]int{}}
	hosts := s.StateNodes()
	u.readPods(hosts)
	for _, node := range hosts {
		if node.Claim == nil || node.Node == nil || node.Claim.ProviderID == "" {
			continue
		}
		if u.serving[node.Name()] {
			used = append(used, node.Claim.InstanceID())
			continue
		}
		p, of := u.refusedPod(node)
		class, known := s.ClassOf(node.Claim.ClassKey())
		if !of || !known || !node.Claim.IsOfClass(class) {
			continue
		}
		said, _, _ := strings.Cut(p.Unschedulable, " preemption:")
		unused = append(unused, instancetypes.UnusedNode{Class: class.Name, Type: node.OfferingKey().Type,
			Node:  node.Node.Name,
			Cause: class.CauseOf(node.OfferingKey().Type), Instance: node.Claim.InstanceID(),
			Why: p.Key() + ": " + said, Allowed: max(leastUnused, u.nodes[node.Pool()]/unusedPart)})
	}
	return unused, used
}

// unusedNodes looks for nodes that were bought in vain.
type unusedNodes struct {
	s       cluster.Snapshot
	waiting map[string]*cluster.Pod   // that need a node, by key
	serving map[string]bool           // nodes with pods other than daemons, by name
	taken   map[string]resources.List // of nodes, by name
	nodes   map[string]int            // by pool
}

func (u *unusedNodes) readPods(hosts []cluster.StateNode) {
	for _, node := range hosts {
		u.nodes[node.Pool()]++
	}
	for i := range u.s.Pods {
		p := &u.s.Pods[i]
		switch {
		case p.Virtual:
		case p.Provisionable():
			u.waiting[p.Key()] = p
		case p.NodeName != "" && !p.Terminal():
			u.taken[p.NodeName] = u.taken[p.NodeName].Add(p.Need)
			if p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode {
				u.serving[p.NodeName] = true
			}
		}
	}
}

// refusedPod is a pod that the host's node was nominated for, which waits although the scheduler has had its say.
func (u *unusedNodes) refusedPod(node cluster.StateNode) (*cluster.Pod, bool) {
	n := node.Node
	if !n.Ready || n.ReadySince.IsZero() || u.s.Now.Sub(n.ReadySince) < cluster.RefusedAfter ||
		node.MarkedForDeletion() ||
		node.IsAwaitingPods(u.s.Now) || isKeptFree(node) {
		return nil, false
	}
	for _, key := range node.Claim.NominatedPods() {
		p := u.waiting[key]
		if p == nil || !p.Created.Before(n.ReadySince) {
			continue
		}
		seemsFit := len(cluster.Untolerated(cluster.HardTaints(node.Taints()), p.Tolerations)) == 0 &&
			u.taken[n.Name].Add(p.Need).FitsIn(n.Allocatable)
		if !seemsFit || u.s.Now.Sub(n.ReadySince) >= refusedFitAfter {
			return p, true
		}
	}
	return nil, false
}

// isKeptFree reports whether Joiner keeps pods off the node, whatever it is good for. It cordons stopped capacity.
func isKeptFree(node cluster.StateNode) bool {
	stopped := node.Claim.Annotations[api.AnnotationStoppedCapacity] != ""
	return slices.ContainsFunc(node.Node.Taints, func(t cluster.Taint) bool {
		return t.IsNomination() || t.IsFailedRevision() || t.IsPreviousRevision() ||
			stopped && t.Key == "node.kubernetes.io/unschedulable"
	})
}
