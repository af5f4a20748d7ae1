package lists_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/lists"
)

// What is made of no item is nil, so that values are equal however they were made.
func TestLists(t *testing.T) {
	if got := lists.Of([]int(nil), strconv.Itoa); got != nil {
		t.Errorf("of nothing %#v", got)
	}
	if diff := cmp.Diff([]string{"2", "1"}, lists.Of([]int{2, 1}, strconv.Itoa)); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]bool{"1": true, "2": true}, lists.Set([]int{2, 1, 2}, strconv.Itoa)); diff != "" {
		t.Errorf("set (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[int]bool{1: true, 2: true}, lists.SetOf([]int{2, 1, 2})); diff != "" {
		t.Errorf("set of items (-want +got):\n%s", diff)
	}
	odd := func(n int) bool { return n%2 == 1 }
	if diff := cmp.Diff([]int{3, 1}, lists.Where([]int{3, 2, 1}, odd)); diff != "" {
		t.Errorf("odd ones (-want +got):\n%s", diff)
	}
	if got := lists.Where([]int{2}, odd); got != nil {
		t.Errorf("of no odd one %#v", got)
	}
	if n := lists.Count([]int{3, 2, 1}, odd); n != 2 {
		t.Errorf("%d are odd", n)
	}
	if diff := cmp.Diff(map[bool]int{true: 3, false: 2}, lists.Index([]int{1, 2, 3}, odd)); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
}

// A sentence lists five names, and says how many more there are.
func TestName(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for want, of := range map[string][]string{"": nil, "a": names[:1], "a, b, c, d, e": names,
		"a, b, c, d, e and 2 more": append(names[:5:5], "f", "g")} {
		if got := lists.Name(of, ", "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
