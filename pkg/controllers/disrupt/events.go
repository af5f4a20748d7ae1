package disrupt

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/annotations"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// elapsedFor is for how long it is told that the protection of a pod is over.
const elapsedFor = 10 * time.Minute

// recordConsidered says on nodes that consolidation has found them and that a proposal about them did not hold. Of a
// proposal about many nodes some are told: the NodeClaims of one name all of them.
func (m *commandApplier) recordConsidered(ctx context.Context, p disruption.Plan, before []disruption.Proposal) {
	left := maxSparedEvents
	tell := func(claims []string, reason, message string) {
		for _, name := range claims[:min(len(claims), left)] {
			left--
			m.recordOnClaimAndNode(ctx, name, cluster.Event{Reason: reason, Message: message})
		}
	}
	for _, c := range p.Proposed {
		old := slices.ContainsFunc(before, func(x disruption.Proposal) bool {
			return x.Reason == c.Reason && slices.Equal(x.Claims, c.Claims)
		})
		if c.Reason == v1.DisruptionUnderutilized && !old {
			tell(c.Claims, "ConsolidationCandidate",
				"it goes if that still holds when it is looked at again: "+c.String())
		}
	}
	for _, x := range p.Withdrawn {
		if x.Reason == v1.DisruptionUnderutilized {
			tell(x.Claims, "ConsolidationRejected", "it stays: "+x.Why)
		}
	}
}

// recordRejected says on the nodes of a command that it is not begun: what stands on them changed while it was decided.
func (m *commandApplier) recordRejected(ctx context.Context, c disruption.Command, why string) {
	if c.Reason != v1.DisruptionUnderutilized {
		return
	}
	for _, name := range c.Claims[:min(len(c.Claims), maxSparedEvents)] {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Reason: "ConsolidationRejected", Message: "it stays: " + why})
	}
}

// recordBalancedApproval says that a consolidation passed the policy Balanced: on the node, or on each pool that has
// the policy where several go.
func (m *commandApplier) recordBalancedApproval(ctx context.Context, c disruption.Command) {
	if c.Reason != v1.DisruptionUnderutilized {
		return
	}
	pools := map[string]cluster.Pool{}
	for _, name := range c.Claims {
		if p, ok := m.s.PoolOf(m.claims[name].Pool); ok && p.Disruption.Policy == string(v1.ConsolidationBalanced) {
			pools[p.Name] = p
		}
	}
	message := "the policy Balanced lets it go: " + c.String()
	if len(c.Claims) == 1 && len(pools) == 1 {
		m.recordOnClaimAndNode(ctx, c.Claims[0], cluster.Event{Reason: "ConsolidationApproved", Message: message})
		return
	}
	for _, name := range slices.Sorted(maps.Keys(pools)) {
		m.recordEvent(ctx, cluster.Event{Kind: "NodePool", Name: name, UID: pools[name].UID,
			Reason: "ConsolidationApproved", Message: message})
	}
}

// recordStarting says on replacements that a disruption waits for them.
func (m *commandApplier) recordStarting(ctx context.Context, p disruption.Plan) {
	for _, name := range p.Starting[:min(len(p.Starting), maxSparedEvents)] {
		m.recordEvent(ctx, cluster.Event{Kind: "NodeClaim", Name: name, UID: m.claims[name].UID,
			Reason:  "DisruptionWaitingReadiness",
			Message: "the nodes that it replaces stay until it is ready"})
	}
}

// recordProtection says on pods until when their do-not-disrupt keeps their node, and once it is over.
func (m *commandApplier) recordProtection(ctx context.Context) {
	ours := map[string]bool{}
	for _, n := range m.nodes {
		ours[n.Name] = true
	}
	var all []cluster.Event
	for i := range m.s.Pods {
		p := &m.s.Pods[i]
		until, limited := p.ProtectedUntil()
		if !limited || !p.Active() || !ours[p.NodeName] {
			continue
		}
		e := cluster.Event{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Every: sparedEvery}
		switch {
		case m.s.Now.Before(until):
			e.Reason, e.Message = "DoNotDisruptUntil",
				fmt.Sprintf("%s=%s keeps its node until %s", v1.AnnotationDoNotDisrupt, p.DoNotDisrupt,
					until.UTC().Format(time.RFC3339))
		case m.s.Now.Before(until.Add(elapsedFor)):
			e.Reason, e.Message = "DoNotDisruptGracePeriodElapsed",
				fmt.Sprintf("%s=%s has not kept its node since %s", v1.AnnotationDoNotDisrupt, p.DoNotDisrupt,
					until.UTC().Format(time.RFC3339))
		default:
			continue
		}
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b cluster.Event) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, e := range inThisMinute(all, m.s) {
		m.recordEvent(ctx, e)
	}
}

