package sim

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/objects"
)

// fleetAnswer is EC2's answer to a token, which it says again.
type fleetAnswer struct {
	asked   string
	started []cluster.Instance // as they were launched
	marks   []instancetypes.UnavailableOffering
	err     error
}

// spentError is an error of CreateFleet that its token brings for ever.
type spentError struct{}

func (spentError) Error() string { return "InvalidParameterValue: made up by the simulation" }

func (spentError) TokenSpent() bool { return true }

// mismatchError is EC2's answer to a token that it knows from another request.
type mismatchError struct{}

func (mismatchError) Error() string { return "IdempotentParameterMismatch" }

// visibleInstances are the instances that lists show by the tag of a claim or a batch.
func (e *ec2) visibleInstances(o launch.Order) (out []cluster.Instance) {
	for _, id := range slices.Sorted(maps.Keys(e.machines)) {
		m := e.machines[id]
		if (o.Batch.ID != "" && m.Batch == o.Batch.ID || o.Batch.ID == "" && m.ClaimUID == o.ClaimUID) && !m.Gone() &&
			!time.Now().Before(m.showAt) {
			out = append(out, m.Instance)
		}
	}
	return out
}

func (e *ec2) createFleet(by *invocation, o launch.Order, token string) fleetAnswer {
	var asked strings.Builder
	fmt.Fprint(&asked, o.CapacityType, o.Strategy, o.Count())
	for _, t := range o.Templates {
		fmt.Fprint(&asked, t.Name, t.Overrides)
	}
	if a, known := e.tokens[token]; known {
		if a.asked != asked.String() {
			return fleetAnswer{err: mismatchError{}}
		}
		_, spent := errors.AsType[spentError](a.err)
		by.faulty = by.faulty || spent
		return a
	}
	if e.troubleChance(e.plan.throttle) {
		by.faulty = true
		return fleetAnswer{err: errors.New("RequestLimitExceeded")}
	}
	a := fleetAnswer{asked: asked.String()}
	if e.troubleChance(e.plan.spent) {
		by.faulty = true
		a.err = spentError{}
		e.tokens[token] = a
		return a
	}
	e.observe(fleetOrdered{by, o})
	for range o.Count() {
		best, marks := e.sellInstance(o)
		if best != nil && o.Batch.ID != "" && e.troubleChance(e.plan.partial) {
			best, marks = nil, append(marks, instancetypes.UnavailableOffering{OfferingKey: best.OfferingKey,
				Why: "InsufficientInstanceCapacity"})
		}
		a.marks = append(a.marks, marks...)
		if best != nil {
			a.started = append(a.started, e.startInstance(o, *best).Instance)
		}
	}
	if len(a.started) < o.Count() {
		a.err = &instancetypes.NoCapacityError{Unavailable: a.marks}
		a.marks = nil
	}
	e.tokens[token] = a
	return a
}

// sellInstance picks what EC2 gives: of on-demand the cheapest, of spot any of the cheaper half.
func (e *ec2) sellInstance(o launch.Order) (best *launch.Override, marks []instancetypes.UnavailableOffering) {
	var all, left []launch.Override
	for _, t := range o.Templates {
		all = append(all, t.Overrides...)
	}
	slices.SortStableFunc(all, func(a, b launch.Override) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
	})
	for _, v := range all {
		if e.scarce[v.OfferingKey] {
			marks = append(marks, instancetypes.UnavailableOffering{OfferingKey: v.OfferingKey,
				Why: "InsufficientInstanceCapacity"})
		} else {
			left = append(left, v)
		}
	}
	if len(left) == 0 {
		return nil, marks
	}
	if o.CapacityType == instancetypes.Spot {
		return &left[e.rng.IntN(len(left)/2+1)], marks
	}
	return &left[0], marks
}

// startInstance runs an instance. Its user data gives the node what the claim says.
func (e *ec2) startInstance(o launch.Order, v launch.Override) *machine {
	e.made++
	now := time.Now()
	m := &machine{Instance: objects.NewInstance(o, v, e.made, e.toSecond()), owner: o.ClaimUID, began: now,
		showAt: now.Add(e.drawDuration(0, e.plan.listLag)), states: []instanceState{{"pending", now, ""}}}
	var claim *cluster.Claim
	if c := e.api.orderedFor(o); c != nil {
		m.pool, claim = c.Pool, &c.Claim
	}
	m.labels, m.taints = objects.BootConfig(claim, m.Instance)
	e.observe(instanceStarted{m, o})
	e.machines[m.ID] = m
	e.addTrace("instance %s is a %s %s in %s for %s", m.ID, m.CapacityType, m.Type, m.Zone, cmp.Or(m.Claim, m.Batch))
	e.countMutation("launch")
	e.runAfter(e.plan.powerOn+e.drawDuration(3*time.Second, 12*time.Second), func() { e.enterState(m, "running") })
	e.kubelets.bootMachine(m, e.plan.powerOn)
	e.launched(m)
	return m
}
