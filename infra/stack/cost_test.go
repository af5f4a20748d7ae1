package stack_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli/bill"
	"joiner.sh/pkg/settings"
)

// stackOf is what the template says of what it costs.
func stackOf(t *testing.T, tmpl template) bill.Stack {
	t.Helper()
	s := bill.Stack{TicksPerHour: map[string]float64{}}
	tmpl.each("AWS::Scheduler::Schedule", func(id string, p map[string]any) {
		every := regexp.MustCompile(`^rate\((\d+) minutes?\)$`).FindStringSubmatch(fmt.Sprint(p["ScheduleExpression"]))
		if every == nil {
			return
		}
		minutes, err := strconv.Atoi(every[1])
		if err != nil {
			t.Fatal(err)
		}
		s.TicksPerHour[strings.ToLower(strings.TrimSuffix(id, "Schedule"))] = 60 / float64(minutes)
	})
	tmpl.each("AWS::CloudWatch::Alarm", func(_ string, p map[string]any) { s.Alarms += len(readAlarm(t, p).Metrics) })
	tmpl.each("AWS::CloudWatch::Dashboard", func(string, map[string]any) { s.Dashboards++ })
	tmpl.each("AWS::Lambda::EventSourceMapping", func(string, map[string]any) { s.Queues++ })
	tmpl.each("AWS::Lambda::Function", func(_ string, p map[string]any) {
		s.Tracing = s.Tracing || strings.Contains(text(p["TracingConfig"]), "Active")
	})
	for _, f := range bill.Passes() {
		if s.TicksPerHour[f] == 0 {
			t.Fatalf("%s has no schedule", f)
		}
	}
	return s
}

// nodeHours is how long a node of the table lives.
const nodeHours = 10

// clusters are those of the table, with the memory that doctor recommends for them.
func clusters() (out []bill.Cluster) {
	for _, c := range []bill.Cluster{{Nodes: 3, Pools: 1}, {Nodes: 50, Pools: 2}, {Nodes: 500, Pools: 5}, {Nodes: 5000, Pools: 10}} {
		c.NodeHours, c.MemoryMiB = nodeHours, settings.RecommendFunctionMemory(c.Nodes, 0)
		out = append(out, c)
	}
	return out
}

// costTable is the table of infra/costs.md, with the sums outside of a VPC, and with interface endpoints in one.
func costTable(t *testing.T) (table string, sums, inEndpoints []float64) {
	t.Helper()
	s := stackOf(t, words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)})))
	if diff := cmp.Diff(bill.Usual(), s); diff != "" {
		t.Errorf("doctor counts with another stack (-doctor +template):\n%s", diff)
	}
	head, rule, sum := "| |", "|---|", "| sum |"
	var rows []string
	var cells [][]string
	inVPC := 0 // the first line of those
	for _, c := range clusters() {
		lines, err := bill.Estimate(s, c)
		if err != nil {
			t.Fatal(err)
		}
		outside := bill.Sum(lines)
		vpc, err := bill.InVPC(s, c, 4, 2)
		if err != nil {
			t.Fatal(err)
		}
		inVPC = len(lines)
		for i, l := range append(lines, vpc...) {
			if len(rows) == i {
				rows, cells = append(rows, l.What), append(cells, nil)
			}
			cells[i] = append(cells[i], l.How, fmt.Sprintf("%.2f", l.USD))
		}
		head += fmt.Sprintf(" %d nodes, %d MiB | USD |", c.Nodes, c.MemoryMiB)
		rule += "---|---:|"
		sum += fmt.Sprintf(" | **%.2f** |", outside)
		sums, inEndpoints = append(sums, outside), append(inEndpoints, outside+vpc[0].USD)
	}
	table = head + "\n" + rule + "\n"
	for i, what := range rows {
		if i == inVPC {
			table += sum + "\n"
		}
		if i >= inVPC {
			what = "in a VPC: " + what
		}
		table += "| " + what + " | " + strings.Join(cells[i], " | ") + " |\n"
	}
	return table, sums, inEndpoints
}

