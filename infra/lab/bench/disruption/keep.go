package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// keepOutcome returns what a side of that version makes of the cluster of that name: as the file keeps it, if it was
// measured with this version and seed, else by asking.
func (b bench) keepOutcome(file, version, name string, ask func() (*outcome, error)) (*outcome, error) {
	kept := map[string]*outcome{}
	if file != "" {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read what was kept: %w", err)
		}
		if err == nil {
			if err := json.Unmarshal(data, &kept); err != nil {
				return nil, fmt.Errorf("parse %s: %w", file, err)
			}
		}
	}
	id := fmt.Sprintf("%s seed %d", name, b.seed)
	if o := kept[id]; o != nil && o.Version == version {
		return o, nil
	}
	if b.known {
		return nil, nil
	}
	o, err := ask()
	if err != nil || file == "" {
		return o, err
	}
	o.Version, o.Day = version, time.Now().UTC().Format(time.DateOnly)
	kept[id] = o
	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("keep %s: %w", name, err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return nil, fmt.Errorf("keep %s: %w", name, err)
	}
	return o, nil
}
