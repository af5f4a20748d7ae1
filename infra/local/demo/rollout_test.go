package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The story of a NodeRollout holds: one node is tried with a bad image, no pod is evicted for it, and a good image gets
// everywhere.
func TestRolloutStory(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".local", "cdk.out")); err != nil {
		t.Fatalf("make local builds what this test needs: %v", err)
	}
	if err := playChapters(t.Context(), playOptions{root: root, chapters: rolloutSteps(), log: filepath.Join(t.TempDir(), "functions.log")}); err != nil {
		t.Fatal(err)
	}
}
