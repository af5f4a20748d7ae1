package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// comparison is a variant beside the packer as it is.
type comparison struct {
	name        string
	byFamily    map[string]float64 // the mean change of the price, as a part of it
	most        float64            // the largest change
	where       string             // the workload that it is of
	cpu         float64            // how many times the processor time
	unplaced    int                // pods more without a node
	moved       int                // pods, by consolidation
	movedBefore int
	wrong       int // broken rules
	failed      string
}

// familyOf returns the family of a workload: its name up to its seed, its size or its form; what stands before a slash.
func familyOf(workload string) string {
	if family, _, is := strings.Cut(workload, "/"); is {
		return family
	}
	if at := strings.LastIndexByte(workload, '-'); at > 0 {
		return workload[:at]
	}
	return workload
}

// compareRows compares the variant with what is.
func compareRows(name string, was []row, now outcome) comparison {
	c := comparison{name: name, byFamily: map[string]float64{}, most: math.Inf(-1), failed: now.Failed}
	before, after := 0.0, 0.0
	workloads := map[string]float64{}
	for _, r := range now.Rows {
		i := slices.IndexFunc(was, func(w row) bool { return w.Workload == r.Workload })
		if i < 0 {
			continue
		}
		w := was[i]
		change := 0.0
		if w.HourlyUSD > 0 {
			change = r.HourlyUSD/w.HourlyUSD - 1
		}
		family := familyOf(r.Workload)
		workloads[family]++
		c.byFamily[family] += (change - c.byFamily[family]) / workloads[family]
		if change > c.most {
			c.most, c.where = change, r.Workload
		}
		before, after = before+w.CPU, after+r.CPU
		c.movedBefore, c.moved = c.movedBefore+w.Moved, c.moved+r.Moved
		c.unplaced, c.wrong = c.unplaced+r.Unplaced-w.Unplaced, c.wrong+r.Wrong
	}
	c.cpu = after / before
	return c
}

// worstFamily returns the family whose price rises most, in the mean.
func (c comparison) worstFamily() (name string, change float64) {
	names := slices.Sorted(maps.Keys(c.byFamily))
	if len(names) == 0 {
		return "", 0
	}
	name = slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(c.byFamily[a], c.byFamily[b]) })
	return name, c.byFamily[name]
}

// mean returns the mean of the families.
func (c comparison) mean() (sum float64) {
	for _, name := range slices.Sorted(maps.Keys(c.byFamily)) {
		sum += c.byFamily[name] / float64(len(c.byFamily))
	}
	return sum
}

// String returns the line of a table.
func (c comparison) String() string {
	if c.failed != "" {
		first, _, _ := strings.Cut(c.failed, "\n")
		return fmt.Sprintf("| %s | %s | | | | |", c.name, strings.ReplaceAll(first, "|", "/"))
	}
	family, worst := c.worstFamily()
	remark := ""
	if c.unplaced != 0 {
		remark = fmt.Sprintf("%+d pods without a node", c.unplaced)
	}
	if c.moved != c.movedBefore {
		remark += fmt.Sprintf(" %+.1f %% pods moved", 100*(float64(c.moved)/float64(c.movedBefore)-1))
	}
	if c.wrong != 0 {
		remark += fmt.Sprintf(" %d rules broken", c.wrong)
	}
	return fmt.Sprintf("| %s | %+.2f %% | %+.2f %% %s | %+.2f %% %s | %.2f | %s |", c.name, 100*c.mean(),
		100*worst, family, 100*c.most, c.where, c.cpu, strings.TrimSpace(remark))
}

// writePage writes the page of results of the variants that were measured.
func writePage(variants []variant, known map[string]outcome, commit string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What layers and constants bring\n\n`make ablation` wrote this at %s. Prices are those of new "+
		"nodes or, in the family consolidation, of all nodes at rest, beside the code as it is; CPU is a ratio.\n\n", commit)
	b.WriteString("| change | mean of families | worst family | worst workload | CPU | |\n|---|---|---|---|---|---|\n")
	for _, v := range variants[1:] {
		if of, measured := known[v.Name]; measured {
			fmt.Fprintln(&b, compareRows(v.Name, known[asItIs].Rows, of))
		}
	}
	return b.String()
}
