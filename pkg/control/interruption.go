package control

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/interrupt"
)

// NodeReader finds one node. It may be repeated.
type NodeReader interface {
	// Node reads one node. When there is none the error has a method NotFound that reports true.
	Node(ctx context.Context, name string) (cluster.Node, error)
}

// Interruption turns a notice about an instance into a condemned node. Handling a notice twice is harmless.
type Interruption struct {
	Read       Reader
	Node       NodeReader
	Claims     Claims
	Nodes      Nodes
	Record     Recorder
	SoldOut    SoldOut
	Provision  Waker // launches capacity for the pods
	Lifecycle  Waker // drains
	SoldOutFor time.Duration
	Log        *slog.Logger
}

// Spot handles a spot interruption warning: mark, condemn, and wake those who launch and drain.
func (i *Interruption) Spot(ctx context.Context, n interrupt.Notice) error {
	claims, err := i.Read.Claims(ctx)
	if err != nil {
		return err
	}
	o := interrupt.Spot(n, claims)
	if !o.Found {
		i.Log.Info("notice about an instance that is not ours", "instance", n.Instance)
		return nil
	}
	i.Log.Info("notice", "instance", n.Instance, "reason", n.Reason, "claim", o.Claim.Name, "condemn", o.Condemn)
	// The mark comes first: whoever replaces the node must not buy the same offer again.
	if err := i.SoldOut.Add(ctx, o.SoldOut, i.SoldOutFor); err != nil {
		return err
	}
	if o.Condemn {
		if err := i.Claims.DeleteClaim(ctx, o.Claim); err != nil {
			return err
		}
	}
	woken := i.Provision.Wake(ctx)
	node, condemned := i.condemn(ctx, o.Claim)
	err = errors.Join(woken, condemned, i.Lifecycle.Wake(ctx))
	i.tell(ctx, o, node, n)
	return err
}

// condemn keeps new pods off the node at once; the drain is lifecycle's. It returns the node, without a name if there is none.
func (i *Interruption) condemn(ctx context.Context, c cluster.Claim) (cluster.Node, error) {
	if c.NodeName == "" {
		return cluster.Node{}, nil
	}
	n, err := i.Node.Node(ctx, c.NodeName)
	if isNotFound(err) {
		return cluster.Node{}, nil
	}
	if err != nil {
		return cluster.Node{}, err
	}
	return n, i.Nodes.CondemnNode(ctx, n)
}

// tell writes the events of spec aws.md §6.2 on the claim and its node.
func (i *Interruption) tell(ctx context.Context, o interrupt.Outcome, node cluster.Node, n interrupt.Notice) {
	about := []cluster.Event{{Kind: "NodeClaim", Name: o.Claim.Name, UID: o.Claim.UID}}
	if node.Name != "" {
		about = append(about, cluster.Event{Kind: "Node", Name: node.Name, UID: node.UID})
	}
	for _, e := range about {
		e.Warning, e.Reason, e.Message = true, n.Reason, "EC2 takes the spot instance "+n.Instance+" back in two minutes"
		i.event(ctx, e)
		if o.Condemn {
			e.Reason, e.Message = "TerminatingOnInterruption", "it is drained and ended because of "+n.Reason
			i.event(ctx, e)
		}
	}
}

func (i *Interruption) event(ctx context.Context, e cluster.Event) {
	if err := i.Record.Event(ctx, e); err != nil {
		i.Log.Warn("event on "+e.Kind+" "+e.Name, "error", err)
	}
}

func isNotFound(err error) bool {
	n, ok := errors.AsType[interface {
		error
		NotFound() bool
	}](err)
	return ok && n.NotFound()
}
