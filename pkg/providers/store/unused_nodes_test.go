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

// Three nodes of a cause that were bought in vain leave their type out for an hour; then one more is enough. Other writers
// keep what is noted, and a mark about a type says nothing about its class.
func TestTypesAreLeftOutForAnHour(t *testing.T) {
	l, clock := newLedger(&fakeStore{})
	check := func(step, want string, unused []instancetypes.UnusedNode, used ...string) {
		t.Helper()
		out, err := l.NoteUnusedNodes(t.Context(), unused, used)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, m := range out {
			if m.Class() != "" || len(m.Why) > 400 {
				t.Errorf("%s: mark %+v", step, m)
			}
			got = m.String() + " for " + m.Until.Sub(clock.now()).String()
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
	add(t, l, offer("spot", "m5.large", "us-west-2a"))
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
