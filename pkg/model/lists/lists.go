// Package lists makes lists, sets and indexes of what lists hold.
package lists

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MostNamed caps the names that one sentence lists.
const MostNamed = 5

// MostLines caps the lines that tell of one thing.
const MostLines = 40

// Name joins the texts for a sentence, with the separator between them: MostNamed of them, and how many more there are.
func Name(texts []string, separator string) string {
	if more := len(texts) - MostNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(texts[:MostNamed], separator), more)
	}
	return strings.Join(texts, separator)
}

// Of returns what f makes of each item, in their order; nil where there is none.
func Of[S ~[]E, E, T any](items S, f func(E) T) []T {
	if len(items) == 0 {
		return nil
	}
	out := make([]T, len(items))
	for i, x := range items {
		out[i] = f(x)
	}
	return out
}

// Where returns the items that ok accepts, in their order; nil where there is none.
func Where[S ~[]E, E any](items S, ok func(E) bool) []E {
	var out []E
	for _, x := range items {
		if ok(x) {
			out = append(out, x)
		}
	}
	return out
}

// Find returns the first item that ok accepts, and whether there is one.
func Find[S ~[]E, E any](items S, ok func(E) bool) (first E, found bool) {
	if i := slices.IndexFunc(items, ok); i >= 0 {
		return items[i], true
	}
	return first, false
}

// Count returns how many items ok accepts.
func Count[S ~[]E, E any](items S, ok func(E) bool) (n int) {
	for _, x := range items {
		if ok(x) {
			n++
		}
	}
	return n
}

// TrueFirst compares for an order in which what is true comes first.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Pointers returns pointers to the items by their keys; of several with one key the last.
func Pointers[S ~[]E, E any, K comparable](items S, key func(*E) K) map[K]*E {
	out := make(map[K]*E, len(items))
	for i := range items {
		out[key(&items[i])] = &items[i]
	}
	return out
}

// CopyMap returns a copy of the map that can be written to: it is empty for nil.
func CopyMap[K comparable, V any](m map[K]V) map[K]V {
	out := make(map[K]V, len(m))
	maps.Copy(out, m)
	return out
}

// Set returns the keys of the items.
func Set[S ~[]E, E any, K comparable](items S, key func(E) K) map[K]bool {
	out := make(map[K]bool, len(items))
	for _, x := range items {
		out[key(x)] = true
	}
	return out
}

// SetOf returns the items as a set.
func SetOf[S ~[]K, K comparable](items S) map[K]bool {
	return Set(items, func(x K) K { return x })
}

// Index returns the items by their keys; of several with one key the last.
func Index[S ~[]E, E any, K comparable](items S, key func(E) K) map[K]E {
	out := make(map[K]E, len(items))
	for _, x := range items {
		out[key(x)] = x
	}
	return out
}
