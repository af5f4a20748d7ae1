// Package resources counts what pods ask for and what nodes have.
//
// It knows amounts as whole numbers and nothing of Kubernetes quantities: cpu is in millicores, memory and
// ephemeral storage in bytes, everything else in units.
package resources

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/lists"
)

// Names of the resources that have a field of their own in List.
const (
	CPU       = "cpu"
	Memory    = "memory"
	Ephemeral = "ephemeral-storage"
	Pods      = "pods"
)

// mostAmount is as far from zero as sums and products go: what the largest fleet has is far less.
const mostAmount = int64(1) << 62

// MiB is the number of bytes in a mebibyte.
const MiB = int64(1) << 20

// GiB is the number of bytes in a gibibyte.
const GiB = MiB << 10

// Core is the number of millicores in a core.
const Core = 1000

// MillionCores is the number of millicores in so many cores that nobody means them.
const MillionCores = 1000 * 1000 * Core

// Extended is an amount of one extended resource, such as nvidia.com/gpu.
type Extended struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
}

// List holds an amount of every resource. The zero value holds nothing. Values are treated as immutable: every
// method returns a new List.
type List struct {
	CPU       int64      `json:"cpu,omitempty"`       // millicores
	Memory    int64      `json:"memory,omitempty"`    // bytes
	Ephemeral int64      `json:"ephemeral,omitempty"` // bytes
	Pods      int64      `json:"pods,omitempty"`      // units
	Extended  []Extended `json:"extended,omitempty"`  // sorted by name, no zero counts
}

// Get returns the amount of the named resource, 0 when there is none.
func (l List) Get(name string) int64 {
	switch name {
	case CPU:
		return l.CPU
	case Memory:
		return l.Memory
	case Ephemeral:
		return l.Ephemeral
	case Pods:
		return l.Pods
	}
	if i, ok := l.find(name); ok {
		return l.Extended[i].Count
	}
	return 0
}

// With returns l with the named resource set to amount.
func (l List) With(name string, amount int64) List {
	switch name {
	case CPU:
		l.CPU = amount
	case Memory:
		l.Memory = amount
	case Ephemeral:
		l.Ephemeral = amount
	case Pods:
		l.Pods = amount
	default:
		l.Extended = l.withExtended(name, amount)
	}
	return l
}

// Names returns the names of all resources with a non-zero amount, in a fixed order.
func (l List) Names() []string {
	var names []string
	for _, n := range []string{CPU, Memory, Ephemeral, Pods} {
		if l.Get(n) != 0 {
			names = append(names, n)
		}
	}
	for _, e := range l.Extended {
		names = append(names, e.Name)
	}
	return names
}

// Add returns l + o.
func (l List) Add(o List) List { return l.combine(o, addBounded) }

// Sub returns l - o; amounts may become negative.
func (l List) Sub(o List) List {
	return l.combine(o, func(a, b int64) int64 { return addBounded(a, -b) })
}

// Max returns the larger amount of each resource.
func (l List) Max(o List) List { return l.combine(o, func(a, b int64) int64 { return max(a, b) }) }

// Min returns the smaller amount of each resource.
func (l List) Min(o List) List { return l.combine(o, func(a, b int64) int64 { return min(a, b) }) }

// Times returns n times l.
func (l List) Times(n int64) List {
	out := List{CPU: timesBounded(l.CPU, n), Memory: timesBounded(l.Memory, n),
		Ephemeral: timesBounded(l.Ephemeral, n), Pods: timesBounded(l.Pods, n)}
	if n != 0 {
		out.Extended = slices.Clone(l.Extended)
		for i := range out.Extended {
			out.Extended[i].Count = timesBounded(out.Extended[i].Count, n)
		}
	}
	return out
}

// addBounded is the sum, or what is nearest to it within mostAmount: pods of strangers may ask for anything, and a sum
// that wraps around would leave room on a full node.
func addBounded(a, b int64) int64 {
	c := a + b
	switch {
	case a > 0 && b > 0 && (c < 0 || c > mostAmount):
		return mostAmount
	case a < 0 && b < 0 && (c >= 0 || c < -mostAmount):
		return -mostAmount
	}
	return c
}

