package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
	"joiner/pkg/cluster"
	"joiner/pkg/pack"
	"joiner/pkg/plan"
	"joiner/pkg/setting"
	"joiner/pkg/workload"
)

// planFlags are the flags of `joiner plan`.
type planFlags struct {
	file, types, pools, output string
	steps                      int
}

const planHelp = `Plan which nodes a workload needs and which pods go where, without a cluster and without launching anything.

A workload file holds groups of pods, DaemonSets, existing nodes and the name of a file of NodePools; JSON or YAML, packed
with gzip or not. Beside NodePools that file may hold NodeOverlays, and CapacityBuffers with their PodTemplates; a scalableRef
names a group of pods. A pod that no node can take is part of the result, with the reasons.

Exit code 0: the plan was made. 2: the input cannot be used; the message says which file and field.`

func planCommand(out, progress io.Writer) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use: "plan -f WORKLOAD", Short: "Plan nodes for the pods of a workload file", Long: planHelp, Args: noArgs,
		Example: "  joiner plan -f w1.json\n  joiner plan -f w3.json.gz --nodepools mine.yaml --output json | jq .hourlyUSD",
		RunE:    func(*cobra.Command, []string) error { return runPlan(f, out, progress) },
	}
	cmd.Flags().StringVarP(&f.file, "file", "f", "", "workload file (required)")
	cmd.Flags().StringVar(&f.types, "types", "", "instance types and prices, instead of those built in")
	cmd.Flags().StringVar(&f.pools, "nodepools", "", "NodePools, instead of those the workload names")
	cmd.Flags().IntVar(&f.steps, "search-steps", defaultSteps(), "steps that may make the plan cheaper, at most; 0 for none")
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table, json or yaml")
	return cmd
}

// defaultSteps is what the setting is unless somebody changes it.
func defaultSteps() int {
	for _, s := range setting.All() {
		if s.Name == "searchSteps" {
			n, _ := strconv.Atoi(s.Default)
			return n
		}
	}
	return 0
}

func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &inputError{fmt.Errorf("%q is not expected; the workload is given with -f", args[0])}
	}
	return nil
}

func runPlan(f planFlags, out, progress io.Writer) error {
	show, err := printer(f.output)
	if err != nil {
		return &inputError{err}
	}
	if f.file == "" {
		return &inputError{fmt.Errorf("no workload given; name one with -f")}
	}
	if f.steps < 0 {
		return &inputError{fmt.Errorf("--search-steps is %d; it cannot be less than 0", f.steps)}
	}
	load, err := Catalog(f.types)
	if err != nil {
		return &inputError{err}
	}
	w, err := workload.Load(readFile, f.file, f.pools)
	if err != nil {
		return &inputError{err}
	}
	fmt.Fprintf(progress, "%s: %d pods in %d groups, %d existing nodes, %d NodePools, %d instance types\n",
		f.file, w.Pending(), len(w.Groups)+len(w.Pods), len(w.Nodes), len(w.Pools), len(load.Types))
	for _, text := range warnings(w, load) {
		fmt.Fprintln(progress, text)
	}
	p, err := PlanBy(w, load, cluster.Rules{SearchSteps: cmp.Or(f.steps, cluster.NoSearch)})
	if err != nil {
		return &inputError{fmt.Errorf("%s: %w", f.file, err)}
	}
	fmt.Fprintf(progress, "packed in %.3f s (%.3f s of CPU)\n", p.PlanSeconds, p.PlanUserSeconds)
	return show(out, p)
}

// Plan packs the workload with what c sells by the rules that settings have by default. The placement carries what packing alone took.
func Plan(w workload.File, c catalog.Catalog) (workload.Placement, error) {
	return PlanBy(w, c, cluster.Rules{})
}

// collectAt is by how much memory grows, in percent, until garbage is collected while a plan is made. A plan is short work: more
// memory at its peak for less collecting, as long as there is little of it.
func collectAt(pods int) int {
	if pods <= 20_000 {
		return 1000
	}
	return 250
}

// PlanBy is Plan with the rules given.
func PlanBy(w workload.File, c catalog.Catalog, rules cluster.Rules) (workload.Placement, error) {
	s, err := Snapshot(w, c)
	if err != nil {
		return workload.Placement{}, err
	}
	s.Rules = rules
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt(len(s.Pods))))
	var made plan.Plan
	took := Measure(func() { made = pack.Pods(s) })
	p := workload.FromPlan(w, made)
	p.PlanSeconds, p.PlanUserSeconds, p.MaxRSSMiB = took.Seconds, took.UserSeconds, took.MaxRSSMiB
	return p, nil
}

// readFile reads a file of any sort, but not one that cannot be meant.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, workload.MostBytes+1))
	if err == nil && len(data) > workload.MostBytes {
		err = fmt.Errorf("%s: larger than %d MiB; plan parts of it", path, workload.MostBytes>>20)
	}
	return data, err
}

// Catalog reads instance types and prices from the file, packed or not, or takes those built in when path is empty.
func Catalog(path string) (catalog.Catalog, error) {
	if path == "" {
		return catalog.Decode(builtin.Data())
	}
	data, err := readFile(path)
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("read instance types: %w", err)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		var b bytes.Buffer
		zw := gzip.NewWriter(&b)
		_, err = zw.Write(data)
		if err := zw.Close(); err != nil {
			return catalog.Catalog{}, fmt.Errorf("read instance types: %w", err)
		}
		data = b.Bytes()
	}
	if err != nil {
		return catalog.Catalog{}, fmt.Errorf("read instance types: %w", err)
	}
	c, err := catalog.Decode(data)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}
