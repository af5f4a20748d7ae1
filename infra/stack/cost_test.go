package stack_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Prices of us-east-1 in USD, without free tiers.
const (
	hoursPerMonth = 730
	perRequest    = 0.20 / 1e6
	perGBSecond   = 0.0000133334 // arm64
	perTrace      = 5.0 / 1e6
	perMetric     = 0.30
	perAlarm      = 0.10
	perDashboard  = 3.00
	perGBLog      = 0.50
	perPut        = 5.0 / 1e6
	perGet        = 0.4 / 1e6
)

// month is a month of a cluster: what the functions do beside the number of them, which the template says.
type month struct {
	name    string
	seconds map[string]float64 // of one tick of a function
	events  float64            // and wake-ups, each a second
	metrics int                // of the cluster, by pools and capacity types, and by reasons
	logGB   float64
}

func months() []month {
	const pools, capacityTypes, reasons = 5, 2, 8
	return []month{
		{"idle: no node, nothing pending", map[string]float64{"provision": 0.3, "lifecycle": 0.3, "disrupt": 0.3, "refresh": 3}, 0, 5, 0.14},
		{"busy: 500 nodes, a launch every minute", map[string]float64{"provision": 55, "lifecycle": 55, "disrupt": 5, "refresh": 10}, 20_000,
			5 + pools*capacityTypes*2 + reasons + 5, 10},
	}
}

// cost is what a month costs, line by line, from the resources of the template.
func cost(t *testing.T, tmpl template, m month) (lines [][2]string, sum float64) {
	t.Helper()
	ticks, perFunction, gb := 0.0, map[string]float64{}, 0.0
	tmpl.each("AWS::Scheduler::Schedule", func(id string, p map[string]any) {
		every := regexp.MustCompile(`^rate\((\d+) minutes?\)$`).FindStringSubmatch(fmt.Sprint(p["ScheduleExpression"]))
		if every == nil {
			return
		}
		minutes, err := strconv.Atoi(every[1])
		if err != nil {
			t.Fatal(err)
		}
		n := float64(hoursPerMonth * 60 / minutes)
		perFunction[strings.ToLower(strings.TrimSuffix(id, "Schedule"))] = n
		ticks += n
	})
	tmpl.each("AWS::Lambda::Function", func(_ string, p map[string]any) { gb = max(gb, p["MemorySize"].(float64)/1024) })
	invocations, seconds, how := ticks+m.events, m.events, ""
	for _, f := range []string{"provision", "lifecycle", "disrupt", "refresh"} {
		if perFunction[f] == 0 || m.seconds[f] == 0 {
			t.Fatalf("%s has no schedule or no seconds", f)
		}
		seconds += perFunction[f] * m.seconds[f]
		how += fmt.Sprintf("%s %s × %v s, ", f, thousands(perFunction[f]), m.seconds[f])
	}
	if len(perFunction) != len(m.seconds) {
		t.Fatalf("functions with a schedule: %v; how long they take: %v", perFunction, m.seconds)
	}
	alarms, boards := 0.0, 0.0
	tmpl.each("AWS::CloudWatch::Alarm", func(string, map[string]any) { alarms++ })
	tmpl.each("AWS::CloudWatch::Dashboard", func(string, map[string]any) { boards++ })
	add := func(how string, usd float64) {
		sum += usd
		lines = append(lines, [2]string{how, fmt.Sprintf("%.2f", usd)})
	}
	add(fmt.Sprintf("%s ticks, %s events and wake-ups", thousands(ticks), thousands(m.events)), invocations*perRequest)
	add(fmt.Sprintf("%s%s events × 1 s: %s s at %v GB", how, thousands(m.events), thousands(seconds), gb), seconds*gb*perGBSecond)
	add(thousands(invocations)+" traces", invocations*perTrace)
	add(fmt.Sprintf("%d metrics", m.metrics), float64(m.metrics)*perMetric)
	add(fmt.Sprintf("%v alarms", alarms), alarms*perAlarm)
	add(fmt.Sprintf("%v dashboard", boards), boards*perDashboard)
	add(fmt.Sprintf("%v GB of log", m.logGB), m.logGB*perGBLog)
	puts, gets := perFunction["refresh"], ticks
	add(fmt.Sprintf("S3: at most %s PUTs, %s GETs", thousands(puts), thousands(gets)), puts*perPut+gets*perGet)
	return lines, sum
}

