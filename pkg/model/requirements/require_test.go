package requirements

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func req(t testing.TB, text string) Requirement {
	t.Helper()
	f := strings.Fields(text)
	r, err := NewRequirement(f[0], Operator(f[1]), f[2:]...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestHas(t *testing.T) {
	for _, c := range []struct {
		requirement string
		yes, no     []string
		absent      bool
	}{
		{"k In a b", []string{"a", "b"}, []string{"c", ""}, false},
		{"k NotIn a b", []string{"c", ""}, []string{"a", "b"}, true},
		{"k NotIn", []string{"a"}, nil, false}, // without values it is Exists
		{"k Exists", []string{"a", ""}, nil, false},
		{"k DoesNotExist", nil, []string{"a", ""}, true},
		{"k Gt 4", []string{"5", "100"}, []string{"4", "-5", "x", "5.5", ""}, false},
		{"k Gte 4", []string{"4", "5"}, []string{"3"}, false},
		{"k Lt 4", []string{"3", "-1"}, []string{"4", "x"}, false},
		{"k Lte 4", []string{"4"}, []string{"5"}, false},
		{"k Gt 9223372036854775807", nil, []string{"9223372036854775807", "1"}, false},
	} {
		r := req(t, c.requirement)
		for _, v := range c.yes {
			if !r.Has(v) || !r.Matches(map[string]string{"k": v}) {
				t.Errorf("%s refuses %q", c.requirement, v)
			}
		}
		for _, v := range c.no {
			if r.Has(v) || r.Matches(map[string]string{"k": v}) {
				t.Errorf("%s allows %q", c.requirement, v)
			}
		}
		if r.AllowsAbsent() != c.absent || r.Matches(nil) != c.absent {
			t.Errorf("%s: absent allowed %t, want %t", c.requirement, r.AllowsAbsent(), c.absent)
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, c := range []struct{ a, b, want string }{
		{"k In a b", "k In b c", "k in (b)"},
		{"k In a", "k In b", "k can have no value"},
		{"k In a b", "k NotIn b", "k in (a)"},
		{"k NotIn a", "k NotIn b", "k not in (a, b)"},
		{"k NotIn a", "k Exists", "k not in (a) and k exists"},
		{"k Exists", "k DoesNotExist", "k can have no value"},
		{"k NotIn a", "k DoesNotExist", "k does not exist"},
		{"k Gt 4", "k Lt 10", "k >= 5 and k <= 9"},
		{"k Gt 10", "k Lt 4", "k can have no value"},
		{"k Gt 4", "k In 3 5 x", "k in (5)"},
		{"k Gt 4", "k NotIn 3 6", "k >= 5 and k not in (6)"},
		{"k Gt 4", "k Gte 9", "k >= 9"},
	} {
		a, b := req(t, c.a), req(t, c.b)
		if got := a.Intersect(b).String(); got != c.want {
			t.Errorf("%s and %s: got %q, want %q", c.a, c.b, got, c.want)
		}
		if got := b.Intersect(a).String(); got != c.want {
			t.Errorf("%s and %s: got %q, want %q", c.b, c.a, got, c.want)
		}
	}
}

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"k In a", "k In a b", true},
		{"k In a b", "k In a", false},
		{"k In a", "k Exists", true},
		{"k Exists", "k In a", false},
		{"k Exists", "k NotIn a", false},
		{"k NotIn a b", "k NotIn a", true},
		{"k NotIn a", "k Exists", false},
		{"k DoesNotExist", "k NotIn a", true},
		{"k DoesNotExist", "k In a", false},
		{"k Gt 5", "k Gt 4", true},
		{"k Gt 4", "k Gt 5", false},
		{"k Gt 4", "k NotIn 3", true},
		{"k Gt 4", "k Lt 9", false},
		{"k In 5 6", "k Gt 4", true},
	} {
		if got := req(t, c.a).Within(req(t, c.b)); got != c.want {
			t.Errorf("%s within %s: got %t", c.a, c.b, got)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"k In":      "requirement k: operator In needs at least one value",
		"k Like a":  `requirement k: unknown operator "Like", use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte`,
		"k Gt":      "requirement k: operator Gt needs exactly one integer, got 0 values",
		"k Lt -1":   `requirement k: operator Lt needs one integer of at least 0, got "-1"`,
		"k Gte 1 2": "requirement k: operator Gte needs exactly one integer, got 2 values",
		"k Lte x":   `requirement k: operator Lte needs one integer of at least 0, got "x"`,
	} {
		f := strings.Fields(text)
		if _, err := NewRequirement(f[0], Operator(f[1]), f[2:]...); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestSet(t *testing.T) {
	pool := NewSet(req(t, "zone In a b"), req(t, "team Exists"), req(t, "cpu Gt 4"))
	pod := NewSet(req(t, "zone In c"), req(t, "rack In r1"), req(t, "arch In arm64"), req(t, "old NotIn x"), req(t, "team In red"))
	var got []string
	for _, r := range pool.Refusals(pod, func(key string) bool { return key == "arch" }) {
		got = append(got, r.String())
	}
	if diff := cmp.Diff([]string{"rack in (r1)", "zone in (c)"}, got); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
	if pool.Intersects(pod) {
		t.Error("no zone suits both, and they intersect")
	}
	both := pool.AndSet(pod)
	if got := both.Impossible(); len(got) != 1 || got[0].Key != "zone" {
		t.Errorf("impossible: %v", got)
	}
	if pool.Matches(map[string]string{"zone": "a", "cpu": "8"}) || !pool.Matches(map[string]string{"zone": "a", "cpu": "8", "team": "x"}) {
		t.Error("labels matched wrongly")
	}
	narrow := pool.And(req(t, "zone In a"))
	if !narrow.Within(pool, nil) || pool.Within(narrow, nil) {
		t.Error("the narrower set is within the wider one, not the other way round")
	}
	if lone := NewSet(req(t, "rack NotIn r1")); pool.Within(lone, nil) || !pool.Within(lone, func(string) bool { return true }) {
		t.Error("a label that may be there satisfied NotIn")
	}
	b, err := json.Marshal(both)
	if err != nil {
		t.Fatal(err)
	}
	var back Set
	if err := json.Unmarshal(b, &back); err != nil || !back.Equal(both) {
		t.Errorf("%s became %s: %v", both, back, err)
	}
}

// Whatever two requirements are: their intersection allows exactly what both allow, in either order, and the other
// relations agree with that.
func FuzzAlgebra(f *testing.F) {
	f.Add(uint8(0), "a b", uint8(1), "b", "a")
	f.Add(uint8(4), "4", uint8(5), "9", "7")
	f.Add(uint8(2), "", uint8(3), "", "x")
	ops := []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte}
	f.Fuzz(func(t *testing.T, opA uint8, valuesA string, opB uint8, valuesB, probe string) {
		a, errA := NewRequirement("k", ops[int(opA)%len(ops)], strings.Fields(valuesA)...)
		b, errB := NewRequirement("k", ops[int(opB)%len(ops)], strings.Fields(valuesB)...)
		if errA != nil || errB != nil {
			return
		}
		both := a.Intersect(b)
		probes := append(strings.Fields(valuesA+" "+valuesB), probe)
		for _, p := range probes {
			if n, err := strconv.ParseInt(p, 10, 64); err == nil {
				probes = append(probes[:len(probes):len(probes)], strconv.FormatInt(n+1, 10), strconv.FormatInt(n-1, 10))
			}
		}
		for _, v := range probes {
			labels := map[string]string{"k": v}
			want := a.Matches(labels) && b.Matches(labels)
			if both.Matches(labels) != want || b.Intersect(a).Matches(labels) != want {
				t.Errorf("%s and %s make %s, which for %q is %t", a, b, both, v, !want)
			}
			if want && !a.Overlaps(b) {
				t.Errorf("%s and %s overlap in %q", a, b, v)
			}
			if a.Within(b) && a.Matches(labels) && !b.Matches(labels) {
				t.Errorf("%s is within %s but for %q", a, b, v)
			}
		}
		absent := a.Matches(nil) && b.Matches(nil)
		if both.Matches(nil) != absent || a.Overlaps(b) != b.Overlaps(a) || a.Overlaps(b) == both.Impossible() {
			t.Errorf("%s and %s make %s", a, b, both)
		}
		if !both.Within(a) || !both.Within(b) {
			t.Errorf("%s is not within %s and %s", both, a, b)
		}
		if again := both.Intersect(a); !NewSet(again).Equal(NewSet(both)) {
			t.Errorf("%s becomes %s by the same again", both, again)
		}
	})
}
