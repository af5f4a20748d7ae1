package disrupt

import (
	"context"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
)

// NodeTainter keeps new pods off nodes that are about to go, as long as that can be taken back. All calls may be
// repeated; a node that is gone or was replaced has a method Conflict that reports true.
type NodeTainter interface {
	// TaintNode keeps new pods off the node.
	TaintNode(ctx context.Context, n cluster.Node) error
	// UntaintNode lets pods on it again.
	UntaintNode(ctx context.Context, n cluster.Node) error
	// TaintRevision keeps new pods off a node that a NodeRollout rolls back or is to replace, by a taint of that key.
	TaintRevision(ctx context.Context, n cluster.Node, key string) error
	// UntaintRevision takes back what TaintRevision did with that key.
	UntaintRevision(ctx context.Context, n cluster.Node, key string) error
}

// DisruptionMemory keeps what one pass about disruption tells the next.
type DisruptionMemory interface {
	// ReadMemory returns what was remembered last. May be repeated.
	ReadMemory(ctx context.Context) (disruption.Memory, error)
	// WriteMemory stores it. May be repeated.
	WriteMemory(ctx context.Context, m disruption.Memory) error
}
