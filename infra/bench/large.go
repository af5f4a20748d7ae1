package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/workload"
)

// solo is what packing one workload in a process of its own on one core took and gave.
type solo struct {
	Workload                   string
	Pods, Running, Nodes       int // waiting, on nodes, nodes there
	Seconds, CPU, MiB          float64
	USD, Bound                 float64
	NewNodes, Unplaced, Faults int
	Fault                      string
}

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
	p, err := cli.PlanBy(f, b.catalog, cluster.Settings{InstancePrices: true})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	s := b.checkPlacement(f, p)
	out := solo{
		Workload: f.Name, Pods: f.Pending(), Nodes: len(f.Nodes), Seconds: p.PlanSeconds, CPU: p.PlanUserSeconds,
		MiB: p.MaxRSSMiB,
		USD: s.report.HourlyUSD, Bound: p.LowerBoundUSD, NewNodes: s.report.Nodes, Unplaced: s.report.Unplaced,
		Faults: len(s.report.Violations),
	}
	for _, n := range f.Nodes {
		for _, count := range n.Pods { // a sum does not depend on the order
			out.Running += count
		}
	}
	if out.Faults > 0 {
		out.Fault = s.report.Violations[0]
	}
	return json.NewEncoder(os.Stdout).Encode(out)
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
		"checker", "bound USD/h", "gap"})
	for _, s := range list {
		verdict, gap := "valid", ""
		if s.Faults > 0 {
			verdict = fmt.Sprintf("%d faults", s.Faults)
		}
		if s.Bound > 0 {
			gap = fmt.Sprintf("%.1f %%", 100*(s.USD/s.Bound-1))
		}
		t.AppendRow(table.Row{s.Workload, s.Pods, s.Running, s.Nodes, fmt.Sprintf("%.3f", s.Seconds),
			fmt.Sprintf("%.3f", s.CPU),
			fmt.Sprintf("%.0f", s.MiB), fmt.Sprintf("%.2f", s.USD), s.NewNodes, s.Unplaced, verdict,
			fmt.Sprintf("%.2f", s.Bound), gap})
	}
	return t
}
