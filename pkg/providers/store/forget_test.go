package store_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

// What is forgotten neither counts nor makes the next mark come sooner; what else is noted stays. Repeating it changes
// nothing.
func TestMarksAreForgotten(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	three := []instancetypes.UnusedNode{unusedNode("i-1"), unusedNode("i-2"), unusedNode("i-3")}
	if _, err := l.NoteUnusedNodes(t.Context(), three, nil); err != nil {
		t.Fatal(err)
	}
	add(t, l, offering("spot", "m5.large", "us-west-2a"))
	clock.pass(time.Hour + time.Minute) // both are over, the one about the type is remembered
	add(t, l, offering("spot", "m5.large", "us-west-2b"))
	all, err := l.ListRemembered(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	var brake []instancetypes.UnavailableOffering
	for _, m := range all {
		if m.LeavesOut() {
			brake = append(brake, m.UnavailableOffering)
		}
	}
	for range 2 {
		if err := l.ForgetUnavailable(t.Context(), brake); err != nil {
			t.Fatal(err)
		}
		if all, err = l.ListRemembered(t.Context()); err != nil || len(all) != 1 || all[0].Zone != "us-west-2b" {
			t.Fatalf("%v, %v", all, err)
		}
	}
	if left, err := l.NoteUnusedNodes(t.Context(), []instancetypes.UnusedNode{unusedNode("i-4")}, nil); err != nil || len(left) != 0 {
		t.Errorf("one more node is enough: %v, %v", left, err)
	}
}
