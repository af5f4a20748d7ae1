package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// size is what was measured in a cluster of one size.
type size struct {
	Nodes    int            `json:"nodes"`
	Pods     int            `json:"pods"`
	MemoryMB int64          `json:"memoryMB"`
	Date     string         `json:"date"`
	Kind     string         `json:"confinedBy"`
	Load     [2]float64     `json:"loadAverage"` // of the machine, before and after
	Objects  map[string]int `json:"bytesOfOne"`
	CutShort string         `json:"cutShort,omitempty"` // why the cases that lack were not measured
	// Metrics of CloudWatch that functions wrote when nothing was to be done, in all, and those of all that are of the
	// one NodePool.
	SeriesAtRest int   `json:"seriesAtRest,omitempty"`
	Series       int   `json:"series,omitempty"`
	SeriesOfPool int   `json:"seriesOfPool,omitempty"`
	Rows         []row `json:"rows"`
}

// files are where measurements go: their data, a page of all, and what the bill counts with.
type files struct {
	data, page, bill string
}

// saveSize puts the size beside those of the file, in place of the one with as many nodes, and writes the other files
// anew.
func (f files) saveSize(s size) error {
	all, err := f.readSizes()
	if err != nil {
		return err
	}
	all = append(slices.DeleteFunc(all, func(o size) bool { return o.Nodes == s.Nodes }), s)
	slices.SortFunc(all, func(a, b size) int { return cmp.Compare(a.Nodes, b.Nodes) })
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return fmt.Errorf("encode measurements: %w", err)
	}
	if err := os.WriteFile(f.data, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write measurements: %w", err)
	}
	return f.writePages(all)
}

// readSizes returns the sizes that were measured, none where there is no file.
func (f files) readSizes() (all []size, err error) {
	b, err := os.ReadFile(f.data)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("read measurements: %w", err)
	}
	return all, nil
}

// writePages makes the page and the bill's file of the measurements.
func (f files) writePages(all []size) error {
	if err := os.WriteFile(f.page, []byte(renderPage(all)), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	text, err := json.MarshalIndent(forBill(all), "", " ")
	if err != nil {
		return fmt.Errorf("encode what the bill counts with: %w", err)
	}
	if err := os.WriteFile(f.bill, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write what the bill counts with: %w", err)
	}
	return nil
}

// renderPage is the page.
func renderPage(all []size) string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# What clusters of many nodes cost\n\nWritten by `make scale`, measured on %d shared cores. ", runtime.NumCPU())
	out.WriteString("The settings are `trigger: push` and `disruption: report`. " +
		"A function has the processor share of its memory (1 vCPU for each 1,769 MiB); " +
		"the kernel kills one that takes more memory.\n\n" +
		"- **silent**: kubelets report nothing; **heartbeats**: the Node's status every 5 minutes, " +
		"its Lease every 10 seconds.\n" +
		"- **cold**: the first invocation in a process; **warm**: a later one.\n" +
		"- **wall**: of the longest invocation; **CPU**: of all together; **MiB read**: answers on the wire.\n")
	out.WriteString("\n## Goals\n\nIn parentheses, by size. The control plane, the kubelets and all functions share the cores. " +
		"So 100 notices start their processes one after the other, which Lambda starts at once: " +
		"a row says when the last was handled. " +
		"A pass that launches waits for a bookmark of the API server, which proves that it knows all that was stored before. " +
		"Cases in which nodes are launched are measured three times; the round in the middle counts, with the most memory and " +
		"the failures of all.\n\n" +
		summaryTable(all) + "\n")
	for _, s := range all {
		fmt.Fprintf(&out, "\n## %d nodes, %d pods, %d MiB\n\n", s.Nodes, s.Pods, s.MemoryMB)
		fmt.Fprintf(&out, "`make scale NODES=%d PODS=%d MEMORY=%d`, %s, limits enforced by %s, load average %.0f before and %.0f after. An object has %s.\n\n",
			s.Nodes, s.Pods, s.MemoryMB, s.Date, s.Kind, s.Load[0], s.Load[1], sizesOf(s.Objects))
		if s.CutShort != "" {
			fmt.Fprintf(&out, "The run ended early, so cases are missing: %s.\n\n", s.CutShort)
		}
		out.WriteString(s.functionTable() + "\n\n" + s.launchTable() + "\n\n" + s.idleMonth() + "\n")
	}
	return out.String()
}

func sizesOf(o map[string]int) string {
	return fmt.Sprintf("%.1f KB (pod), %.1f KB (node), %.1f KB (NodeClaim)",
		toKB(o["pod"]), toKB(o["node"]), toKB(o["NodeClaim"]))
}