// thousands writes a whole number with commas.
func thousands(n float64) string {
	s := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// costTable is the table of infra/README.md.
func costTable(t *testing.T) (table string, sums []float64) {
	t.Helper()
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}))
	what := []string{"requests at $0.20 a million", "seconds at $0.0000133334 a GB-second (arm64)", "traces at $5 a million (`tracing`)", "metrics at $0.30",
		"alarms at $0.10", "dashboard", "log at $0.50 a GB", "S3 at $5 and $0.40 a million"}
	all := months()
	rows := make([][]string, len(what))
	head, rule, sum := "| |", "|---|", "| sum |"
	for _, m := range all {
		lines, total := cost(t, tmpl, m)
		for i, l := range lines {
			rows[i] = append(rows[i], l[0], l[1])
		}
		head += " " + m.name + " | USD |"
		rule += "---|---:|"
		sum += fmt.Sprintf(" | **%.2f** |", total)
		sums = append(sums, total)
	}
	table = head + "\n" + rule + "\n"
	for i, r := range rows {
		table += "| " + what[i] + " | " + strings.Join(r, " | ") + " |\n"
	}
	return table + sum + "\n", sums
}

// TestReadmeSaysWhatItCosts compares the table of infra/README.md with the template; `make golden` rewrites it.
func TestReadmeSaysWhatItCosts(t *testing.T) {
	table, sums := costTable(t)
	if idle := sums[0]; idle > 15 {
		t.Errorf("an idle cluster costs %.2f USD a month, which should be under 15", idle)
	}
	raw, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	const traces = 140_160 * perTrace
	if want := fmt.Sprintf("`dashboard` and `tracing` off an idle cluster costs $%.2f", sums[0]-perDashboard-traces); !strings.Contains(string(raw), want) {
		t.Errorf("infra/README.md does not say %q", want)
	}
	generated(t, "checked against the template -->\n", "<!-- end of costs -->", table)
}

// generated compares a part of infra/README.md with what it is made from, or rewrites it.
func generated(t *testing.T, begin, end, want string) {
	t.Helper()
	const readme = "../README.md"
	raw, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s lost the comments %q and %q", readme, begin, end)
	}
	if got == want {
		return
	}
	if flag.Lookup("rewrite").Value.String() != "true" {
		t.Fatalf("%s is out of date before %q; run make golden", readme, end)
	}
	if err := os.WriteFile(readme, []byte(before+begin+want+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestAFloodCostsWhatTheReadmeSays works out the most that calls of the function behind the webhook can cost.
func TestAFloodCostsWhatTheReadmeSays(t *testing.T) {
	tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "push": true}))
	const callsPerSecond = 10 // of a URL, for each reserved concurrent invocation
	var wake, woken float64
	tmpl.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		gb, at := p["MemorySize"].(float64)/1024, p["ReservedConcurrentExecutions"]
		switch id {
		case "Wake":
			seconds := hoursPerMonth * 3600 * at.(float64)
			wake = seconds*callsPerSecond*perRequest + seconds*gb*perGBSecond
		case "Provision", "Lifecycle":
			woken += hoursPerMonth * 3600 * at.(float64) * gb * perGBSecond
		}
	})
	raw, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{fmt.Sprintf("| **%.2f** |", wake), fmt.Sprintf("$0.0000133334 | %.2f |", woken)} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("infra/README.md does not say %q of a flood", want)
		}
	}
}
