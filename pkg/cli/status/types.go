package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostTypes bounds the instance types that stand for a NodePool with many nodes.
const mostTypes = 20

// TypeSum is the nodes of a NodePool that are alike in instance type and capacity type.
type TypeSum struct {
	Type         string         // instance type; empty where no label tells
	CapacityType string         // spot, on-demand or reserved; empty where no label tells
	Sum          Sum            // of the nodes
	MayGo        int            // nodes that may be disrupted by choice
	Phases       map[string]int // nodes by phase
}

// SumByType sums up nodes by instance type and capacity type, what costs most first, and says how many more there are.
func SumByType(nodes []Node) (list []TypeSum, more int) {
	at := map[[2]string]int{}
	for _, n := range nodes {
		key := [2]string{n.Type, n.CapacityType}
		i, known := at[key]
		if !known {
			i = len(list)
			at[key] = i
			list = append(list, TypeSum{Type: n.Type, CapacityType: n.CapacityType, Phases: map[string]int{}})
		}
		t := &list[i]
		t.Sum = t.Sum.addSum(n)
		t.Phases[n.Phase]++
		if n.MayGo {
			t.MayGo++
		}
	}
	slices.SortFunc(list, func(a, b TypeSum) int {
		return cmp.Or(cmp.Compare(b.Sum.HourlyUSD, a.Sum.HourlyUSD), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.CapacityType, b.CapacityType))
	})
	if len(list) > mostTypes {
		list, more = list[:mostTypes], len(list)-mostTypes
	}
	return list, more
}

// FormatPhases says how many nodes are in each phase, the commonest first.
func FormatPhases(phases map[string]int) string {
	var names []string
	for name := range phases {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(phases[b], phases[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", phases[name], name)
	}
	return strings.Join(names, ", ")
}
