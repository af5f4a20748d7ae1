package requirements

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCombineAlternatives(t *testing.T) {
	zone := func(names ...string) []Requirement {
		return []Requirement{Of("topology.kubernetes.io/zone", names...)}
	}
	both := func(a, b []Requirement) []Requirement {
		return []Requirement{a[0], b[0]}
	}
	a, b, c, bc := zone("a"), zone("b"), zone("c"), zone("b", "c")
	got := CombineAlternatives([][]Requirement{a, bc}, [][]Requirement{b, c})
	if diff := cmp.Diff([][]Requirement{both(bc, b), both(bc, c)}, got); diff != "" {
		t.Errorf("those that contradict themselves are left out (-want +got):\n%s", diff)
	}
	got = CombineAlternatives([][]Requirement{b, bc}, [][]Requirement{b, bc})
	if diff := cmp.Diff([][]Requirement{both(b, b), both(bc, bc)}, got); diff != "" {
		t.Errorf("so are those that mean what another one means (-want +got):\n%s", diff)
	}
	long := zone("a", "b", "c", "d", "e", "f", "y")
	other := zone("a", "b", "c", "d", "e", "f", "z")
	got = CombineAlternatives([][]Requirement{long, other}, [][]Requirement{{Any("disk")}})
	if len(got) != 2 {
		t.Errorf("alternatives that differ behind what is printed of them both stay, got %v", got)
	}
	got = CombineAlternatives([][]Requirement{a}, [][]Requirement{b, c})
	if diff := cmp.Diff([][]Requirement{both(a, b)}, got); diff != "" {
		t.Errorf("where all contradict themselves one stays (-want +got):\n%s", diff)
	}
	if got = CombineAlternatives(nil, [][]Requirement{a}); len(got) != 1 {
		t.Errorf("no limit and one: %v", got)
	}
}