// TestPagesSayWhatItCosts compares the tables of infra/README.md and infra/costs.md with the template and with what was
// measured; `make golden` rewrites them. The claim beside the alternatives is that of a cluster of up to 500 nodes.
func TestPagesSayWhatItCosts(t *testing.T) {
	table, sums, inEndpoints := costTable(t)
	if small := sums[0]; small > 15 {
		t.Errorf("a cluster of 3 nodes costs %.2f USD a month, which should be under 15", small)
	}
	front, err := os.ReadFile("../../functions/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	claim := fmt.Sprintf("%.0f to %.0f USD a month for 3 to 500 nodes", sums[0], sums[2])
	if !strings.Contains(string(front), claim) {
		t.Errorf("functions/differences.md does not say %q", claim)
	}
	ticks, nodes, sizes, err := bill.How()
	if err != nil {
		t.Fatal(err)
	}
	table += fmt.Sprintf("\nMeasured for %s nodes, with 30 pods on each:\n\n", strings.Join(sizes, ", "))
	table += "- processor time, requests and bytes of the API server of a tick: " + ticks + "\n" +
		"- what passes write, and what the life of a node adds: " + nodes + "\n\nOther sizes are in proportion. Assumed:\n\n"
	for _, a := range bill.Assumptions(nodeHours) {
		table += "- " + a + "\n"
	}
	const begin, end = "checked against the template -->\n", "<!-- end of costs -->"
	generated(t, "../costs.md", begin, end, table)
	short := "| nodes | memory | USD a month | in a VPC with endpoints |\n|---:|---:|---:|---:|\n"
	for i, c := range clusters() {
		short += fmt.Sprintf("| %d | %d MiB | %.2f | %.2f |\n", c.Nodes, c.MemoryMiB, sums[i], inEndpoints[i])
	}
	generated(t, "../README.md", begin, end, short)
}

// generated compares a part of a page with what it is made from, or rewrites it.
func generated(t *testing.T, page, begin, end, want string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lost the comments %q and %q", page, begin, end)
	}
	if got == want {
		return
	}
	if flag.Lookup("rewrite").Value.String() != "true" {
		t.Fatalf("%s is out of date before %q; run make golden", page, end)
	}
	if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What instances of others cost is said with traces and without.
func TestForeignInstancesCostWhatThePageSays(t *testing.T) {
	raw, err := os.ReadFile("../costs.md")
	if err != nil {
		t.Fatal(err)
	}
	s := bill.Usual()
	traced := bill.ForeignInstances(s, 1e6)
	s.Tracing = false
	want := fmt.Sprintf("%.0f USD for a million of them a month, without `tracing` %.0f USD", traced, bill.ForeignInstances(s, 1e6))
	if !strings.Contains(strings.Join(strings.Fields(string(raw)), " "), want) {
		t.Errorf("infra/costs.md does not say %q", want)
	}
}

// TestAFloodCostsWhatThePageSays works out the most that calls of the function behind the webhook can cost.
func TestAFloodCostsWhatThePageSays(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "trigger": "push",
		"functionMemory": "512"}))
	const callsPerSecond = 10 // of a URL, for each reserved concurrent invocation
	var wake, woken float64
	tmpl.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		const given, called = 512.0 / 1024, 128.0 / 1024
		gb, at := given, p["ReservedConcurrentExecutions"]
		switch id {
		case "Wake":
			if gb = called; p["MemorySize"] != 128.0 {
				t.Errorf("wake has %v MiB", p["MemorySize"])
			}
			seconds := bill.HoursPerMonth * 3600 * at.(float64)
			wake = seconds*callsPerSecond*bill.PerRequest + seconds*gb*bill.PerGBSecond
		case "Provision", "Lifecycle":
			woken += bill.HoursPerMonth * 3600 * at.(float64) * gb * bill.PerGBSecond
		}
	})
	raw, err := os.ReadFile("../costs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("| **%.2f** |", wake), fmt.Sprintf("$0.0000133334 | %.2f |", woken)} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("infra/costs.md does not say %q of a flood", want)
		}
	}
}
