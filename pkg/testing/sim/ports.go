package sim

import (
	"context"
	"log/slog"
	"time"

	"joiner.sh/pkg/controllers"
)

// Ports are the ports of the controllers, as one invocation sees them.
type Ports struct {
	*caller
	lambda *lambda

	read      *readPorts
	live      livePorts
	claims    *claimPorts
	nodes     *nodePorts
	pods      *podPorts
	pools     *poolPorts
	classes   *classPorts
	fleet     *fleetPorts
	offerings *offeringPorts
	state     *statePorts
	leases    *leasePorts
	record    *recordPorts
	rollouts  *rolloutPorts
}

// livePorts read single objects as they are now.
type livePorts struct {
	*claimPorts
	*podPorts
}

// newPorts are the ports of an invocation.
func (w *world) newPorts(inv *invocation) *Ports {
	c := &caller{w.engine, inv, map[objectKind]int{}}
	p := &Ports{caller: c, lambda: w.lambda,
		claims:    &claimPorts{c, w.api, w.ec2},
		nodes:     &nodePorts{c, w.api, w.scheduler},
		pods:      &podPorts{c, w.api, w.kubelets, w.scheduler, w.workloads},
		pools:     &poolPorts{c, w.api},
		classes:   &classPorts{c, w.api, w.account},
		fleet:     &fleetPorts{c, w.ec2},
		offerings: &offeringPorts{caller: c, catalog: w.catalog},
		state:     &statePorts{c, w.state},
		leases:    &leasePorts{c, w.api},
		record:    &recordPorts{c},
		rollouts:  &rolloutPorts{caller: c, world: w, trial: w.trial}}
	p.read = &readPorts{p.claims, p.nodes, p.pods, w.volumes, w.lambda.caches}
	p.live = livePorts{p.claims, p.pods}
	return p
}

// newWaker wakes the function of that name.
func (p *Ports) newWaker(name string) *waker { return &waker{p.caller, p.lambda, name} }

// wakeUnlessWatching wakes the function of that name unless it watches.
func (p *Ports) wakeUnlessWatching(name string, log *slog.Logger) controllers.Waker {
	return controllers.WakeUnlessWatching{Waker: p.newWaker(name), Of: p.leases, Function: name, Log: log}
}

// waker invokes a function asynchronously.
type waker struct {
	*caller
	lambda *lambda
	name   string
}

// Wake asks for an invocation.
func (k *waker) Wake(ctx context.Context) error {
	return tryPort(ctx, k.caller, "wake "+k.name, "", func() error {
		k.inv.woke = k.inv.woke || k.name == "refresh"
		if fn := k.lambda.functions[k.name]; fn != nil {
			k.runAfter(k.drawDuration(30*time.Millisecond, 500*time.Millisecond), func() {
				k.lambda.invokeAsync(fn, Event{Kind: "wake", waits: true, chain: k.inv.chain}, 0, time.Now())
			})
		}
		return nil
	})
}
