// Command compare puts Joiner's packer beside Karpenter's provisioner and kube-scheduler's plugins, on random clusters.
//
// Two things are judged. A pod that Karpenter places and Joiner leaves is a failure, unless one of differences explains
// it; so is a panic. And every place that Joiner gives a pod must be one that the scheduler's plugins accept. Start
// with judge.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"joiner.sh/infra/lab/bench/compare/filter"
	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

// inPart is how many seeds are done between two writes of the state.
const inPart = 50

func main() {
	r := run{}
	flag.IntVar(&r.seeds, "seeds", 100, "clusters to look at")
	flag.Uint64Var(&r.first, "first-seed", 0, "seed of the first")
	flag.StringVar(&r.folder, "state", "", "folder of what was found so far; a run that ended goes on where it was")
	flag.IntVar(&r.workers, "workers", 1, "clusters at a time")
	flag.BoolVar(&r.verbose, "v", false, "print what explains differences")
	file := flag.String("f", "", "judge the cluster of this file instead")
	only := flag.Bool("print", false, "print the cluster of the first seed, and judge nothing")
	flag.Parse()
	if err := r.runCommand(context.Background(), *file, *only); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// run is one run of the program.
type run struct {
	seeds   int
	first   uint64
	folder  string
	workers int
	verbose bool
	all     instancetypes.Catalog
}

var errFaults = errors.New("there are differences that nothing explains")

func (r *run) runCommand(ctx context.Context, file string, onlyPrint bool) (err error) {
	if r.all, err = instancetypes.DecodeCatalog(builtin.Data()); err != nil {
		return err
	}
	karpenter.PrepareProcess()
	filter.PreparePlugins()
	switch {
	case file != "":
		return r.judgeFile(ctx, file)
	case onlyPrint:
		return r.printCluster()
	}
	p, err := resumeProgress(r.folder, r.first)
	if err != nil {
		return err
	}
	end := r.first + uint64(r.seeds)
	for p.Next < end {
		n := min(inPart, end-p.Next)
		if err := r.judgeSeeds(ctx, p, n); err != nil {
			return err
		}
		p.Next += n
		if r.folder != "" {
			if err := p.storeProgress(); err != nil {
				return err
			}
		}
	}
	r.printSummary(p)
	if len(p.Failures) > 0 {
		return errFaults
	}
	return nil
}

// printCluster prints the cluster of the first seed as it is drawn.
func (r *run) printCluster() error {
	c, err := randomCluster(r.first, r.all)
	if err != nil {
		return err
	}
	text, err := c.YAML()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}

func (r *run) judgeFile(ctx context.Context, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, err := manifests.ParseCluster(file, text)
	if err != nil {
		return err
	}
	v, err := judgeCluster(ctx, c, r.all)
	if err != nil {
		return err
	}
	r.printDecisions(ctx, c)
	for _, f := range v.faults {
		fmt.Printf("%s %s: %s\n", f.Kind, f.Pod, f.Why)
	}
	fmt.Printf("explained: %v\n", v.explained)
	if len(v.faults) > 0 {
		return errFaults
	}
	return nil
}

// printDecisions prints what both decide.
func (r *run) printDecisions(ctx context.Context, c *manifests.Cluster) {
	s, err := c.ReadSnapshot(ctx, r.all)
	if err != nil {
		return
	}
	if p, bad := decidePlan(s); bad == nil {
		fmt.Printf("Joiner:\n%s\n", p)
	}
	sold, err := c.SoldCatalog(r.all)
	if err != nil {
		return
	}
	theirs, err := karpenter.DecideProvisioning(ctx, c, sold)
	if err != nil {
		return
	}
	fmt.Println("Karpenter:")
	for _, n := range theirs.New {
		fmt.Printf("launch %s %s in %s from pool %s for %s\n", n.CapacityType, n.InstanceType, n.Zone, n.NodePool,
			strings.Join(n.Pods, ", "))
	}
	for _, pod := range slices.Sorted(maps.Keys(theirs.Existing)) {
		fmt.Printf("place %s on %s\n", pod, theirs.Existing[pod])
	}
	for _, pod := range slices.Sorted(maps.Keys(theirs.Left)) {
		fmt.Printf("unplaced %s: %s\n", pod, theirs.Left[pod])
	}
}

// judgeSeeds judges the next n seeds.
func (r *run) judgeSeeds(ctx context.Context, p *progress, n uint64) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	next := make(chan uint64)
	for range max(1, r.workers) {
		wg.Go(func() {
			for seed := range next {
				f, v, err := r.judgeSeed(ctx, seed)
				mu.Lock()
				if err != nil {
					errs = append(errs, fmt.Errorf("seed %d: %w", seed, err))
				}
				p.Placed += v.placed
				for _, e := range v.explained {
					p.Explained[e]++
				}
				if r.verbose && len(v.explained) > 0 {
					fmt.Printf("seed %d explained: %v\n", seed, v.explained)
				}
				if len(f.Faults) > 0 {
					p.Failures = append(p.Failures, f)
				}
				mu.Unlock()
			}
		})
	}
	for i := range n {
		next <- p.Next + i
	}
	close(next)
	wg.Wait()
	slices.SortFunc(p.Failures, func(a, b failure) int { return int(int64(a.Seed) - int64(b.Seed)) })
	return errors.Join(errs...)
}

// judgeSeed judges one cluster, and makes one that fails as small as it can.
func (r *run) judgeSeed(ctx context.Context, seed uint64) (failure, verdict, error) {
	c, err := randomCluster(seed, r.all)
	if err != nil {
		return failure{}, verdict{}, err
	}
	v, err := judgeCluster(ctx, c, r.all)
	if err != nil || len(v.faults) == 0 {
		return failure{}, v, err
	}
	f := failure{Seed: seed, Faults: v.faults}
	small, faults := shrinkCluster(ctx, c, v.faults, r.all)
	text, err := small.YAML()
	if err != nil {
		return f, v, err
	}
	f.Faults = faults
	for _, one := range faults[:min(3, len(faults))] {
		fmt.Printf("seed %d: %s %s: %s\n", seed, one.Kind, one.Pod, one.Why)
	}
	if r.folder == "" {
		fmt.Printf("%s\n", text)
		return f, v, nil
	}
	f.Manifest = filepath.Join(r.folder, fmt.Sprintf("seed-%d.yaml", seed))
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return f, v, fmt.Errorf("store manifest: %w", err)
	}
	if err := os.WriteFile(f.Manifest, text, 0o644); err != nil {
		return f, v, fmt.Errorf("store manifest: %w", err)
	}
	fmt.Printf("seed %d: the smallest cluster that fails is in %s\n", seed, f.Manifest)
	return f, v, nil
}

// printSummary sums up.
func (r *run) printSummary(p *progress) {
	fmt.Printf("seeds %d to %d: Joiner placed %d pods; %d seeds have a difference that nothing explains\n", p.First,
		p.Next-1, p.Placed, len(p.Failures))
	for _, name := range slices.Sorted(maps.Keys(p.Explained)) {
		fmt.Printf("  explained %d times: %s\n", p.Explained[name], name)
	}
}
