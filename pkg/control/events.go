package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
	"joiner/pkg/plan"
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

// write writes events, several at a time. One that cannot be written is logged and costs nothing else.
func (p *Provision) write(ctx context.Context, all []cluster.Event) {
	var g errgroup.Group
	g.SetLimit(parallelEvents)
	for _, e := range all {
		g.Go(func() error {
			if err := p.shield().do("an event", func() error { return p.Record.Event(ctx, e) }); err != nil {
				p.Log.Warn("event on "+e.Kind+" "+e.Name, "error", err)
			}
			return nil
		})
	}
	_ = g.Wait() // every error was logged
}

// tell writes events on pods without a home.
func (p *Provision) tell(ctx context.Context, s cluster.Snapshot, unplaced []plan.Unplaced) {
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
		e := cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Warning: true, Reason: "FailedScheduling", Message: u.Message()}
		if u.Fault {
			e.Reason = reasonFailed
		}
		events = append(events, e)
	}
	p.write(ctx, events)
}

// tellLaunches says on NodeClaims what was launched for whom, and on pods which node they are to run on. A claim without an instance is
// told about elsewhere.
func (p *Provision) tellLaunches(ctx context.Context, s cluster.Snapshot, claims []cluster.Claim, launches []plan.Launch) {
	var events []cluster.Event
	on := map[string]string{}
	for i, c := range claims {
		if c.ProviderID == "" {
			continue
		}
		got := catalog.Offer{CapacityType: c.Labels[catalog.LabelCapacityType], Type: c.Labels[catalog.LabelType], Zone: c.Labels[catalog.LabelZone]}
		events = append(events, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: "Launched",
			Message: fmt.Sprintf("launched %s for %s", got, whom(launches[i]))})
		for _, pod := range launches[i].Pods {
			on[pod] = fmt.Sprintf("it is to run on a new node, NodeClaim %s: %s", c.Name, got)
		}
	}
	for _, pod := range s.Pods {
		if message := on[pod.Key()]; message != "" && !pod.Virtual {
			events = append(events, cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Reason: "Nominated", Message: message})
		}
	}
	p.write(ctx, events[:min(len(events), maxEvents)])
}

// whom says in words what a node is launched for.
func whom(l plan.Launch) string {
	if len(l.Pods) == 0 {
		return "the number of nodes of NodePool " + l.Pool
	}
	return fmt.Sprintf("%d pods: %s", len(l.Pods), plan.Pods(l.Pods))
}

// tellPools says on NodePools why they took no part, and on static ones why they lack nodes.
func (p *Provision) tellPools(ctx context.Context, s cluster.Snapshot, decision plan.Plan) {
	var events []cluster.Event
	for _, x := range decision.Short[:min(len(decision.Short), maxPoolEvents)] {
		if pool, ok := s.PoolOf(x.Pool); ok {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true, Reason: "NotUsed",
				Message: "it lacks nodes: " + x.Why, Every: poolEventEvery})
		}
	}
	skipped := slices.DeleteFunc(slices.Clone(decision.Skipped), func(x plan.Skip) bool {
		pool, _ := s.PoolOf(x.Pool)
		return pool.Static // that no pod makes nodes there is no problem
	})
	for _, x := range skipped[:min(len(skipped), maxPoolEvents)] {
		if pool, ok := s.PoolOf(x.Pool); ok && !pool.Deleting {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true, Reason: "NotUsed",
				Message: "nothing is launched from it for pods that wait: " + x.Why, Every: poolEventEvery})
		}
	}
	p.write(ctx, events)
}

// tellSpared says on nodes and their claims what protects them from disruption, where somebody could change that. Of many nodes each pass
// tells of some, the next ones in the next minute.
func (m *mover) tellSpared(ctx context.Context, spared []disrupt.Spared) {
	var held []disrupt.Spared
	for _, x := range spared {
		switch x.Word {
		case "protected", "pdb", "price", "failed", "drifted", "fault":
			if x.Node != "" {
				held = append(held, x)
			}
		}
	}
	from := m.turn(len(held))
	for i := range min(len(held), maxSparedTold) {
		x := held[(from+i)%len(held)]
		m.tell(ctx, x.Claim, cluster.Event{Reason: "DisruptionBlocked", Message: "it is not disrupted: " + x.Why, Every: sparedEvery})
	}
}

// tellMisprotected says on pods that their do-not-disrupt is none (spec core.md §2.1). Of many pods each pass tells of some.
func (m *mover) tellMisprotected(ctx context.Context) {
	var wrong []cluster.Pod
	for _, p := range m.s.Pods {
		if p.Misprotected() && p.Active() && p.NodeName != "" {
			wrong = append(wrong, p)
		}
	}
	slices.SortFunc(wrong, func(a, b cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	from := m.turn(len(wrong))
	for i := range min(len(wrong), maxSparedTold) {
		p := wrong[(from+i)%len(wrong)]
		m.about(ctx, cluster.Event{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Warning: true, Every: sparedEvery,
			Reason:  "InvalidDoNotDisruptAnnotation",
			Message: fmt.Sprintf("%s=%q protects nothing: it is neither true nor a positive duration like 30m", v1.AnnotationDoNotDisrupt, p.DoNotDisrupt)})
	}
}

// turn is which of so many things a pass begins with, if it cannot tell of all: another one each minute.
func (m *mover) turn(n int) int {
	if n <= maxSparedTold {
		return 0
	}
	return int(m.s.Now.Unix()/60) * maxSparedTold % n
}

// tellClosed says on NodePools that their budgets let no node go (spec core.md §1.6).
func (m *mover) tellClosed(ctx context.Context, closed []disrupt.Closed) {
	for _, c := range closed[:min(len(closed), maxPoolEvents)] {
		pool, ok := m.s.PoolOf(c.Pool)
		if !ok {
			continue
		}
		var reasons []string
		for _, r := range c.Reasons {
			reasons = append(reasons, string(r))
		}
		m.about(ctx, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Reason: "DisruptionBlocked", Every: poolEventEvery,
			Message: "its budgets let no node go now for " + strings.Join(reasons, ", ")})
	}
}
