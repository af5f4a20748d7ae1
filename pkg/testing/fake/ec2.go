package fake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/objects"
)

// ec2 launches, runs and ends instances. Its exported fields are set before use.
type ec2 struct {
	*engine
	Refuse     func(instancetypes.OfferingKey) bool // offerings that EC2 has no capacity for; nil for none
	Free       map[string]int64                     // addresses of subnets; of one that is missing nobody knows
	FailLaunch func(o launch.Order) error           // another error of CreateFleet; nil for none
	EndEarly   func(o launch.Order) string          // why EC2 ends an instance before it runs, empty or nil for not
	Launches   int                                  // instances that were ever started
	FailEnd    func(id string) error                // of TerminateInstances; nil for none
	// MarNode changes a node as it becomes Ready, as an agent or a kubelet does that nobody knows of; nil for not
	MarNode func(*cluster.Node)

	instances map[string]*machine
	tokens    map[string]answer
	doubled   []string
	impaired  []cluster.Impairment
	recovers  map[string]time.Time // by instance
	changes   []cluster.ScheduledChange
}

// LaunchInstances starts one instance. A token that was used for the same order gives the first answer again; one that
// was used for another order finds the claim's instance or is refused.
func (p EC2Ports) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	type reply struct {
		instance cluster.Instance
		marks    []instancetypes.UnavailableOffering
	}
	r, err := doCall(ctx, p.invocation, "launch", func() (reply, error) {
		i, marks, err := p.w.launchOrder(o, token)
		return reply{i, marks}, err
	})
	return r.instance, r.marks, err
}

// LaunchBatch starts an instance for each claim of a batch, as far as there is capacity, under the rules of Launch.
func (p EC2Ports) LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	var marks []instancetypes.UnavailableOffering
	got, err := doCall(ctx, p.invocation, "launch batch", func() (got []cluster.Instance, err error) {
		for n := range o.Count() {
			one, m, oneErr := p.w.launchOrder(o, fmt.Sprintf("%s#%d", token, n))
			if _, used := errors.AsType[*launch.TokenUsedError](oneErr); used {
				return p.w.ofBatch(o.Batch.ID, token)
			}
			if marks = append(marks, m...); oneErr != nil {
				err = oneErr
				continue
			}
			got = append(got, one)
		}
		return got, err
	})
	return got, marks, err
}

// ofBatch are the instances that a batch got when it asked for something else.
func (w *ec2) ofBatch(id, token string) (out []cluster.Instance, err error) {
	for _, i := range slices.Sorted(maps.Keys(w.instances)) {
		if m := w.instances[i]; m.Batch == id && !m.Gone() {
			out = append(out, m.Instance)
		}
	}
	if len(out) == 0 {
		return nil, &launch.TokenUsedError{Token: token}
	}
	return out, nil
}

func (w *ec2) launchOrder(o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	asked := fmt.Sprintf("%+v", o.Offerings())
	if a, known := w.tokens[token]; known {
		if a.asked != asked {
			return w.adoptInstance(o, token)
		}
		if a.err != nil {
			return cluster.Instance{}, nil, a.err
		}
		return w.instances[a.id].Instance, nil, nil
	}
	if w.FailLaunch != nil {
		if err := w.FailLaunch(o); err != nil {
			return cluster.Instance{}, nil, err
		}
	}
	var all []launch.Override
	for _, t := range o.Templates {
		all = append(all, t.Overrides...)
	}
	slices.SortStableFunc(all, func(a, b launch.Override) int { return cmp.Compare(a.Price, b.Price) })
	var marks []instancetypes.UnavailableOffering
	for _, v := range all {
		if w.Refuse != nil && w.Refuse(v.OfferingKey) {
			marks = append(marks, instancetypes.UnavailableOffering{OfferingKey: v.OfferingKey,
				Why: "InsufficientInstanceCapacity"})
			continue
		}
		i := w.startInstance(o, v)
		w.tokens[token] = answer{asked: asked, id: i.ID}
		return i, marks, nil
	}
	err := &instancetypes.NoCapacityError{Unavailable: marks}
	w.tokens[token] = answer{asked: asked, err: err}
	return cluster.Instance{}, nil, err
}

