package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The story of a NodeRollout holds: one node is tried with a bad image, no pod is evicted for it, and a good image gets
// everywhere.
func TestRolloutStory(t *testing.T) { tell(t, rolloutSteps()) }

// The story of pods that claim devices holds: they get nodes that have them, however late or wrong drivers publish these.
func TestDevicesStory(t *testing.T) { tell(t, devicesSteps(), (*story).printFunctions) }

func tell(t *testing.T, chapters []step, rest ...func(*story) error) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".local", "cdk.out")); err != nil {
		t.Fatalf("make local builds what this test needs: %v", err)
	}
	o := playOptions{root: root, chapters: chapters, log: filepath.Join(t.TempDir(), "functions.log")}
	if err := playChapters(t.Context(), o, rest...); err != nil {
		t.Fatal(err)
	}
}
