package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/instancetypes"
)

// statePorts keep what one invocation tells the next.
type statePorts struct {
	*caller
	state *productState
}

// quotaOf is the number of things that may be done.
const quotaOf = 3

// TakeOne lets a few things through.
func (p *statePorts) TakeOne(ctx context.Context, thing string) (bool, error) {
	return callPort(ctx, p.caller, "take of quota", thing, func() (bool, error) {
		if slices.Contains(p.state.taken, thing) {
			return true, nil
		}
		if len(p.state.taken) >= quotaOf {
			return false, nil
		}
		p.state.taken = append(p.state.taken, thing)
		return true, nil
	})
}

// ReadMemory returns what disrupt remembered last.
func (p *statePorts) ReadMemory(ctx context.Context) (disruption.Memory, error) {
	return callPort(ctx, p.caller, "recall", "", func() (disruption.Memory, error) { return p.state.memory, nil })
}

// WriteMemory stores it.
func (p *statePorts) WriteMemory(ctx context.Context, m disruption.Memory) error {
	return tryPort(ctx, p.caller, "remember", "", func() error {
		p.state.memory = m
		return nil
	})
}

// ListUnavailable lists what is unavailable.
func (p *statePorts) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	const what = "read unavailable offerings"
	return callPort(ctx, p.caller, what, "", func() ([]instancetypes.UnavailableOffering, error) {
		var out []instancetypes.UnavailableOffering
		for _, m := range p.state.marks {
			if time.Now().Before(m.Until) {
				out = append(out, m.UnavailableOffering)
			}
		}
		return append(out, p.state.activeUnused()...), nil
	})
}

// MarkUnavailable marks offerings as unavailable.
func (p *statePorts) MarkUnavailable(ctx context.Context, marks []instancetypes.UnavailableOffering,
	d time.Duration) error {
	return tryPort(ctx, p.caller, "mark unavailable", offeringsText(marks), func() error {
		for _, u := range marks {
			u.Until = time.Now().Add(d)
			p.state.marks = append(p.state.marks, unavailableMark{u, time.Now()})
		}
		return nil
	})
}

// NoteFailedLaunch is not asked for: EC2 does not say here why an instance ended early.
func (p *statePorts) NoteFailedLaunch(_ context.Context, _, instance, why string) error {
	return fmt.Errorf("note failed launch of instance %s: %s: the simulation has none", instance, why)
}

// NoteUnusedNodes notes nodes that were bought in vain.
func (p *statePorts) NoteUnusedNodes(ctx context.Context, unused []instancetypes.UnusedNode,
	used []string) ([]instancetypes.UnavailableOffering, error) {
	return callPort(ctx, p.caller, "note unused nodes", "", func() ([]instancetypes.UnavailableOffering, error) {
		now := time.Now()
		p.state.unused, _ = instancetypes.NoteUnusedNodes(slices.DeleteFunc(p.state.unused,
			func(m instancetypes.UnavailableEntry) bool {
				until, _ := m.RemembersUnused()
				return !now.Before(until)
			}), unused,
			used, now)
		return slices.DeleteFunc(p.state.activeUnused(),
			func(u instancetypes.UnavailableOffering) bool { return !u.LeavesOut() }), nil
	})
}

// classRestsUntil is the time until which a class is left alone because its nodes never became usable, zero for none.
func (s *productState) classRestsUntil() (until time.Time) {
	for _, m := range s.activeUnused() {
		if m.Class() != "" && m.LeavesOut() && m.Until.After(until) {
			until = m.Until
		}
	}
	return until
}

// activeUnused are the marks about nodes that were bought in vain.
func (s *productState) activeUnused() (out []instancetypes.UnavailableOffering) {
	for _, m := range s.unused {
		if time.Now().Before(m.Until) {
			out = append(out, m.UnavailableOffering)
		}
	}
	return out
}

func offeringsText(marks []instancetypes.UnavailableOffering) string {
	var out []string
	for _, u := range marks {
		out = append(out, u.OfferingKey.String())
	}
	slices.Sort(out)
	return fmt.Sprint(out)
}
