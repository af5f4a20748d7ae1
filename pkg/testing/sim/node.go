package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/nomination"
)

// node is a Node object, and what makes it go.
type node struct {
	cluster.Node
	owner   string    // UID of the NodeClaim it belongs to, from registration on
	machine *machine  // nil for a node that somebody else runs
	down    bool      // its kubelet is silent
	bound   time.Time // when it got its last pod
	guarded time.Time // when a user protected it

	untainted time.Time // when a disruption of it was taken back
	guardEnds time.Time // by when all users will have taken that back
}

// RegisterNode makes the node the claim's.
func (p *Ports) RegisterNode(ctx context.Context, n cluster.Node, c cluster.Claim) error {
	return p.changeNode(ctx, "register node", n, func(have *node) bool {
		p.w.checkOurs(have, "registered")
		labels := mergeAnnotations(c.Labels, map[string]string{v1.LabelRegistered: "true"})
		taints := slices.DeleteFunc(nomination.TaintsOnRegistration(have.Taints, c),
			func(t cluster.Taint) bool { return t.Key == v1.TaintUnregistered })
		if have.Finalizer && have.owner == c.UID && isWithin(labels, have.Labels) && slices.Equal(taints, have.Taints) {
			return false
		}
		// Finalizers cannot be added to an object that is being deleted.
		have.Finalizer = have.Finalizer || have.Deleting.IsZero()
		have.owner, have.Taints = c.UID, taints
		have.Labels = mergeAnnotations(have.Labels, labels)
		have.Annotations = mergeAnnotations(have.Annotations, c.Annotations)
		if _, there := p.w.byUID[c.UID]; !there || p.w.claims[c.Name] == nil {
			p.w.runAfter(p.w.drawDuration(time.Second, 5*time.Second), func() { p.w.deleteOrphans(c.UID) })
		}
		return true
	})
}

// InitializeNode labels the node.
func (p *Ports) InitializeNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "initialize node", n, func(have *node) bool {
		if have.Labels[v1.LabelInitialized] == "true" {
			return false
		}
		have.Labels = mergeAnnotations(have.Labels, map[string]string{v1.LabelInitialized: "true"})
		return true
	})
}

// UnreserveNode is not asked for: nothing is reserved in this EC2.
func (p *Ports) UnreserveNode(_ context.Context, n cluster.Node) error {
	return errors.New("unreserve node " + n.Name + ": nothing is reserved")
}

// TaintForTermination taints the node.
func (p *Ports) TaintForTermination(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "condemn node", n, func(have *node) bool {
		p.w.checkOurs(have, "condemned")
		if slices.Contains(have.Taints, disruptedTaint()) && have.Labels[v1.LabelExcludeBalancers] != "" {
			return false
		}
		if !slices.Contains(have.Taints, disruptedTaint()) {
			have.Taints = append(slices.Clone(have.Taints), disruptedTaint())
		}
		have.Labels = mergeAnnotations(have.Labels,
			map[string]string{v1.LabelExcludeBalancers: v1.ExcludeBalancersValue})
		return true
	})
}

// TaintNode keeps new pods off the node.
func (p *Ports) TaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "taint node", n, func(have *node) bool {
		p.w.checkOurs(have, "tainted")
		if slices.Contains(have.Taints, disruptedTaint()) {
			return false
		}
		if have.machine != nil && have.Deleting.IsZero() && !p.w.isDying(have) {
			p.w.checkBudget(p.w.byUID[have.machine.owner])
			p.w.checkVolumesStay(have)
		}
		have.Taints = append(slices.Clone(have.Taints), disruptedTaint())
		return true
	})
}

// UntaintNode lets pods on it again.
func (p *Ports) UntaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "untaint node", n, func(have *node) bool {
		before := len(have.Taints)
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints),
			func(t cluster.Taint) bool { return t == disruptedTaint() })
		if len(have.Taints) < before {
			have.untainted = time.Now()
			p.w.retryScheduling()
		}
		return len(have.Taints) < before
	})
}

// isTainted reports whether nothing more is to come to the node, because it leaves.
func (n *node) isTainted() bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == v1.TaintDisrupted })
}

func disruptedTaint() cluster.Taint {
	return cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"}
}

