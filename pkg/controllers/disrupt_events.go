package controllers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
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
			return x.Reason == c.Reason &&
				slices.Equal(x.Claims, c.Claims)
		})
		if c.Reason == v1.DisruptionUnderutilized && !old {
			tell(c.Claims, "ConsolidationCandidate",
				"it goes if that still holds when it is looked at again: "+c.String())
		}
	}
	for _, x := range p.Dropped {
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

// recordApproved says that a consolidation passed the policy Balanced: on the node, or on each pool that has the policy
// where several go.
func (m *commandApplier) recordApproved(ctx context.Context, c disruption.Command) {
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
	for _, name := range sortedKeys(pools) {
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
	for _, p := range m.s.Pods {
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
		return strings.Compare(a.Namespace+"/"+a.Name,
			b.Namespace+"/"+b.Name)
	})
	from := m.rotationStart(len(all))
	for i := range min(len(all), maxSparedTold) {
		m.recordEvent(ctx, all[(from+i)%len(all)])
	}
}

// recordEvent writes an event. One that cannot be written is logged and costs nothing else.
func (m *commandApplier) recordEvent(ctx context.Context, e cluster.Event) {
	if may, err := mayWrite(ctx); err != nil || !may {
		return
	}
	if err := m.d.Record.RecordEvent(ctx, e); err != nil {
		m.d.Log.Warn("event on "+e.Kind+" "+e.Name, "error", err)
	}
}
