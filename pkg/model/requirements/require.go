package requirements

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/lists"
)

// Operator says how the values of a requirement are meant.
type Operator string

// The operators of NodePool requirements and node affinity.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
	Gte          Operator = "Gte"
	Lte          Operator = "Lte"
)

// Requirement allows some values of one label key. The zero value allows none.
//
// Values holds the allowed values, or with Not the refused ones. Min and Max bound integer values, inclusively; a
// bounded requirement refuses values that are no integers.
type Requirement struct {
	Key       string   `json:"key"`
	Not       bool     `json:"not,omitempty"`
	Values    []string `json:"values,omitempty"` // sorted, distinct
	Min       *int64   `json:"min,omitempty"`
	Max       *int64   `json:"max,omitempty"`
	MinValues int      `json:"minValues,omitempty"` // distinct values that must stay possible, 0 for no such wish

	// Present refuses a missing label where the rest of the requirement would allow it. Kubernetes demands it when
	// In (a) meets In (b), or Exists meets NotIn (a): neither may be satisfied by a node without the label.
	Present bool `json:"present,omitempty"`
}

// NewRequirement makes a requirement. NotIn without values means Exists. It returns an error that names the key when
// the operator is unknown or its values do not fit it.
func NewRequirement(key string, op Operator, values ...string) (Requirement, error) {
	r := Requirement{Key: key}
	switch op {
	case In:
		if len(values) == 0 {
			return r, fmt.Errorf("requirement %s: operator In needs at least one value", key)
		}
		r.Values = sortedValues(values)
	case NotIn:
		r.Not, r.Values = true, sortedValues(values)
	case Exists:
		r.Not = true
	case DoesNotExist:
	case Gt, Lt, Gte, Lte:
		n, err := boundText(key, op, values)
		if err != nil {
			return r, err
		}
		return r.hasBounds(op, n), nil
	default:
		return r, fmt.Errorf("requirement %s: unknown operator %q, use In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte or Lte", key, op)
	}
	return r, nil
}

// Of returns the requirement that key has one of values; with no values it allows none.
func Of(key string, values ...string) Requirement {
	return Requirement{Key: key, Values: sortedValues(values)}
}

// Any returns the requirement that key has some value.
func Any(key string) Requirement { return Requirement{Key: key, Not: true} }

// None returns the requirement that key is absent.
func None(key string) Requirement { return Requirement{Key: key} }

// Has reports whether the requirement allows value.
func (r Requirement) Has(value string) bool {
	_, listed := slices.BinarySearch(r.Values, value)
	return listed != r.Not && r.withinBounds(value)
}

// Operator tells the plainest operator that says the same.
func (r Requirement) Operator() Operator {
	switch {
	case r.Not && r.Min != nil:
		return Gte
	case r.Not && r.Max != nil:
		return Lte
	case r.Not && len(r.Values) > 0:
		return NotIn
	case r.Not:
		return Exists
	case len(r.Values) > 0:
		return In
	}
	return DoesNotExist
}

// AllowsAbsent reports whether a node without the label satisfies the requirement (NotIn and DoesNotExist).
func (r Requirement) AllowsAbsent() bool {
	op := r.Operator()
	return !r.Present && (op == NotIn || op == DoesNotExist)
}

// Impossible reports whether neither a value nor the absence of the label satisfies the requirement.
func (r Requirement) Impossible() bool { return r.Present && r.Operator() == DoesNotExist }

// Within reports whether everything that r allows, o allows too: a node known only to satisfy r surely satisfies o.
func (r Requirement) Within(o Requirement) bool {
	if r.AllowsAbsent() && !o.AllowsAbsent() {
		return false
	}
	if !r.Not {
		return !slices.ContainsFunc(r.Values, func(v string) bool { return !o.Has(v) })
	}
	if !o.Not || o.Min != nil && (r.Min == nil || *r.Min < *o.Min) || o.Max != nil &&
		(r.Max == nil || *r.Max > *o.Max) {
		return false
	}
	return !slices.ContainsFunc(o.Values, r.Has)
}

// Single returns the only value allowed, if there is exactly one.
func (r Requirement) Single() (string, bool) {
	if !r.Not && len(r.Values) == 1 {
		return r.Values[0], true
	}
	return "", false
}

// Intersect returns what both requirements allow. MinValues becomes the larger one.
func (r Requirement) Intersect(o Requirement) Requirement {
	out := Requirement{Key: r.Key, Not: r.Not && o.Not, MinValues: max(r.MinValues, o.MinValues)}
	lo, hi := largerBound(r.Min, o.Min), smallerBound(r.Max, o.Max)
	switch {
	case lo != nil && hi != nil && *lo > *hi:
		out.Not = false
	case r.Not && o.Not:
		out.Min, out.Max = lo, hi
		out.Values = lists.Where(sortedValues(append(slices.Clone(r.Values), o.Values...)), out.withinBounds)
	case r.Not:
		out.Values = lists.Where(o.Values, r.Has)
	default:
		out.Values = lists.Where(r.Values, o.Has)
	}
	out.Present = out.AllowsAbsent() && !(r.AllowsAbsent() && o.AllowsAbsent())
	return out
}

