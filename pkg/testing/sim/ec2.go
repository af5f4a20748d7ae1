package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/nomination"
	"joiner/pkg/nodeclaim/launch"
)

// machine is an EC2 instance.
type machine struct {
	cluster.Instance
	labels  map[string]string // that its user data gives the node
	taints  []cluster.Taint
	tagged  bool      // it has a tag Name
	showAt  time.Time // from then on it is listed
	states  []instanceState
	taken   bool      // EC2 takes it back in two minutes
	noticed bool      // EC2 has said that it ends or stops the instance
	dies    time.Time // when
	asked   bool      // we asked to end it
	endedBy string    // who ended it
	stopped time.Time // when that was
	foreign bool      // somebody else launched it
	node    *node     // the last node that it made
	// UID of the claim it was launched for; of a batch's, of the claim that was given it, empty before
	owner string
	pool  string    // of its claim
	ended time.Time // when it was terminated

	ill         statusFailure // a status check that it fails
	change      time.Time     // when EC2 will stop it, unless that is called off; zero for not
	changeShows time.Time     // from when on its status says so
	calledOff   time.Time     // when that was called off
	ignored     int           // invocations in a row that were told of its status and did nothing
}

// instanceState is a state of an instance from when on lists show it.
type instanceState struct {
	name   string
	showAt time.Time
}

// fleetAnswer is what EC2 said to a token, which it says again.
type fleetAnswer struct {
	asked   string
	started []cluster.Instance // as they were launched
	marks   []instancetypes.UnavailableOffering
	err     error
}

// refusedOffer is an offer that an invocation was told is sold out.
type refusedOffer struct {
	offer instancetypes.Offer
	at    time.Time
}

// spentError is an error of CreateFleet that its token brings for ever.
type spentError struct{}

func (spentError) Error() string    { return "InvalidParameterValue: made up by the simulation" }
func (spentError) TokenSpent() bool { return true }

// mismatchError is how EC2 answers a token that it knows from another request.
type mismatchError struct{}

func (mismatchError) Error() string { return "IdempotentParameterMismatch" }

// LaunchInstances starts one instance, in the way of the real adapter: a token that is known from another request is
// looked up by tag.
func (p *Ports) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	got, marks, err := p.chooseOrder(ctx, "launch", o, token)
	if err != nil {
		return cluster.Instance{}, marks, err
	}
	return got[0], marks, nil
}

// LaunchBatch starts an instance for each claim of a batch, or fewer, in the same way.
func (p *Ports) LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	return p.chooseOrder(ctx, "launch batch", o, token)
}

func (p *Ports) chooseOrder(ctx context.Context, call string, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	who := cmp.Or(o.ClaimName, o.Batch.ID)
	got, err := callPort(ctx, p, call, who+" "+token, func() (fleetAnswer, error) {
		a := p.w.createFleet(p.inv, o, token)
		if _, mismatch := errors.AsType[mismatchError](a.err); mismatch || len(a.started) == 0 {
			return a, a.err
		}
		return a, nil
	})
	if _, other := errors.AsType[mismatchError](err); !other {
		if err != nil {
			return nil, nil, err
		}
		return got.started, got.marks, got.err
	}
	var found []cluster.Instance
	for try := range 4 {
		if try > 0 {
			select {
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			case <-time.After(500 * time.Millisecond << try):
			}
		}
		found, err = callPort(ctx, p, "look for the instance", who,
			func() ([]cluster.Instance, error) { return p.w.visibleInstances(o), nil })
		if err != nil || len(found) >= o.Count() {
			return found, nil, err
		}
	}
	if len(found) > 0 {
		return found, nil, nil
	}
	return nil, nil, &launch.TokenUsedError{Token: token}
}

// visibleInstances are the instances that lists show by the tag of a claim or a batch.
func (w *world) visibleInstances(o launch.Order) (out []cluster.Instance) {
	for _, id := range slices.Sorted(maps.Keys(w.machines)) {
		m := w.machines[id]
		if (o.Batch.ID != "" && m.Batch == o.Batch.ID || o.Batch.ID == "" && m.ClaimUID == o.ClaimUID) && !m.Gone() &&
			!time.Now().Before(m.showAt) {
			out = append(out, m.Instance)
		}
	}
	return out
}

func (w *world) createFleet(by *invocation, o launch.Order, token string) fleetAnswer {
	var asked strings.Builder
	fmt.Fprint(&asked, o.CapacityType, o.Strategy, o.Count())
	for _, t := range o.Templates {
		fmt.Fprint(&asked, t.Name, t.Overrides)
	}
	if a, known := w.tokens[token]; known {
		if a.asked != asked.String() {
			return fleetAnswer{err: mismatchError{}}
		}
		_, spent := errors.AsType[spentError](a.err)
		by.faulty = by.faulty || spent
		return a
	}
	if w.troubleChance(w.plan.throttle) {
		by.faulty = true
		return fleetAnswer{err: errors.New("RequestLimitExceeded")}
	}
	a := fleetAnswer{asked: asked.String()}
	if w.troubleChance(w.plan.spent) {
		by.faulty = true
		a.err = spentError{}
		w.tokens[token] = a
		return a
	}
	w.checkOrder(by, o)
	for range o.Count() {
		best, marks := w.sellInstance(o)
		if best != nil && o.Batch.ID != "" && w.troubleChance(w.plan.partial) {
			best, marks = nil, append(marks, instancetypes.UnavailableOffering{Offer: best.Offer,
				Why: "InsufficientInstanceCapacity"})
		}
		a.marks = append(a.marks, marks...)
		if best != nil {
			a.started = append(a.started, w.startInstance(o, *best).Instance)
		}
	}
	if len(a.started) < o.Count() {
		a.err = &instancetypes.NoCapacityError{Marks: a.marks}
		a.marks = nil
	}
	w.tokens[token] = a
	return a
}

