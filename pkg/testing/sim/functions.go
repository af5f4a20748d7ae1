package sim

import (
	"context"
	"log/slog"
	"time"

	"joiner/pkg/controllers"
	"joiner/pkg/controllers/disrupt"
	"joiner/pkg/controllers/lifecycle"
	"joiner/pkg/controllers/notices"
	"joiner/pkg/controllers/provision"
	"joiner/pkg/controllers/refresh"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/nodeclaim/launch"
)

// Functions are the programs as the stack runs them. So many equal launches share a request, 0 for never.
func Functions(rules cluster.Settings, share int) []Function {
	return []Function{
		{Name: "provision", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
			Run: func(ctx context.Context, in Invocation) error {
				p := in.Ports
				f := provision.Controller{Deps: controllers.Deps{Record: p, Rules: rules, Holder: in.Holder,
					Now: in.Now, Log: in.Log},
					Read: p, Claims: p, Lease: p, Fleet: p, SoldOut: p, Prices: p,
					Lifecycle: p.wakeUnlessWatching("lifecycle", in.Log),
					Refresh:   p.NewWaker("refresh"), Watch: p, Holds: p, Cluster: demoFunctions(),
					SoldOutFor: unavailableOfferingTTL,
					ShareFrom:  share, BatchIdle: time.Second, BatchMax: 10 * time.Second}
				return f.Run(ctx, in.Until)
			}},
		{Name: "lifecycle", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
			Run: func(ctx context.Context, in Invocation) error {
				p := in.Ports
				f := lifecycle.Controller{Deps: controllers.Deps{Record: p, Rules: rules, Holder: in.Holder,
					Now: in.Now, Log: in.Log},
					Read: p, Claims: p, Nodes: p, Pods: p, Instances: p, Health: p, Pools: p, Volumes: p,
					Provision: p.wakeUnlessWatching("provision", in.Log), Refresh: p.NewWaker("refresh"), Watch: p,
					Holds: p}
				return f.Run(ctx, in.Until)
			}},
		noticeFunction("spotinterruption", EventSpot, 5*time.Minute),
		noticeFunction("reservationinterruption", EventReservation, 5*time.Minute),
		noticeFunction("statechange", EventState, 5*time.Minute),
		noticeFunction("rebalance", EventRebalance, time.Hour),
		noticeFunction("scheduledchange", EventHealth, 6*time.Hour),
		disruptFunction(rules),
		{Name: "refresh", Every: 5 * time.Minute, Alone: true, MaxAge: time.Minute, Timeout: 2 * time.Minute,
			Run: func(ctx context.Context, in Invocation) error {
				p := in.Ports
				f := refresh.Controller{Deps: controllers.Deps{Record: p, Rules: rules, Now: in.Now, Log: in.Log},
					Finder: p, Classes: p, Pools: p, Nodes: p, Market: p, Overlays: p, Buffers: p, Prices: p,
					Cluster: demoFunctions()}
				return f.Run(ctx)
			}},
	}
}

// demoFunctions is the cluster.
func demoFunctions() launch.Cluster {
	return launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: caBundle, DNSAddress: "172.20.0.10",
		ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"}
}

// disruptFunction is the function that disrupts by choice.
func disruptFunction(rules cluster.Settings) Function {
	return Function{Name: "disrupt", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := disrupt.Controller{Deps: controllers.Deps{Record: p, Rules: rules, Holder: in.Holder, Now: in.Now,
				Log: in.Log},
				Read: p, Placed: p, Claims: p, Moves: p, Lease: p, SoldOut: p, Prices: p, Notes: p,
				Provision: p.wakeUnlessWatching("provision", in.Log),
				Lifecycle: p.wakeUnlessWatching("lifecycle", in.Log)}
			return f.Run(ctx, in.Until)
		}}
}

// noticeFunction is a function that handles notices of one kind.
func noticeFunction(name, event string, maxAge time.Duration) Function {
	return Function{Name: name, Event: event, Retries: 2, MaxAge: maxAge, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := notices.Controller{Deps: controllers.Deps{Record: p, Now: in.Now, Log: in.Log},
				Read: p, Node: p, Claims: p, Nodes: p, SoldOut: p, Pods: p, Pools: p, Quota: p,
				Provision:     p.wakeUnlessWatching("provision", in.Log),
				Lifecycle:     p.wakeUnlessWatching("lifecycle", in.Log),
				SoldOutFor:    unavailableOfferingTTL,
				Rebalance:     interruption.RebalancePolicy{Choice: interruption.Replace, MinAge: 15 * time.Minute},
				QuarantineFor: quarantineFor}
			return f.HandleNotices(ctx, handleNotice(in.Event))
		}}
}

// handleNotice is what control makes of the event.
func handleNotice(e Event) interruption.Notice {
	kind := map[string]interruption.Kind{EventSpot: interruption.Spot, EventReservation: interruption.Reservation,
		EventRebalance: interruption.Rebalance, EventHealth: interruption.Scheduled}[e.Kind]
	if e.Kind == EventState {
		kind = map[string]interruption.Kind{"running": interruption.Running, "stopping": interruption.Stopping,
			"stopped":       interruption.Stopped,
			"shutting-down": interruption.Ending, "terminated": interruption.Ended}[e.State]
	}
	return interruption.Notice{Kind: kind, Instance: e.Instance, Time: e.Time, At: e.From}
}

// wakeUnlessWatching wakes the function of that name unless it watches.
func (p *Ports) wakeUnlessWatching(name string, log *slog.Logger) controllers.Waker {
	return controllers.WakeUnlessWatching{Waker: p.NewWaker(name), Of: p, Function: name, Log: log}
}
