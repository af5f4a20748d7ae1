package cli

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
	"joiner.sh/pkg/workload"
)

// planFlags are the flags of `joiner plan`.
type planFlags struct {
	clusterTarget
	inputs
	pools, compare string
	output         outputForm
	steps          int
	limited        bool // steps is set
	milliseconds   int
	scratch        bool
	prices         string
}

// What --prices counts.
const (
	fullPrices     = "full"
	instancePrices = "instances"
)

const planHelp = `Plan which nodes pods need and which pods go where, without launching anything.

Without -f the pods that wait in a cluster are planned, with what the cluster has, as provision would do it now. --from-scratch plans
all pods of Joiner's and Karpenter's nodes as if these nodes were not there.

With -f files are planned, and no cluster is needed: a workload file (groups of pods, DaemonSets, existing nodes and the name of a file of
NodePools; JSON or YAML, packed with gzip or not), or manifests as one applies them: Pods, Deployments, StatefulSets, Jobs, DaemonSets
and so on with NodePools, EC2NodeClasses, NodeOverlays and CapacityBuffers, in any number of files, folders or from standard input (-).
Manifests without a NodePool are planned with a general-purpose one, and those without aws-node and kube-proxy with these, as Amazon EKS
has them. Documents that cannot be read are named and left out, and so is a NodePool that the API server would refuse.

--compare plans a second time with the NodePools and so on of a file in place of those of the same name, and prints what that changes.

Exit code 0: the plan was made; a pod that no node can take is part of it, with the reasons. 2: the input cannot be used; the message says
which file and field. 3: the plan was made without documents that cannot be read.`

const planExample = `  joiner plan
  joiner plan -f deployments.yaml
  joiner plan --compare new-nodepool.yaml
  joiner plan -f w3.json.gz --nodepools mine.yaml --output json | jq .hourlyUSD
  joiner plan -f deployments.yaml -f nodepools.yaml`

func planCommand(term terminalOutput) *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use: "plan [-f FILE]...", Short: "Plan nodes for the pods of a cluster or of files", Long: planHelp,
		Example: planExample,
		Args:    noArgs("the workload is given with -f"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.limited = cmd.Flags().Changed("search-steps")
			return runPlan(cmd.Context(), f, term)
		},
	}
	f.inputs.addFlags(cmd, "workload file, or manifests")
	cmd.Flags().StringVar(&f.pools, "nodepools", "", "NodePools, instead of those the workload names")
	cmd.Flags().StringVar(&f.compare, "compare", "", "file of changed NodePools and so on: print what they change")
	cmd.Flags().BoolVar(&f.scratch, "from-scratch", false,
		"of a cluster: plan all pods anew, as if no node of a NodePool were there")
	cmd.Flags().IntVar(&f.steps, "search-steps", 0,
		"steps that may make the plan cheaper, at most; 0 for none; as many as pay when it is not set")
	cmd.Flags().IntVar(&f.milliseconds, "search-milliseconds", 0,
		"time of one core that may make the plan cheaper, at most, as provision has it; as much as pays when it is 0")
	cmd.Flags().StringVar(&f.prices, "prices", fullPrices,
		"what a node costs: full, with its volumes and public address, or instances alone")
	f.clusterTarget.addFlags(cmd)
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runPlan(ctx context.Context, f planFlags, term terminalOutput) error {
	if f.steps < 0 {
		return &inputError{fmt.Errorf("--search-steps is %d; it cannot be less than 0", f.steps)}
	}
	if f.milliseconds < 0 {
		return &inputError{fmt.Errorf("--search-milliseconds is %d; it cannot be less than 0", f.milliseconds)}
	}
	if f.prices != fullPrices && f.prices != instancePrices {
		return &inputError{fmt.Errorf("--prices is %q; it can be %s or %s", f.prices, fullPrices, instancePrices)}
	}
	rules := cluster.Settings{InstancePrices: f.prices == instancePrices, PackingMilliseconds: f.milliseconds}
	if f.limited {
		rules.PackingIterations = cmp.Or(f.steps, cluster.NoIterations)
	}
	if len(f.paths) == 0 {
		return planCluster(ctx, f, rules, term)
	}
	if f.scratch {
		return &inputError{errors.New("--from-scratch is for clusters; files hold only pods that wait")}
	}
	load, err := f.readCatalogLoudly(ctx, term)
	if err != nil {
		return err
	}
	var w workload.File
	broken := 0
	err = term.withProgress("reading "+f.inputs.String(), func() (err error) {
		w, broken, err = f.readWorkload(load, term)
		return err
	})
	if err != nil {
		return &inputError{err}
	}
	before, err := f.planFile(w, load, rules, term)
	if err != nil {
		return err
	}
	if f.compare == "" {
		return errors.Join(f.showPlan(term, before), partlyRead(broken))
	}
	changed, err := f.readChanges(term)
	if err != nil {
		return &inputError{err}
	}
	w.Manifests.MergeOver(changed)
	after, err := f.planFile(w, load, rules, term)
	if err != nil {
		return err
	}
	return errors.Join(f.showDifference(term, before, after), partlyRead(broken))
}

// partlyRead is the answer's code where documents could not be read.
func partlyRead(broken int) error {
	if broken == 0 {
		return nil
	}
	return &foundError{fmt.Sprintf("the answer is without %d documents that cannot be read", broken)}
}

func (f planFlags) showPlan(term terminalOutput, p workload.Placement) error {
	return term.showAnswer(f.output, p, func() error { return showTable(term, p) })
}

func (f planFlags) showDifference(term terminalOutput, before, after workload.Placement) error {
	c := comparePlans(before, after)
	return term.showAnswer(f.output, c, func() error { return showComparison(term, c) })
}

