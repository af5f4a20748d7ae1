// Package lifecycle decides the next step in the life of every NodeClaim, node and instance.
//
// It knows registration, initialization, time-outs, expiration, draining, termination and leaks (spec core.md §4 and §5, aws.md
// §8.1). It takes one step for each object and keeps no state: the next pass sees the result and takes the next one. The
// instances in the snapshot must have been listed before the claims, else a claim's instance could look leaked.
package lifecycle

import (
	"fmt"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// Plan is what one pass does.
type Plan struct {
	Actions []plan.Action
	// Busy says that some object has a next step soon, so that it is worth looking again in a second.
	Busy bool
}

// Next decides the next step of everything in the snapshot.
func Next(s cluster.Snapshot) Plan {
	v := newView(s)
	var p Plan
	for _, c := range s.Claims {
		switch {
		case !c.Deleting.IsZero():
			p.Busy = true
			p.add(v.finalize(c)...)
		default:
			actions, busy := v.live(c)
			p.Busy = p.Busy || busy
			p.add(actions...)
		}
	}
	for _, n := range s.Nodes {
		actions, busy := v.orphan(n)
		p.Busy = p.Busy || busy
		p.add(actions...)
	}
	p.add(v.leaks()...)
	return p
}

func (p *Plan) add(actions ...plan.Action) { p.Actions = append(p.Actions, actions...) }

// view is the snapshot with the look-ups that every step needs.
type view struct {
	s         cluster.Snapshot
	nodes     map[string][]cluster.Node   // by provider id
	instances map[string]cluster.Instance // by provider id
	claims    map[string]cluster.Claim    // by UID
	owners    map[string]cluster.Claim    // by provider id
}

func newView(s cluster.Snapshot) view {
	v := view{s: s, nodes: map[string][]cluster.Node{}, instances: map[string]cluster.Instance{},
		claims: map[string]cluster.Claim{}, owners: map[string]cluster.Claim{}}
	for _, n := range s.Nodes {
		if n.ProviderID != "" {
			v.nodes[n.ProviderID] = append(v.nodes[n.ProviderID], n)
		}
	}
	for _, i := range s.Instances {
		v.instances[i.ProviderID()] = i
	}
	for _, c := range s.Claims {
		v.claims[c.UID] = c
		if c.ProviderID != "" {
			v.owners[c.ProviderID] = c
		}
	}
	return v
}

// live is the step of a claim that nobody has deleted.
func (v view) live(c cluster.Claim) (actions []plan.Action, busy bool) {
	if reason, why := v.doomed(c); reason != "" {
		return []plan.Action{{Do: plan.DeleteClaim, Claim: c.Name, Reason: reason, Why: why}}, true
	}
	switch {
	case !c.Is(v1.ConditionLaunched):
		return nil, true // provision launches it
	case !c.Is(v1.ConditionRegistered):
		return v.register(c), true
	case !c.Is(v1.ConditionInitialized):
		return v.initialize(c), true
	}
	return nil, false
}

// doomed says why a claim must go: time-outs, expiration, or its instance is gone (spec core.md §4.5, §4.6, §4.9). A node that
// never initialises ends too, which the in-cluster original leaves running.
func (v view) doomed(c cluster.Claim) (reason, why string) {
	now, rules := v.s.Now, v.s.Rules
	overdue := func(condition string, limit time.Duration) bool {
		k := c.Condition(condition)
		return limit > 0 && k.Status != "True" && !now.Before(k.Since.Add(limit))
	}
	switch {
	case c.ExpireAfter > 0 && !now.Before(c.Created.Add(c.ExpireAfter)):
		return "expired", fmt.Sprintf("it is older than %s", c.ExpireAfter)
	case v.vanished(c):
		return "garbage_collected", "its instance is gone"
	case overdue(v1.ConditionLaunched, rules.LaunchTimeout):
		return "launch_timeout", fmt.Sprintf("it was not launched within %s", rules.LaunchTimeout)
	case c.Is(v1.ConditionLaunched) && overdue(v1.ConditionRegistered, rules.RegistrationTimeout):
		return "registration_timeout", fmt.Sprintf("no node registered for it within %s", rules.RegistrationTimeout)
	case c.Is(v1.ConditionRegistered) && v.uninitializedSince(c, rules.InitializationTimeout):
		return "initialization_timeout", fmt.Sprintf("its node was not usable within %s of registering", rules.InitializationTimeout)
	}
	return "", ""
}

func (v view) uninitializedSince(c cluster.Claim, limit time.Duration) bool {
	return limit > 0 && !c.Is(v1.ConditionInitialized) && !v.s.Now.Before(c.Condition(v1.ConditionRegistered).Since.Add(limit))
}

// vanished reports whether the instance of a launched claim ended, or is not listed any more. A Ready node contradicts the
// second, and so does a launch within MinLeakAge, because EC2 may not show a new instance yet.
func (v view) vanished(c cluster.Claim) bool {
	if c.ProviderID == "" {
		return false
	}
	if i, ok := v.instances[c.ProviderID]; ok {
		return i.Gone()
	}
	if v.s.Now.Before(c.Condition(v1.ConditionLaunched).Since.Add(v.s.Rules.MinLeakAge)) {
		return false
	}
	for _, n := range v.nodes[c.ProviderID] {
		if n.Ready {
			return false
		}
	}
	return true
}

// leaks terminates instances that carry the cluster's tag and belong to no claim: the claim is gone, or the claim has another
// instance (spec aws.md §8.1).
func (v view) leaks() []plan.Action {
	var out []plan.Action
	for _, i := range v.s.Instances {
		if i.Gone() || v.s.Now.Before(i.Launched.Add(v.s.Rules.MinLeakAge)) {
			continue
		}
		if _, owned := v.owners[i.ProviderID()]; owned {
			continue
		}
		if c, ok := v.claims[i.ClaimUID]; ok && c.ProviderID == "" && c.Deleting.IsZero() {
			continue // launched, but the claim does not say so yet: provision adopts it
		}
		out = append(out, plan.Action{Do: plan.Terminate, Instance: i.ID, Reason: "leaked",
			Why: fmt.Sprintf("no NodeClaim owns it (it was launched for %q)", i.Claim)})
	}
	return out
}