// DeleteNode gives the node a deletion time.
func (p *Ports) DeleteNode(ctx context.Context, n cluster.Node) error {
	return tryPort(ctx, p, "delete node", n.Name, func() error {
		if have, ok := p.w.nodes[n.Name]; ok && have.UID == n.UID {
			p.w.checkOurs(have, "deleted")
			p.w.deleteNode(have, p.inv)
		}
		return nil
	})
}

// ReleaseNode removes our finalizer.
func (p *Ports) ReleaseNode(ctx context.Context, n cluster.Node) error {
	return tryPort(ctx, p, "release node", n.Name, func() error {
		if have, ok := p.w.nodes[n.Name]; ok && have.UID == n.UID && have.Finalizer {
			p.w.checkNodeRelease(have)
			p.w.countMutation("release node")
			have.Finalizer = false
			p.w.notifyChange(aNode, p.inv)
			p.w.collectDeleted()
		}
		return nil
	})
}

// changeNode changes a node that is still the one given; one that is gone is a conflict, as with the real adapter.
func (p *Ports) changeNode(ctx context.Context, call string, n cluster.Node, edit func(*node) bool) error {
	return tryPort(ctx, p, call, n.Name, func() error {
		have, ok := p.w.nodes[n.Name]
		if !ok || have.UID != n.UID {
			return &ConflictError{"node " + n.Name}
		}
		if edit(have) {
			p.w.countMutation(call)
			p.w.notifyChange(aNode, p.inv)
		}
		return nil
	})
}

// ReadNode reads one node.
func (p *Ports) ReadNode(ctx context.Context, name string) (cluster.Node, error) {
	return callPort(ctx, p, "get node", name, func() (cluster.Node, error) {
		n, ok := p.w.nodes[name]
		if !ok {
			return cluster.Node{}, &NotFoundError{"node " + name}
		}
		return n.Node, nil
	})
}

func (p *Ports) listNodes() []cluster.Node {
	p.seen[aNode] = p.w.version
	var out []cluster.Node
	for _, name := range slices.Sorted(maps.Keys(p.w.nodes)) {
		out = append(out, p.w.nodes[name].Node)
	}
	return out
}

// deleteNode is what the API server does when somebody deletes a node.
func (w *world) deleteNode(n *node, by *invocation) {
	if n.Deleting.IsZero() {
		w.mutatedBy(by, "delete node")
		n.Deleting = w.toSecond()
		w.notifyChange(aNode, by)
	}
	w.collectDeleted()
}

// removeNode takes the object away. The pods on it are collected, whether they run or not.
func (w *world) removeNode(n *node) {
	delete(w.nodes, n.Name)
	w.disks.leave(n.Name)
	w.addTrace("node %s is gone", n.Name)
	w.notifyChange(aNode, nil)
	w.retryScheduling()
	w.runAfter(w.drawDuration(5*time.Second, 20*time.Second), func() {
		for _, pod := range w.podsOn(n.Name) {
			w.removePod(pod)
		}
	})
}

// setReady is a change of the Ready condition. The node lifecycle controller taints a node that is silent, and evicts
// its pods after five minutes.
func (w *world) setReady(n *node, ready bool) {
	if w.nodes[n.Name] != n || n.Ready == ready {
		return
	}
	n.Ready, n.ReadySince = ready, w.toSecond()
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool {
		return t.Key == taintUnreachable || t.Key == taintNotReady
	})
	w.addTrace("node %s ready=%t", n.Name, ready)
	if !ready {
		n.Taints = append(n.Taints, cluster.Taint{Key: taintUnreachable, Effect: "NoSchedule"},
			cluster.Taint{Key: taintUnreachable, Effect: "NoExecute"})
		for _, pod := range w.podsOn(n.Name) {
			w.setPodReady(pod, false)
		}
		since := n.ReadySince
		w.runAfter(5*time.Minute, func() {
			if w.nodes[n.Name] == n && !n.Ready && n.ReadySince.Equal(since) {
				for _, pod := range w.podsOn(n.Name) {
					w.endPod(pod, pod.GraceSec)
				}
			}
		})
	}
	w.notifyChange(aNode, nil)
	w.trySchedule()
}

const (
	taintUnreachable = "node.kubernetes.io/unreachable"
	taintNotReady    = "node.kubernetes.io/not-ready"
)