// planFile packs a workload and says what it does.
func (f planFlags) planFile(w workload.File, load instancetypes.Catalog, rules cluster.Settings,
	term terminalOutput) (p workload.Placement, err error) {
	name := f.inputs.String()
	source := ""
	if f.types == "" && f.bucket == "" {
		source = ", built in"
	}
	term.writeMessage("%s: %d pods in %d groups, %d existing nodes, %d NodePools, %d instance types of %s%s", name,
		w.Pending(), len(w.Groups)+len(w.Pods), len(w.Nodes), len(w.Pools), len(load.Types), load.Region, source)
	for _, text := range manifestWarnings(w, load) {
		term.writeMessage("%s", text)
	}
	err = term.withProgress("packing", func() error {
		p, err = planWithPreferences(w, load, rules)
		return err
	})
	if err != nil {
		return p, &inputError{fmt.Errorf("%s: %w", name, err)}
	}
	term.writeMessage("packed in %.3f s (%.3f s of CPU)", p.PlanSeconds, p.PlanUserSeconds)
	return p, nil
}

// planWithPreferences is PlanBy, and says what preferences cost.
func planWithPreferences(w workload.File, c instancetypes.Catalog, rules cluster.Settings) (workload.Placement, error) {
	p, err := PlanBy(w, c, rules)
	if err != nil {
		return p, err
	}
	s, err := WorkloadSnapshot(w, c)
	if err != nil {
		return p, err
	}
	s.Rules = rules
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt(len(s.Pods))))
	addWhatIf(p.Unplaced, s, w.IndexNames().GroupOf, w.PodSpecOf)
	p.PreferencesUSD = pricePreferences(s, p, func(s cluster.Snapshot) workload.Placement {
		return workload.FromPlan(w, binpack.Pods(s))
	})
	return p, nil
}

// pricePreferences returns the cost of preferences: how much cheaper the placement would be, in USD per hour, if pods
// asked for no more than they require. It is 0 where none prefers anything, or where that would leave more of them.
func pricePreferences(s cluster.Snapshot, p workload.Placement,
	place func(cluster.Snapshot) workload.Placement) float64 {
	if s.Rules.IgnorePreferences || !slices.ContainsFunc(s.Pods, cluster.Pod.HasPreferences) {
		return 0
	}
	s.Rules.IgnorePreferences = true
	without := place(s)
	if without.CountUnplaced() > p.CountUnplaced() {
		return 0
	}
	return max(0, p.HourlyUSD-without.HourlyUSD)
}

// collectAt returns the growth of memory, in percent, until garbage is collected while a plan is made. A plan is short
// work: more memory at its peak for less collecting, as long as there is little of it.
func collectAt(pods int) int {
	if pods <= 20_000 {
		return 1000
	}
	return 100
}

// PlanBy packs the workload with what c sells, by the rules. The placement carries what packing alone took.
func PlanBy(w workload.File, c instancetypes.Catalog, rules cluster.Settings) (workload.Placement, error) {
	s, err := WorkloadSnapshot(w, c)
	if err != nil {
		return workload.Placement{}, err
	}
	s.Rules = rules
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt(len(s.Pods))))
	var made plan.Plan
	took := MeasureWork(func() { made = binpack.Pods(s) })
	p := workload.FromPlan(w, made)
	took.NoteIn(&p)
	return p, nil
}

// ReadCatalog reads instance types and prices from the file, packed or not, or takes those built in when path is empty.
func ReadCatalog(path string) (instancetypes.Catalog, error) {
	if path == "" {
		return instancetypes.DecodeCatalog(builtin.Data())
	}
	data, err := readFile(path)
	if err != nil {
		return instancetypes.Catalog{}, fmt.Errorf("read instance types: %w", err)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		var b bytes.Buffer
		zw := gzip.NewWriter(&b)
		_, err = zw.Write(data)
		if err = errors.Join(err, zw.Close()); err != nil {
			return instancetypes.Catalog{}, fmt.Errorf("read instance types: %w", err)
		}
		data = b.Bytes()
	}
	c, err := instancetypes.DecodeCatalog(data)
	if err != nil {
		return c, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Bounds of what a plan says would help.
const (
	mostAskedGroups = 5
	mostWouldHelp   = 3
)

// addWhatIf adds what would give pods of the first groups a place, by turns of namespaces. A change of a pod is one of
// its whole group. spec is that of a pod, nil where it is not known.
func addWhatIf(all []workload.Unplaced, s cluster.Snapshot, group func(key string) string,
	spec func(key string) *corev1.PodSpec) {
	sells := binpack.ResolveOfferings(s)
	s.Pods = slices.Clone(s.Pods)
	for i := range s.Pods {
		s.Pods[i].Controller = group(s.Pods[i].Key())
	}
	left := whatif.DefaultWork
	turns := fairshare.Turns(lists.Of(all, func(u workload.Unplaced) string { return namespaceOf(u.Pod) }))
	for _, i := range turns[:min(len(all), mostAskedGroups)] {
		u := &all[i]
		if u.Pod == "" || left <= 0 {
			continue
		}
		a := whatif.ForPod(s, sells, u.Pod, whatif.Limits{Work: left})
		left -= a.Work
		pod := spec(u.Pod)
		for _, c := range a.Changes[:min(len(a.Changes), mostWouldHelp)] {
			for i := range c.Edits {
				placeRequest(&c.Edits[i], pod)
			}
			u.WouldHelp = append(u.WouldHelp, strings.ReplaceAll(c.String(), "Pod "+u.Pod, "the pods of "+u.Group))
		}
	}
}

// namespaceOf returns the namespace of a pod by its key.
func namespaceOf(pod string) string {
	namespace, _, _ := strings.Cut(pod, "/")
	return namespace
}
