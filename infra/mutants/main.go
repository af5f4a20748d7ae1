// Command mutants changes the product in small ways, as a person could by mistake, one at a time, and counts how many
// of the changes the tests notice. It draws a sample by a seed, runs for each mutant the tests that cover its line, and
// keeps what it found, so that a run can be ended and goes on where it was. The tools there are test a mutant by its
// own package only and draw no sample.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// areas returns the packages whose failure hurts users most: packing, disruption, launching, termination, error
// classes, the stack.
func areas() []string {
	return []string{"pkg/scheduling/binpack", "pkg/scheduling/lowerbound", "pkg/model/topology", "pkg/disruption",
		"pkg/disruption/drift", "pkg/model/budgets", "pkg/nodeclaim/launch", "pkg/providers/fleet",
		"pkg/nodeclaim/lifecycle", "pkg/nodeclaim/drain", "pkg/nodeclaim/interruption", "pkg/nodeclaim/awserrors",
		"infra/stack"}
}

func main() {
	sample := flag.Int("sample", 400, "how many mutants that compile are to be tried")
	seed := flag.Uint64("seed", 1, "draws the sample")
	part := flag.String("part", "1/1", "which part of the sample this run tries, as 2/4")
	folder := flag.String("state", ".local/mutants", "where results and coverage are kept")
	again := flag.Bool("again", false, "try those that survived an earlier run once more")
	least := flag.Float64("least", 0, "fail when less than this share of mutants that change behaviour is noticed, in percent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	s, err := run(ctx, options{sample: *sample, seed: *seed, part: *part, folder: *folder, again: *again})
	stop()
	if err != nil {
		log.Fatalf("mutants: %v", err)
	}
	if s.noticed() < *least {
		log.Fatalf("mutants: %.1f %% noticed, %.1f %% wanted: add a test for each survivor, or its reason to infra/mutants/explained.tsv", s.noticed(), *least)
	}
}

// options are what the flags say.
type options struct {
	sample int
	seed   uint64
	part   string
	folder string
	again  bool
}

// run tries what is left of the sample and reports.
func run(ctx context.Context, o options) (score, error) {
	var nth, parts int
	if _, err := fmt.Sscanf(o.part, "%d/%d", &nth, &parts); err != nil || nth < 1 || nth > parts {
		return score{}, fmt.Errorf("-part %s: want such as 2/4", o.part)
	}
	if err := os.MkdirAll(o.folder, 0o755); err != nil {
		return score{}, err
	}
	mutants, err := drawMutants(o.seed)
	if err != nil {
		return score{}, err
	}
	tests, err := measure(ctx, areas(), filepath.Join(o.folder, "coverage-"+treeHash(ctx)+".json"))
	if err != nil {
		return score{}, err
	}
	explained, err := readExplained("infra/mutants/explained.tsv")
	if err != nil {
		return score{}, err
	}
	state := filepath.Join(o.folder, fmt.Sprintf("seed-%d.jsonl", o.seed))
	done, err := readState(state)
	if err != nil {
		return score{}, err
	}
	results, tried := []result{}, 0
	for i, m := range mutants {
		if tried == o.sample || ctx.Err() != nil {
			break
		}
		r, ok := done[m.id()]
		_, why := explained[m.id()]
		retry := ok && o.again && !why && (r.Outcome == survived || r.Outcome == uncovered)
		if (!ok || retry) && i%parts == nth-1 {
			if r, err = try(ctx, m, tests); err != nil {
				break
			}
			if err := appendState(state, r); err != nil {
				return score{}, err
			}
			fmt.Printf("%d/%d %s %s (%s, %.0f s)\n", tried+1, o.sample, r.Outcome, r.Mutant, r.By, r.Seconds)
			ok = true
		}
		if ok {
			results = append(results, r)
		}
		if !ok || r.Outcome != invalid {
			tried++
		}
	}
	return report(os.Stdout, o.seed, results, explained), err
}

// drawMutants returns all mutants of the areas in an order that only the seed decides.
func drawMutants(seed uint64) ([]mutant, error) {
	var all []mutant
	for _, area := range areas() {
		files, err := filepath.Glob(filepath.Join(area, "*.go"))
		if err != nil {
			return nil, err
		}
		slices.Sort(files)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			source, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			found, err := findMutants(f, source)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	fmt.Printf("%d possible mutants in %d packages\n", len(all), len(areas()))
	slices.SortFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(rank(seed, a), rank(seed, b)), cmp.Compare(a.id(), b.id()))
	})
	return all, nil
}

// rank returns a mutant's place in the order of a seed. It depends on the mutant alone, so that a sample keeps those
// that a change of other code leaves as they are.
func rank(seed uint64, m mutant) uint64 {
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.id()))
	return binary.BigEndian.Uint64(h[:])
}

// treeHash names the state of the sources, so that coverage is measured anew when they change.
func treeHash(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD:pkg").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
