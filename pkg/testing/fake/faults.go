package fake

import (
	"context"
	"fmt"
	"slices"
)

// FaultError is what a call returns that a Fault hits.
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

// The parts of Ports.
type (
	ReadPorts   struct{ *invocation } // several kinds at once
	ClaimPorts  struct{ *invocation }
	NodePorts   struct{ *invocation }
	PodPorts    struct{ *invocation }
	PoolPorts   struct{ *invocation }
	EC2Ports    struct{ *invocation }
	SharedPorts struct{ *invocation } // what functions tell each other: leases, marks, memory, quotas, events
)

// invocation counts the calls of one invocation and has one of them fail.
type invocation struct {
	Before func(call string) // what others do just before a call; nil for nothing. It may use other Ports.

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

// tryCall is doCall for a call without a result.
func tryCall(ctx context.Context, p *invocation, call string, deed func() error) error {
	_, err := doCall(ctx, p, call, func() (struct{}, error) { return struct{}{}, deed() })
	return err
}
