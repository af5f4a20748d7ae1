package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/objects"
)

// nodePorts read and write nodes.
type nodePorts struct {
	*caller
	api       *apiServer
	scheduler *scheduler
}

// ListNodes lists the nodes.
func (p *nodePorts) ListNodes(ctx context.Context) ([]cluster.Node, error) {
	return callPort(ctx, p.caller, "list nodes", "", func() ([]cluster.Node, error) { return p.listNodes(), nil })
}

// OpenNode takes the hold off the node.
func (p *nodePorts) OpenNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "open node", n, func(have *node) bool {
		p.observe(nodeChanged{have, "opened"})
		before := len(have.Taints)
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints), cluster.Taint.IsNomination)
		p.scheduler.trySchedule()
		return len(have.Taints) < before
	})
}

// RegisterNode makes the node the claim's.
func (p *nodePorts) RegisterNode(ctx context.Context, n cluster.Node, c cluster.Claim) error {
	return p.changeNode(ctx, "register node", n, func(have *node) bool {
		p.observe(nodeChanged{have, "registered"})
		labels, taints := objects.Registration(have.Node, c)
		if have.Finalizer && have.owner == c.UID && isWithin(labels, have.Labels) && slices.Equal(taints, have.Taints) {
			return false
		}
		// Finalizers cannot be added to an object that is being deleted.
		have.Finalizer = have.Finalizer || have.Deleting.IsZero()
		if len(taints) < len(have.Taints) {
			p.scheduler.trySchedule()
		}
		have.owner, have.Taints = c.UID, taints
		have.Labels = objects.Merge(have.Labels, labels)
		have.Annotations = objects.Merge(have.Annotations, c.Annotations)
		if _, there := p.api.byUID[c.UID]; !there || p.api.claims[c.Name] == nil {
			p.runAfter(p.drawDuration(time.Second, 5*time.Second), func() { p.api.deleteOrphans(c.UID) })
		}
		return true
	})
}

// InitializeNode labels the node.
func (p *nodePorts) InitializeNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "initialize node", n, func(have *node) bool {
		if have.Labels[v1.LabelInitialized] == "true" {
			return false
		}
		have.Labels = objects.Merge(have.Labels, map[string]string{v1.LabelInitialized: "true"})
		return true
	})
}

// UnreserveNode is not asked for: nothing is reserved in this EC2.
func (p *nodePorts) UnreserveNode(_ context.Context, n cluster.Node) error {
	return errors.New("unreserve node " + n.Name + ": nothing is reserved")
}

// TaintForTermination taints the node.
func (p *nodePorts) TaintForTermination(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "mark node disrupted", n, func(have *node) bool {
		p.observe(nodeChanged{have, "marked for deletion"})
		if have.Labels[v1.LabelExcludeBalancers] == "" && p.inv.fn.Name == "lifecycle" {
			p.observe(nodeExcluded{have})
		}
		if slices.Contains(have.Taints, objects.DisruptedTaint()) && have.Labels[v1.LabelExcludeBalancers] != "" {
			return false
		}
		objects.TaintForTermination(&have.Node)
		return true
	})
}

// TaintNode keeps new pods off the node.
func (p *nodePorts) TaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "taint node", n, func(have *node) bool {
		p.observe(nodeChanged{have, "tainted"})
		if slices.Contains(have.Taints, objects.DisruptedTaint()) {
			return false
		}
		if p.inv.fn.Name == "disrupt" {
			p.observe(nodeTainted{have})
		}
		have.Taints = append(slices.Clone(have.Taints), objects.DisruptedTaint())
		return true
	})
}

// UntaintNode lets pods on it again.
func (p *nodePorts) UntaintNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "untaint node", n, func(have *node) bool {
		before := len(have.Taints)
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints),
			func(t cluster.Taint) bool { return t == objects.DisruptedTaint() })
		if len(have.Taints) < before {
			have.untainted = time.Now()
			p.scheduler.retryScheduling()
		}
		return len(have.Taints) < before
	})
}

// TaintRevision keeps new pods off a node because of a NodeRollout.
func (p *nodePorts) TaintRevision(ctx context.Context, n cluster.Node, key string) error {
	return p.changeNode(ctx, "taint node of revision", n, func(have *node) bool {
		if slices.Contains(have.Taints, objects.RevisionTaint(key)) {
			return false
		}
		have.Taints = append(slices.Clone(have.Taints), objects.RevisionTaint(key))
		return true
	})
}

// UntaintRevision lets pods on it again.
func (p *nodePorts) UntaintRevision(ctx context.Context, n cluster.Node, key string) error {
	return p.changeNode(ctx, "untaint node of revision", n, func(have *node) bool {
		before := len(have.Taints)
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints), func(t cluster.Taint) bool { return t.Key == key })
		p.scheduler.retryScheduling()
		return len(have.Taints) < before
	})
}

// DeleteNode gives the node a deletion time.
func (p *nodePorts) DeleteNode(ctx context.Context, n cluster.Node) error {
	return tryPort(ctx, p.caller, "delete node", n.Name, func() error {
		if have, ok := p.api.nodes[n.Name]; ok && have.UID == n.UID {
			p.observe(nodeChanged{have, "deleted"})
			p.api.deleteNode(have, p.inv)
		}
		return nil
	})
}

// ReleaseNode removes our finalizer.
func (p *nodePorts) ReleaseNode(ctx context.Context, n cluster.Node) error {
	return tryPort(ctx, p.caller, "release node", n.Name, func() error {
		if have, ok := p.api.nodes[n.Name]; ok && have.UID == n.UID && have.Finalizer {
			p.observe(nodeReleased{have})
			p.countMutation("release node")
			have.Finalizer = false
			p.api.notifyChange(aNode, p.inv)
			p.api.collectDeleted()
		}
		return nil
	})
}

// changeNode changes a node that is still the one given; one that is gone is a conflict, as with the real adapter.
func (p *nodePorts) changeNode(ctx context.Context, call string, n cluster.Node, edit func(*node) bool) error {
	return tryPort(ctx, p.caller, call, n.Name, func() error {
		have, ok := p.api.nodes[n.Name]
		if !ok || have.UID != n.UID {
			return &objects.ConflictError{What: "node " + n.Name}
		}
		if edit(have) {
			p.countMutation(call)
			p.api.notifyChange(aNode, p.inv)
		}
		return nil
	})
}

// ReadNode reads one node.
func (p *nodePorts) ReadNode(ctx context.Context, name string) (cluster.Node, error) {
	return callPort(ctx, p.caller, "get node", name, func() (cluster.Node, error) {
		n, ok := p.api.nodes[name]
		if !ok {
			return cluster.Node{}, &objects.NotFoundError{What: "node " + name}
		}
		return n.Node, nil
	})
}

func (p *nodePorts) listNodes() []cluster.Node {
	p.seen[aNode] = p.api.version
	var out []cluster.Node
	for _, name := range slices.Sorted(maps.Keys(p.api.nodes)) {
		out = append(out, p.api.nodes[name].Node)
	}
	return out
}