// recordEvent writes an event. One that cannot be written is logged and costs nothing else.
func (m *commandApplier) recordEvent(ctx context.Context, e cluster.Event) {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		return
	}
	m.d.RecordOrLog(ctx, e)
}

// recordNotDisrupted says on nodes and their claims what protects them from disruption, where somebody could change
// that. Of many nodes each pass tells of some, the next ones in the next minute.
func (m *commandApplier) recordNotDisrupted(ctx context.Context, staying []disruption.NotDisrupted) {
	var held []disruption.NotDisrupted
	events := reasonEvents()
	for _, x := range staying {
		if e := events[x.Reason]; e.event != "" && e.kind == "" && x.Node != "" {
			held = append(held, x)
		}
	}
	for _, x := range inThisMinute(held, m.s) {
		m.recordOnClaimAndNode(ctx, x.Claim, cluster.Event{Reason: events[x.Reason].event,
			Message: "it is not disrupted: " + x.Why, Every: sparedEvery})
	}
}

// recordInvalidProtection says on pods that their do-not-disrupt is none. Of many pods each pass tells of some.
func (m *commandApplier) recordInvalidProtection(ctx context.Context) {
	var wrong []cluster.Pod
	for i := range m.s.Pods {
		p := &m.s.Pods[i]
		if p.InvalidProtection() && p.Active() && p.NodeName != "" {
			wrong = append(wrong, *p)
		}
	}
	slices.SortFunc(wrong, func(a, b cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	for _, p := range inThisMinute(wrong, m.s) {
		m.recordEvent(ctx, cluster.Event{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Warning: true,
			Every:  sparedEvery,
			Reason: "InvalidDoNotDisruptAnnotation",
			Message: fmt.Sprintf("%s=%q protects nothing: it is neither true nor a positive duration like 30m",
				v1.AnnotationDoNotDisrupt, p.DoNotDisrupt)})
	}
	m.recordInvalidOnNodes(ctx)
}

// recordInvalidOnNodes says on nodes which of their annotations say nothing. Of many nodes each pass tells of some.
func (m *commandApplier) recordInvalidOnNodes(ctx context.Context) {
	reasons := map[string]string{v1.AnnotationDoNotDisrupt: "InvalidDoNotDisruptAnnotation",
		v1.AnnotationDoNotRepair: "InvalidDoNotRepairAnnotation"}
	var all []cluster.Event
	for _, n := range m.nodes {
		for _, p := range annotations.NodeProblems(n.Annotations) {
			all = append(all, cluster.Event{Kind: "Node", Name: n.Name, UID: n.UID, Warning: true, Every: sparedEvery,
				Reason: reasons[p.Key], Message: p.Message})
		}
	}
	slices.SortFunc(all, func(a, b cluster.Event) int { return strings.Compare(a.Name+a.Reason, b.Name+b.Reason) })
	for _, e := range inThisMinute(all, m.s) {
		m.recordEvent(ctx, e)
	}
}

// inThisMinute are those of many things that a pass tells of, if it cannot tell of all: others each minute.
func inThisMinute[T any](all []T, s cluster.Snapshot) []T {
	if len(all) <= maxSparedTold {
		return all
	}
	from := int(s.Minute()) * maxSparedTold % len(all)
	return slices.Concat(all[from:], all[:from])[:maxSparedTold]
}

// recordBudgetExhausted says on NodePools that their budgets let no node go.
func (m *commandApplier) recordBudgetExhausted(ctx context.Context, closed []disruption.BudgetExhausted) {
	for _, c := range closed[:min(len(closed), controllers.MaxPoolEvents)] {
		pool, ok := m.s.PoolOf(c.Pool)
		if !ok {
			continue
		}
		reasons := lists.Of(c.Reasons, func(r v1.DisruptionReason) string { return string(r) })
		m.recordEvent(ctx, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Reason: "DisruptionBlocked",
			Every:   controllers.PoolEventEvery,
			Message: "its budgets let no node go now for " + strings.Join(reasons, ", ")})
	}
}

const maxSparedTold = 20

const sparedEvery = time.Hour