func (w *ec2) adoptInstance(o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		if i := w.instances[id].Instance; i.ClaimUID == o.ClaimUID && i.ClaimUID != "" && !i.Gone() {
			return i, nil, nil
		}
	}
	return cluster.Instance{}, nil, &launch.TokenUsedError{Token: token}
}

// startInstance runs an instance. Its user data gives the node what the claim says.
func (w *ec2) startInstance(o launch.Order, v launch.Override) cluster.Instance {
	m := &machine{Instance: objects.NewInstance(o, v, w.nextID(), w.now)}
	m.labels, m.taints = objects.BootConfig(w.orderedFor(o), m.Instance)
	for _, other := range w.instances {
		if other.ClaimUID == o.ClaimUID && o.ClaimUID != "" && !other.Gone() {
			w.doubled = append(w.doubled, fmt.Sprintf("%s and %s both run for claim %s", other.ID, m.ID, o.ClaimName))
		}
	}
	if w.EndEarly != nil {
		if m.StateReason = w.EndEarly(o); m.StateReason != "" {
			m.failsToStart = true
		}
	}
	w.Launches++
	w.instances[m.ID] = m
	return m.Instance
}

// orderedFor is the claim that an order is for, or nil; of a batch any claim says the same.
func (w *ec2) orderedFor(o launch.Order) *cluster.Claim {
	for _, name := range slices.Sorted(maps.Keys(w.claimStore.claims)) {
		c := w.claimStore.claims[name]
		if b, shared := c.Batch(); c.Name == o.ClaimName || shared && b.ID == o.Batch.ID {
			return c
		}
	}
	return nil
}

// ListInstances lists the instances that EC2 shows by now, ended ones for an hour.
func (p EC2Ports) ListInstances(ctx context.Context, which cluster.InstanceFilter) ([]cluster.Instance, error) {
	return doCall(ctx, p.invocation, "list instances", func() ([]cluster.Instance, error) {
		var out []cluster.Instance
		for _, id := range slices.Sorted(maps.Keys(p.w.instances)) {
			m := p.w.instances[id]
			if m.State == "terminated" && p.w.now.After(m.ended.Add(time.Hour)) ||
				p.w.now.Before(m.Launched.Add(listLag)) || !which.Selects(m.Instance) {
				continue
			}
			out = append(out, m.Instance)
		}
		return out, nil
	})
}

// RemainingReservations tells that nothing is reserved.
func (p EC2Ports) RemainingReservations(ctx context.Context, _ []string) (map[string]int64, error) {
	return doCall(ctx, p.invocation, "describe reservations", func() (map[string]int64, error) { return nil, nil })
}

// RemainingAddresses tells what the instances that live have left of Free, each having one address.
func (p EC2Ports) RemainingAddresses(ctx context.Context, subnets []string) (map[string]int64, error) {
	return doCall(ctx, p.invocation, "describe subnets", func() (map[string]int64, error) {
		out := map[string]int64{}
		for _, id := range subnets {
			if n, known := p.w.Free[id]; known {
				out[id] = n
			}
		}
		for _, m := range p.w.instances {
			if _, known := out[m.SubnetID]; known && !m.Gone() {
				out[m.SubnetID]--
			}
		}
		return out, nil
	})
}

// FindGroup finds no placement group.
func (p EC2Ports) FindGroup(ctx context.Context, _ instancetypes.Placement) (*instancetypes.Placement, error) {
	return doCall(ctx, p.invocation, "describe placement group",
		func() (*instancetypes.Placement, error) { return nil, nil })
}

// TerminateInstances ends instances.
func (p EC2Ports) TerminateInstances(ctx context.Context, ids []string) error {
	return tryCall(ctx, p.invocation, "terminate", func() error {
		for _, id := range ids {
			if p.w.FailEnd != nil {
				if err := p.w.FailEnd(id); err != nil {
					return err
				}
			}
			if m, ok := p.w.instances[id]; ok && !m.Gone() {
				m.State = "shutting-down"
			}
		}
		return nil
	})
}

// StopInstances stops instances.
func (p EC2Ports) StopInstances(ctx context.Context, ids []string) error {
	return tryCall(ctx, p.invocation, "stop", func() error {
		for _, id := range ids {
			if m, ok := p.w.instances[id]; ok && m.State == "running" {
				m.State = "stopping"
			}
		}
		return nil
	})
}

