package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Every function works in a cluster of 200 nodes within the memory and the processor share that it has, ends in order,
// and asks the API server for no more than it does today. How long it takes is not asserted: machines differ.
func TestFunctionsWorkInAClusterOf200Nodes(t *testing.T) {
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	w := wish{nodes: 200, pods: 6000, many: 100, struck: 10, gap: 3 * time.Second}
	s, err := w.measureSize(t.Context(), root, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range s.Rows {
		seen[r.Function] = true
		if r.TimedOut+r.Killed+r.Failed > 0 {
			t.Errorf("%s: %s: %d timed out, %d were killed, %d failed", r.Case, r.Function, r.TimedOut, r.Killed, r.Failed)
		}
		if r.PeakMB > r.MemoryMB {
			t.Errorf("%s: %s took %d MB of %d", r.Case, r.Function, r.PeakMB, r.MemoryMB)
		}
		if r.Waiting > 0 {
			t.Errorf("%s: %d pods have no node", r.Case, r.Waiting)
		}
		if strings.HasPrefix(r.Case, "100 pods wait") && r.Function == "" && r.Launched == 0 {
			t.Errorf("%s: nothing was launched", r.Case)
		}
		if n := r.Traffic["patch nodeclaims/status"].Requests; r.Case == idleWarm && n > 0 {
			t.Errorf("%s: %s writes %d statuses of claims about which nothing has changed", r.Case, r.Function, n)
		}
		if most := mostRequests[r.Function]; r.Case == heartbeats && r.Traffic.sumTraffic().Requests > most {
			t.Errorf("%s: %s makes %d requests, at most %d: %v", r.Case, r.Function, r.Traffic.sumTraffic().Requests, most, r.Traffic)
		}
	}
	for f := range noticeKinds() {
		if !seen[f] {
			t.Errorf("%s did not run", f)
		}
	}
	for _, f := range append(scheduledFunctions(), "wake") {
		if !seen[f] {
			t.Errorf("%s did not run", f)
		}
	}
}

// mostRequests of an idle tick to the API server.
var mostRequests = map[string]int{"provision": 12, "lifecycle": 60, "disrupt": 100, "refresh": 15}

func TestSaveReplacesTheSizeAlone(t *testing.T) {
	dir := t.TempDir()
	data, page := filepath.Join(dir, "scale.json"), filepath.Join(dir, "scale.md")
	for _, s := range []size{
		{Nodes: 500, Pods: 15000, Rows: []row{{Case: "old", Function: "provision"}}},
		{Nodes: 50, Pods: 1500, Rows: []row{{Case: "small", Function: "provision"}}},
		{Nodes: 500, Pods: 15000, Load: [2]float64{1, 12}, CutShort: "EC2 is away",
			Rows: []row{{Case: "new", Function: "provision", Killed: 1}}},
	} {
		if err := (files{data, page, filepath.Join(dir, "bill.json")}).saveSize(s); err != nil {
			t.Fatal(err)
		}
	}
	text := read(t, page)
	small, fresh := strings.Index(text, "| small |"), strings.Index(text, "| new |")
	if small < 0 || fresh < small || strings.Contains(text, "| old |") || !strings.Contains(text, "**1 killed**") ||
		!strings.Contains(text, "load average 1 before and 12 after") || !strings.Contains(text, "cases are missing: EC2 is away.") {
		t.Errorf("page:\n%s", text)
	}
}

func TestGoalsAreAnsweredForEachSize(t *testing.T) {
	text := summaryTable([]size{
		{Nodes: 500, Pods: 15000, MemoryMB: 512, Rows: []row{
			{Case: heartbeats, Function: "provision", CPU: 0.04, PeakMB: 256, MemoryMB: 512},
			{Case: heartbeats, Function: "lifecycle", CPU: 0.11, PeakMB: 128, MemoryMB: 512},
			{Case: waitingCase(500, false), Launched: 9, Marked: 8.5, LastFleet: 13.25},
			{Case: "100 " + noticed, Launched: 93, MostFleet: 9.25, LastFleet: 11.5}}},
		{Nodes: 200, Pods: 6000, MemoryMB: 512, Rows: []row{{Case: "100 " + noticed}}}})
	for _, want := range []string{"|  | 500 nodes, 15000 pods, 512 MiB | 200 nodes, 6000 pods, 512 MiB |",
		"| the same under heartbeats: CPU s | 0.11 (0.3) |  |", "| and marked by kube-scheduler as without a node after: s | 8.5 |  |",
		"| most memory: % of the size | 50 (70) |  |",
		"| 100 nodes interrupted to the last CreateFleet: s | 11.5 (12) | none needed |",
		"| of these, until nine of ten nodes were asked for: s | 9.2 |  |"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestAnIdleMonthIsReckonedFromTicks(t *testing.T) {
	s := size{MemoryMB: 1024, Rows: []row{{Case: heartbeats, Function: "provision", Wall: 1}, {Case: heartbeats, Function: "refresh", Wall: 10},
		{Case: idleCold, Function: "lifecycle", Wall: 100}}}
	// 43,800 and 8,760 ticks of 1 and 10 GB-seconds at 13.3334 USD a million, and 0.2 USD for a million requests.
	for _, want := range []string{"| provision | 43800 | 1.00 | 0.59 |", "| refresh | 8760 | 10.00 | 1.17 |", "1.76"} {
		if got := s.idleMonth(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheRoundInTheMiddleCounts(t *testing.T) {
	round := func(last float64, peak int64, timedOut int) []row {
		return []row{{Function: "provision", Wall: last, PeakMB: peak, TimedOut: timedOut}, {LastFleet: last}}
	}
	got := middleRound([][]row{round(17, 90, 1), round(8, 70, 0), round(9, 80, 0)})
	want := []row{{Function: "provision", Wall: 9, PeakMB: 90, TimedOut: 1},
		{LastFleet: 9, Rounds: []float64{8, 9, 17}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
