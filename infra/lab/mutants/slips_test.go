package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindSlips(t *testing.T) {
	for _, c := range []struct {
		name, source string
		want         []string
	}{
		{"a clause of a condition, a case or a comparison", `package p

func f(a, b int) bool {
	switch a {
	case 1, 2:
		return a > b && b > 0
	}
	return cmp.Or(cmp.Compare(a, b), a-b) < 0
}
`, []string{
			`p.go f drop-clause "1, " -> "" #1`,
			`p.go f drop-clause ", 2" -> "" #1`,
			`p.go f drop-clause "a > b && " -> "" #1`,
			`p.go f drop-clause " && b > 0" -> "" #1`,
			`p.go f drop-clause "cmp.Compare(a, b), " -> "" #1`,
			`p.go f drop-clause ", a-b" -> "" #1`,
		}},
		{"another key of the file, and no place in a list", `package p

func f(m map[string]int, list []int, i int) int { return m[class.Name] + list[i] + list[i+1] + list[0] }

func g(m map[string]int) int { return m[class.Name+revision] }
`, []string{
			`p.go f other-key "class.Name" -> "class.Name+revision" #1`,
			`p.go g other-key "class.Name+revision" -> "class.Name" #1`,
		}},
		{"an error lost", `package p

func f() (int, error) {
	if n, err := g(); err != nil || n == 0 {
		return n, err
	}
	count++
	if err := h(); err != nil {
		return 0, fmt.Errorf("h: %w", err)
	}
	return 1, nil
}
`, []string{
			`p.go f drop-clause "err != nil || " -> "" #1`,
			`p.go f drop-clause " || n == 0" -> "" #1`,
			`p.go f lose-error "err" -> "nil" #1`,
			`p.go f lose-error "err != nil" -> "false && err != nil" #1`,
			`p.go f lose-error "fmt.Errorf(\"h: %w\", err)" -> "nil" #1`,
		}},
		{"two adjacent calls swapped", `package p

func f() error {
	a := open() // first
	mark(a)
	n := len(a)
	if err := write(a); err != nil {
		panic(n)
	}
	return nil
}
`, []string{
			`p.go f swap-calls "a := open() // first\n\tmark(a)" -> "mark(a) // first\n\ta := open()" #1`,
			`p.go f lose-error "err != nil" -> "false && err != nil" #1`,
		}},
		{"a field forgotten in a literal or a copy", `package p

func f(a T) T {
	list := []T{a, a}
	b := T{A: 1}
	c := T{
		A: a.A,
		B: list,
	}
	c.C = a.C
	return c
}
`, []string{
			`p.go f forget-field "A: 1" -> "" #1`,
			`p.go f forget-field "A: a.A,\n\t\t" -> "" #1`,
			`p.go f forget-field ",\n\t\tB: list" -> "" #1`,
			`p.go f forget-field "c.C = a.C" -> "" #1`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := findMutants("p.go", []byte(c.source), true)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found {
				got = append(got, m.id())
				if text := string(m.apply([]byte(c.source))); text == c.source {
					t.Errorf("%s changes nothing", m.id())
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A sample has as many of a rare kind as of a frequent one.
func TestEachKindHasItsTurn(t *testing.T) {
	var all []mutant
	for _, o := range []string{"forget-field", "forget-field", "forget-field", "swap-calls", "lose-error", "lose-error"} {
		all = append(all, mutant{Operator: o, Nth: len(all)})
	}
	takeTurns(all)
	var got []string
	for _, m := range all {
		got = append(got, m.Operator)
	}
	want := []string{"forget-field", "lose-error", "swap-calls", "forget-field", "lose-error", "forget-field"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSlipsAreLookedForInAdaptersAndControllers(t *testing.T) {
	k, err := kindsNamed("../../..", "slips")
	if err != nil {
		t.Fatal(err)
	}
	for _, area := range []string{"pkg/app", "pkg/controllers/provision", "pkg/providers/fleet", "pkg/providers/kube"} {
		if !slices.Contains(k.areas, area) {
			t.Errorf("%s is no area", area)
		}
	}
	if _, err := kindsNamed("../../..", "slip"); err == nil {
		t.Error("kinds that do not exist are drawn")
	}
}
