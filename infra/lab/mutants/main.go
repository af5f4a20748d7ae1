// Command mutants changes the product in small ways, as a person could by mistake, one at a time, and counts how many
// of the changes the tests notice. It draws a sample by a seed, runs for each mutant the tests that cover its line, and
// keeps what it found, so that a run can be ended and goes on where it was. One build has all mutants of a sample, and
// an environment variable selects one of them. Other tools test a mutant by its own package only and draw no sample.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	var o options
	flag.IntVar(&o.sample, "sample", 400, "how many mutants that compile are to be tried")
	flag.Uint64Var(&o.seed, "seed", 1, "draws the sample")
	flag.StringVar(&o.part, "part", "1/1", "which part of the sample this run tries, as 2/4")
	flag.StringVar(&o.folder, "state", ".local/mutants", "where results and coverage are kept")
	flag.BoolVar(&o.again, "again", false, "try those that survived once more, with all tests")
	flag.StringVar(&o.only, "only", "", "try only mutants with this text in their names, such as a file's")
	flag.DurationVar(&o.slow, "postpone", 0, "leave tests that take so long or longer to a later run, such as 10s")
	flag.BoolVar(&o.own, "own", false, "leave tests of other packages than the mutant's to a later run, unmeasured")
	flag.BoolVar(&o.short, "short", false, "run tests as make test does, at short length; results go to a folder of their own")
	flag.StringVar(&o.kinds, "kinds", "operators",
		"operators over decisions, or slips over adapters and controllers: a clause or a field left out, another key, "+
			"an error lost, two calls swapped")
	flag.BoolVar(&o.whole, "whole", false,
		"try all tests of a mutant's own package at once, without measuring what each of them runs")
	flag.IntVar(&o.workers, "workers", 1, "how many mutants are tried at once")
	least := flag.Float64("least", 0,
		"fail when less than this share of mutants that change behaviour is noticed, in percent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	s, err := run(ctx, o)
	stop()
	if err != nil {
		log.Fatalf("mutants: %v", err)
	}
	if s.noticed() < *least {
		log.Fatalf("mutants: %.1f %% noticed, %.1f %% wanted: "+
			"add a test for each survivor, or its reason to infra/lab/mutants/explained.tsv", s.noticed(), *least)
	}
}

// options are what the flags say.
type options struct {
	sample  int
	seed    uint64
	part    string
	folder  string
	again   bool
	only    string
	slow    time.Duration
	own     bool
	short   bool
	kinds   string
	whole   bool
	workers int
}

// run tries what is left of the sample and reports.
func run(ctx context.Context, o options) (score, error) {
	var nth, parts int
	if _, err := fmt.Sscanf(o.part, "%d/%d", &nth, &parts); err != nil || nth < 1 || nth > parts {
		return score{}, fmt.Errorf("-part %s: want such as 2/4", o.part)
	}
	if o.short {
		o.folder += "-short"
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return score{}, err
	}
	k, all, explained, err := findKinds(".", o.kinds)
	if err != nil {
		return score{}, err
	}
	fmt.Printf("%d possible mutants in %d packages\n", len(all), len(k.areas))
	state := filepath.Join(o.folder, fmt.Sprintf("%sseed-%d.jsonl", k.name, o.seed))
	done, err := readState(state)
	if err != nil {
		return score{}, err
	}
	sortByRank(all, o.seed)
	if k.slips {
		takeTurns(all)
	}
	sample, err := sampleOf(ctx, all, o.sample, done, state)
	if err != nil {
		return score{}, err
	}
	t, err := newTrial(ctx, k, o, sample)
	if err != nil {
		return score{}, err
	}
	var left []mutant
	for i, m := range sample {
		_, why := explained[m.id()]
		if i%parts == nth-1 && strings.Contains(m.id(), o.only) && isLeft(done[m.id()], o, why) {
			left = append(left, m)
		}
	}
	for _, r := range done {
		t.count(r.By)
	}
	err = t.tryAll(ctx, left, o, done, state)
	results := []result{}
	for _, m := range sample {
		if r, ok := done[m.id()]; ok {
			results = append(results, r)
		}
	}
	return report(os.Stdout, o.seed, results, explained), err
}

