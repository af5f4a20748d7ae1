// Command verify-plan plans workload files and lets the real kube-scheduler place their pods on the planned nodes, in a
// local control plane of its own for each file.
//
// Exit code 0: every pod that a plan placed has a node. 1: some have not, or a trial could not be held. 2: bad flags.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"joiner.sh/infra/local/controlplane/client"
	"joiner.sh/infra/local/lab/verify"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/workload"
)

const startPatience = 5 * time.Minute

// wish is what the flags say.
type wish struct {
	plane, pools, types string
	rounds              int
	idle                time.Duration
	seed                uint64
	boot, warm          time.Duration
	free                bool
	most, times         int
}

func main() {
	var w wish
	flag.StringVar(&w.plane, "plane", ".local/bin/joiner-plane", "the local control plane's program (make plane)")
	flag.StringVar(&w.pools, "nodepools", "", "NodePools, instead of those a workload names")
	flag.StringVar(&w.types, "types", "", "instance types and prices, instead of those built in")
	flag.IntVar(&w.rounds, "rounds", 4, "most plans for one workload, each for the pods that the one before left pending")
	flag.DurationVar(&w.idle, "idle", 15*time.Second, "scheduling is over when nothing was placed for so long")
	flag.Uint64Var(&w.seed, "seed", 0, "of the order in which nodes come, and unless it is 0 of that in which pods come")
	flag.DurationVar(&w.boot, "boot", 10*time.Second, "nodes register within this time, evenly")
	flag.DurationVar(&w.warm, "warm", 2*time.Second, "from registering to Ready, for some nodes twice as long")
	flag.BoolVar(&w.free, "free", false, "hold no node for its pods, to see what that changes")
	flag.IntVar(&w.times, "times", 1, "trials of each workload, each with the next seed")
	flag.IntVar(&w.most, "most", 0, "leave out workloads of more pods; 0 for no limit")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "verify-plan [flags] WORKLOAD...: files, or folders of files\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := w.runTrials(ctx, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "verify-plan: %v\n", err)
		os.Exit(1)
	}
}

func (w wish) runTrials(ctx context.Context, paths []string) error {
	files, err := workloadFiles(paths)
	if err != nil {
		return err
	}
	types, err := cli.ReadCatalog(w.types)
	if err != nil {
		return err
	}
	var bad []string
	trials, pods, late, usd := 0, 0, 0, [2]float64{}
	for _, path := range files {
		f, err := workload.LoadWorkload(os.ReadFile, path, w.pools)
		if err != nil {
			return err
		}
		if w.most > 0 && f.Pending() > w.most {
			fmt.Printf("%s: left out, it has %d pods\n\n", path, f.Pending())
			continue
		}
		if f.Name == "" {
			f.Name = filepath.Base(path)
		}
		for i := range w.times {
			turn := w
			turn.seed += uint64(i)
			r, err := turn.runTrial(ctx, f, types)
			if err != nil {
				return err
			}
			fmt.Printf("seed %d, ", turn.seed)
			if err := r.Write(os.Stdout); err != nil {
				return err
			}
			fmt.Println()
			if r.HasFailed() {
				bad = append(bad, fmt.Sprintf("%s (seed %d)", r.Workload, turn.seed))
			}
			trials, pods, late = trials+1, pods+r.Pods, late+r.CountLate()
			first, last := r.Rounds[0], r.Rounds[len(r.Rounds)-1]
			usd[0], usd[1] = usd[0]+first.TotalUSD, usd[1]+last.TotalUSD
		}
	}
	if len(bad) > 0 {
		return fmt.Errorf("pods that were planned have no node: %s", strings.Join(bad, ", "))
	}
	fmt.Printf("verify-plan passed %d trials with %d pods. It proved that the real kube-scheduler, with pods that waited and nodes that came\n"+
		"one after another, found a node for every pod that a plan had a place for: %d on the nodes of the first plan, %d after a further\n"+
		"plan, which made the fleets %.1f %% dearer.\n", trials, pods, pods-late, late,
		100*(usd[1]/max(usd[0], 1e-9)-1))
	return nil
}

// runTrial holds one trial in a fresh control plane.
func (w wish) runTrial(ctx context.Context, f workload.File, types instancetypes.Catalog) (r verify.Report, err error) {
	dir, err := os.MkdirTemp("", "joiner-verify-")
	if err != nil {
		return r, fmt.Errorf("make room for the control plane: %w", err)
	}
	defer os.RemoveAll(dir)
	starting, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	p, err := client.StartPlane(starting, client.Options{Binary: w.plane, Dir: dir})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.StopPlane()) }()
	return verify.RunTrial(ctx, verify.Options{
		Config: p.RESTConfig(), Workload: f, Catalog: types, Plan: binpack.Pods, Rounds: w.rounds, Idle: w.idle,
		Seed: w.seed, Boot: w.boot, Warm: w.warm, Free: w.free,
		Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	})
}

// workloadFiles are the files named, and of folders those that look like workloads, sorted.
func workloadFiles(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("find workload: %w", err)
		}
		if !info.IsDir() {
			out = append(out, path)
			continue
		}
		for _, pattern := range []string{"*.json", "*.json.gz", "*.yaml", "*.yaml.gz"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, fmt.Errorf("find workloads in %s: %w", path, err)
			}
			out = append(out, found...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
