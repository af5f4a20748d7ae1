package sim

import (
	"context"
	"log/slog"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/control"
	"joiner/pkg/interrupt"
	"joiner/pkg/launch"
)

// Functions are the programs as the stack runs them. So many equal launches share a request, 0 for never.
func Functions(rules cluster.Rules, share int) []Function {
	return []Function{
		{Name: "provision", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
			Run: func(ctx context.Context, in Invocation) error {
				p := in.Ports
				f := control.Provision{Read: p, Claims: p, Record: p, Lease: p, Fleet: p, SoldOut: p, Prices: p,
					Lifecycle: p.considerate("lifecycle", in.Log), Refresh: p.Waker("refresh"), Vigil: p, Holds: p, Rules: rules, Holder: in.Holder,
					Cluster:    demo(),
					SoldOutFor: soldOutFor, ShareFrom: share, BatchIdle: time.Second, BatchMax: 10 * time.Second, Now: in.Now, Log: in.Log}
				return f.Run(ctx, in.Until)
			}},
		{Name: "lifecycle", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
			Run: func(ctx context.Context, in Invocation) error {
				p := in.Ports
				f := control.Lifecycle{Read: p, Claims: p, Nodes: p, Pods: p, Record: p, Instances: p, Health: p, Pools: p, Volumes: p,
					Provision: p.considerate("provision", in.Log),
					Refresh:   p.Waker("refresh"), Vigil: p, Holds: p, Holder: in.Holder, Rules: rules, Now: in.Now, Log: in.Log}
				return f.Run(ctx, in.Until)
			}},
		handler("spotinterruption", EventSpot, 5*time.Minute),
		handler("reservationinterruption", EventReservation, 5*time.Minute),
		handler("statechange", EventState, 5*time.Minute),
		handler("rebalance", EventRebalance, time.Hour),
		handler("scheduledchange", EventHealth, 6*time.Hour),
		disruption(rules),
		{Name: "refresh", Every: 5 * time.Minute, Alone: true, MaxAge: time.Minute, Timeout: 2 * time.Minute,
			Run: func(ctx context.Context, in Invocation) error {
				p := in.Ports
				f := control.Refresh{Finder: p, Classes: p, Pools: p, Nodes: p, Market: p, Record: p, Overlays: p, Buffers: p, Prices: p,
					Cluster: demo(), Rules: rules, Now: in.Now, Log: in.Log}
				return f.Run(ctx)
			}},
	}
}

// demo is the cluster.
func demo() launch.Cluster {
	return launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: caBundle, DNSAddress: "172.20.0.10",
		ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"}
}

// disruption is the function that disrupts by choice.
func disruption(rules cluster.Rules) Function {
	return Function{Name: "disrupt", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := control.Disrupt{Read: p, Placed: p, Claims: p, Moves: p, Record: p, Lease: p, SoldOut: p, Prices: p, Notes: p,
				Provision: p.considerate("provision", in.Log), Lifecycle: p.considerate("lifecycle", in.Log), Rules: rules, Holder: in.Holder, Now: in.Now, Log: in.Log}
			return f.Run(ctx, in.Until)
		}}
}

// handler is a function that handles notices of one kind.
func handler(name, event string, maxAge time.Duration) Function {
	return Function{Name: name, Event: event, Retries: 2, MaxAge: maxAge, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := control.Interruption{Read: p, Node: p, Claims: p, Nodes: p, Record: p, SoldOut: p, Pods: p, Pools: p, Quota: p,
				Provision: p.considerate("provision", in.Log), Lifecycle: p.considerate("lifecycle", in.Log), SoldOutFor: soldOutFor,
				Rebalance:     interrupt.Policy{Choice: interrupt.Replace, MinAge: 15 * time.Minute},
				QuarantineFor: quarantineFor, Now: in.Now, Log: in.Log}
			return f.Notices(ctx, notice(in.Event))
		}}
}

// notice is what control makes of the event.
func notice(e Event) interrupt.Notice {
	kind := map[string]interrupt.Kind{EventSpot: interrupt.Spot, EventReservation: interrupt.Reservation, EventRebalance: interrupt.Rebalance, EventHealth: interrupt.Scheduled}[e.Kind]
	if e.Kind == EventState {
		kind = map[string]interrupt.Kind{"running": interrupt.Running, "stopping": interrupt.Stopping, "stopped": interrupt.Stopped,
			"shutting-down": interrupt.Ending, "terminated": interrupt.Ended}[e.State]
	}
	return interrupt.Notice{Kind: kind, Instance: e.Instance, Time: e.Time, At: e.From}
}

// considerate wakes the function of that name unless it watches.
func (p *Ports) considerate(name string, log *slog.Logger) control.Waker {
	return control.Considerate{Waker: p.Waker(name), Of: p, Function: name, Log: log}
}
