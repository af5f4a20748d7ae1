package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// resultTable is the table of all workloads, to be shown as text or Markdown.
func resultTable(rows []row) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"workload", "pods", "nodes there", "Karpenter s", "CPU s", "USD/h", "new nodes",
		"unplaced", "checker",
		"Joiner s", "CPU s", "USD/h", "new nodes", "unplaced", "checker", "price ratio", "CPU ratio", "bound USD/h",
		"gap", "full USD/h"})
	for _, r := range rows {
		line := table.Row{r.workload, r.pods, r.nodes}
		line = append(append(line, sideColumns(r.karpenter)...), sideColumns(r.joiner)...)
		bound, gap, full := "", "", ""
		if p := r.joiner.plan; p.LowerBoundUSD > 0 {
			bound, gap = fmt.Sprintf("%.2f", p.LowerBoundUSD),
				fmt.Sprintf("%.1f %%", 100*(r.joiner.report.HourlyUSD/p.LowerBoundUSD-1))
		}
		if r.full != nil {
			full = fmt.Sprintf("%.2f", r.full.report.HourlyUSD)
		}
		t.AppendRow(append(line, ratioText(r, priceOf), ratioText(r, cpuOf), bound, gap, full))
	}
	return t
}

func sideColumns(s *side) table.Row {
	if s == nil {
		return table.Row{"", "", "", "", "", ""}
	}
	return table.Row{fmt.Sprintf("%.3f", s.plan.PlanSeconds), fmt.Sprintf("%.3f", s.plan.PlanUserSeconds),
		fmt.Sprintf("%.2f", s.report.HourlyUSD), s.report.Nodes, s.report.Unplaced, verdictText(s.report)}
}

func priceOf(s *side) float64 { return s.report.HourlyUSD }
func cpuOf(s *side) float64   { return s.plan.PlanUserSeconds }

// ratioText is Karpenter's figure over Joiner's.
func ratioText(r row, of func(*side) float64) string {
	if v := figureRatio(r, of); v > 0 {
		return fmt.Sprintf("%.2f", v)
	}
	return ""
}

func figureRatio(r row, of func(*side) float64) float64 {
	if r.karpenter == nil || of(r.joiner) <= 0 {
		return 0
	}
	return of(r.karpenter) / of(r.joiner)
}

// meanRatio is the geometric mean of the ratios of workloads with at least that many pods.
func meanRatio(rows []row, of func(*side) float64, pods int) (float64, int) {
	sum, n := 0.0, 0
	for _, r := range rows {
		if v := figureRatio(r, of); v > 0 && r.pods >= pods {
			sum += math.Log(v)
			n++
		}
	}
	if n == 0 {
		return 0, 0
	}
	return math.Exp(sum / float64(n)), n
}

// large is from how many pods on a workload counts for the mean of CPU ratios.
const large = 2000

func summaryText(rows []row) string {
	var parts []string
	if m, n := meanRatio(rows, priceOf, 0); n > 0 {
		parts = append(parts, fmt.Sprintf("Karpenter's fleets cost %.2f times Joiner's", m))
	}
	if m, n := meanRatio(rows, cpuOf, large); n > 0 {
		parts = append(parts, fmt.Sprintf("with %d pods and more it takes %.0f times the CPU", large, m))
	}
	if len(parts) == 0 {
		return ""
	}
	return "In the geometric mean " + strings.Join(parts, "; ") + "."
}

func plainText(rows []row, alone []solo) string {
	out := resultTable(rows).Render() + "\n" + summaryText(rows)
	if t := largeSheet(alone); t != nil {
		out += "\n" + t.Render()
	}
	return out
}

func resultsPage(rows []row, alone []solo) string {
	out := fmt.Sprintf("# Joiner beside Karpenter\n\nMeasured %s on %s with %s, Karpenter %s, Joiner's default settings, in one process. "+
		"Seconds are for packing alone. No plan costs less than the bound, which ignores limits and weights of NodePools. "+
		"Full: another plan, by the prices that are Joiner's default, with volumes and public addresses. "+
		"Written by `make bench`.\n\n%s\n\n%s\n",
		time.Now().UTC().Format(time.DateOnly), processorName(), runtime.Version(),
		moduleVersion("sigs.k8s.io/karpenter"), resultTable(rows).RenderMarkdown(), summaryText(rows))
	if t := largeSheet(alone); t != nil {
		out += "\n## Large clusters\n\nJoiner alone, each workload in its own process with one core. " +
			"Peak memory includes the whole process. Allocations are objects. Bound's gap: how far it is below " +
			fmt.Sprintf("the best that %d times the work proves.\n\n", effort) + t.RenderMarkdown() + "\n"
	}
	return out
}

func moduleVersion(module string) string {
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, d := range info.Deps {
			if d.Path == module && d.Replace != nil {
				return d.Replace.Version
			}
			if d.Path == module {
				return d.Version
			}
		}
	}
	return "of an unknown version"
}

// processorName names the machine where Linux tells.
func processorName() string {
	name := runtime.GOARCH
	b, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(b)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
			}
		}
	}
	return fmt.Sprintf("%d x %s", runtime.NumCPU(), name)
}
