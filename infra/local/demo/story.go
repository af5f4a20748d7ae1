package main

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"joiner.sh/infra/local/env"
)

//go:embed manifests/*.yaml
var manifests embed.FS

// patience bounds every step of the story.
const patience = 5 * time.Minute

// story is one run of the main job with what it saw so far.
type story struct {
	*env.Env
	seen map[string]bool // instances shown in a table
}

// step is one chapter: it fails with what did not hold.
type step struct {
	title string
	do    func(*story, context.Context) error
}

func storySteps() []step {
	return []step{
		{"an empty cluster: CRDs, RBAC, nodepool-v1.yaml", (*story).prepareCluster},
		{"205 pods wait; there is no node", (*story).firstPods},
		{"the spot offerings in use are unavailable; another burst comes", (*story).unavailable},
		{"spot is unavailable altogether; on-demand serves the next burst", (*story).onDemand},
		{"a spot node gets its two-minute warning", (*story).showInterruption},
		{"deployments shrink; their pods move to cheaper nodes", (*story).showConsolidation},
		{"everything is deleted", (*story).cleanUp},
	}
}

// tellStory tells the whole story. The error says which chapter did not hold.
func tellStory(ctx context.Context, root string) error {
	began := time.Now()
	if err := playChapters(ctx, playOptions{root: root, chapters: storySteps()}, (*story).printFunctions); err != nil {
		return err
	}
	fmt.Printf("\n== the main job is done in %.0f s: pods without a node got nodes, an unavailable offering and an interruption cost nobody his pod,\n"+
		"   work that became less costs less, and nothing is left behind\n", time.Since(began).Seconds())
	return nil
}

// runRollout tells the story of a NodeRollout.
func runRollout(ctx context.Context, root string) error {
	if err := playChapters(ctx, playOptions{root: root, chapters: rolloutSteps()}); err != nil {
		return err
	}
	fmt.Println("\n== a bad image cost one node and no pod, and a good one is everywhere")
	return nil
}

// showDevices tells the story of pods that claim devices.
func showDevices(ctx context.Context, root string) error {
	o := playOptions{root: root, chapters: devicesSteps()}
	if err := playChapters(ctx, o, (*story).printFunctions); err != nil {
		return err
	}
	fmt.Println("\n== pods that claim devices got nodes that have them, and what nobody can count was refused with words")
	return nil
}

// playOptions say what is played.
type playOptions struct {
	root     string // of the repository
	assembly string // folder with a synthesized stack; empty: the one that make synthesizes
	chapters []step
	log      string // file that the functions log to; empty: the one of the repository
}

// playChapters plays the chapters in an environment of their own, and does the rest in it. The functions log to a file.
func playChapters(ctx context.Context, p playOptions, rest ...func(*story) error) (err error) {
	s := &story{seen: map[string]bool{}}
	fmt.Println("== the environment comes up (a minute of the schedules lasts 10 s here)")
	logs, err := openLog(cmp.Or(p.log, logPath(p.root)))
	if err != nil {
		return err
	}
	defer logs.Close()
	s.Env, err = env.StartEnvironment(ctx, env.Options{Root: p.root, Stack: p.assembly, Progress: os.Stdout,
		FunctionLog: &functionLog{full: logs, short: os.Stdout}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for i, st := range p.chapters {
		began := time.Now()
		fmt.Printf("\n== %d/%d %s\n", i+1, len(p.chapters), st.title)
		if err := st.do(s, ctx); err != nil {
			return fmt.Errorf("%s: %w (the functions' whole log is in %s)", st.title, err, logs.Name())
		}
		fmt.Printf("   (%.0f s)\n", time.Since(began).Seconds())
	}
	for _, do := range rest {
		if err := do(s); err != nil {
			return err
		}
	}
	return nil
}

func logPath(root string) string { return filepath.Join(root, ".local", "run", "functions.log") }

func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.Create(path)
}

// applyManifest applies one of the story's manifests.
func (s *story) applyManifest(ctx context.Context, name string) error {
	b, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	return s.Kube.ApplyManifest(ctx, b)
}

// removeManifest deletes what one of the story's manifests made.
func (s *story) removeManifest(ctx context.Context, name string) error {
	b, err := manifests.ReadFile("manifests/" + name)
	if err != nil {
		return err
	}
	return s.Kube.DeleteManifest(ctx, b)
}
