package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joiner.sh/pkg/testing/plancheck"
	"joiner.sh/pkg/workload"
)

// The whole program on one small workload: both sides run, are judged, and the table is written.
func TestBench(t *testing.T) {
	out := filepath.Join(t.TempDir(), "results.md")
	b := bench{out: out, resolved: "../../../pkg/model/instancetypes/testdata/resolved-types.json.gz", patience: 1 << 40}
	if err := b.withInputs(func() error { return b.runWorkloads([]string{"../../../pkg/cli/testdata/shop.yaml"}) }); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Karpenter " + peerVersion, "| shop | 7 | 1 |", "| 0.10 | 1 | 3 | valid |", "| 1.00 |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestFolder(t *testing.T) {
	b := bench{folder: "workloads"}
	got, err := b.workloadFiles()
	if err != nil {
		t.Fatal(err)
	}
	want := "workloads/w1-od.json workloads/w1.json workloads/w2-2000.json.gz workloads/w2-500.json.gz workloads/w2-5000.json.gz workloads/w3.json.gz"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("samples: %s", s)
	}
	b.folder = t.TempDir()
	if _, err := b.workloadFiles(); err == nil {
		t.Error("an empty folder gives no error")
	}
}

func TestFaultsAndMeans(t *testing.T) {
	side := func(usd, cpu float64, bad ...string) *side {
		return &side{plan: workload.Placement{PlanUserSeconds: cpu}, report: plancheck.Report{HourlyUSD: usd, Violations: bad}}
	}
	rows := []row{
		{workload: "a", pods: 5000, joiner: side(1, 0.1), karpenter: side(2, 10, "Karpenter's are its own affair")},
		{workload: "b", pods: 5000, joiner: side(1, 0.1), karpenter: side(8, 40)},
		{workload: "small", pods: 10, joiner: side(1, 1), karpenter: side(4, 1)},
		{workload: "alone", pods: 9000, joiner: side(1, 1)},
	}
	if err := findFaults(rows, nil); err != nil {
		t.Errorf("faults: %v", err)
	}
	want := "In the geometric mean Karpenter's fleets cost 4.00 times Joiner's; with 2000 pods and more it takes 200 times the CPU."
	if got := summaryText(rows); got != want {
		t.Errorf("summary: %s", got)
	}
	rows[3].joiner = side(1, 1, "too full")
	if err := findFaults(rows, nil); err == nil || !strings.Contains(err.Error(), "alone: too full") {
		t.Errorf("a fault of ours gives %v", err)
	}
	rows[3].joiner, rows[3].full = side(1, 1), side(1, 1, "too expensive")
	if err := findFaults(rows, nil); err == nil || !strings.Contains(err.Error(), "alone: too expensive") {
		t.Errorf("a fault of a plan by full prices gives %v", err)
	}
	rows[3].full = side(1.1, 1)
	rows[0].joiner.plan.LowerBoundUSD = 1.5
	if err := findFaults(rows, nil); err == nil || !strings.Contains(err.Error(), "a: the bound is 1.500000 USD/h") {
		t.Errorf("a bound above our own price gives %v", err)
	}
	rows[0].joiner.plan.LowerBoundUSD = 0.5
	rows[1].joiner.report.Unplaced = 2
	if err := findFaults(rows, nil); err == nil || !strings.Contains(err.Error(), "finds a place for 2 pods more") {
		t.Errorf("pods that only Karpenter places give %v", err)
	}
}

// What large workloads took is beside the table, and what is wrong with them is a fault as well.
func TestLarge(t *testing.T) {
	list := []solo{
		{Workload: "big", Pods: 50000, Seconds: 1.25, CPU: 1.2, MiB: 170, USD: 110, Bound: 100, NewNodes: 300,
			Full: 120.5, BestBound: 101, Allocations: 1_234_567},
		{Workload: "bad", Pods: 10, Running: 130000, Nodes: 5000, Faults: 2, Fault: "claim 1: too full"},
	}
	text := resultsPage(nil, list)
	for _, want := range []string{"| big | 50000 | 0 | 0 | 1.250 | 1.200 | 170 | 110.00 | 300 | 0 | valid | 100.00 | 10.0 % | 0.99 % | 120.50 | 1.23 M |", "| 2 faults |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if err := findFaults(nil, list); err == nil || !strings.Contains(err.Error(), "bad: claim 1: too full") {
		t.Errorf("faults: %v", err)
	}
	list[0].BestBound = 110.5
	if err := findFaults(nil, list[:1]); err == nil || !strings.Contains(err.Error(), "big: the bound is 110.500000 USD/h") {
		t.Errorf("a bound above the price gives %v", err)
	}
	if strings.Contains(resultsPage(nil, nil), "Large") {
		t.Error("a heading without a table")
	}
}
