package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

// comparison is a plan beside another for the same pods. Prices are USD per hour.
type comparison struct {
	Before        workload.Placement `json:"before"`
	After         workload.Placement `json:"after"`
	DifferenceUSD float64            `json:"differenceUSD"`     // below zero: the change saves
	Percent       *float64           `json:"differencePercent"` // of the price before, null when that was zero
}

func comparePlans(before, after workload.Placement) comparison {
	c := comparison{Before: before, After: after, DifferenceUSD: after.HourlyUSD - before.HourlyUSD}
	if before.HourlyUSD > 0 {
		percent := 100 * c.DifferenceUSD / before.HourlyUSD
		c.Percent = &percent
	}
	return c
}

// boughtNodes counts the nodes of one kind that a plan launches, and their price in USD per hour.
type boughtNodes struct {
	count int
	usd   float64
}

// sumOfferings sums new nodes up by pool, type and capacity type.
func sumOfferings(p workload.Placement) map[[3]string]boughtNodes {
	out := map[[3]string]boughtNodes{}
	for _, c := range p.NodeClaims {
		k := [3]string{c.NodePool, c.InstanceType, c.CapacityType}
		out[k] = boughtNodes{out[k].count + 1, out[k].usd + c.HourlyUSD}
	}
	return out
}

func showComparison(term terminalOutput, c comparison) error {
	before, after := sumOfferings(c.Before), sumOfferings(c.After)
	all := maps.Clone(before)
	maps.Copy(all, after)
	order := slices.SortedFunc(maps.Keys(all), func(a, b [3]string) int { return slices.Compare(a[:], b[:]) })
	t := newTable("pool", "type", "capacity type", "nodes before", "after", "USD/h before", "after", "difference")
	for _, k := range order {
		b, a := before[k], after[k]
		t.AppendRow(table.Row{k[0], k[1], k[2], b.count, a.count, fmt.Sprintf("%.4f", b.usd),
			fmt.Sprintf("%.4f", a.usd), signedUSD(term, a.usd-b.usd)})
	}
	t.AppendFooter(table.Row{"", "", "", len(c.Before.NodeClaims), len(c.After.NodeClaims),
		fmt.Sprintf("%.4f", c.Before.HourlyUSD), fmt.Sprintf("%.4f", c.After.HourlyUSD),
		signedUSD(term, c.DifferenceUSD)})
	return term.writeText(t.Render() + "\n\n" + unplacedChanges(c) + lastWords(c) + "\n")
}

// signedUSD is an amount of USD per hour, green where it saves.
func signedUSD(term terminalOutput, usd float64) string {
	words := fmt.Sprintf("%+.4f", usd)
	switch {
	case usd < -0.00005:
		return term.paintText(words, text.FgGreen)
	case usd > 0.00005:
		return term.paintText(words, text.FgRed)
	}
	return "0"
}

// unplacedChanges says which groups have more or fewer pods without a node.
func unplacedChanges(c comparison) string {
	count := map[string][2]int{}
	why := map[string]string{}
	for i, p := range []workload.Placement{c.Before, c.After} {
		for _, u := range p.Unplaced {
			n := count[u.Group]
			n[i] = u.Count
			count[u.Group], why[u.Group] = n, strings.Join(u.Reasons, "; ")
		}
	}
	var b strings.Builder
	for _, group := range slices.Sorted(maps.Keys(count)) {
		if n := count[group]; n[0] != n[1] {
			fmt.Fprintf(&b, "unschedulable of %s: %d before, %d after: %s\n", group, n[0], n[1], why[group])
		}
	}
	return b.String()
}

func lastWords(c comparison) string {
	monthly := c.DifferenceUSD * instancetypes.HoursPerMonth
	s := fmt.Sprintf("%s: %.4f USD/h before, %.4f after: %+.4f USD/h, about %+.0f USD a month", c.Before.Workload,
		c.Before.HourlyUSD, c.After.HourlyUSD, c.DifferenceUSD, monthly)
	if c.Percent != nil {
		s += fmt.Sprintf(" (%+.1f %%)", *c.Percent)
	}
	return s
}
