package sim

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// fleetPorts launch, show and end instances.
type fleetPorts struct {
	*caller
	ec2 *ec2
}

// LaunchInstances starts one instance, in the way of the real adapter: a token that is known from another request is
// looked up by tag.
func (p *fleetPorts) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	got, marks, err := p.chooseOrder(ctx, "launch", o, token)
	if err != nil {
		return cluster.Instance{}, marks, err
	}
	return got[0], marks, nil
}

// LaunchBatch starts an instance for each claim of a batch, or fewer, in the same way.
func (p *fleetPorts) LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	return p.chooseOrder(ctx, "launch batch", o, token)
}

func (p *fleetPorts) chooseOrder(ctx context.Context, call string, o launch.Order, token string) ([]cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	who := cmp.Or(o.ClaimName, o.Batch.ID)
	got, err := callPort(ctx, p.caller, call, who+" "+token, func() (fleetAnswer, error) {
		a := p.ec2.createFleet(p.inv, o, token)
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
		found, err = callPort(ctx, p.caller, "look for the instance", who,
			func() ([]cluster.Instance, error) { return p.ec2.visibleInstances(o), nil })
		if err != nil || len(found) >= o.Count() {
			return found, nil, err
		}
	}
	if len(found) > 0 {
		return found, nil, nil
	}
	return nil, nil, &launch.TokenUsedError{Token: token}
}

// ListInstances lists the instances that EC2 shows by now, in states that may be a little old; ended ones for an hour.
func (p *fleetPorts) ListInstances(ctx context.Context, which cluster.InstanceFilter) ([]cluster.Instance, error) {
	return callPort(ctx, p.caller, "list instances", strings.Join(which.IDs, ","), func() ([]cluster.Instance, error) {
		var out []cluster.Instance
		now := time.Now()
		for _, id := range slices.Sorted(maps.Keys(p.ec2.machines)) {
			m := p.ec2.machines[id]
			if m.foreign || now.Before(m.showAt) || !which.Selects(m.Instance) ||
				m.State == "terminated" && now.After(m.ended.Add(time.Hour)) {
				continue
			}
			i := m.Instance
			for _, s := range m.states {
				if !now.Before(s.showAt) {
					i.State, i.StateReason = s.name, s.reason
				}
			}
			out = append(out, i)
		}
		return out, nil
	})
}

// TerminateInstances ends instances.
func (p *fleetPorts) TerminateInstances(ctx context.Context, ids []string) error {
	return tryPort(ctx, p.caller, "terminate", strings.Join(ids, " "), func() error {
		for _, id := range ids {
			m, ok := p.ec2.machines[id]
			if !ok {
				continue
			}
			m.asked = true
			if !m.Gone() {
				p.observe(instanceTerminated{p.inv, m})
				p.countMutation("terminate")
				p.ec2.endInstance(m, "joiner")
			}
		}
		return nil
	})
}

// TagInstance gives an instance the tag Name. It has the others from the launch.
func (p *fleetPorts) TagInstance(ctx context.Context, id, node, _ string) error {
	return tryPort(ctx, p.caller, "tag instance", id+" "+node, func() error {
		if m, ok := p.ec2.machines[id]; ok && !m.tagged {
			p.countMutation("tag instance")
			m.tagged = true
		}
		return nil
	})
}

// SweepTemplates finds nothing to delete.
func (p *fleetPorts) SweepTemplates(ctx context.Context, _ time.Duration) (int, error) {
	return callPort(ctx, p.caller, "sweep launch templates", "", func() (int, error) { return 0, nil })
}

// ListStatuses tells of the running instances that fail a check or have a date, of whoever asks for instances of the
// cluster also those that it did not name.
func (p *fleetPorts) ListStatuses(ctx context.Context, running []string) ([]cluster.Impairment,
	[]cluster.ScheduledChange,
	error) {
	type answers struct {
		failing []cluster.Impairment
		changes []cluster.ScheduledChange
	}
	out, err := callPort(ctx, p.caller, "describe instance status", "", func() (a answers, err error) {
		now := time.Now()
		for _, id := range slices.Sorted(maps.Keys(p.ec2.machines)) {
			m := p.ec2.machines[id]
			if m.State != "running" || !slices.Contains(running, id) && !p.drawChance(0.5) {
				continue
			}
			if i := m.ill; !i.since.IsZero() && i.until.IsZero() && !now.Before(i.showAt) {
				a.failing = append(a.failing, cluster.Impairment{Instance: id, System: i.system, Since: i.since})
			}
			if !m.change.IsZero() && !now.Before(m.changeShows) {
				a.changes = append(a.changes, cluster.ScheduledChange{Instance: id, Code: "instance-stop",
					At: m.change})
			}
			if p.ec2.isUrgent(m) {
				p.inv.told = append(p.inv.told, m)
			}
		}
		return a, nil
	})
	return out.failing, out.changes, err
}
