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
	clusters  string // arguments of infra/lab/bench/disruption
}

// outcome is what a variant gave, or why it gave nothing.
type outcome struct {
	Rows   []row  `json:",omitempty"`
	Failed string `json:",omitempty"`
}

// measure measures what the variant may change.
func (r runner) measure(ctx context.Context, v variant) (rows []row, err error) {
	overlay, err := r.writeOverlay(v)
	if err == nil && v.packs() {
		rows, err = r.pack(ctx, overlay)
	}
	if err == nil && v.consolidates() {
		var more []row
		more, err = r.consolidate(ctx, overlay)
		rows = append(rows, more...)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", v.Name, err)
	}
	return rows, nil
}

// writeOverlay writes the files as the variant changes them, and returns the list of them for the go command.
func (r runner) writeOverlay(v variant) (string, error) {
	changed, err := v.apply(os.DirFS("."))
	if err != nil {
		return "", err
	}
	root, err := filepath.Abs(".") // the go command may run in another folder
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range changed {
		to := filepath.Join(r.folder, "overlay-"+filepath.Base(file))
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		if to, err = filepath.Abs(to); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay, err := filepath.Abs(filepath.Join(r.folder, "overlay.json"))
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, list, 0o644)
}

// pack builds the packer with the overlay and packs all workloads on one processor.
func (r runner) pack(ctx context.Context, overlay string) ([]row, error) {
	program := filepath.Join(r.folder, "packer")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./infra/lab/ablation")
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build: %w\n%s", err, text)
	}
	args := append([]string{"-pack", "-milliseconds", strconv.Itoa(r.work)}, r.workloads...)
	text, err := runOnOneProcessor(exec.CommandContext(ctx, program, args...))
	if err != nil {
		return nil, fmt.Errorf("pack: %w", err)
	}
	var rows []row
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var w row
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			return nil, err
		}
		rows = append(rows, w)
	}
	return rows, nil
}

// runOnOneProcessor runs the program and returns what it prints; an error holds what it complains about.
func runOnOneProcessor(program *exec.Cmd) ([]byte, error) {
	var errs bytes.Buffer
	program.Env, program.Stderr = append(os.Environ(), "GOMAXPROCS=1"), &errs
	text, err := program.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, errs.Bytes())
	}
	return text, nil
}
