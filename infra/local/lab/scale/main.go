// Command scale measures the functions in a cluster of so many nodes and pods: real functions, real API server,
// emulated EC2, under the memory and the processor share that Lambda gives them. It writes what it measured beside what
// it measured for other sizes, and a page of all.
//
// Exit code 0: it was measured. It needs what `make local` builds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"joiner.sh/infra/local/env"
)

const (
	planeGC = 400 // the control plane collects garbage less often: it shares its processors with all else here
	// controllers of the cluster that take part. Pods without an owner are not collected, so that pods can be stored
	// before what they belong to.
	controllers = "serviceaccount-controller,root-ca-certificate-publisher-controller,disruption-controller," +
		"node-lifecycle-controller,replicaset-controller"
	nodeGrace = 24 * time.Hour // silent kubelets are no dead ones
)

// wish is what the flags say.
type wish struct {
	nodes, pods  int
	memory       int64
	many, struck int
	rounds       int
	gap          time.Duration
	cases        *regexp.Regexp // of the groups to measure, nil for all
	files        files
	write        bool
}

func main() {
	var w wish
	flag.IntVar(&w.nodes, "nodes", 500, "nodes of the cluster")
	flag.IntVar(&w.pods, "pods", 15000, "pods of the cluster, those of four DaemonSets among them")
	flag.Int64Var(&w.memory, "memory", 0, "functionMemory in MiB; 0 for what the stack was synthesized with")
	flag.IntVar(&w.many, "many", 500, "pods that wait together")
	flag.IntVar(&w.struck, "struck", 100, "nodes that are interrupted together, at most a fifth of all, and one of few")
	flag.IntVar(&w.rounds, "rounds", 3, "times that a case is measured in which nodes are launched; the one in the middle counts")
	flag.DurationVar(&w.gap, "gap", time.Minute, "between two ticks")
	flag.Func("cases", "`pattern` of the groups of cases to measure, of "+strings.Join(groupNames(), ", ")+
		"; nothing is written then, only printed", func(text string) (err error) {
		w.cases, err = regexp.Compile(text)
		return err
	})
	flag.StringVar(&w.files.data, "data", "infra/lab/bench/scale.json", "file of the measurements; those of this size are replaced")
	flag.StringVar(&w.files.page, "page", "infra/lab/bench/scale.md", "page to write")
	flag.StringVar(&w.files.bill, "bill", "pkg/cli/bill/invocations.json", "file of what the bill counts with, to write")
	flag.BoolVar(&w.write, "write", false, "write the page and the bill's file from the measurements there are, and measure nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := w.runSizes(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func (w wish) runSizes(ctx context.Context) error {
	if w.write {
		all, err := w.files.readSizes()
		if err != nil {
			return err
		}
		return w.files.writePages(all)
	}
	if w.nodes < 2 {
		return fmt.Errorf("-nodes %d: at least 2, of which one is launched and the others are copies of it", w.nodes)
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := w.measureSize(ctx, root, func(text string) {
		fmt.Printf("%5.0f s  %s\n", time.Since(began).Seconds(), text)
	})
	if err != nil && len(s.Rows) == 0 {
		return err
	}
	if err != nil {
		s.CutShort = err.Error()
	}
	if w.cases != nil {
		return err
	}
	return errors.Join(err, w.files.saveSize(s))
}

// measureSize makes the cluster and measures in it.
func (w wish) measureSize(ctx context.Context, root string, say func(string)) (s size, err error) {
	if err := os.MkdirAll(filepath.Join(root, ".local", "run"), 0o755); err != nil {
		return s, err
	}
	log, err := os.Create(filepath.Join(root, ".local", "run", "scale.log"))
	if err != nil {
		return s, err
	}
	defer log.Close()
	dir, err := os.MkdirTemp("", "joiner-scale-")
	if err != nil {
		return s, err
	}
	defer os.RemoveAll(dir)
	m, j, l := &meter{}, &journal{}, newLogMeter(log)
	e, err := env.StartEnvironment(ctx, env.Options{
		Root: root, Dir: dir, FunctionLog: l, CollectPods: true, Push: true, Paused: true,
		Minute: time.Minute, EndedFor: 10 * time.Minute, GCPercent: planeGC, Controllers: controllers,
		NodeGrace: nodeGrace,
		Interpose: m.startProxy, Confine: true, OnReport: j.noteReport, FunctionMemory: w.memory,
		Env: map[string]string{"DISRUPTION": "report"},
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	defer func() { _ = m.server.Close() }()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	c := &cluster{Env: e, meter: m}
	if c.store, err = openStore(e.Plane.State().Etcd); err != nil {
		return s, err
	}
	defer func() { _ = c.store.client.Close() }()
	if err := c.fillCluster(ctx, w.nodes, w.pods); err != nil {
		return s, fmt.Errorf("fill the cluster: %w", err)
	}
	say(fmt.Sprintf("%d nodes and %d pods are there, bytes of one: %v; confined by %s", w.nodes, w.pods, c.sizes,
		e.Host.Confined))
	run := &measured{kubelets: &kubelets{cluster: c}, journal: j, log: l, gap: w.gap, pods: w.pods, many: w.many,
		struck: min(w.struck, max(1, w.nodes/5)), rounds: max(1, w.rounds), full: map[string]bool{},
		cases: w.cases, say: say}
	go run.kubelets.runKubelets(ctx)
	load := [2]float64{loadAverage()}
	err = run.runCases(ctx)
	load[1] = loadAverage()
	return size{Nodes: w.nodes, Pods: w.pods, MemoryMB: e.FunctionMemory("provision"), Objects: c.sizes,
		Kind: e.Host.Confined, Date: time.Now().Format(time.DateOnly), Rows: run.rows, Load: load,
		SeriesAtRest: run.atRest, Series: l.countMetrics(""), SeriesOfPool: l.countMetrics(" nodepool=")}, err
}

// loadAverage is how many processes of the machine ran or waited for a processor in the last minute: what else it did
// is in the walls. It is 0 where nobody knows.
func loadAverage() (load float64) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	if _, err := fmt.Sscan(string(text), &load); err != nil {
		return 0
	}
	return load
}