// Overlaps reports whether some value, or the absence of the label, satisfies both requirements.
func (r Requirement) Overlaps(o Requirement) bool {
	if r.AllowsAbsent() && o.AllowsAbsent() {
		return true
	}
	lo, hi := largerBound(r.Min, o.Min), smallerBound(r.Max, o.Max)
	switch {
	case lo != nil && hi != nil && *lo > *hi:
		return false
	case r.Not && o.Not:
		return true
	case r.Not:
		return slices.ContainsFunc(o.Values, r.Has)
	}
	return slices.ContainsFunc(r.Values, o.Has)
}

// Matches reports whether a thing with these labels satisfies the requirement.
func (r Requirement) Matches(labels map[string]string) bool {
	v, ok := labels[r.Key]
	if !ok {
		return r.AllowsAbsent()
	}
	if r.Operator() == DoesNotExist {
		return false
	}
	return r.Has(v)
}

// String prints the requirement as a person would write it, such as "zone in (a, b)".
func (r Requirement) String() string {
	var s string
	switch r.Operator() {
	case In:
		s = r.Key + " in (" + strings.Join(shortList(r.Values), ", ") + ")"
	case NotIn:
		s = r.Key + " not in (" + strings.Join(shortList(r.Values), ", ") + ")"
		if r.Present {
			s += " and " + r.Key + " exists"
		}
	case Exists:
		s = r.Key + " exists"
	case DoesNotExist:
		s = r.Key + " does not exist"
		if r.Present {
			s = r.Key + " can have no value"
		}
	default:
		var parts []string
		if r.Min != nil {
			parts = append(parts, fmt.Sprintf("%s >= %d", r.Key, *r.Min))
		}
		if r.Max != nil {
			parts = append(parts, fmt.Sprintf("%s <= %d", r.Key, *r.Max))
		}
		if len(r.Values) > 0 {
			parts = append(parts, r.Key+" not in ("+strings.Join(shortList(r.Values), ", ")+")")
		}
		s = strings.Join(parts, " and ")
	}
	return s
}

func (r Requirement) hasBounds(op Operator, n int64) Requirement {
	r.Not = true
	switch op {
	case Gt:
		if n == math.MaxInt64 {
			return Requirement{Key: r.Key, Present: true}
		}
		n++
		r.Min = &n
	case Gte:
		r.Min = &n
	case Lt:
		if n == 0 { // label values have no sign
			return Requirement{Key: r.Key, Present: true}
		}
		n--
		r.Max = &n
	case Lte:
		r.Max = &n
	}
	return r
}

func (r Requirement) withinBounds(value string) bool {
	if r.Min == nil && r.Max == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return false
	}
	return (r.Min == nil || n >= *r.Min) && (r.Max == nil || n <= *r.Max)
}

func boundText(key string, op Operator, values []string) (int64, error) {
	if len(values) != 1 {
		return 0, fmt.Errorf("requirement %s: operator %s needs exactly one integer, got %d values", key, op,
			len(values))
	}
	n, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("requirement %s: operator %s needs one integer of at least 0, got %q", key, op, values[0])
	}
	return n, nil
}

func sortedValues(values []string) []string {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

func largerBound(a, b *int64) *int64 {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func smallerBound(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

func shortList(values []string) []string {
	const most = 6
	if len(values) <= most {
		return values
	}
	return append(slices.Clone(values[:most]), fmt.Sprintf("and %d more", len(values)-most))
}

// AnyValue is a value for a custom label that no pod has chosen: the lowest whole number from 1 on that the requirement
// allows, else one below, else one written with zeros before it.
func (r Requirement) AnyValue() string {
	if !r.Not && len(r.Values) > 0 {
		return r.Values[0]
	}
	from := int64(1)
	if r.Min != nil {
		from = *r.Min
	} else if r.Max != nil {
		from = min(from, *r.Max)
	}
	tries := int64(len(r.Values)) + 1 // so many values cannot all be refused
	for n := from; n < from+tries && n >= from; n++ {
		if v := strconv.FormatInt(n, 10); r.Has(v) {
			return v
		}
	}
	if v := strconv.FormatInt(from-1, 10); from > 0 && r.Has(v) {
		return v
	}
	v := strconv.FormatInt(from, 10)
	for ; tries > 0 && !r.Has(v); tries-- {
		v = "0" + v
	}
	return v
}
