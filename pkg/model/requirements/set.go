package requirements

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/lists"
)

// Set is a conjunction of requirements, at most one for a key. The zero value allows everything.
type Set struct {
	list []Requirement // sorted by key
}

// NewSet returns the conjunction of rs; requirements on one key are intersected.
func NewSet(rs ...Requirement) Set {
	var s Set
	return s.And(rs...)
}

// Sorted returns the conjunction of rs, which are sorted by key, each key once. It takes them over.
func Sorted(rs []Requirement) Set { return Set{list: rs} }

// FromLabels returns the set that demands exactly these labels.
func FromLabels(labels map[string]string) Set {
	s := Set{list: make([]Requirement, 0, len(labels))}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		s.list = append(s.list, Of(k, labels[k]))
	}
	return s
}

// And returns s narrowed by rs. s itself is unchanged.
func (s Set) And(rs ...Requirement) Set {
	if len(rs) == 0 {
		return s
	}
	out := Set{list: make([]Requirement, len(s.list), len(s.list)+len(rs))}
	copy(out.list, s.list)
	for _, r := range rs {
		i, found := out.findKey(r.Key)
		if found {
			out.list[i] = out.list[i].Intersect(r)
		} else {
			out.list = slices.Insert(out.list, i, r)
		}
	}
	return out
}

// AndSet returns s narrowed by o.
func (s Set) AndSet(o Set) Set {
	if len(o.list) == 0 {
		return s
	}
	out := make([]Requirement, 0, len(s.list)+len(o.list))
	i, j := 0, 0
	for i < len(s.list) && j < len(o.list) {
		switch c := cmp.Compare(s.list[i].Key, o.list[j].Key); {
		case c < 0:
			out = append(out, s.list[i])
			i++
		case c > 0:
			out = append(out, o.list[j])
			j++
		default:
			out = append(out, s.list[i].Intersect(o.list[j]))
			i, j = i+1, j+1
		}
	}
	return Set{list: append(append(out, s.list[i:]...), o.list[j:]...)}
}

// Get returns the requirement on key, and whether there is one.
func (s Set) Get(key string) (Requirement, bool) {
	if i, ok := s.findKey(key); ok {
		return s.list[i], true
	}
	return Requirement{}, false
}

// Has reports whether the set allows value for key; a key without requirement allows every value.
func (s Set) Has(key, value string) bool {
	r, ok := s.Get(key)
	return !ok || r.Has(value)
}

// Without returns s without the requirements on keys.
func (s Set) Without(keys ...string) Set {
	return Set{list: slices.DeleteFunc(slices.Clone(s.list),
		func(r Requirement) bool { return slices.Contains(keys, r.Key) })}
}

// All returns the requirements sorted by key. The caller must not change them.
func (s Set) All() []Requirement { return s.list }

// Len returns the number of keys with a requirement.
func (s Set) Len() int { return len(s.list) }

// Labels returns the keys that have exactly one allowed value.
func (s Set) Labels() map[string]string {
	out := map[string]string{}
	for _, r := range s.list {
		if v, ok := r.Single(); ok {
			out[r.Key] = v
		}
	}
	return out
}

// Matches reports whether a thing with these labels satisfies every requirement (absent labels satisfy only NotIn and
// DoesNotExist).
func (s Set) Matches(labels map[string]string) bool {
	return !slices.ContainsFunc(s.list, func(r Requirement) bool { return !r.Matches(labels) })
}

// Intersects reports whether s and o conflict on no key.
func (s Set) Intersects(o Set) bool {
	i, j := 0, 0
	for i < len(s.list) && j < len(o.list) {
		switch c := cmp.Compare(s.list[i].Key, o.list[j].Key); {
		case c < 0:
			i++
		case c > 0:
			j++
		default:
			if !s.list[i].Overlaps(o.list[j]) {
				return false
			}
			i, j = i+1, j+1
		}
	}
	return true
}

// Refusals returns the requirements of o that s cannot meet: those that conflict, and those on a key that s does not
// define, unless the label may be absent or free(key) says that a node may get any value for it (Karpenter calls it
// Compatible). free may be nil.
func (s Set) Refusals(o Set, free func(key string) bool) []Requirement {
	var out []Requirement
	for _, r := range o.list {
		mine, ok := s.Get(r.Key)
		switch {
		case ok && !mine.Overlaps(r):
			out = append(out, r)
		case !ok && !r.AllowsAbsent() && (free == nil || !free(r.Key)):
			out = append(out, r)
		}
	}
	return out
}

// Within reports whether every node that surely satisfies s satisfies o. absent(key) says that a node of s surely lacks
// the label when s has no requirement on it; nil says so of no key.
func (s Set) Within(o Set, absent func(key string) bool) bool {
	for _, r := range o.list {
		mine, ok := s.Get(r.Key)
		switch {
		case ok && !mine.Within(r):
			return false
		case !ok && !(r.AllowsAbsent() && absent != nil && absent(r.Key)):
			return false
		}
	}
	return true
}

// Impossible returns the requirements that nothing satisfies.
func (s Set) Impossible() []Requirement {
	return lists.Where(s.list, Requirement.Impossible)
}

// String prints all requirements, joined by "and".
func (s Set) String() string {
	return strings.Join(lists.Of(s.list, Requirement.String), " and ")
}

// MarshalJSON writes the requirements as a list sorted by key.
func (s Set) MarshalJSON() ([]byte, error) { return json.Marshal(s.list) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Set) UnmarshalJSON(b []byte) error {
	var list []Requirement
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	*s = NewSet(list...)
	return nil
}

// Equal reports whether both sets demand the same.
func (s Set) Equal(o Set) bool {
	return slices.EqualFunc(s.list, o.list, func(a, b Requirement) bool {
		return a.Key == b.Key && a.Not == b.Not && a.Present == b.Present && a.MinValues == b.MinValues &&
			slices.Equal(a.Values, b.Values) &&
			sameValues(a.Min, b.Min) && sameValues(a.Max, b.Max)
	})
}

func (s Set) findKey(key string) (int, bool) {
	lo, hi := 0, len(s.list)
	for lo < hi {
		if mid := (lo + hi) / 2; s.list[mid].Key < key {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(s.list) && s.list[lo].Key == key
}

func sameValues(a, b *int64) bool { return a == b || a != nil && b != nil && *a == *b }

// FullText is the set in full; its String is shortened for people.
func (s Set) FullText() string {
	var b strings.Builder
	for _, r := range s.All() {
		fmt.Fprintf(&b, "%s %t %t %q", r.Key, r.Not, r.Present, r.Values)
		for _, n := range []*int64{r.Min, r.Max} {
			if n != nil {
				fmt.Fprintf(&b, " %d", *n)
			} else {
				b.WriteString(" -")
			}
		}
		b.WriteByte(';')
	}
	return b.String()
}
