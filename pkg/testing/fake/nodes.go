package fake

import (
	"context"
	"maps"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/objects"
)

// nodeStore are the Nodes of the API server, and the volumes attached to them.
type nodeStore struct {
	*engine
	nodes       map[string]*cluster.Node
	attachments []cluster.Attachment
}

// RegisterNode makes the node the claim's.
func (p NodePorts) RegisterNode(ctx context.Context, n cluster.Node, c cluster.Claim) error {
	return p.changeNode(ctx, "register node", n, func(have *cluster.Node) {
		labels, taints := objects.Registration(*have, c)
		have.Finalizer, have.Labels, have.Taints = true, objects.Merge(have.Labels, labels), taints
		have.Annotations = objects.Merge(have.Annotations, c.Annotations)
	})
}

// OpenNode takes the node's hold off.
func (p NodePorts) OpenNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "open node", n, func(have *cluster.Node) {
		have.Taints = slices.DeleteFunc(slices.Clone(have.Taints), cluster.Taint.IsNomination)
	})
}

// InitializeNode labels the node.
func (p NodePorts) InitializeNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "initialize node", n, func(have *cluster.Node) {
		have.Labels = objects.Merge(have.Labels, map[string]string{v1.LabelInitialized: "true"})
	})
}

// UnreserveNode makes the node on-demand.
func (p NodePorts) UnreserveNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "unreserve node", n, func(have *cluster.Node) {
		have.Labels = onDemandLabels(have.Labels)
	})
}

// TaintForTermination taints the node.
func (p NodePorts) TaintForTermination(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "taint node for termination", n, objects.TaintForTermination)
}

// DeleteNode gives the node a deletion time.
func (p NodePorts) DeleteNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "delete node", n, func(have *cluster.Node) {
		if have.Deleting.IsZero() {
			have.Deleting = p.w.now
		}
	})
}

// ReleaseNode removes our finalizer.
func (p NodePorts) ReleaseNode(ctx context.Context, n cluster.Node) error {
	return p.changeNode(ctx, "release node", n, func(have *cluster.Node) { have.Finalizer = false })
}

// changeNode changes a node that is still the one given. One that is gone is a conflict for writes that make it ours or
// mark it, as with the real adapter; for the others it is no error.
func (p NodePorts) changeNode(ctx context.Context, call string, n cluster.Node, edit func(*cluster.Node)) error {
	return tryCall(ctx, p.invocation, call, func() error {
		have, ok := p.w.nodes[n.Name]
		if !ok || have.UID != n.UID {
			if call == "delete node" || call == "release node" {
				return nil
			}
			return &objects.ConflictError{What: "node " + n.Name}
		}
		edit(have)
		p.w.removeFinalized()
		return nil
	})
}

// ReadNode reads one node.
func (p NodePorts) ReadNode(ctx context.Context, name string) (cluster.Node, error) {
	return doCall(ctx, p.invocation, "get node", func() (cluster.Node, error) {
		n, ok := p.w.nodes[name]
		if !ok {
			return cluster.Node{}, &objects.NotFoundError{What: "node " + name}
		}
		return nodeCopy(n), nil
	})
}

func nodeCopy(n *cluster.Node) cluster.Node {
	out := *n
	out.Labels, out.Annotations, out.Taints = maps.Clone(n.Labels), maps.Clone(n.Annotations), slices.Clone(n.Taints)
	return out
}

// SetNodeCondition sets a condition of every node, since now.
func (w *nodeStore) SetNodeCondition(condition, status string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		n.Conditions = append(slices.Clone(n.Conditions),
			cluster.Condition{Type: condition, Status: status, Since: w.now})
	}
}

// AnnotateNodes sets an annotation of every node, as a person does.
func (w *nodeStore) AnnotateNodes(key, value string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		n.Annotations = objects.Merge(n.Annotations, map[string]string{key: value})
	}
}

// DeleteNodes deletes every node as kubectl delete does.
func (w *nodeStore) DeleteNodes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.Deleting.IsZero() {
			n.Deleting = w.now
		}
	}
	w.claimStore.removeFinalized()
}
