package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// consolidationRoom holds what consolidation alone reads: its variants pack workloads as before.
const consolidationRoom = "pkg/disruption/"

// consolidates reports whether clusters are to be consolidated with the variant.
func (v variant) consolidates() bool {
	return v.Name == asItIs || slices.ContainsFunc(v.Edits, func(e edit) bool {
		return strings.HasPrefix(e.file, consolidationRoom)
	})
}

// packs reports whether workloads are to be packed with the variant.
func (v variant) packs() bool {
	return v.Name == asItIs || slices.ContainsFunc(v.Edits, func(e edit) bool {
		return !strings.HasPrefix(e.file, consolidationRoom)
	})
}

// consolidate builds infra/lab/bench/disruption with the overlay and lets Joiner consolidate its clusters, on one
// processor, until nothing changes any more.
func (r runner) consolidate(ctx context.Context, overlay string) ([]row, error) {
	folder, err := filepath.Abs(r.folder)
	if err != nil {
		return nil, err
	}
	program, kept := filepath.Join(folder, "consolidator"), filepath.Join(folder, "consolidated.json")
	build := exec.CommandContext(ctx, "go", "-C", "infra/lab/bench", "build", "-overlay", overlay, "-o", program,
		"./disruption")
	build.Env = append(os.Environ(), "GOTOOLCHAIN=auto") // Karpenter asks for a newer Go than this repository
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the bench of disruption: %w\n%s", err, text)
	}
	if err := os.RemoveAll(kept); err != nil {
		return nil, err
	}
	args := append([]string{"-only", "joiner", "-ours", kept}, strings.Fields(r.clusters)...)
	run := exec.CommandContext(ctx, program, args...)
	run.Dir = "infra/lab/bench"
	if _, err := runOnOneProcessor(run); err != nil {
		return nil, fmt.Errorf("consolidate: %w", err)
	}
	text, err := os.ReadFile(kept)
	if err != nil {
		return nil, err
	}
	return consolidatedRows(text)
}

// consolidatedRows reads what the bench keeps of clusters.
func consolidatedRows(text []byte) (out []row, err error) {
	var clusters map[string]struct {
		USD, CPU float64
		Moved    int
		Cut      bool
		Faults   []string
	}
	if err := json.Unmarshal(text, &clusters); err != nil {
		return nil, fmt.Errorf("read what consolidation made of clusters: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		c := clusters[name]
		if c.Cut {
			c.Faults = append(c.Faults, "it does not come to rest")
		}
		out = append(out, row{Workload: "consolidation/" + strings.ReplaceAll(name, " seed ", "-"), HourlyUSD: c.USD,
			Moved: c.Moved, CPU: c.CPU, Wrong: len(c.Faults)})
	}
	return out, nil
}
