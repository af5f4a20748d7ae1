// Command disruption gives the same generated clusters to Karpenter's own disruption controller and to Joiner's, lets
// each run until it does nothing any more, and prints what the clusters cost then, the pods that were moved, passes and
// CPU. It ends with 1 when a side broke a rule: a pod that forbids it was evicted, or one is left without a node.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/infra/lab/bench/world"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

// side is one that disrupts.
type side interface {
	// RunPass runs it once, and then does what it wants done. It reports whether something was wanted or is under way.
	RunPass(ctx context.Context) (acted bool, took cli.MeasuredWork, err error)
}

// outcome is what a side made of a cluster.
type outcome struct {
	USD, Before  float64
	Nodes, Moved int
	Passes       int
	CPU, Longest float64 // seconds
	LongestCPU   float64
	Cut          bool // it was not at rest when its time was over
	Faults       []string
	Version, Day string         // of the tool, and when it was measured
	Why          map[string]int // nodes of the last pass that stayed, by word
	Course       []point        // after each pass in which the price changed
}

// point is how far a side has come.
type point struct {
	USD   float64
	Moved int
	CPU   float64 // seconds
}

// firstPointAt is the first point of the course at which the cluster cost no more than that, the end if it never did.
func (o outcome) firstPointAt(usd float64) point {
	for _, p := range o.Course {
		if p.USD <= usd {
			return p
		}
	}
	return point{o.USD, o.Moved, o.CPU}
}

// row is one cluster.
type row struct {
	name         string
	nodes, pods  int
	usd          float64
	fresh        float64 // USD/h of a fresh plan for all pods that may move
	ours, theirs *outcome
	why          map[string]int
}

// growth is by how many percent memory grows until garbage is collected, as the stack sets it for Joiner's functions.
// Karpenter has Go's default, as in its chart.
const growth = 400

type bench struct {
	patience time.Duration
	seed     uint64
	kept     string // file for the peer's outcomes
	ours     string // file for ours, of this tree
	known    bool   // measure nothing, show what the files keep
	verbose  bool
	only     string // side, both when empty
	what     whatIf
	catalog  instancetypes.Catalog
}

func main() {
	b := bench{}
	sizes := flag.String("sizes", "50,500,2000", "nodes of the clusters, parted by commas")
	kinds := flag.String("kinds", strings.Join(world.ClusterKinds(), ","), "kinds of clusters, parted by commas")
	out := flag.String("out", "", "file for the Markdown table, none when empty")
	flag.StringVar(&b.only, "only", "", "one of joiner and karpenter: leave the other out")
	flag.StringVar(&b.kept, "peer", "", "file that keeps what Karpenter made of clusters: those in it are not measured anew, others are added; none when empty")
	flag.StringVar(&b.ours, "ours", "", "the same for Joiner, to be removed when its code has changed: runs in parts")
	flag.BoolVar(&b.known, "kept-only", false, "measure nothing: show those clusters of which the files keep what both made of them")
	flag.DurationVar(&b.patience, "patience", 10*time.Minute,
		"CPU time that a side may take to decide about one cluster")
	flag.Float64Var(&b.what.moveUSD, "move-usd", 0, "what if: another podEvictionCostUSD, the default when 0")
	seeds := flag.String("seeds", "1", "seeds of the clusters, parted by commas")
	flag.BoolVar(&b.verbose, "v", false, "print each pass")
	flag.Parse()
	if err := b.compareClusters(set{*sizes, *kinds, *seeds}, *out); err != nil {
		fmt.Fprintf(os.Stderr, "disruption: %v\n", err)
		os.Exit(1)
	}
}

// set names clusters, each list parted by commas.
type set struct{ sizes, kinds, seeds string }

// eachCluster calls do for every cluster of the set.
func (s set) eachCluster(do func(kind string, nodes int, seed uint64) error) error {
	for size := range strings.SplitSeq(s.sizes, ",") {
		nodes, err := strconv.Atoi(size)
		if err != nil {
			return fmt.Errorf("sizes: %w", err)
		}
		for text := range strings.SplitSeq(s.seeds, ",") {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				return fmt.Errorf("seeds: %w", err)
			}
			for kind := range strings.SplitSeq(s.kinds, ",") {
				if err := do(kind, nodes, seed); err != nil {
					return fmt.Errorf("%s-%d, seed %d: %w", kind, nodes, seed, err)
				}
			}
		}
	}
	return nil
}

