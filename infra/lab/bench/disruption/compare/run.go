package main

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// run is a search over seeds.
type run struct {
	first, seeds uint64
	workers      int
	state        string // folder, none when empty
	sides        sides
}

// shardSeeds is how many seeds are done between two notes of how far it came.
const shardSeeds = 50

// tally is what a number of seeds showed.
type tally struct {
	Seeds    int
	Nodes    int               // verdicts about nodes that were compared
	May      int               // reasons for which both let a node go
	Commands map[string]int    // by reason
	Known    map[string]int    // documented differences, by name
	Open     map[uint64]string // seeds with one that is not, and the first of theirs
}

func newTally() *tally {
	return &tally{Commands: map[string]int{}, Known: map[string]int{}, Open: map[uint64]string{}}
}

func (t *tally) addTally(o *tally) {
	t.Seeds, t.Nodes, t.May = t.Seeds+o.Seeds, t.Nodes+o.Nodes, t.May+o.May
	for k, n := range o.Commands {
		t.Commands[k] += n
	}
	for k, n := range o.Known {
		t.Known[k] += n
	}
	maps.Copy(t.Open, o.Open)
}

// String tells the numbers.
func (t *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d nodes compared, %d may go for a reason as both see it\n", t.Seeds, t.Nodes, t.May)
	for _, k := range slices.Sorted(maps.Keys(t.Commands)) {
		fmt.Fprintf(&b, "%6d commands for %s judged by Karpenter\n", t.Commands[k], k)
	}
	for _, k := range slices.Sorted(maps.Keys(t.Known)) {
		fmt.Fprintf(&b, "%6d differences: %s\n", t.Known[k], k)
	}
	fmt.Fprintf(&b, "%6d seeds with a difference that nothing explains\n", len(t.Open))
	return b.String()
}

// compareSeeds compares all seeds, those first that nobody has compared with this program.
func (r *run) compareSeeds() (*tally, error) {
	program, err := programDigest()
	if err != nil {
		return nil, err
	}
	var starts []uint64
	for at := r.first; at < r.first+r.seeds; at += shardSeeds {
		starts = append(starts, at)
	}
	parts := make([]*tally, len(starts))
	errs := make([]error, len(starts))
	next := make(chan int)
	var workers sync.WaitGroup
	for range max(1, r.workers) {
		workers.Go(func() {
			for i := range next {
				parts[i], errs[i] = r.compareShard(program, starts[i], min(shardSeeds, r.first+r.seeds-starts[i]))
			}
		})
	}
	for i := range starts {
		next <- i
	}
	close(next)
	workers.Wait()
	out := newTally()
	for _, p := range parts {
		if p != nil {
			out.addTally(p)
		}
	}
	return out, errors.Join(errs...)
}

// programDigest names the program: what it found holds for it alone.
func programDigest() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read this program: %w", err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(b))[:12], nil
}

// compareShard returns the tally of some seeds, from the state where it has it.
func (r *run) compareShard(program string, first, seeds uint64) (*tally, error) {
	file := filepath.Join(r.state, fmt.Sprintf("%s-%d-%d.json", program, first, seeds))
	if r.state != "" {
		text, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read state: %w", err)
		}
		t := newTally()
		if err == nil && json.Unmarshal(text, t) == nil {
			return t, nil
		}
	}
	t := newTally()
	for seed := first; seed < first+seeds; seed++ {
		t.addTally(r.compareSeed(seed))
	}
	if r.state == "" {
		return t, nil
	}
	text, err := json.Marshal(t)
	if err == nil {
		err = errors.Join(os.MkdirAll(r.state, 0o755), os.WriteFile(file, text, 0o644))
	}
	if err != nil {
		return nil, fmt.Errorf("write state: %w", err)
	}
	return t, nil
}

func (r *run) compareSeed(seed uint64) *tally {
	t := newTally()
	t.Seeds = 1
	out, err := r.sides.compareScenario(generateScenario(r.sides.catalog, seed))
	if err != nil {
		t.Open[seed] = err.Error()
	}
	t.Nodes, t.May, t.Commands = out.Nodes, out.May, out.Commands
	for _, f := range out.Findings {
		if why := explainFinding(f); why != "" {
			t.Known[why]++
		} else if t.Open[seed] == "" {
			t.Open[seed] = f.String()
		}
	}
	return t
}

// mostTold bounds the scenarios that are shrunk.
const mostTold = 5

// printFindings prints what differs, with the smallest scenarios that show it, which it keeps as well.
func (r *run) printFindings(open map[uint64]string) {
	for i, seed := range slices.Sorted(maps.Keys(open)) {
		fmt.Printf("seed %d: %s\n", seed, open[seed])
		if i >= mostTold {
			continue
		}
		s := generateScenario(r.sides.catalog, seed)
		out, err := r.sides.compareScenario(s)
		if err != nil || len(out.unexplainedFindings()) == 0 {
			continue
		}
		s = r.sides.shrinkScenario(s, out.unexplainedFindings()[0])
		fmt.Printf("# seed %d, shrunk\n%s\n", seed, s)
		if r.state == "" {
			continue
		}
		file := filepath.Join(r.state, fmt.Sprintf("seed-%d.yaml", seed))
		if err := os.WriteFile(file, []byte(s.String()), 0o644); err != nil {
			fmt.Fprintf(os.Stderr, "compare: keep the scenario of seed %d: %v\n", seed, err)
		}
	}
}
