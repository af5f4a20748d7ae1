package instancetypes

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// An entry about nodes that were bought in vain stays while as many of them as it needs took no pods: a small pod on one
// of them says nothing of those that it was bought for. With fewer it is taken back.
func TestOneUsedNodeOfManyKeepsTheMark(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var entries []UnavailableEntry
	note := func(ids []string, used ...string) bool {
		var unused []UnusedNode
		for _, id := range ids {
			unused = append(unused, UnusedNode{Class: "default", Type: "m5.large", Cause: "c", Instance: id, Allowed: 3})
		}
		now = now.Add(time.Minute)
		entries, _ = NoteUnusedNodes(entries, unused, used, now)
		return now.Before(entries[0].Until)
	}
	for _, c := range []struct {
		unused []string
		used   string
		want   bool
	}{{unused: []string{"i-1", "i-2"}}, {unused: []string{"i-3"}, want: true}, {unused: []string{"i-4"}, want: true},
		{used: "i-2", want: true}, {used: "i-2", want: true}, {used: "i-9", want: true}, {used: "i-1"},
		{unused: []string{"i-5"}, want: true}} {
		if got := note(c.unused, c.used); got != c.want {
			t.Errorf("%v: left out %v, want %v", fmt.Sprint(c.unused, c.used), got, c.want)
		}
	}
}

// Nodes of one type that fail together leave out their type. The class rests when one of another type fails too.
func TestOneTypeAloneNeverMarksItsClass(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var entries []UnavailableEntry
	fail := func(instanceType string, ids ...string) {
		for _, id := range ids {
			now = now.Add(time.Minute)
			entries, _ = NoteUnusedNodes(entries, []UnusedNode{
				{Class: "default", Type: instanceType, Of: instanceType, Cause: "c", Instance: id, Allowed: 2},
				{Class: "default", Of: instanceType, Cause: "c", Instance: id, Allowed: 3}}, nil, now)
		}
	}
	rests := func(of UnusedNode) bool {
		i := slices.IndexFunc(entries, of.isNotedBy)
		return i >= 0 && now.Before(entries[i].Until)
	}
	class, first := UnusedNode{Class: "default"}, UnusedNode{Class: "default", Type: "m5.large"}
	fail("m5.large", "i-1", "i-2", "i-3", "i-4")
	if !rests(first) || rests(class) {
		t.Errorf("after four nodes of one type: type left out %t, class %t; want the type alone", rests(first), rests(class))
	}
	fail("c5.large", "i-5")
	if !rests(class) {
		t.Error("after one of another type the class does not rest")
	}
}
