package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"joiner.sh/pkg/cli/accept"
)

// acceptWorld is the cluster and the account that a run of accept is played in.
type acceptWorld interface {
	// Look reads what there is of the run; a deep look also what there is in AWS, and pods of others on its nodes.
	Look(ctx context.Context, deep bool) (accept.Observation, error)
	// Do carries out an action. Repeating it is harmless.
	Do(ctx context.Context, a accept.Action, m accept.Memory) error
	// Inventory reads all that a run must leave as it was.
	Inventory(ctx context.Context) ([]accept.Item, error)
	// Before returns what Inventory read before the run; known is false where nobody knows it any more.
	Before(ctx context.Context) (before []accept.Item, known bool, err error)
	// Rest waits until it is worth looking again at a step that has taken so long.
	Rest(ctx context.Context, took time.Duration) error
	Now() time.Time
}

// acceptPlayer plays the steps of a run and tells of each.
type acceptPlayer struct {
	world acceptWorld
	tell  func(format string, args ...any)
}

// interruptedError says what to do after an interruption.
type interruptedError struct{ cluster string }

func (e *interruptedError) Error() string {
	return "interrupted: joiner accept --cluster " + e.cluster + " --clean removes what there is of the run"
}

// run plays everything, and removes what it made whatever came of it. Only an interruption leaves it there.
func (p acceptPlayer) run(ctx context.Context, cluster string, notice bool) error {
	played := p.play(ctx, accept.Steps(notice))
	if ctx.Err() != nil {
		return &interruptedError{cluster}
	}
	if played != nil {
		p.tell("%v; what the run made is removed", played)
	}
	cleaned := p.clean(ctx)
	if ctx.Err() != nil {
		return &interruptedError{cluster}
	}
	return errors.Join(played, cleaned)
}

// play plays steps one after the other.
func (p acceptPlayer) play(ctx context.Context, steps []accept.Step) error {
	var m accept.Memory
	for _, s := range steps {
		o, err := p.await(ctx, s, &m)
		if err != nil {
			return err
		}
		if s.Note != nil {
			m = s.Note(m, o)
		}
		if s.Deep {
			continue
		}
		if o, err = p.world.Look(ctx, true); err == nil && len(o.Strays) > 0 {
			return &foundError{"pods of others run on nodes of the run: " + strings.Join(o.Strays, ", ")}
		}
	}
	return nil
}

// await does what the step does, and waits for what it waits for. Faults of the way there are tried again within its
// time.
func (p acceptPlayer) await(ctx context.Context, s accept.Step, m *accept.Memory) (o accept.Observation, err error) {
	begun, did, last := p.world.Now(), s.Do == accept.DoNothing, ""
	for {
		if !did {
			err = p.act(ctx, s, m)
			did = err == nil
		}
		if _, final := errors.AsType[*foundError](err); final {
			return o, err
		}
		saw, done := "", false
		if did {
			if o, err = p.world.Look(ctx, s.Deep); err == nil {
				saw, done = s.Until(*m, o)
			}
		}
		if err != nil {
			saw = err.Error()
		}
		took := p.world.Now().Sub(begun)
		switch {
		case ctx.Err() != nil:
			return o, ctx.Err()
		case done:
			p.tell("%6.0f s  %s: %s", took.Seconds(), s.Name, saw)
			return o, nil
		case took > s.Limit:
			return o, &foundError{fmt.Sprintf("%s: not within %s; last seen: %s", s.Name, s.Limit, saw)}
		case saw != last:
			last = saw
			p.tell("          %s: %s", s.Name, saw)
		}
		if err := p.world.Rest(ctx, took); err != nil {
			return o, err
		}
	}
}

// act carries out the action of a step.
func (p acceptPlayer) act(ctx context.Context, s accept.Step, m *accept.Memory) error {
	if s.Pick != nil {
		o, err := p.world.Look(ctx, false)
		if err != nil {
			return err
		}
		picked, found := s.Pick(*m, o)
		if !found {
			return errors.New("there is no node with a pod")
		}
		*m = picked
	}
	return p.world.Do(ctx, s.Do, *m)
}

// clean removes what there is of a run and compares what is left with what there was before.
func (p acceptPlayer) clean(ctx context.Context) error {
	before, known, err := p.world.Before(ctx)
	if err != nil {
		return err
	}
	if err := p.play(ctx, accept.CleanSteps()); err != nil {
		return err
	}
	found := error(nil)
	if known {
		after, err := p.world.Inventory(ctx)
		if err != nil {
			return err
		}
		changed, gone := accept.CompareInventories(before, after)
		if note := accept.GoneNote(gone); note != "" {
			p.tell("note: %s", note)
		}
		if len(changed) > 0 {
			found = &foundError{"what was there before is not as it was: " + strings.Join(changed, ", ")}
		}
	} else {
		p.tell("note: what there was before the run is not known, so nothing was compared with it")
	}
	if err := p.play(ctx, accept.ForgetSteps()); err != nil {
		return err
	}
	return found
}