// timesBounded is the product, or what is nearest to it within mostAmount.
func timesBounded(a, n int64) int64 {
	c := a * n
	if a == 0 || c/a == n && -mostAmount <= c && c <= mostAmount {
		return c
	}
	if (a < 0) == (n < 0) {
		return mostAmount
	}
	return -mostAmount
}

// FitsIn reports whether every amount of l is at most that of room.
func (l List) FitsIn(room List) bool {
	return l.CPU <= room.CPU && l.Memory <= room.Memory && l.Ephemeral <= room.Ephemeral && l.Pods <= room.Pods &&
		!slices.ContainsFunc(l.Extended, func(e Extended) bool { return e.Count > room.Get(e.Name) })
}

// Short names the resources of which room has less than l needs, in a fixed order.
func (l List) Short(room List) []string {
	return lists.Where(l.Names(), func(n string) bool { return l.Get(n) > room.Get(n) })
}

// IsZero reports whether l holds nothing.
func (l List) IsZero() bool {
	return l.CPU == 0 && l.Memory == 0 && l.Ephemeral == 0 && l.Pods == 0 && len(l.Extended) == 0
}

// Negative reports whether any amount is below zero.
func (l List) Negative() bool {
	return l.CPU < 0 || l.Memory < 0 || l.Ephemeral < 0 || l.Pods < 0 ||
		slices.ContainsFunc(l.Extended, func(e Extended) bool { return e.Count < 0 })
}

// String prints the non-zero amounts, such as "cpu=1500m memory=512Mi pods=1".
func (l List) String() string {
	return strings.Join(lists.Of(l.Names(), func(n string) string { return n + "=" + Format(n, l.Get(n)) }), " ")
}

// Format prints an amount of the named resource with its unit, as a Kubernetes quantity.
func Format(name string, amount int64) string {
	switch {
	case name == CPU && amount%Core == 0:
		return fmt.Sprint(amount / Core)
	case name == CPU:
		return fmt.Sprintf("%dm", amount)
	case (name == Memory || name == Ephemeral) && amount%MiB == 0 && amount != 0:
		return fmt.Sprintf("%dMi", amount/MiB)
	}
	return fmt.Sprint(amount)
}

func (l List) combine(o List, f func(a, b int64) int64) List {
	out := List{
		CPU: f(l.CPU, o.CPU), Memory: f(l.Memory, o.Memory), Ephemeral: f(l.Ephemeral, o.Ephemeral),
		Pods: f(l.Pods, o.Pods),
	}
	if len(l.Extended) == 0 && len(o.Extended) == 0 {
		return out
	}
	for i, j := 0, 0; i < len(l.Extended) || j < len(o.Extended); {
		var e Extended
		switch {
		case j == len(o.Extended) || i < len(l.Extended) && l.Extended[i].Name < o.Extended[j].Name:
			e = Extended{l.Extended[i].Name, f(l.Extended[i].Count, 0)}
			i++
		case i == len(l.Extended) || o.Extended[j].Name < l.Extended[i].Name:
			e = Extended{o.Extended[j].Name, f(0, o.Extended[j].Count)}
			j++
		default:
			e = Extended{l.Extended[i].Name, f(l.Extended[i].Count, o.Extended[j].Count)}
			i, j = i+1, j+1
		}
		if e.Count != 0 {
			out.Extended = append(out.Extended, e)
		}
	}
	return out
}

func (l List) find(name string) (int, bool) {
	return slices.BinarySearchFunc(l.Extended, name, func(e Extended, n string) int { return cmp.Compare(e.Name, n) })
}

func (l List) withExtended(name string, amount int64) []Extended {
	out := slices.Clone(l.Extended)
	i, found := l.find(name)
	switch {
	case found && amount == 0:
		return slices.Delete(out, i, i+1)
	case found:
		out[i].Count = amount
		return out
	case amount == 0:
		return out
	}
	return slices.Insert(out, i, Extended{name, amount})
}