func toKB(n int) float64 { return float64(n) / 1000 }

// functionTable is the table of what each function took.
func (s size) functionTable() string {
	t := newTable("case", "function", "invocations", "wall s", "CPU s", "peak MiB", "of the size", "ended", "requests", "MiB read", "most often")
	for _, r := range s.Rows {
		if r.Function == "" {
			continue
		}
		requests, read := r.requestSums()
		t.AppendRow(table.Row{r.Case, r.Function, r.Invocations, fmt.Sprintf("%.1f", r.Wall),
			fmt.Sprintf("%.2f", r.CPU), r.PeakMB,
			fmt.Sprintf("%.0f %%", 100*float64(r.PeakMB)/float64(max(1, r.MemoryMB))), r.endedText(), requests, read,
			strings.Join(r.Traffic.topKinds(3), ", ")})
	}
	return t.RenderMarkdown()
}

// requestSums are the requests and the MiB of their answers; empty where they were not counted.
func (r row) requestSums() (requests, read string) {
	if len(r.Traffic) == 0 {
		return "", ""
	}
	c := r.Traffic.sumTraffic()
	return fmt.Sprint(c.Requests), fmt.Sprintf("%.2f", float64(c.Bytes)/(1<<20))
}

func (r row) endedText() string {
	var out []string
	for _, one := range []struct {
		n    int
		what string
	}{{r.TimedOut, "timed out"}, {r.Killed, "killed"}, {r.Failed, "failed"}} {
		if one.n > 0 {
			out = append(out, fmt.Sprintf("**%d %s**", one.n, one.what))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "in order")
}

// launchTable is the table of cases in which nodes are launched.
func (s size) launchTable() string {
	t := newTable("case", "last pod made s", "marked s", "nodes launched", "first CreateFleet s", "last CreateFleet s", "every pod bound, or all nodes gone s", "control plane CPU s", "pods left", "requests", "MiB read",
		"most often")
	for _, r := range s.Rows {
		if r.Function != "" || len(r.Waits) > 0 {
			continue
		}
		requests, read := r.requestSums()
		t.AppendRow(table.Row{r.Case, shownSeconds(r.Created), shownSeconds(r.Marked), r.Launched,
			fmt.Sprintf("%.1f", r.FirstFleet), r.lastFleetText(),
			fmt.Sprintf("%.1f", r.Bound), shownSeconds(r.PlaneCPU), r.Waiting, requests, read, strings.Join(r.Traffic.topKinds(4), ", ")})
	}
	return t.RenderMarkdown()
}

// lastFleetText is when the last node was asked for, and when in the other rounds.
func (r row) lastFleetText() string {
	text := fmt.Sprintf("%.1f", r.LastFleet)
	if len(r.Rounds) > 1 {
		text += fmt.Sprintf(" of %.1f", r.Rounds)
	}
	return text
}

// shownSeconds shows what was measured, and nothing for what was not.
func shownSeconds(s float64) string {
	if s == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f", s)
}

// What Lambda charges on arm64 in us-west-2, and how often a function ticks in a month of 730 hours.
const (
	usdPerGBSecond = 0.0000133334
	usdPerRequest  = 0.0000002
	minutes        = 43800
)

func everyMinutes() map[string]int {
	return map[string]int{"provision": 1, "lifecycle": 1, "disrupt": 1, "refresh": 5}
}

// idleMonth reckons an idle month from the ticks under heartbeats.
func (s size) idleMonth() string {
	t := newTable("idle month, with heartbeats", "ticks", "wall s", "USD")
	rows := s.rowsOf(heartbeats, scheduledFunctions()...)
	for _, r := range rows {
		t.AppendRow(table.Row{r.Function, ticksInMonth(r.Function), fmt.Sprintf("%.2f", r.Wall),
			fmt.Sprintf("%.2f", s.monthOf(r))})
	}
	t.AppendFooter(table.Row{"together", "", "", fmt.Sprintf("%.2f", s.monthOf(rows...))})
	return t.RenderMarkdown()
}

// monthOf is what Lambda charges in a month for ticks of functions that are like the rows, in USD.
func (s size) monthOf(rows ...row) (usd float64) {
	for _, r := range rows {
		usd += float64(ticksInMonth(r.Function)) * (r.Wall*float64(s.MemoryMB)/1024*usdPerGBSecond + usdPerRequest)
	}
	return usd
}

func ticksInMonth(function string) int { return minutes / everyMinutes()[function] }

func newTable(header ...any) table.Writer {
	t := table.NewWriter()
	t.Style().Format.Header, t.Style().Format.Footer = text.FormatDefault, text.FormatDefault
	t.AppendHeader(header)
	return t
}
