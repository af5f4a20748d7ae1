package requirements

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
)

// raw is a requirement as people write it; the model asks what each of them means and knows no algebra.
type raw struct {
	key    string
	op     Operator
	values []string
}

// holds is what Kubernetes says about a node that has the label, or has not.
func (r raw) holds(value string, there bool) bool {
	n, err := strconv.ParseInt(value, 10, 64)
	whole := there && err == nil
	limit := int64(0)
	if len(r.values) > 0 {
		limit, _ = strconv.ParseInt(r.values[0], 10, 64)
	}
	switch r.op {
	case In:
		return there && slices.Contains(r.values, value)
	case NotIn:
		return !there || !slices.Contains(r.values, value)
	case Exists:
		return there
	case DoesNotExist:
		return !there
	case Gt:
		return whole && n > limit
	case Gte:
		return whole && n >= limit
	case Lt:
		return whole && n < limit
	case Lte:
		return whole && n <= limit
	}
	return false
}

func holdAll(list []raw, key, value string, there bool) bool {
	return !slices.ContainsFunc(list, func(r raw) bool { return r.key == key && !r.holds(value, there) })
}

// universe is every label value that the model knows. Values that no requirement names are there too, and whole numbers
// written in another way.
func universe() []string {
	out := []string{"a", "b", "c", "other", "", "9999999999999999999999", "9223372036854775807", "1.5"}
	for i := range 8 {
		out = append(out, strconv.Itoa(i), "0"+strconv.Itoa(i), "00"+strconv.Itoa(i))
	}
	return out
}

// written reads requirements from bytes, three for each.
func written(program []byte) []raw {
	ops := []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte}
	alphabet := []string{"a", "b", "1", "2", "3", "02", "5", "c"}
	var out []raw
	for len(program) >= 3 && len(out) < 8 {
		r := raw{key: "k" + strconv.Itoa(int(program[0])%2), op: ops[int(program[1])%len(ops)]}
		switch r.op {
		case In, NotIn:
			for i, v := range alphabet {
				if program[2]>>i&1 == 1 {
					r.values = append(r.values, v)
				}
			}
			if len(r.values) == 0 {
				r.values = []string{"a"}
			}
		case Gt, Lt, Gte, Lte:
			r.values = []string{strconv.Itoa(int(program[2]) % 7)}
		}
		out, program = append(out, r), program[3:]
	}
	return out
}

func setOf(t *testing.T, list []raw) Set {
	var s Set
	for _, r := range list {
		one, err := NewRequirement(r.key, r.op, r.values...)
		if err != nil {
			t.Fatalf("%v: %v", r, err)
		}
		s = s.And(one)
	}
	return s
}

// The algebra says what the model says: of one set of requirements, and of two.
func FuzzModel(f *testing.F) {
	f.Add([]byte{0, 0, 3, 0, 1, 1}, []byte{0, 2, 0})
	f.Add([]byte{0, 4, 1, 0, 5, 3, 0, 1, 8}, []byte{0, 1, 40})
	f.Add([]byte{0, 3, 0}, []byte{0, 1, 255, 1, 5, 0})
	f.Add([]byte{0, 6, 2, 0, 7, 2}, []byte{0, 1, 8})
	f.Add([]byte{1, 0, 1, 1, 0, 2}, []byte{1, 1, 4})
	f.Fuzz(func(t *testing.T, left, right []byte) {
		as, bs := written(left), written(right)
		a, b := setOf(t, as), setOf(t, bs)
		slices.Reverse(as)
		if turned := setOf(t, as); !turned.Equal(a) {
			t.Errorf("%v gives %s, the other way round %s", as, a, turned)
		}
		both := a.AndSet(b)
		if other := b.AndSet(a); !other.Equal(both) || !a.And(b.All()...).Equal(both) {
			t.Errorf("%s and %s give %s and %s", a, b, both, other)
		}
		conflict := false
		for _, key := range []string{"k0", "k1"} {
			conflict = check(t, sides{key, as, bs, a, b, both}) || conflict
		}
		if a.Intersects(b) == conflict {
			t.Errorf("%s and %s intersect: %t, the model says %t", a, b, a.Intersects(b), !conflict)
		}
		text, err := json.Marshal(both)
		var back Set
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || !back.Equal(both) || back.String() != both.String() {
			t.Errorf("%s comes back from %s as %s: %v", both, text, back, err)
		}
	})
}

type sides struct {
	key        string
	as, bs     []raw
	a, b, both Set
}

// check compares everything about one key, and reports whether the two sides have nothing in common there though both
// ask.
func check(t *testing.T, s sides) bool {
	ra, okA := s.a.Get(s.key)
	rb, okB := s.b.Get(s.key)
	within, common := true, false
	try := func(value string, there bool) {
		labels := map[string]string{}
		if there {
			labels[s.key] = value
		}
		inA, inB := holdAll(s.as, s.key, value, there), holdAll(s.bs, s.key, value, there)
		if okA && ra.Matches(labels) != inA || okB && rb.Matches(labels) != inB {
			t.Errorf("%v: %s with %q (%t)", s.as, ra, value, there)
		}
		if r, ok := s.both.Get(s.key); ok && r.Matches(labels) != (inA && inB) {
			t.Errorf("%s and %s make %s, which for %q (%t) is %t", ra, rb, r, value, there, inA && inB)
		}
		within = within && (!inA || inB)
		common = common || inA && inB
	}
	try("", false)
	for _, v := range universe() {
		try(v, true)
	}
	if okA && okB && ra.Within(rb) && !within {
		t.Errorf("%s is said to be within %s", ra, rb)
	}
	signless := ra.Min == nil && rb.Min != nil // that no label value is below zero is not made use of
	if okA && okB && within && common && !signless && !ra.Within(rb) {
		t.Errorf("%s is within %s and said not to be", ra, rb)
	}
	if okA && okB && ra.Overlaps(rb) != common {
		t.Errorf("%s overlaps with %s: %t", ra, rb, !common)
	}
	return okA && okB && !common
}
