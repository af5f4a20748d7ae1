package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// statusFlags are the flags of `joiner status`.
type statusFlags struct {
	clusterTarget
	output outputForm
	html   string
	stack  doctorFlags // whose functions are asked for; no cluster: none
	watch  bool
	every  time.Duration

	protections bool
	by          string
}

// Bounds of --every.
const (
	leastEvery = time.Second
	mostEvery  = time.Hour
)

const statusHelp = `Show the nodes of a cluster by NodePool: type, phase, price, age, how much of cpu and memory pods request, and whether disruption may
take them; and the pods that wait for a node, with what becomes of them. Prices are those of EC2, without discounts.

--cluster names the version and the age of each function too, with the credentials of AWS.

--protections says what each PodDisruptionBudget, do-not-disrupt, budget, consolidateAfter, minValues and required spread costs: what would be
saved without it, by deciding again. --protections-by namespace, or a label of pods, takes those of one value away together.

--watch shows it again and again until it is interrupted; on a terminal in place, as much as fits. --html FILE writes one page that needs nothing else.`

func statusCommand(term terminalOutput) *cobra.Command {
	var f statusFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show nodes, their utilization and cost, and pending pods", Long: statusHelp,
		Args:    noArgs("see --help"),
		Example: "  joiner status\n  joiner status --watch\n  joiner status --cluster prod\n  joiner status --html cluster.html --catalog-bucket joiner-prod-catalog",
		RunE:    func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), f, term) },
	}
	f.addFlags(cmd)
	cmd.Flags().StringVar(&f.stack.cluster, "cluster", "", "name of the EKS cluster, to see its functions; without it AWS is not asked")
	cmd.Flags().StringVar(&f.stack.prefix, "name-prefix", "", "the setting namePrefix that the stack is deployed with")
	cmd.Flags().StringVar(&f.html, "html", "", "write an HTML page to this file instead of a table")
	cmd.Flags().BoolVarP(&f.watch, "watch", "w", false, "show it again and again")
	cmd.Flags().DurationVar(&f.every, "every", 5*time.Second, "how often with --watch, 1s to 1h")
	cmd.Flags().BoolVar(&f.protections, "protections", false, "say what each protection of nodes costs a day")
	cmd.Flags().StringVar(&f.by, "protections-by", "", "sum protections up by namespace, or by a label of pods")
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runStatus(ctx context.Context, f statusFlags, term terminalOutput) error {
	if f.watch && (f.every < leastEvery || f.every > mostEvery) {
		return &inputError{fmt.Errorf("--every is %s; use 1s, for the API server's sake, to 1h", f.every)}
	}
	l, err := f.connectCluster()
	if err != nil {
		return err
	}
	if f.watch && f.html == "" && f.output.form == "table" && term.colour {
		term.frame = newFrame(withoutFilter(term.out))
		defer term.frame.end()
	}
	functions, err := f.readFunctions(ctx)
	if err != nil {
		return err
	}
	for shown := false; ; shown = true {
		v, err := f.readView(ctx, term, l, shown)
		v.Functions = functions
		if err == nil {
			err = f.showView(term, l, v)
		}
		if f.watch && ctx.Err() != nil {
			return nil // interrupted, as it is meant to be
		}
		if err != nil || !f.watch {
			return err
		}
		if restFor(ctx, f.every) != nil {
			return nil
		}
	}
}

// readView reads the cluster; again leaves out what was said before.
func (f statusFlags) readView(ctx context.Context, term terminalOutput, l clusterLink, again bool) (status.View, error) {
	if again {
		term.progress = &bytes.Buffer{}
		term.live = false
	}
	start := time.Now()
	s, err := f.readSnapshot(ctx, term, l)
	if err != nil {
		return status.View{}, err
	}
	s.Rules = cluster.Settings{}
	memory, err := store.NewDisruptionMemory[disruption.Memory](l.kube).ReadMemory(ctx)
	if err != nil {
		memory = disruption.Memory{} // only says less about what disruption has in mind
	}
	read, v := time.Now(), status.View{}
	err = term.withProgress("asking what becomes of nodes and pods", func() error { // it cannot fail
		offerings := binpack.ResolveOfferings(s)
		resolved := time.Now()
		v = status.ViewOf(s, memory, offerings)
		if f.html != "" {
			addHelp(v.Pending, s, offerings)
		}
		if f.protections || f.by != "" {
			v.Protections = whatif.Protections(s, memory, offerings, protectionsBy(s, f.by), whatif.Limits{})
		}
		v.Steps = []status.Step{{Name: "reading the cluster", Took: read.Sub(start)},
			{Name: "resolving offerings", Took: resolved.Sub(read)},
			{Name: "deciding about nodes and pods", Took: time.Since(resolved)}}
		return nil
	})
	return v, err
}