// sellInstance picks what EC2 gives: of on-demand the cheapest, of spot any of the cheaper half.
func (w *world) sellInstance(o launch.Order) (best *launch.Override, marks []instancetypes.UnavailableOffering) {
	var all, left []launch.Override
	for _, t := range o.Templates {
		all = append(all, t.Overrides...)
	}
	slices.SortStableFunc(all, func(a, b launch.Override) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
	})
	for _, v := range all {
		if w.scarce[v.Offer] {
			marks = append(marks, instancetypes.UnavailableOffering{Offer: v.Offer,
				Why: "InsufficientInstanceCapacity"})
		} else {
			left = append(left, v)
		}
	}
	if len(left) == 0 {
		return nil, marks
	}
	if o.CapacityType == instancetypes.Spot {
		return &left[w.rng.IntN(len(left)/2+1)], marks
	}
	return &left[0], marks
}

// startInstance runs an instance. Its user data gives the node what the claim says.
func (w *world) startInstance(o launch.Order, v launch.Override) *machine {
	w.made++
	now := time.Now()
	m := &machine{Instance: cluster.Instance{ID: fmt.Sprintf("i-%06d", w.made), State: "pending", Type: v.Type,
		Zone:         v.Zone,
		CapacityType: v.CapacityType, ImageID: v.ImageID, Launched: w.toSecond(), Claim: o.ClaimName,
		ClaimUID: o.ClaimUID, SubnetID: v.SubnetID, Batch: o.Batch.ID},
		owner:  o.ClaimUID,
		showAt: now.Add(w.drawDuration(0, w.plan.listLag))}
	m.states = []instanceState{{"pending", now}}
	m.labels = map[string]string{instancetypes.LabelType: v.Type, instancetypes.LabelZone: v.Zone,
		instancetypes.LabelCapacityType: v.CapacityType}
	if c := w.orderedFor(o); c != nil {
		m.pool = c.Pool
		m.labels, m.taints = mergeAnnotations(c.Labels, m.labels),
			nomination.AtBoot(slices.Concat(c.Taints, c.StartupTaints))
	}
	w.checkStart(m, o)
	w.machines[m.ID] = m
	w.addTrace("instance %s is a %s %s in %s for %s", m.ID, m.CapacityType, m.Type, m.Zone, cmp.Or(m.Claim, m.Batch))
	w.countMutation("launch")
	w.bootInstance(m)
	w.startOtherVersion(m)
	return m
}

// ListInstances lists the instances that EC2 shows by now, in states that may be a little old; ended ones for an hour.
func (p *Ports) ListInstances(ctx context.Context) ([]cluster.Instance, error) {
	return callPort(ctx, p, "list instances", "", func() ([]cluster.Instance, error) {
		var out []cluster.Instance
		now := time.Now()
		for _, id := range slices.Sorted(maps.Keys(p.w.machines)) {
			m := p.w.machines[id]
			if m.foreign || now.Before(m.showAt) || m.State == "terminated" && now.After(m.ended.Add(time.Hour)) {
				continue
			}
			i := m.Instance
			for _, s := range m.states {
				if !now.Before(s.showAt) {
					i.State = s.name
				}
			}
			out = append(out, i)
		}
		return out, nil
	})
}

// TerminateInstances ends instances.
func (p *Ports) TerminateInstances(ctx context.Context, ids []string) error {
	return tryPort(ctx, p, "terminate", strings.Join(ids, " "), func() error {
		for _, id := range ids {
			m, ok := p.w.machines[id]
			if !ok {
				continue
			}
			m.asked = true
			if c := p.w.byUID[m.owner]; c != nil {
				c.asked = true
			}
			if !m.Gone() {
				p.w.checkTerminate(p.inv, m)
				p.w.countMutation("terminate")
				p.w.endInstance(m, "joiner")
			}
		}
		return nil
	})
}

// TagInstance gives an instance the tag Name. It has the others from the launch.
func (p *Ports) TagInstance(ctx context.Context, id, node, _ string) error {
	return tryPort(ctx, p, "tag instance", id+" "+node, func() error {
		if m, ok := p.w.machines[id]; ok && !m.tagged {
			p.w.countMutation("tag instance")
			m.tagged = true
		}
		return nil
	})
}

// SweepTemplates finds nothing to delete.
func (p *Ports) SweepTemplates(ctx context.Context, _ time.Duration) (int, error) {
	return callPort(ctx, p, "sweep launch templates", "", func() (int, error) { return 0, nil })
}

// troubleChance is a chance while things go wrong.
func (w *world) troubleChance(p float64) bool { return w.faults.on && w.drawChance(p) }

// orderedFor is the claim that an order is for; of a batch, any that is still noted to share it, or nil.
func (w *world) orderedFor(o launch.Order) *claim {
	if o.Batch.ID == "" {
		return w.byUID[o.ClaimUID]
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if b, _ := w.claims[name].Batch(); b.ID == o.Batch.ID {
			return w.claims[name]
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(w.byUID)) { // deleted while the request was under way
		if b, _ := w.byUID[uid].Batch(); b.ID == o.Batch.ID {
			return w.byUID[uid]
		}
	}
	return nil
}

// membersOf counts the claims that were ever stored and share the batch of the order.
func (w *world) membersOf(o launch.Order) (n int) {
	for _, c := range w.byUID {
		if b, _ := c.Batch(); b.ID == o.Batch.ID {
			n++
		}
	}
	return n
}

// ofBatch lists the instances that were launched for a batch and not ended.
func (w *world) ofBatch(id string) (out []*machine) {
	for _, m := range w.livingInstances() {
		if m.Batch == id {
			out = append(out, m)
		}
	}
	return out
}
