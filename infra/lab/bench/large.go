package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/workload"
)

// solo is what packing one workload in a process of its own on one core took and gave.
type solo struct {
	Workload                   string
	Pods, Running, Nodes       int // waiting, on nodes, nodes there
	Seconds, CPU, MiB          float64
	USD, Bound, Full           float64 // Full is the price of another plan, with volumes and public addresses
	BestBound                  float64 // the best that effort times the work proves; 0 where it was not asked
	Allocations                uint64  // objects on the heap
	NewNodes, Unplaced, Faults int
	Fault                      string
}

// effort is how many times the usual work tells how much more could be proven.
const effort = 10

// packLarge packs each file with Joiner in a process of its own that has one core, because the most memory that a
// process ever had says nothing about the second workload. Files are parted by commas.
func packLarge(files string) ([]solo, error) {
	if files == "" {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	var out []solo
	for _, f := range strings.Split(files, ",") {
		cmd := exec.Command(self, "-solo", f)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		cmd.Stderr = os.Stderr
		raw, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("pack %s in a process of its own: %w", f, err)
		}
		var s solo
		if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&s); err != nil {
			return nil, fmt.Errorf("read what packing %s gave: %w", f, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// packFile packs the file and prints what it took as JSON.
func (b *bench) packFile(path string) error {
	f, err := workload.LoadWorkload(os.ReadFile, path, "")
	if err != nil {
		return err
	}
	s, err := b.packFor(f, cluster.Settings{InstancePrices: true})
	if err != nil {
		return err
	}
	full, err := b.packFor(f, cluster.Settings{})
	if err != nil {
		return err
	}
	faults := slices.Concat(s.report.Violations, full.report.Violations)
	out := solo{
		Workload: f.Name, Pods: f.Pending(), Nodes: len(f.Nodes), Seconds: s.plan.PlanSeconds,
		CPU: s.plan.PlanUserSeconds, MiB: s.plan.MaxRSSMiB, Allocations: s.plan.Allocations,
		USD: s.report.HourlyUSD, Bound: s.plan.LowerBoundUSD, Full: full.report.HourlyUSD,
		NewNodes: s.report.Nodes, Unplaced: s.report.Unplaced, Faults: len(faults),
	}
	for _, n := range f.Nodes {
		for _, count := range n.Pods { // a sum does not depend on the order
			out.Running += count
		}
	}
	if out.Faults > 0 {
		out.Fault = faults[0]
	}
	if len(f.Nodes) > 0 { // without nodes more work proves nothing more
		more, err := b.packFor(f, cluster.Settings{InstancePrices: true, PackingEffort: effort})
		if err != nil {
			return err
		}
		out.BestBound = max(out.Bound, more.plan.LowerBoundUSD)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// faults are the broken rules of Joiner's plans, and a bound that the plan undercuts.
func (s solo) faults() (bad []string) {
	if s.Faults > 0 {
		bad = append(bad, fmt.Sprintf("%s: %s", s.Workload, s.Fault))
	}
	if b := max(s.Bound, s.BestBound); s.Unplaced == 0 && s.USD < b*(1-tiny) {
		bad = append(bad, fmt.Sprintf("%s: the bound is %.6f USD/h, the plan needs %.6f", s.Workload, b, s.USD))
	}
	return bad
}

// largeSheet is the table of large workloads, nil when there are none.
func largeSheet(list []solo) table.Writer {
	if len(list) == 0 {
		return nil
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"workload", "pods waiting", "pods running", "nodes there", "Joiner s", "CPU s", "peak MiB",
		"USD/h", "new nodes", "unplaced",
		"checker", "bound USD/h", "gap", "bound's gap", "full USD/h", "allocations"})
	for _, s := range list {
		verdict, gap, ownGap := "valid", "", ""
		if s.Faults > 0 {
			verdict = fmt.Sprintf("%d faults", s.Faults)
		}
		if s.Bound > 0 {
			gap = fmt.Sprintf("%.1f %%", 100*(s.USD/s.Bound-1))
		}
		if s.BestBound > 0 {
			ownGap = fmt.Sprintf("%.2f %%", 100*(1-s.Bound/s.BestBound))
		}
		t.AppendRow(table.Row{s.Workload, s.Pods, s.Running, s.Nodes, fmt.Sprintf("%.3f", s.Seconds),
			fmt.Sprintf("%.3f", s.CPU),
			fmt.Sprintf("%.0f", s.MiB), fmt.Sprintf("%.2f", s.USD), s.NewNodes, s.Unplaced, verdict,
			fmt.Sprintf("%.2f", s.Bound), gap, ownGap, fmt.Sprintf("%.2f", s.Full),
			fmt.Sprintf("%.2f M", float64(s.Allocations)/1e6)})
	}
	return t
}
