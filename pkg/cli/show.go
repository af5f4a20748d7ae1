package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/workload"
)

func writeJSON(w io.Writer, what any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(what); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// showAnswer writes an answer in the form asked for, of which each command makes its own table.
func (t terminalOutput) showAnswer(as outputForm, what any, table func() error) error {
	switch as.form {
	case "json":
		return writeJSON(t.out, what)
	case "yaml":
		return writeYAML(t.out, what)
	}
	return table()
}

func writeYAML(w io.Writer, what any) error {
	b, err := json.Marshal(what)
	if err == nil { // YAML takes no control as it is
		b, err = yaml.JSONToYAML([]byte(controlFilter{}.clean(string(b))))
	}
	if err == nil {
		_, err = w.Write(b)
	}
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return nil
}

// mostNames caps the groups of pods that a line of the table names.
const mostNames = 3

// width is the width of reasons in the table, in characters, where the terminal does not say otherwise.
const width = 110

func showTable(term terminalOutput, p workload.Placement) error {
	var b strings.Builder
	render := func(t table.Writer) { b.WriteString(t.Render() + "\n\n") }
	if len(p.NodeClaims) > 0 {
		render(newNodes(p))
	}
	if len(p.OnExisting) > 0 {
		t := newTable("existing node", "pods", "of")
		for _, n := range p.OnExisting {
			t.AppendRow(table.Row{n.Node, totalRow(n.Pods), nameLargest(n.Pods)})
		}
		render(t)
	}
	if len(p.Unplaced) > 0 {
		t := newTable("unschedulable", "pods", "why")
		for _, u := range p.Unplaced {
			var why []string
			for _, r := range u.Reasons { // each on lines of its own
				why = append(why, text.WrapSoft(r, term.reasonWidth()))
			}
			for _, c := range u.WouldHelp {
				why = append(why, text.WrapSoft("would help: "+c, term.reasonWidth()))
			}
			t.AppendRow(table.Row{term.paintText(u.Group, text.FgYellow), u.Count, strings.Join(why, "\n")})
		}
		render(t)
	}
	b.WriteString(lastLine(p) + "\n")
	return term.writeText(b.String())
}

func (t terminalOutput) writeText(text string) error {
	if _, err := io.WriteString(t.out, text); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

func newTable(columns ...any) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row(columns))
	return t
}

// newNodes has one line for all new nodes that are alike.
func newNodes(p workload.Placement) table.Writer {
	type key struct{ pool, typ, zone, capacity string }
	count, pods := map[key]int{}, map[key]map[string]int{}
	price := map[key]float64{}
	var order []key
	for _, c := range p.NodeClaims {
		k := key{c.NodePool, c.InstanceType, c.Zone, c.CapacityType}
		if count[k]++; count[k] == 1 {
			order = append(order, k)
			pods[k] = map[string]int{}
		}
		price[k] += c.HourlyUSD
		for g, n := range c.Pods { // sums do not depend on the order
			pods[k][g] += n
		}
	}
	slices.SortFunc(order, func(a, b key) int {
		return slices.Compare([]string{a.pool, a.typ, a.capacity, a.zone}, []string{b.pool, b.typ, b.capacity, b.zone})
	})
	t := newTable("new nodes", "type", "capacity type", "zone", "pool", "USD/h", "pods", "of")
	for _, k := range order {
		t.AppendRow(table.Row{count[k], k.typ, k.capacity, k.zone, k.pool, fmt.Sprintf("%.4f", price[k]),
			totalRow(pods[k]), nameLargest(pods[k])})
	}
	return t
}

func lastLine(p workload.Placement) string {
	var volumes, declared float64
	for _, c := range p.NodeClaims {
		volumes += c.NodeUSD - c.DeclaredUSD
		declared += c.DeclaredUSD
	}
	var beside []string
	if volumes > 0 {
		beside = append(beside, fmt.Sprintf("volumes and addresses: %.4f", volumes))
	}
	if declared > 0 {
		beside = append(beside, fmt.Sprintf("declared: %.4f", declared))
	}
	price := fmt.Sprintf("%.4f USD/h", p.HourlyUSD)
	if len(beside) > 0 {
		price += " (" + strings.Join(beside, ", ") + ")"
	}
	s := fmt.Sprintf("%s: %d pods, %d new nodes, %s, %d unschedulable; packed in %.3f s",
		p.Workload, p.Pods, len(p.NodeClaims), price, p.CountUnplaced(), p.PlanSeconds)
	if p.PreferencesUSD >= 0.00005 {
		s += fmt.Sprintf("; preferences kept: %.4f USD/h", p.PreferencesUSD)
	}
	if p.Gap != nil && p.LowerBoundUSD > 0 {
		s += fmt.Sprintf("; lower bound %.4f USD/h (gap %.1f %%)", p.LowerBoundUSD, 100**p.Gap)
	}
	return s
}

func totalRow(pods map[string]int) int {
	sum := 0
	for _, n := range pods { // sums do not depend on the order
		sum += n
	}
	return sum
}

// nameLargest names the largest groups and says how many more there are.
func nameLargest(pods map[string]int) string {
	names := slices.Sorted(maps.Keys(pods))
	slices.SortStableFunc(names, func(a, b string) int { return pods[b] - pods[a] })
	parts := lists.Of(names[:min(len(names), mostNames)],
		func(n string) string { return fmt.Sprintf("%s %d", n, pods[n]) })
	if more := len(names) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more groups", more))
	}
	return strings.Join(parts, ", ")
}
