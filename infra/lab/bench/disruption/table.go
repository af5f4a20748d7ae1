package main

import (
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

func resultTable(rows []row) table.Writer {
	t := table.NewWriter()
	head := table.Row{"cluster", "nodes", "pods", "USD/h"}
	for _, tool := range []string{"Karpenter", "Joiner"} {
		for _, what := range []string{"USD/h", "nodes", "moved", "passes", "CPU s", "longest pass s"} {
			head = append(head, tool+" "+what)
		}
	}
	t.AppendHeader(append(head, "price", "CPU", "Joiner moved until as cheap", "CPU s until as cheap",
		"fresh plan USD/h", "Karpenter above it", "Joiner above it"))
	for _, r := range rows {
		line := table.Row{r.name, r.nodes, r.pods, fmt.Sprintf("%.3f", r.usd)}
		for _, o := range []*outcome{r.theirs, r.ours} {
			if o == nil {
				line = append(line, "", "", "", "", "", "")
				continue
			}
			mark := ""
			if o.Cut {
				mark = "*"
			}
			line = append(line, fmt.Sprintf("%.3f%s", o.USD, mark), o.Nodes, o.Moved, o.Passes,
				fmt.Sprintf("%.2f", o.CPU), fmt.Sprintf("%.2f", o.Longest))
		}
		if r.theirs == nil || r.ours == nil {
			line = append(line, "", "", "", "")
		} else {
			even := r.ours.firstPointAt(r.theirs.USD)
			line = append(line, fmt.Sprintf("%.3f", r.ours.USD/r.theirs.USD),
				fmt.Sprintf("%.1f", r.theirs.CPU/r.ours.CPU), even.Moved, fmt.Sprintf("%.2f", even.CPU))
		}
		t.AppendRow(append(line, fmt.Sprintf("%.3f", r.fresh),
			percentAbove(r.theirs, r.fresh), percentAbove(r.ours, r.fresh)))
	}
	return t
}

// percentAbove returns by how many percent the side's cluster costs more in the end than that; nothing when it was left
// out.
func percentAbove(o *outcome, usd float64) string {
	if o == nil {
		return ""
	}
	return fmt.Sprintf("%.1f %%", 100*(o.USD/usd-1))
}

func plainText(rows []row) string { return resultTable(rows).Render() + "\n\n" + summaryText(rows) }

// summaryText is about all clusters together, and about those in which both came to rest.
func summaryText(rows []row) string {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.ours == nil || r.theirs == nil })
	if len(rows) == 0 {
		return ""
	}
	rest := slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.ours.Cut || r.theirs.Cut })
	if len(rest) == len(rows) {
		return "- All clusters: " + compareSums(rows)
	}
	out := "- All clusters, also those that ran out of time and compare unfinished work: " + compareSums(rows)
	if len(rest) > 0 {
		out = "- The clusters in which both sides stop changing nodes: " + compareSums(rest) + out
	}
	return out
}

// compareSums compares the sums of both sides.
func compareSums(rows []row) string {
	var ours, theirs outcome
	var even point
	var before, fresh float64
	for _, r := range rows {
		before += r.usd
		fresh += r.fresh
		p := r.ours.firstPointAt(r.theirs.USD)
		even = point{even.USD + p.USD, even.Moved + p.Moved, even.CPU + p.CPU}
		for _, x := range []struct{ sum, of *outcome }{{&ours, r.ours}, {&theirs, r.theirs}} {
			x.sum.USD += x.of.USD
			x.sum.Moved += x.of.Moved
			x.sum.CPU += x.of.CPU
		}
	}
	return fmt.Sprintf("Joiner's nodes cost %.1f %% less in the end: %.2f and %.2f USD/h of %.2f. "+
		"For each USD/h saved Joiner moves %.0f pods, Karpenter %.0f. Karpenter takes %.1f times the CPU. "+
		"At the price of Karpenter's end Joiner has moved %.0f pods for each USD/h saved, "+
		"and Karpenter takes %.1f times the CPU. "+
		"Fresh plans for all pods that may move would cost %.2f USD/h: Karpenter's end is %s above them, Joiner's %s.\n",
		100*(1-ours.USD/theirs.USD), ours.USD, theirs.USD, before,
		float64(ours.Moved)/(before-ours.USD), float64(theirs.Moved)/(before-theirs.USD), theirs.CPU/ours.CPU,
		float64(even.Moved)/(before-even.USD), theirs.CPU/even.CPU,
		fresh, percentAbove(&theirs, fresh), percentAbove(&ours, fresh))
}

// resultsPage is the table as a page. how says in what manner the rows were measured.
func resultsPage(rows []row, how string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Disruption, side by side\n\nWritten on %s, with %s on %s/%s and Karpenter %s, %s.\n\n",
		time.Now().UTC().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, peerVersion(), how)
	b.WriteString("Price: Joiner's divided by Karpenter's. CPU: Karpenter's divided by Joiner's. " +
		"As cheap: when Joiner's fleet first\ncosts what Karpenter's does in the end. " +
		"A star marks a side that still changed nodes when its time ran out. Fresh plan:\n" +
		"the nodes that must stay, and what Joiner's packer buys when all pods that may move are pending at once.\n\n")
	b.WriteString(resultTable(rows).RenderMarkdown() + "\n\n" + summaryText(rows))
	b.WriteString("\n## Why Joiner's nodes stay in the end\n\n" +
		"Nodes by reason; `pkg/disruption/ineligible.go` explains each.\n\n")
	for _, r := range rows {
		var why []string
		for _, word := range slices.Sorted(maps.Keys(r.why)) {
			why = append(why, fmt.Sprintf("%s %d", word, r.why[word]))
		}
		fmt.Fprintf(&b, "- %s: %s\n", r.name, strings.Join(why, ", "))
	}
	return b.String()
}

// peerVersion is the version of Karpenter that the program was built with.
func peerVersion() string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, m := range info.Deps {
			if m.Path == "sigs.k8s.io/karpenter" && m.Replace != nil {
				return m.Replace.Version
			}
			if m.Path == "sigs.k8s.io/karpenter" {
				return m.Version
			}
		}
	}
	return "of an unknown version"
}