func (b bench) compareClusters(clusters set, out string) error {
	var err error
	if b.catalog, err = instancetypes.DecodeCatalog(builtin.Data()); err != nil {
		return err
	}
	karpenter.PrepareProcess()
	var rows []row
	err = clusters.eachCluster(func(kind string, nodes int, seed uint64) error {
		b.seed = seed
		r, err := b.compareCluster(kind, nodes)
		if err != nil {
			return err
		}
		if r.name += fmt.Sprintf("-%d", seed); !b.known || r.ours != nil && r.theirs != nil {
			rows = append(rows, r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println(plainText(rows))
	if out != "" {
		if err := os.WriteFile(out, []byte(resultsPage(rows, b.measuringManner())), 0o644); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return findFaults(rows)
}

// measuringManner says how the rows were measured.
func (b bench) measuringManner() string {
	if b.kept+b.ours != "" {
		return "from stored results of several runs, whose conditions are in experiments.md"
	}
	return fmt.Sprintf("in one run with %d threads", runtime.GOMAXPROCS(0))
}

// compareCluster lets both sides run on a cluster of their own that is the same, ours first: what Karpenter leaves in
// memory must not help it.
func (b bench) compareCluster(kind string, nodes int) (row, error) {
	w, err := world.GenerateWorld(b.catalog, kind, nodes, b.seed)
	if err != nil {
		return row{}, err
	}
	r := row{name: w.Name, nodes: nodes, pods: len(w.Pods), usd: w.TotalPrice()}
	if r.fresh, err = freshPlan(w); err != nil {
		return row{}, fmt.Errorf("%s: %w", w.Name, err)
	}
	if b.only != "karpenter" {
		r.ours, err = b.keepOutcome(b.ours, "", w.Name, func() (*outcome, error) {
			defer debug.SetGCPercent(debug.SetGCPercent(growth))
			j := newJoiner(w, b.what)
			o, err := b.runUntilRest("joiner", w, j)
			if err == nil {
				o.Why = j.why
			}
			return o, err
		})
		if err != nil {
			return row{}, err
		}
		if r.ours != nil {
			r.why = r.ours.Why
		}
	}
	if b.only == "joiner" {
		return r, nil
	}
	r.theirs, err = b.keepOutcome(b.kept, peerVersion(), w.Name, func() (*outcome, error) {
		if w, err = world.GenerateWorld(b.catalog, kind, nodes, b.seed); err != nil {
			return nil, err
		}
		k, err := karpenter.NewDisruption(w)
		if err != nil {
			return nil, err
		}
		return b.runUntilRest("karpenter", w, k)
	})
	return r, err
}

// runUntilRest lets a side pass until it does nothing twice, hours apart.
func (b bench) runUntilRest(tool string, w *world.World, s side) (*outcome, error) {
	o := &outcome{Before: w.TotalPrice()}
	spent := 0.0
	runtime.GC()
	for idle := 0; idle < 3; {
		if o.Cut = spent > b.patience.Seconds(); o.Cut {
			break
		}
		acted, took, err := s.RunPass(context.Background())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", tool, err)
		}
		o.Passes++
		o.CPU += took.UserSeconds
		spent += took.UserSeconds
		o.Longest, o.LongestCPU = max(o.Longest, took.Seconds), max(o.LongestCPU, took.UserSeconds)
		if n := len(o.Course); n == 0 || o.Course[n-1].USD != w.TotalPrice() {
			o.Course = append(o.Course, point{w.TotalPrice(), w.Moved, o.CPU})
		}
		if b.verbose {
			fmt.Fprintf(os.Stderr, "  %-9s pass %3d acted %-5t %6.3f s CPU %8.3f USD/h %4d nodes %5d moved\n", tool,
				o.Passes, acted, took.UserSeconds, w.TotalPrice(), len(w.Nodes), w.Moved)
			if j, ours := s.(*joiner); ours {
				for _, line := range j.said {
					fmt.Fprintf(os.Stderr, "    %s\n", line)
				}
			}
		}
		if idle++; acted {
			idle = 0
		}
		wait := 20 * time.Second
		if idle > 0 {
			wait = 65 * time.Minute // what was left alone for an hour is looked at again
		}
		w.Now = w.Now.Add(wait)
	}
	o.USD, o.Nodes, o.Moved, o.Faults = w.TotalPrice(), len(w.Nodes), w.Moved, slices.Clone(w.Faults)
	if n := len(w.WaitingPods()); n > 0 {
		o.Faults = append(o.Faults, fmt.Sprintf("%d pods are left without a node", n))
	}
	fmt.Fprintf(os.Stderr, "%-16s %-9s %9.3f -> %9.3f USD/h %5d nodes %6d moved %4d passes %8.2f s CPU, longest pass %.2f s CPU, %.2f s\n",
		w.Name, tool, o.Before, o.USD, o.Nodes, o.Moved, o.Passes, o.CPU, o.LongestCPU, o.Longest)
	return o, nil
}

func findFaults(rows []row) error {
	var bad []string
	for _, r := range rows {
		for _, o := range []*outcome{r.ours, r.theirs} {
			if o != nil && len(o.Faults) > 0 {
				bad = append(bad, fmt.Sprintf("%s: %s", r.name, strings.Join(o.Faults[:min(3, len(o.Faults))], "; ")))
			}
		}
	}
	if len(bad) > 0 {
		return errors.New(strings.Join(bad, "\n"))
	}
	return nil
}
