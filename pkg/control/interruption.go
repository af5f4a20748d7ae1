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
	err = errors.Join(i.Provision.Wake(ctx), i.condemn(ctx, o.Claim), i.Lifecycle.Wake(ctx))
	i.tell(ctx, o.Claim, n)
	return err
}

// condemn keeps new pods off the node at once; the drain is lifecycle's.
func (i *Interruption) condemn(ctx context.Context, c cluster.Claim) error {
	if c.NodeName == "" {
		return nil
	}
	n, err := i.Node.Node(ctx, c.NodeName)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return i.Nodes.CondemnNode(ctx, n)
}

func (i *Interruption) tell(ctx context.Context, c cluster.Claim, n interrupt.Notice) {
	e := cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true, Reason: n.Reason,
		Message: "EC2 takes the spot instance " + n.Instance + " back in two minutes"}
	if err := i.Record.Event(ctx, e); err != nil {
		i.Log.Warn("event on claim "+c.Name, "error", err)
	}
}

func isNotFound(err error) bool {
	n, ok := errors.AsType[interface {
		error
		NotFound() bool
	}](err)
	return ok && n.NotFound()
}
