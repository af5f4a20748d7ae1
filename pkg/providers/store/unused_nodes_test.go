package store_test

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

func unusedNode(instance string) instancetypes.UnusedNode {
	return instancetypes.UnusedNode{Class: "default", Type: "m5.large", Cause: "1", Instance: instance, Allowed: 3,
		Why: "default/web: " + strings.Repeat("no ", 200)}
}

// Three nodes of a cause that were bought in vain leave their type out for an hour; then one more is enough. Other
// writers keep what is noted, and a mark about a type says nothing about its class.
func TestTypesAreLeftOutForAnHour(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	check := func(step, want string, unused []instancetypes.UnusedNode, used ...string) {
		t.Helper()
		out, err := l.NoteUnusedNodes(t.Context(), unused, used)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, u := range out {
			if u.Class() != "" || len(u.Why) > 400 {
				t.Errorf("%s: mark %+v", step, u)
			}
			got = u.String() + " for " + u.Until.Sub(clock.now()).String()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", step, got, want)
		}
		clock.pass(time.Minute)
	}
	nodes := func(ids ...string) (out []instancetypes.UnusedNode) {
		for _, id := range ids {
			out = append(out, unusedNode(id))
		}
		return out
	}
	check("two, one of them told twice", "", nodes("i-1", "i-2", "i-1"))
	note(t, l, "default", "i-0")
	add(t, l, offering("spot", "m5.large", "us-west-2a"))
	check("a third", "m5.large in ec2nodeclass/default for 1h0m0s", nodes("i-1", "i-2", "i-3"))
	check("another under way", "m5.large in ec2nodeclass/default for 59m0s", nodes("i-4"))
	clock.pass(time.Hour)
	check("an hour later", "", nodes("i-1", "i-2", "i-3", "i-4"))
	check("one more", "m5.large in ec2nodeclass/default for 1h0m0s", nodes("i-5"))
	check("pods came to run on it", "", nil, "i-5")
	other := unusedNode("i-6")
	other.Cause = "2"
	check("another cause", "", []instancetypes.UnusedNode{other})
	clock.pass(2 * time.Hour)
	check("long after", "", nodes("i-7", "i-8"))
}

// Nodes of two types of a class that never became usable leave the class alone for an hour from the third on; that is a
// mark of its own beside that of instances which ended before they joined, and of the types.
func TestAClassWhoseNodesNeverBecomeUsableRests(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	for i, id := range []string{"i-1", "i-2", "i-3", "i-4"} {
		u := unusedNode(id)
		if i == 3 {
			u.Type = "c5.large"
		}
		of := u
		of.Of, of.Type, of.Cause = u.Type, "", "class"
		out, err := l.NoteUnusedNodes(t.Context(), []instancetypes.UnusedNode{u, of}, nil)
		if err != nil || len(out) != map[int]int{2: 1, 3: 2}[i] { // the type, then the class too
			t.Errorf("after %s: %+v, error %v", id, out, err)
		}
		note(t, l, "default", "ended-"+id) // from the second on for five minutes
	}
	if all := unavailable(t, l); len(all) != 3 {
		t.Errorf("%+v, want one of each", all)
	}
	clock.pass(59 * time.Minute)
	got := ""
	for _, u := range unavailable(t, l) {
		got += u.String() + " because of " + u.Cause + "; "
	}
	const want = "ec2nodeclass/default because of class; m5.large in ec2nodeclass/default because of 1; "
	if got != want {
		t.Errorf("59 minutes later %q, want %q", got, want)
	}
	clock.pass(time.Minute)
	if left := unavailable(t, l); len(left) != 0 {
		t.Errorf("an hour later %+v", left)
	}
}