// findKinds returns the kinds of that name below root with all their mutants, and which mutants of any are explained.
func findKinds(root, name string) (k kinds, all []mutant, explained map[string]string, err error) {
	if k, err = kindsNamed(root, name); err != nil {
		return kinds{}, nil, nil, err
	}
	var ofAll []mutant
	for _, of := range []string{"operators", "slips"} {
		some, err := kindsNamed(root, of)
		if err != nil {
			return kinds{}, nil, nil, err
		}
		found, err := findAll(root, some)
		if err != nil {
			return kinds{}, nil, nil, err
		}
		ofAll = append(ofAll, found...)
		if of == name {
			all = found
		}
	}
	explained, err = readExplained(filepath.Join(root, explainedFile), ofAll)
	return k, all, explained, err
}

// isLeft says whether a mutant is to be tried, by what became of it before.
func isLeft(r result, o options, explained bool) bool {
	switch r.Outcome {
	case "":
		return true
	case postponed:
		return !explained
	case survived, uncovered:
		return o.again && !explained
	}
	return false
}

// sampleOf draws the first of the mutants. Mutants that do not compile go to the state file.
func sampleOf(
	ctx context.Context, all []mutant, size int, done map[string]result, state string,
) ([]mutant, error) {
	var folders []string
	for _, m := range all {
		folders = append(folders, filepath.Dir(m.File))
	}
	slices.Sort(folders)
	c, err := newChecker(ctx, slices.Compact(folders))
	if err != nil {
		return nil, err
	}
	sample, broken, err := drawSample(all, size, func(m mutant) (bool, error) {
		if r, ok := done[m.id()]; ok {
			return r.Outcome != invalid, nil
		}
		return c.compiles(m)
	})
	if err != nil {
		return nil, err
	}
	for _, m := range broken {
		if done[m.id()].Outcome == invalid {
			continue
		}
		done[m.id()] = result{Mutant: m.id(), Line: m.Line, Outcome: invalid}
		if err := appendState(state, done[m.id()]); err != nil {
			return nil, err
		}
	}
	fmt.Printf("%d drawn, and %d that do not compile\n", len(sample), len(broken))
	return sample, nil
}

// newTrial measures what the tests cover and weaves the sample.
func newTrial(ctx context.Context, k kinds, o options, sample []mutant) (*trial, error) {
	packages, err := dependents(ctx, k.areas)
	if err != nil {
		return nil, err
	}
	if o.own || o.whole {
		packages = slices.DeleteFunc(slices.Clone(k.areas), func(area string) bool {
			return !slices.Contains(packages, area) || !slices.ContainsFunc(sample, func(m mutant) bool {
				return filepath.Dir(m.File) == area && strings.Contains(m.id(), o.only)
			})
		})
	}
	folder := filepath.Join(o.folder, k.name+"woven")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	overlay, err := writeWoven(folder, sample)
	if err != nil {
		return nil, err
	}
	t := &trial{woven: newBuilder(folder, o.short, "-overlay", overlay), slow: o.slow, own: o.own || o.whole,
		number: map[string]int{}, confirmed: map[string]time.Duration{},
		noticed: map[string]int{}}
	if o.whole {
		t.tests, err = wholePackages(ctx, t.woven, packages)
	} else {
		t.tests, err = measure(ctx, k.areas, packages, o)
	}
	if err != nil {
		return nil, err
	}
	for i, m := range sample {
		t.number[m.id()] = i + 1
	}
	return t, nil
}

// tryAll tries mutants, several at once if so wanted, and writes down what became of each. The first error ends it.
func (t *trial) tryAll(ctx context.Context, left []mutant, o options, done map[string]result, state string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan mutant)
	var mutex sync.Mutex
	var workers sync.WaitGroup
	tried := 0
	for range max(o.workers, 1) {
		workers.Go(func() {
			for m := range next {
				mutex.Lock()
				passed := done[m.id()].Passed
				mutex.Unlock()
				if o.again {
					passed = nil // tests may be others than they were
				}
				r, err := t.try(ctx, m, passed)
				mutex.Lock()
				if err == nil {
					err = appendState(state, r)
				}
				if err != nil {
					cancel(err)
				} else {
					tried++
					done[m.id()] = r
					fmt.Printf("%d/%d %s %s (%s, %.0f s)\n", tried, len(left), r.Outcome, r.Mutant,
						strings.Join(r.By, " "), r.Seconds)
				}
				mutex.Unlock()
			}
		})
	}
	for _, m := range left {
		select {
		case next <- m:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}
