// Command bench packs workload files with Karpenter's scheduler and with Joiner's packer, one after the other in one
// process, and prints time, CPU, price and nodes of both, what an independent checker says, and how far Joiner is from
// a proven bound. It ends with 1 when Joiner's plan has a fault: see faults.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"

	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/testing/plancheck"
	"joiner.sh/pkg/workload"
)

// bench is one run of the program.
type bench struct {
	folder   string
	out      string
	resolved string
	large    string
	only     bool // leave Karpenter out
	patience time.Duration
	catalog  instancetypes.Catalog
	market   plancheck.Market
}

// row is one workload's outcome. A side that did not run is nil.
type row struct {
	workload          string
	pods, nodes       int
	joiner, karpenter *side
	full              *side // Joiner's plan by the prices that are its default: with volumes and public addresses
}

// side is what one packer made of a workload.
type side struct {
	plan   workload.Placement
	report plancheck.Report
}

func main() {
	b := bench{}
	flag.StringVar(&b.folder, "workloads", envOr("WORKLOADS", "workloads"),
		"folder with workload files; WORKLOADS in the environment does the same")
	flag.StringVar(&b.out, "out", "", "file for the Markdown table, none when empty")
	flag.StringVar(&b.resolved, "resolved", "../../../pkg/model/instancetypes/testdata/resolved-types.json.gz",
		"labels and amounts of every instance type, for the checker")
	flag.BoolVar(&b.only, "joiner-only", false, "leave Karpenter out")
	flag.DurationVar(&b.patience, "patience", 10*time.Minute, "how long Karpenter may take for one workload")
	flag.StringVar(&b.large, "large", "", "workload files, parted by commas, that Joiner packs alone, each in a process of its own on one core")
	one := flag.String("solo", "", "pack this file with Joiner and print as JSON what it took; -large starts such processes")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "bench [flags] [WORKLOAD FILE...]: all files of the folder when none is named\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	work := func() error { return b.runWorkloads(flag.Args()) }
	if *one != "" {
		work = func() error { return b.packFile(*one) }
	}
	if err := b.withInputs(work); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// withInputs loads what every run needs, and does the work.
func (b *bench) withInputs(work func() error) error {
	var err error
	if b.catalog, err = instancetypes.DecodeCatalog(builtin.Data()); err != nil {
		return err
	}
	resolved, err := os.ReadFile(b.resolved)
	if err != nil {
		return fmt.Errorf("read resolved types: %w", err)
	}
	if b.market, err = plancheck.NewMarket(builtin.Data(), resolved); err != nil {
		return err
	}
	return work()
}

func (b *bench) runWorkloads(names []string) error {
	var err error
	if len(names) == 0 {
		if names, err = b.workloadFiles(); err != nil {
			return err
		}
	}
	karpenter.PrepareProcess()
	var rows []row
	for _, n := range names {
		r, err := b.runWorkload(n)
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	alone, err := packLarge(b.large)
	if err != nil {
		return err
	}
	fmt.Println(plainText(rows, alone))
	if b.out != "" {
		if err := os.WriteFile(b.out, []byte(resultsPage(rows, alone)), 0o644); err != nil {
			return fmt.Errorf("write table: %w", err)
		}
	}
	return findFaults(rows, alone)
}

// workloadFiles lists the workload files of the folder.
func (b *bench) workloadFiles() ([]string, error) {
	var out []string
	for _, pattern := range []string{"*.json", "*.json.gz", "*.yaml", "*.yaml.gz"} {
		found, err := filepath.Glob(filepath.Join(b.folder, pattern))
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", b.folder, err)
		}
		out = append(out, found...)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("folder %s holds no workload files", b.folder)
	}
	slices.Sort(out)
	return out, nil
}

// runWorkload packs a workload with both, Joiner first: what Karpenter leaves in memory must not help it.
func (b *bench) runWorkload(path string) (row, error) {
	f, err := workload.LoadWorkload(os.ReadFile, path, "")
	if err != nil {
		return row{}, err
	}
	r := row{workload: f.Name, pods: f.Pending(), nodes: len(f.Nodes)}
	runtime.GC()
	if r.joiner, err = b.packFor(f, cluster.Settings{InstancePrices: true}); err != nil {
		return row{}, err
	}
	if r.full, err = b.packFor(f, cluster.Settings{}); err != nil {
		return row{}, err
	}
	if b.only {
		return r, nil
	}
	in, err := karpenter.TranslateWorkload(f, b.catalog)
	if err != nil {
		return row{}, fmt.Errorf("%s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), b.patience)
	defer cancel()
	var result scheduling.Results
	runtime.GC()
	took := cli.MeasureWork(func() { result, err = in.Solve(ctx) })
	if err != nil {
		return row{}, fmt.Errorf("%s: Karpenter: %w", path, err)
	}
	p := in.GroupedPlacement(result)
	took.NoteIn(&p)
	r.karpenter = b.checkPlacement(f, p)
	return r, nil
}

// packFor packs the workload with Joiner, and has the plan checked.
func (b *bench) packFor(f workload.File, rules cluster.Settings) (*side, error) {
	p, err := cli.PlanBy(f, b.catalog, rules)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return b.checkPlacement(f, p), nil
}

func (b *bench) checkPlacement(f workload.File, p workload.Placement) *side {
	s := &side{plan: p, report: plancheck.CheckPlacement(f, b.market, p)}
	fmt.Fprintf(os.Stderr, "%-10s %-9s %8.3f s %8.3f s CPU %10.4f USD/h %5d nodes %5d unplaced, checker: %s\n",
		f.Name, p.Tool, p.PlanSeconds, p.PlanUserSeconds, s.report.HourlyUSD, s.report.Nodes, s.report.Unplaced,
		verdictText(s.report))
	for _, v := range s.report.Violations[:min(3, len(s.report.Violations))] {
		fmt.Fprintf(os.Stderr, "  %s\n", v)
	}
	return s
}

func verdictText(r plancheck.Report) string {
	if len(r.Violations) == 0 {
		return "valid"
	}
	return fmt.Sprintf("%d faults", len(r.Violations))
}

// findFaults returns an error when Joiner broke a rule, left pods without a place that Karpenter found one for, or
// claimed a bound that a valid plan of either side undercuts.
func findFaults(rows []row, alone []solo) error {
	var bad []string
	for _, s := range alone {
		bad = append(bad, s.faults()...)
	}
	for _, r := range rows {
		bad = append(bad, r.faults()...)
	}
	if len(bad) > 0 {
		return errors.New("Joiner's plans have faults: " + strings.Join(bad, "\n"))
	}
	return nil
}

// faults are the broken rules of Joiner's plans, and what findFaults says of the other side.
func (r row) faults() (bad []string) {
	add := func(format string, args ...any) { bad = append(bad, r.workload+": "+fmt.Sprintf(format, args...)) }
	for _, s := range []*side{r.joiner, r.full} {
		if s != nil && len(s.report.Violations) > 0 {
			v := s.report.Violations
			add("%s", strings.Join(v[:min(5, len(v))], "; "))
		}
	}
	for _, s := range []*side{r.joiner, r.karpenter} {
		if s == nil || len(s.report.Violations) > 0 {
			continue
		}
		if s.report.Unplaced < r.joiner.report.Unplaced {
			add("%s finds a place for %d pods more", s.plan.Tool, r.joiner.report.Unplaced-s.report.Unplaced)
		}
		if b := r.joiner.plan.LowerBoundUSD; s.report.Unplaced <= r.joiner.report.Unplaced &&
			s.report.HourlyUSD < b*(1-tiny) {
			add("the bound is %.6f USD/h, %s needs %.6f", b, s.plan.Tool, s.report.HourlyUSD)
		}
	}
	return bad
}

// tiny is how much of a price may be lost in adding up.
const tiny = 1e-9
