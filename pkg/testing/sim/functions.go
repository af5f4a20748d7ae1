package sim

import (
	"context"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/controllers/lifecycle"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/controllers/stoppedcapacity"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/nodeclaim/launch"
)

// Functions are the programs as the stack runs them. So many equal launches share a request, 0 for never.
func Functions(rules cluster.Settings, share int) []Function {
	return []Function{
		provisionFunction(rules, share),
		lifecycleFunction(rules),
		noticeFunction(rules, "spotinterruption", EventSpot, 5*time.Minute),
		noticeFunction(rules, "reservationinterruption", EventReservation, 5*time.Minute),
		noticeFunction(rules, "statechange", EventState, 5*time.Minute),
		noticeFunction(rules, "rebalance", EventRebalance, time.Hour),
		noticeFunction(rules, "scheduledchange", EventHealth, 6*time.Hour),
		disruptFunction(rules),
		refreshFunction(rules),
	}
}

// deps returns what every function has.
func (in Invocation) deps(rules cluster.Settings) controllers.Deps {
	rules.Ceiling = in.Ceiling
	return controllers.Deps{Permission: in.Ports.leases.permission(), Record: in.Ports.record,
		Metrics: in.Ports.record, Rules: rules, Holder: in.Holder, Now: in.Now, Log: in.Log}
}

// provisionFunction is the function that launches capacity.
func provisionFunction(rules cluster.Settings, share int) Function {
	return Function{Name: "provision", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := provision.Controller{Deps: in.deps(rules), Read: p.read, Claims: p.claims, Lease: p.leases,
				Fleet: p.fleet, Unavailable: p.state, Brake: p.state, Prices: p.offerings, Watch: p.leases,
				Holds:     p.pods,
				Lifecycle: p.wakeUnlessWatching("lifecycle", in.Log), Refresh: p.newWaker("refresh"),
				Cluster: demoCluster(), UnavailableFor: unavailableOfferingTTL, ShareFrom: share,
				BatchIdle: time.Second,
				BatchMax:  10 * time.Second, Buffers: p.offerings,
				Stopped: &stoppedcapacity.Starter{Deps: in.deps(rules), Claims: p.claims, Fleet: p.fleet,
					Unavailable: p.state, UnavailableFor: unavailableOfferingTTL}}
			if r := in.newRollouts(rules); r != nil {
				f.Rollouts = r
			}
			return f.Run(ctx, in.Until)
		}}
}

// lifecycleFunction is the function that takes the next step for every claim, node and instance.
func lifecycleFunction(rules cluster.Settings) Function {
	return Function{Name: "lifecycle", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := lifecycle.Controller{Deps: in.deps(rules), Read: p.read, Claims: p.claims, Nodes: p.nodes,
				Holds: p.nodes, Pods: p.pods, Live: p.live, Instances: p.fleet, Health: p.fleet, Pools: p.pools,
				Known:   p.inv.cache.instances,
				Volumes: p.read, Provision: p.wakeUnlessWatching("provision", in.Log), Refresh: p.newWaker("refresh"),
				Watch: p.leases, Failures: p.state}
			return f.Run(ctx, in.Until)
		}}
}

// refreshFunction is the function that resolves classes and refreshes the catalog.
func refreshFunction(rules cluster.Settings) Function {
	return Function{Name: "refresh", Every: 5 * time.Minute, Alone: true, MaxAge: time.Minute, Timeout: 2 * time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := refresh.Controller{Deps: in.deps(rules), Every: 5 * time.Minute, Finder: p.classes,
				Classes: classReader{p.classes, p.read}, Pools: poolReader{p.pools, p.claims}, Nodes: p.nodes,
				Market: p.offerings, Overlays: p.offerings,
				Buffers: p.offerings, Prices: p.offerings, Cluster: demoCluster()}
			return f.Run(ctx)
		}}
}

// demoCluster returns what nodes have to know of the cluster.
func demoCluster() launch.Cluster {
	return launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: caBundle, DNSAddress: "172.20.0.10",
		ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"}
}

// disruptFunction is the function that disrupts by choice.
func disruptFunction(rules cluster.Settings) Function {
	return Function{Name: "disrupt", Every: time.Minute, Alone: true, MaxAge: time.Minute, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := disrupt.Controller{Deps: in.deps(rules), Read: p.read, Placed: p.fleet, Claims: p.claims,
				Known: p.inv.cache.instances,
				Moves: p.nodes, Lease: p.leases, Unavailable: p.state, Prices: p.offerings, Notes: p.state,
				Provision: p.wakeUnlessWatching("provision", in.Log),
				Lifecycle: p.wakeUnlessWatching("lifecycle", in.Log)}
			if r := in.newRollouts(rules); r != nil {
				f.Rollouts = r
			}
			return f.Run(ctx, in.Until)
		}}
}

// noticeFunction is a function that handles notices of one kind.
func noticeFunction(rules cluster.Settings, name, event string, maxAge time.Duration) Function {
	return Function{Name: name, Event: event, Retries: 2, MaxAge: maxAge, Timeout: time.Minute,
		Run: func(ctx context.Context, in Invocation) error {
			p := in.Ports
			f := notices.Controller{Deps: in.deps(rules),
				Read: p.claims, Node: p.nodes, Claims: p.claims, Nodes: p.nodes, Unavailable: p.state, Pods: p.pods,
				Pools: p.pools, Quota: p.state,
				Provision:      p.wakeUnlessWatching("provision", in.Log),
				Lifecycle:      p.wakeUnlessWatching("lifecycle", in.Log),
				UnavailableFor: unavailableOfferingTTL,
				Rebalance:      interruption.RebalancePolicy{Choice: interruption.Replace, MinAge: 15 * time.Minute},
				QuarantineFor:  quarantineFor}
			return f.HandleNotices(ctx, handleNotice(in.Event))
		}}
}

// handleNotice returns the notice that the controllers make of the event.
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

// unavailableOfferingTTL is the time for which functions are told to leave an offering alone.
const (
	unavailableOfferingTTL = 90 * time.Second
	quarantineFor          = 10 * time.Minute
)