// addHelp adds to the outlook of the first pods that get no node, by turns of namespaces, what would help.
func addHelp(all []status.Pod, s cluster.Snapshot, sells binpack.Offerings) {
	said := map[string]string{}
	for _, i := range fairshare.Turns(lists.Of(all, func(p status.Pod) string { return namespaceOf(p.Name) })) {
		p := &all[i]
		help, known := said[p.Outlook]
		if !known && p.Lost && len(said) < mostAskedGroups {
			if a := whatif.ForPod(s, sells, p.Name, whatif.Limits{}); len(a.Changes) > 0 {
				help = "; would help: " + a.Changes[0].String()
			}
			said[p.Outlook] = help
		}
		p.Outlook += help
	}
}

// protectionsBy names the sum that a protection is a part of: its namespace, or the value of a label of its pods.
func protectionsBy(s cluster.Snapshot, by string) func(e whatif.Edit) string {
	switch by {
	case "":
		return nil
	case "namespace":
		return func(e whatif.Edit) string { return e.Namespace }
	}
	values := map[string]string{}
	for _, p := range s.Pods {
		if v := p.Labels[by]; v != "" {
			values["Pod "+p.Key()] = by + "=" + v
		}
	}
	return func(e whatif.Edit) string { return values[e.Object()] }
}

func (f statusFlags) showView(term terminalOutput, l clusterLink, v status.View) error {
	if f.html != "" {
		return writePage(f.html, l.name, v, term)
	}
	return term.showAnswer(f.output, v, func() error {
		text := statusTable(term, v)
		if term.frame != nil {
			return term.frame.draw(text)
		}
		return term.writeText(text)
	})
}

// writePage replaces the file at once, so that a browser never sees half of it.
func writePage(path, name string, v status.View, term terminalOutput) error {
	var b bytes.Buffer
	if err := status.WritePage(&b, name, v); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".joiner-*")
	if err != nil {
		return &inputError{fmt.Errorf("write %s: %w", path, err)}
	}
	_, err = controlFilter{to: tmp}.Write(b.Bytes())
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name()) // it may be renamed already
		return fmt.Errorf("write %s: %w", path, err)
	}
	term.writeMessage("wrote %s: %d nodes, %.4f USD/h, %d pods wait", path, v.Total.Nodes, v.Total.HourlyUSD,
		len(v.Pending))
	return nil
}

const (
	barWidth    = 10
	mostPending = 20
)

func statusTable(term terminalOutput, v status.View) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d nodes, %d pods, %.4f USD/h%s   cpu %s of %s   memory %s of %s GiB\n", v.Total.Nodes,
		v.Total.Pods, v.Total.HourlyUSD, unpricedNodes(v.Total),
		fillBar(term, v.Total.CPU), status.FormatCores(v.Total.CPU.Room), fillBar(term, v.Total.Memory),
		status.GiB(v.Total.Memory.Room))
	for _, line := range status.PriceLines(v.Total.HourlyUSD, v.Total.Parts) {
		b.WriteString(line + "\n")
	}
	b.WriteString("\n")
	for _, p := range v.Pools {
		name := p.Name
		if name == "" {
			name = "not from a NodePool"
		}
		fmt.Fprintf(&b, "%s: %d nodes, %d pods, %.4f USD/h%s, cpu %s, memory %s\n", term.paintText(name, text.Bold),
			p.Sum.Nodes, p.Sum.Pods, p.Sum.HourlyUSD,
			unpricedNodes(p.Sum), status.FormatPercent(p.Sum.CPU),
			status.FormatPercent(p.Sum.Memory)+strings.Join(append([]string{""}, status.PoolRemarks(p)...), ", "))
		if p.Problem != "" {
			b.WriteString(term.paintText(p.Problem, text.FgRed) + "\n")
		}
		if len(p.Nodes) > 0 {
			b.WriteString(poolTable(term, p) + "\n")
		}
		b.WriteString("\n")
	}
	if len(v.Functions) > 0 {
		b.WriteString(functionTable(v.Functions) + "\n\n")
	}
	for _, line := range v.Rollouts {
		b.WriteString(line + "\n")
	}
	for _, line := range status.BufferLines(v) {
		b.WriteString(line + "\n")
	}
	for _, p := range v.Protections {
		b.WriteString(p.String() + "\n")
	}
	if len(v.Pending) > 0 {
		b.WriteString(pendingTable(term, v) + "\n")
	}
	return b.String()
}

