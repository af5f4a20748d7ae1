package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// runner measures variants.
type runner struct {
	folder    string // for what is built
	work      int    // milliseconds, 0 for no bound
	workloads []string
}

// outcome is what a variant gave, or why it gave nothing.
type outcome struct {
	Rows   []row  `json:",omitempty"`
	Failed string `json:",omitempty"`
}

// measure builds the packer with the variant's change and packs all workloads on one processor.
func (r runner) measure(ctx context.Context, v variant) ([]row, error) {
	changed, err := v.apply(os.DirFS("."))
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for file, text := range changed {
		to := filepath.Join(r.folder, "overlay-"+filepath.Base(file))
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return nil, err
		}
		replace[file] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay, program := filepath.Join(r.folder, "overlay.json"), filepath.Join(r.folder, "packer")
	if err := os.WriteFile(overlay, list, 0o644); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./infra/lab/ablation")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: build: %w\n%s", v.Name, err, text)
	}
	var errs bytes.Buffer
	args := append([]string{"-pack", "-milliseconds", strconv.Itoa(r.work)}, r.workloads...)
	pack := exec.CommandContext(ctx, program, args...)
	pack.Env, pack.Stderr = append(os.Environ(), "GOMAXPROCS=1"), &errs
	text, err := pack.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: pack: %w\n%s", v.Name, err, errs.Bytes())
	}
	var rows []row
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var w row
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		rows = append(rows, w)
	}
	return rows, nil
}