// StartInstance starts a stopped instance.
func (p EC2Ports) StartInstance(ctx context.Context, id string, o instancetypes.OfferingKey) error {
	return tryCall(ctx, p.invocation, "start", func() error {
		if p.w.Refuse != nil && p.w.Refuse(o) {
			return &instancetypes.NoCapacityError{Unavailable: []instancetypes.UnavailableOffering{{OfferingKey: o,
				Why: "InsufficientInstanceCapacity"}}}
		}
		if m, ok := p.w.instances[id]; ok && m.State == "stopped" {
			m.State, m.joined, m.booted, m.Launched = "pending", false, false, p.w.now
		}
		return nil
	})
}

// TagInstance gives an instance the tag Name. It has the others from the launch.
func (p EC2Ports) TagInstance(ctx context.Context, id, node, _ string) error {
	return tryCall(ctx, p.invocation, "tag instance", func() error {
		if m, ok := p.w.instances[id]; ok && m.name == "" {
			m.name = node
		}
		return nil
	})
}

// ListStatuses tells of the instances that fail a status check or have something scheduled.
func (p EC2Ports) ListStatuses(ctx context.Context, _ []string) (failing []cluster.Impairment,
	changes []cluster.ScheduledChange, err error) {
	err = tryCall(ctx, p.invocation, "describe instance status", func() error {
		failing, changes = slices.Clone(p.w.impaired), slices.Clone(p.w.changes)
		failing = slices.DeleteFunc(failing, func(i cluster.Impairment) bool {
			at, ok := p.w.recovers[i.Instance]
			return ok && !p.w.now.Before(at)
		})
		return nil
	})
	return failing, changes, err
}

// ImpairInstance has an instance fail its status check, since now.
func (w *ec2) ImpairInstance(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.impaired = append(w.impaired, cluster.Impairment{Instance: id, Since: w.now})
}

// RecoverInstance has an instance pass its status checks again, from then on.
func (w *ec2) RecoverInstance(id string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.recovers[id] = at
}

// ScheduleChange plans a change of an instance in its status, which nothing else announces.
func (w *ec2) ScheduleChange(id string, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, cluster.ScheduledChange{Instance: id, Code: "instance-retirement", At: at})
}

// SweepTemplates finds nothing to delete.
func (p EC2Ports) SweepTemplates(ctx context.Context, _ time.Duration) (int, error) {
	return doCall(ctx, p.invocation, "sweep launch templates", func() (int, error) { return 0, nil })
}

// ReadCatalog gives the catalog.
func (p EC2Ports) ReadCatalog(ctx context.Context) (c instancetypes.Catalog, why string, err error) {
	c, err = doCall(ctx, p.invocation, "read catalog",
		func() (instancetypes.Catalog, error) { return p.w.Catalog, nil })
	return c, "", err
}

// NewWaker wakes the function of that name.
func (p *Ports) NewWaker(name string) *Waker { return &Waker{p, name} }

// Waker counts how often a function was woken.
type Waker struct {
	p    *Ports
	name string
}

// Wake counts.
func (w *Waker) Wake(ctx context.Context) error {
	return tryCall(ctx, w.p.invocation, "wake "+w.name, func() error {
		w.p.w.wakes[w.name]++
		return nil
	})
}

// InterruptInstance ends an instance as EC2 does when it takes spot capacity back.
func (w *ec2) InterruptInstance(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instances[id].State = "shutting-down"
}

// joinNode makes the node of an instance; the kubelet is not Ready yet.
func (w *ec2) joinNode(m *machine) {
	m.joined = true
	n := objects.NewNode(m.Instance, w.types[m.Type], m.labels, m.taints, w.now)
	w.nodeStore.nodes[n.Name] = &n
}

// bootNode makes the node of an instance Ready.
func (w *ec2) bootNode(m *machine) {
	m.booted = true
	for _, n := range w.nodeStore.nodes {
		if n.ProviderID == m.ProviderID() {
			n.Ready, n.ReadySince = true, w.now
			if w.MarNode != nil {
				w.MarNode(n)
			}
		}
	}
}