func unpricedNodes(s status.Sum) string {
	if s.Unpriced == 0 {
		return ""
	}
	return fmt.Sprintf(" (without %d of unknown price)", s.Unpriced)
}

// poolTable lists the nodes of a NodePool; where many would fill a screen that is drawn again and again, it lists their
// instance types.
func poolTable(term terminalOutput, p status.NodePool) string {
	if term.frame == nil || len(p.Nodes) <= status.MostUnfolded {
		return nodesTable(term, p.Nodes)
	}
	t := newTable("type", "nodes", "USD/h", "pods", "cpu", "memory", "may go", "phase")
	list, more := status.SumByType(p.Nodes)
	for _, k := range list {
		t.AppendRow(table.Row{strings.TrimSpace(cmp.Or(k.Type, "unknown") + " " + k.CapacityType), k.Sum.Nodes,
			fmt.Sprintf("%.4f", k.Sum.HourlyUSD), k.Sum.Pods, fillBar(term, k.Sum.CPU), fillBar(term, k.Sum.Memory), k.MayGo,
			status.FormatPhases(k.Phases)})
	}
	if more > 0 {
		t.AppendRow(table.Row{fmt.Sprintf("and %d more", more)})
	}
	return t.Render()
}

func nodesTable(term terminalOutput, nodes []status.Node) string {
	t := newTable("node", "type", "phase", "USD/h", "age", "pods", "cpu", "memory", "disruption")
	for _, n := range nodes {
		what := strings.TrimSpace(n.Type + " " + n.CapacityType + " " + n.Zone)
		may := "stays: "
		if n.MayGo {
			may = "may go: "
		}
		t.AppendRow(table.Row{n.Name, what, n.Phase, status.FormatUSD(n), status.FormatAge(n.Age), n.Pods,
			fillBar(term, n.CPU) + " of " + status.FormatCores(n.CPU.Room), fillBar(term, n.Memory) + " of " +
				status.GiB(n.Memory.Room), may + n.Why})
	}
	return t.Render()
}

func pendingTable(term terminalOutput, v status.View) string {
	t := newTable("pod that waits", "for", "outlook")
	for i, p := range v.Pending {
		if i == mostPending {
			t.AppendRow(table.Row{fmt.Sprintf("and %d more", len(v.Pending)-mostPending), "", ""})
			break
		}
		outlook := text.WrapSoft(p.Outlook, width)
		if p.Lost {
			outlook = term.paintText(outlook, text.FgRed)
		}
		t.AppendRow(table.Row{p.Name, status.FormatAge(p.Waits), outlook})
	}
	out := t.Render()
	if v.Launches > 0 {
		out += fmt.Sprintf("\n%d new nodes for %.4f USD/h", v.Launches, v.AddsUSD)
	}
	return out
}

// fillBar draws a bar with its percentage, in colour on a terminal.
func fillBar(term terminalOutput, f status.FillLevel) string {
	colour := map[string]text.Color{"good": text.FgGreen, "fair": text.FgYellow, "poor": text.FgRed,
		"over": text.FgMagenta, "none": text.Faint}[status.FillGrade(f)]
	return term.paintText(status.DrawBar(f, barWidth), colour) + fmt.Sprintf(" %4s", status.FormatPercent(f))
}
