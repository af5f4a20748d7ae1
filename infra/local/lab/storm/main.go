// Command storm takes many spot nodes back at once and sees what becomes of them, in the local environment: real
// functions, real control plane, emulated EC2, fake kubelets. Before that it measures the latencies of single notices.
//
// Exit code 0: every node was drained before its two minutes were over, and replaced once. 1: some were not, or the
// storm could not be held. It needs what `make local` builds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"joiner.sh/infra/local/env"
)

// planeGC has the control plane, which shares its processors with all else here, collect garbage less often. A
// cluster's has its own.
const planeGC = 400

// wish is what the flags say.
type wish struct {
	nodes, single int
	apps          int
	over          time.Duration
	patience      time.Duration
}

func main() {
	var w wish
	flag.IntVar(&w.nodes, "nodes", 300, "spot nodes that get a notice")
	flag.IntVar(&w.single, "single", 10, "notices before the storm, one at a time, to measure latencies")
	flag.IntVar(&w.apps, "apps", 20, "Deployments that the pods belong to, each with a PodDisruptionBudget of its own; the API server takes few evictions a second under one")
	flag.DurationVar(&w.over, "over", time.Minute, "time within which the notices come, evenly")
	flag.DurationVar(&w.patience, "patience", 20*time.Minute, "for the nodes to be there before the storm")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := w.runStorm(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "storm:", err)
		os.Exit(1)
	}
}

func (w wish) runStorm(ctx context.Context) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(root, ".local", "run"), 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(root, ".local", "run", "storm.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	dir, err := os.MkdirTemp("", "joiner-storm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	e, err := env.StartEnvironment(ctx, env.Options{
		Root: root, Dir: dir, Progress: os.Stdout, FunctionLog: log, CollectPods: true, Audit: true,
		Minute: time.Minute, EndedFor: time.Minute,
		GCPercent: planeGC,
		Env:       map[string]string{"MAX_NODE_CLAIMS_PER_PASS": "1000"},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // before the environment ends: what watches it would complain
	s, err := newStorm(ctx, e, dir, w.apps)
	if err != nil {
		return err
	}
	if err := s.fillNodes(ctx, w.nodes, w.patience); err != nil {
		return err
	}
	if err := s.measureSingles(ctx, w.single); err != nil {
		return err
	}
	return s.holdStorm(ctx, w.nodes, w.over)
}
