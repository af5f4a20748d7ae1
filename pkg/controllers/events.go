package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/plan"
)

// Limits of what one pass tells. Events are for people to read, and are not worth keeping pods waiting for.
const (
	maxEvents      = 50
	parallelEvents = 8
	maxPoolEvents  = 20
	maxSparedTold  = 20
	poolEventEvery = 30 * time.Minute
	sparedEvery    = time.Hour
)

// recordEvents writes events, several at a time. One that cannot be written is logged and costs nothing else.
func (p *Provision) recordEvents(ctx context.Context, all []cluster.Event) {
	if may, err := mayWrite(ctx); err != nil || !may {
		return
	}
	var g errgroup.Group
	g.SetLimit(parallelEvents)
	for _, e := range all {
		g.Go(func() error {
			if err := p.shield().do("an event", func() error { return p.Record.RecordEvent(ctx, e) }); err != nil {
				p.Log.Warn("event on "+e.Kind+" "+e.Name, "error", err)
			}
			return nil
		})
	}
	_ = g.Wait() // every error was logged
}

// recordUnplaced writes events on pods without a home.
func (p *Provision) recordUnplaced(ctx context.Context, s cluster.Snapshot, unplaced []plan.Unplaced) {
	why := map[string]plan.Unplaced{}
	for _, u := range unplaced {
		why[u.Pod] = u
	}
	var events []cluster.Event
	for _, pod := range s.Pods {
		u, without := why[pod.Key()]
		if !without || pod.Virtual {
			continue
		}
		if len(events) == maxEvents {
			p.Log.Warn("unplaced pods without an event", "pods", len(unplaced)-maxEvents)
			break
		}
		e := cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Warning: true,
			Reason: "FailedScheduling", Message: u.Message()}
		if u.Fault {
			e.Reason = reasonFailed
		}
		events = append(events, e)
	}
	p.recordEvents(ctx, events)
}

// tellLaunches says on NodeClaims what was launched for whom, and on pods which node they are to run on. A claim
// without an instance is told about elsewhere.
func (p *Provision) tellLaunches(ctx context.Context, s cluster.Snapshot, claims []cluster.Claim,
	launches []plan.Launch) {
	var events []cluster.Event
	on := map[string]string{}
	for i, c := range claims {
		if c.ProviderID == "" {
			continue
		}
		got := instancetypes.Offer{CapacityType: c.Labels[instancetypes.LabelCapacityType],
			Type: c.Labels[instancetypes.LabelType], Zone: c.Labels[instancetypes.LabelZone]}
		events = append(events, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: "Launched",
			Message: fmt.Sprintf("launched %s for %s", got, describePods(launches[i]))})
		for _, pod := range launches[i].Pods {
			on[pod] = fmt.Sprintf("it is to run on a new node, NodeClaim %s: %s", c.Name, got)
		}
	}
	for _, pod := range s.Pods {
		if message := on[pod.Key()]; message != "" && !pod.Virtual {
			events = append(events, cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
				Reason: "Nominated", Message: message})
		}
	}
	p.recordEvents(ctx, events[:min(len(events), maxEvents)])
}

// describePods says in words what a node is launched for.
func describePods(l plan.Launch) string {
	if len(l.Pods) == 0 {
		return "the number of nodes of NodePool " + l.Pool
	}
	return fmt.Sprintf("%d pods: %s", len(l.Pods), plan.NamePods(l.Pods))
}

// tellPools says on NodePools why they took no part, and on static ones why they lack nodes.
func (p *Provision) tellPools(ctx context.Context, s cluster.Snapshot, decision plan.Plan) {
	var events []cluster.Event
	for _, x := range decision.Short[:min(len(decision.Short), maxPoolEvents)] {
		if pool, ok := s.PoolOf(x.Pool); ok {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
				Reason:  "NotUsed",
				Message: "it lacks nodes: " + x.Why, Every: poolEventEvery})
		}
	}
	skipped := slices.DeleteFunc(slices.Clone(decision.Skipped), func(x plan.Skip) bool {
		pool, _ := s.PoolOf(x.Pool)
		return pool.Static // that no pod makes nodes there is no problem
	})
	for _, x := range skipped[:min(len(skipped), maxPoolEvents)] {
		if pool, ok := s.PoolOf(x.Pool); ok && !pool.Deleting {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
				Reason:  "NotUsed",
				Message: "nothing is launched from it for pods that wait: " + x.Why, Every: poolEventEvery})
		}
	}
	p.recordEvents(ctx, events)
}

// recordNotDisrupted says on nodes and their claims what protects them from disruption, where somebody could change
// that. Of many nodes each pass tells of some, the next ones in the next minute.
func (m *commandApplier) recordNotDisrupted(ctx context.Context, spared []disruption.NotDisrupted) {
	var held []disruption.NotDisrupted
	events := reasonEvents()
	for _, x := range spared {
		if e := events[x.Reason]; e.event != "" && e.kind == "" && x.Node != "" {
			held = append(held, x)
		}
	}
	from := m.rotationStart(len(held))
	for i := range min(len(held), maxSparedTold) {
		x := held[(from+i)%len(held)]
		m.recordOnClaimAndNode(ctx, x.Claim, cluster.Event{Reason: events[x.Reason].event,
			Message: "it is not disrupted: " + x.Why, Every: sparedEvery})
	}
}

// recordInvalidProtection says on pods that their do-not-disrupt is none. Of many pods each pass tells of some.
func (m *commandApplier) recordInvalidProtection(ctx context.Context) {
	var wrong []cluster.Pod
	for _, p := range m.s.Pods {
		if p.InvalidProtection() && p.Active() && p.NodeName != "" {
			wrong = append(wrong, p)
		}
	}
	slices.SortFunc(wrong, func(a, b cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	from := m.rotationStart(len(wrong))
	for i := range min(len(wrong), maxSparedTold) {
		p := wrong[(from+i)%len(wrong)]
		m.recordEvent(ctx, cluster.Event{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Warning: true,
			Every:  sparedEvery,
			Reason: "InvalidDoNotDisruptAnnotation",
			Message: fmt.Sprintf("%s=%q protects nothing: it is neither true nor a positive duration like 30m",
				v1.AnnotationDoNotDisrupt, p.DoNotDisrupt)})
	}
}

// rotationStart is which of so many things a pass begins with, if it cannot tell of all: another one each minute.
func (m *commandApplier) rotationStart(n int) int {
	if n <= maxSparedTold {
		return 0
	}
	return int(m.s.Now.Unix()/60) * maxSparedTold % n
}

// recordBudgetExhausted says on NodePools that their budgets let no node go.
func (m *commandApplier) recordBudgetExhausted(ctx context.Context, closed []disruption.BudgetExhausted) {
	for _, c := range closed[:min(len(closed), maxPoolEvents)] {
		pool, ok := m.s.PoolOf(c.Pool)
		if !ok {
			continue
		}
		var reasons []string
		for _, r := range c.Reasons {
			reasons = append(reasons, string(r))
		}
		m.recordEvent(ctx, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Reason: "DisruptionBlocked",
			Every:   poolEventEvery,
			Message: "its budgets let no node go now for " + strings.Join(reasons, ", ")})
	}
}
