package disrupt_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// passDenied is one pass of disrupt to which the deletion of a claim is denied; none where no name is given.
func passDenied(t *testing.T, f *controllertest.Functions, claim string) error {
	t.Helper()
	p := f.World.Ports(fake.Fault{})
	p.Deny = func(call, object string) error {
		if call == "delete claim" && object == claim {
			return errDenied
		}
		return nil
	}
	err := f.Disrupt(p).Run(t.Context(), f.Once())
	f.World.Advance(20 * time.Second)
	return err
}

// emptyNodes are the claims of two or more nodes that are empty, and may go together.
func emptyNodes(t *testing.T) (*controllertest.Functions, []cluster.Claim) {
	t.Helper()
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 4)
	f.World.ScaleApp("web", 0)
	f.World.Advance(10 * time.Second)
	all := f.World.Claims()
	if len(all) < 2 {
		t.Fatalf("%d claims, want two or more", len(all))
	}
	return f, all
}

// Claims of a command that end are deleted one by one: the pass tells of the one that may not be, and the other goes.
func TestAClaimThatMayNotBeDeletedIsTold(t *testing.T) {
	f, all := emptyNodes(t)
	w := f.World
	denied := 0
	for range 6 {
		switch err := passDenied(t, f, all[0].Name); {
		case errors.Is(err, errDenied):
			denied++
		case err != nil:
			t.Fatal(err)
		}
	}
	if denied == 0 {
		t.Error("no pass tells that a claim may not be deleted")
	}
	for _, c := range w.Claims() {
		if kept := c.Name == all[0].Name; kept != c.Deleting.IsZero() {
			t.Errorf("claim %s is being deleted: %t", c.Name, !c.Deleting.IsZero())
		}
	}
}

// deniesTaintOf is an API server whose admission denies the taint of disruptions on one node.
type deniesTaintOf struct {
	disrupt.NodeTainter
	node string
}

func (d deniesTaintOf) TaintNode(ctx context.Context, n cluster.Node) error {
	if n.Name == d.node {
		return errDenied
	}
	return d.NodeTainter.TaintNode(ctx, n)
}

// Of empty nodes that go together the one that may not be tainted stays, and the others go with the command that was
// begun about all.
func TestAnEmptyNodeThatMayNotBeTaintedKeepsNoOther(t *testing.T) {
	f, all := emptyNodes(t)
	w := f.World
	refused := all[0].NodeName
	for range 4 {
		ports := w.Ports(fake.Fault{})
		c := f.Disrupt(ports)
		c.Moves = deniesTaintOf{ports, refused}
		if err := c.Run(t.Context(), f.Once()); err != nil && !errors.Is(err, errDenied) {
			t.Fatal(err)
		}
		w.Advance(20 * time.Second)
	}
	for _, c := range w.Claims() {
		if kept := c.NodeName == refused; kept != c.Deleting.IsZero() || c.Annotations[disruption.AnnotationMark] != "" && kept {
			t.Errorf("claim %s is being deleted: %t, marked with %q", c.Name, !c.Deleting.IsZero(), c.Annotations[disruption.AnnotationMark])
		}
	}
}

// A command whose replacement may not be deleted is not taken back by half: its claims are marked until that is gone,
// or nobody would look for it any more. One that got no instance in all its time is looked for by lifecycle, and keeps
// no node from another command.
func TestAReplacementThatMayNotBeDeletedKeepsTheMarks(t *testing.T) {
	for after, kept := range map[time.Duration]bool{0: true, 25 * time.Minute: false} {
		takeBackDenied(t, after, kept)
	}
}

// takeBackDenied takes a command back whose replacement may not be deleted, and has been there for so long.
func takeBackDenied(t *testing.T, after time.Duration, kept bool) {
	t.Helper()
	f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
	w := f.World
	w.ScaleApp("web", 1)
	w.Advance(time.Second)
	count := func() (marked int, replacement string) {
		for _, c := range w.Claims() {
			switch {
			case c.Annotations[disruption.AnnotationReplaces] != "" && c.Deleting.IsZero():
				replacement = c.Name
			case c.Annotations[disruption.AnnotationMark] != "":
				marked++
			}
		}
		return marked, replacement
	}
	for range 2 {
		if err := passDenied(t, f, ""); err != nil {
			t.Fatal(err)
		}
	}
	before, replacement := count()
	if before == 0 || replacement == "" {
		t.Fatalf("%d marked claims, replacement %q", before, replacement)
	}
	w.SkipTime(after)
	ports := w.Ports(fake.Fault{})
	s, err := ports.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes { // somebody has the command taken back
		if err := ports.UntaintNode(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if err := passDenied(t, f, replacement); !errors.Is(err, errDenied) {
		t.Errorf("error %v", err)
	}
	if marked, left := count(); marked != before && kept || marked != 0 && !kept || left != replacement {
		t.Errorf("after %s %d of %d claims are marked, beside the replacement %q", after, marked, before, left)
	}
	if err := passDenied(t, f, ""); err != nil {
		t.Fatal(err)
	}
	if marked, left := count(); marked != 0 || kept && left != "" { // lifecycle deletes one that was given up
		t.Errorf("in the end %d claims are marked, beside the replacement %q", marked, left)
	}
}
