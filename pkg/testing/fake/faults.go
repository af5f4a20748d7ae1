package fake

import (
	"context"
	"fmt"
	"slices"
)

// FaultError is the error of a call that a Fault hits.
type FaultError struct{ Call string }

// Error names the call.
func (e *FaultError) Error() string { return e.Call + ": the connection broke" }

// Fault says what goes wrong in one invocation.
type Fault struct {
	Call  int  // the call that fails, counted from 1; 0 for none
	Lost  bool // it is done and only its reply is lost; otherwise it is not done
	Fatal bool // the invocation dies with it: no later call does anything
}

// String says the fault in a few words.
func (f Fault) String() string {
	when, then := "before", "goes on"
	if f.Lost {
		when = "after"
	}
	if f.Fatal {
		then = "dies"
	}
	return fmt.Sprintf("call %d fails %s the deed and the invocation %s", f.Call, when, then)
}

// Ports is the world as one invocation sees it. It implements the ports of the controllers, by a part for each kind.
type Ports struct {
	*invocation
	ReadPorts
	ClaimPorts
	NodePorts
	PodPorts
	PoolPorts
	EC2Ports
	SharedPorts
}

// ReadPorts read objects of several kinds at once.
type ReadPorts struct{ *invocation }

// ClaimPorts are about NodeClaims.
type ClaimPorts struct{ *invocation }

// NodePorts are about Nodes.
type NodePorts struct{ *invocation }

// PodPorts are about pods.
type PodPorts struct{ *invocation }

// PoolPorts are about NodePools.
type PoolPorts struct{ *invocation }

// EC2Ports are about instances.
type EC2Ports struct{ *invocation }

// SharedPorts are the ports by which functions tell each other: leases, marks, memory, quotas and events.
type SharedPorts struct{ *invocation }

// invocation counts the calls of one invocation and has one of them fail.
type invocation struct {
	Before func(call string) // what others do just before a call; nil for nothing. It may use other Ports.
	// Deny returns why a call that writes an object is refused, however often it is repeated; nil for never.
	Deny func(call, object string) error

	w     *World
	fault Fault
	calls []string
	dead  bool
}

// Ports gives an invocation the world, with a fault to come or none.
func (w *World) Ports(f Fault) *Ports {
	i := &invocation{w: w, fault: f}
	return &Ports{i, ReadPorts{i}, ClaimPorts{i}, NodePorts{i}, PodPorts{i}, PoolPorts{i}, EC2Ports{i}, SharedPorts{i}}
}

// Calls lists the calls made, in their order.
func (p *invocation) Calls() []string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return slices.Clone(p.calls)
}

// doCall makes one call: the deed is done with the world locked, unless the fault prevents it.
func doCall[T any](ctx context.Context, p *invocation, call string, deed func() (T, error)) (T, error) {
	if p.Before != nil {
		p.Before(call)
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	var none T
	if p.dead {
		return none, fmt.Errorf("%s: %w", call, context.Canceled)
	}
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", call, err)
	}
	p.calls = append(p.calls, call)
	hit := len(p.calls) == p.fault.Call
	p.dead = hit && p.fault.Fatal
	if hit && !p.fault.Lost {
		return none, &FaultError{call}
	}
	out, err := deed()
	if hit {
		return none, &FaultError{call}
	}
	return out, err
}

// writeObject is doCall for a call that writes one object.
func writeObject[T any](ctx context.Context, p *invocation, call, object string, deed func() (T, error)) (T, error) {
	return doCall(ctx, p, call, func() (T, error) {
		if p.Deny != nil {
			if err := p.Deny(call, object); err != nil {
				var none T
				return none, err
			}
		}
		return deed()
	})
}

// tryCall is doCall for a call without a result.
func tryCall(ctx context.Context, p *invocation, call string, deed func() error) error {
	_, err := doCall(ctx, p, call, func() (struct{}, error) { return struct{}{}, deed() })
	return err
}
