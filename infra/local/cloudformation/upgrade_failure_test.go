package cloudformation_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/cloudformation"
)

// ofTheForm are the steps of an update that plain does not have, or does with something else. Alarms are like another.
func ofTheForm(t *testing.T, name string, steps []cloudformation.Step) (out []cloudformation.Step) {
	t.Helper()
	was, is, plainWas, plainIs := formBefore(t, name), form(t, name), formBefore(t, "plain"), form(t, "plain")
	for _, s := range steps {
		id := strings.TrimSuffix(strings.TrimSuffix(s.ID, "today"), commitBefore)
		alike := reflect.DeepEqual(was[id], plainWas[id]) && reflect.DeepEqual(is[id], plainIs[id])
		if name != "plain" && (alike || strings.HasPrefix(s.Type, "AWS::CloudWatch::")) || s.Verb == cloudformation.Delete {
			continue
		}
		out = append(out, s)
	}
	return out
}

// Whatever step of the update fails, or of the way back, the stack goes on as it was; the update can be deployed then.
func TestAnUpdateOfAStackThatExistsFailsAtEachStep(t *testing.T) {
	for f, name := range formNames(t) {
		for back, to := range []release{releaseToday(tuesday), releaseBefore(wednesday)} {
			if s := (share{5 * back, 6}); !s.has(f) {
				continue
			}
			for i, step := range updateSteps(t, name, to) {
				if testing.Short() && (i+f)%12 != 0 { // of each form others
					continue
				}
				t.Run(fmt.Sprint(name, " to ", to.code, " ", step.Verb, " ", step.ID), func(t *testing.T) {
					t.Parallel()
					w := newStackBefore(t, name, uint64(i))
					w.failOnce(name, to, step)
				})
			}
		}
	}
}

// failOnce has a step of the update fail, and then deploys what failed if it is today's.
func (w *world) failOnce(name string, to release, step cloudformation.Step) {
	w.t.Helper()
	w.goTo(name, to)
	w.watch()
	before, commands, failed := w.stack.PhysicalIDs(), w.commands(), false
	w.player.Fail = func(s cloudformation.Step) error {
		if failed || s.Verb != step.Verb || s.ID != step.ID {
			return nil
		}
		failed = true
		return errors.New("told to fail")
	}
	if err := w.deployForm(name, to); err == nil {
		w.t.Fatal("the update did not fail")
	}
	w.want(cloudformation.UpdateRollbackComplete)
	if diff := cmp.Diff(before, w.stack.PhysicalIDs()); diff != "" {
		w.t.Errorf("resources (-before +after the rollback):\n%s", diff)
	}
	// A rollback leaves the versions that commitBefore published, which it retains: until they are deleted by hand, that
	// release cannot be deployed again.
	if to.deployment = thursday; !to.before {
		if err := w.deployForm(name, to); err != nil {
			w.t.Fatal(err)
		}
	}
	if diff := cmp.Diff(commands, w.commands()); diff != "" {
		w.t.Errorf("claims and nodes (-before +after):\n%s", diff)
	}
}

// goTo has a stack of the release of before be what is updated to a release: itself, or today's.
func (w *world) goTo(name string, to release) {
	w.t.Helper()
	if !to.before {
		return
	}
	if err := w.deployForm(name, releaseToday(tuesday)); err != nil {
		w.t.Fatal(err)
	}
}

// updateSteps are what an update of a form does that plain does not, or does with something else.
func updateSteps(t *testing.T, name string, to release) (steps []cloudformation.Step) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		w := newStackBefore(t, name, 0)
		w.goTo(name, to)
		w.player.After = func(s cloudformation.Step) { steps = append(steps, s) }
		if err := w.deployForm(name, to); err != nil {
			t.Fatal(err)
		}
	})
	return ofTheForm(t, name, steps)
}
