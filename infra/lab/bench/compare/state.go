package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// failure is a seed with what is wrong.
type failure struct {
	Seed     uint64  `json:"seed"`
	Faults   []fault `json:"faults"`
	Manifest string  `json:"manifest,omitempty"` // path of the smallest cluster that fails
}

// progress is how far a range of seeds has come. It is stored after each part, so that a run that ended goes on where
// it was.
type progress struct {
	First     uint64         `json:"first"`
	Next      uint64         `json:"next"` // all seeds before it are done
	Placed    int            `json:"placed"`
	Explained map[string]int `json:"explained"`
	Failures  []failure      `json:"failures"`

	path string
}

// resumeProgress reads how far the range of seeds that begins there has come, or begins it.
func resumeProgress(folder string, first uint64) (*progress, error) {
	p := &progress{First: first, Next: first, Explained: map[string]int{},
		path: filepath.Join(folder, fmt.Sprintf("from-%d.json", first))}
	b, err := os.ReadFile(p.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return nil, fmt.Errorf("resume: %w", err)
	}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("resume %s: %w", p.path, err)
	}
	return p, nil
}

// storeProgress writes it beside the old one and then in its place.
func (p *progress) storeProgress() error {
	b, err := json.MarshalIndent(p, "", " ")
	if err != nil {
		return fmt.Errorf("store progress: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return fmt.Errorf("store progress: %w", err)
	}
	if err := os.WriteFile(p.path+".new", b, 0o644); err != nil {
		return fmt.Errorf("store progress: %w", err)
	}
	if err := os.Rename(p.path+".new", p.path); err != nil {
		return fmt.Errorf("store progress: %w", err)
	}
	return nil
}
