package main

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
)

// question is a line of the summary: what is asked of a size, as its text, and what it is to be at most.
type question struct {
	what   string
	answer func(size) string
	most   [3]string // at 500, 2,000 and 5,000 nodes; empty where nothing is asked
}

// questions are the lines of the summary.
func questions() []question {
	idle := []string{"provision", "lifecycle"}
	return []question{
		{"idle pass of provision or lifecycle, silent: CPU s", mostCPU(idleWarm, idle...), [3]string{"0.1", "0.2", "0.4"}},
		{"the same: MiB read", mostRead(idleWarm, idle...), [3]string{"0.3", "0.5", "1"}},
		{"the same under heartbeats: CPU s", mostCPU(heartbeats, idle...), [3]string{"0.3", "0.6", "1"}},
		{"the same while 1 % of the pods are replaced a minute: CPU s", mostCPU(replaced, idle...),
			[3]string{"0.4", "1", "2.5"}},
		{"disrupt, its rotating part: CPU s", mostCPU(heartbeats, "disrupt"), [3]string{"1", "1.5", "2"}},
		{"waiting pod to CreateFleet, warm: s", lastFleet(waitingCase(1, false)), [3]string{"2", "2.5", "3"}},
		{"500 waiting pods to the last CreateFleet, warm: s", lastFleet(waitingCase(500, false)),
			[3]string{"6", "6", "8"}},
		{"the last of these pods was created after: s", ofMeasured(waitingCase(500, false), func(r row) float64 {
			return r.Created
		}), [3]string{}},
		{"and marked by kube-scheduler as without a node after: s", lastMarked(waitingCase(500, false)), [3]string{}},
		{"waiting pod to CreateFleet, cold, from a checkpoint: s", lastFleet(waitingCase(1, true)),
			[3]string{"3", "7", "15"}},
		{"of these, a bookmark of the API server takes: s, median and longest", size.bookmarkText, [3]string{}},
		{"lifecycle's first pass, cold, by lists: s", coldWall("lifecycle"), [3]string{"", "", "60"}},
		{"most memory: % of the size", size.mostMemory, [3]string{"70", "70", "70"}},
		{"100 nodes interrupted to the last CreateFleet: s", lastFleet("100 " + noticed),
			[3]string{"12", "12", "15"}},
		{"of these, until the last NodeClaim was marked for deletion: s", lastMarked("100 " + noticed), [3]string{}},
		{"of these, until nine of ten nodes were asked for: s", mostFleet("100 " + noticed), [3]string{}},
		{"Lambda, an idle month with heartbeats: USD", size.monthText, [3]string{"3", "8", "20"}},
	}
}

// summaryTable answers the questions for each size, with what was to be reached in parentheses.
func summaryTable(all []size) string {
	header := []any{""}
	for _, s := range all {
		header = append(header, fmt.Sprintf("%d nodes, %d pods, %d MiB", s.Nodes, s.Pods, s.MemoryMB))
	}
	t := newTable(header...)
	for _, q := range questions() {
		line := table.Row{q.what}
		for _, s := range all {
			text := q.answer(s)
			if i := slices.Index([]int{500, 2000, 5000}, s.Nodes); i >= 0 && q.most[i] != "" && text != "" {
				text += " (" + q.most[i] + ")"
			}
			line = append(line, text)
		}
		t.AppendRow(line)
	}
	return t.RenderMarkdown()
}

// rowsOf are the rows of the functions in a case.
func (s size) rowsOf(what string, functions ...string) (out []row) {
	for _, r := range s.Rows {
		if r.Case == what && slices.Contains(functions, r.Function) {
			out = append(out, r)
		}
	}
	return out
}

// mostOf is the largest number of the rows, nothing without a row.
func mostOf(rows []row, digits int, number func(row) float64) string {
	if len(rows) == 0 {
		return ""
	}
	most := slices.MaxFunc(rows, func(a, b row) int { return cmp.Compare(number(a), number(b)) })
	return fmt.Sprintf("%.*f", digits, number(most))
}

func mostCPU(what string, functions ...string) func(size) string {
	return func(s size) string {
		return mostOf(s.rowsOf(what, functions...), 2, func(r row) float64 { return r.CPU })
	}
}

func mostRead(what string, functions ...string) func(size) string {
	return func(s size) string {
		return mostOf(s.rowsOf(what, functions...), 2, func(r row) float64 {
			return float64(r.Traffic.sumTraffic().Bytes) / (1 << 20)
		})
	}
}

func coldWall(function string) func(size) string {
	return func(s size) string {
		return mostOf(s.rowsOf(idleCold, function), 1, func(r row) float64 { return r.Wall })
	}
}

// lastFleet is when the last node was asked for, if any was.
func lastFleet(what string) func(size) string {
	return func(s size) string {
		rows := s.rowsOf(what, "")
		if len(rows) > 0 && rows[0].Launched == 0 {
			return "none needed"
		}
		return mostOf(rows, 1, func(r row) float64 { return r.LastFleet })
	}
}

// mostFleet is when nine of ten nodes were asked for.
func mostFleet(what string) func(size) string {
	return ofMeasured(what, func(r row) float64 { return r.MostFleet })
}

func lastMarked(what string) func(size) string {
	return ofMeasured(what, func(r row) float64 { return r.Marked })
}

// ofMeasured is a time of a case, where runs measured it: older ones did not.
func ofMeasured(what string, of func(row) float64) func(size) string {
	return func(s size) string {
		rows := slices.DeleteFunc(s.rowsOf(what, ""), func(r row) bool { return of(r) == 0 })
		return mostOf(rows, 1, of)
	}
}

func (s size) mostMemory() string {
	rows := slices.DeleteFunc(slices.Clone(s.Rows), func(r row) bool { return r.Function == "" || r.MemoryMB == 0 })
	return mostOf(rows, 0, func(r row) float64 { return 100 * float64(r.PeakMB) / float64(r.MemoryMB) })
}

// bookmarkText is how long bookmarks took.
func (s size) bookmarkText() string {
	rows := s.rowsOf(bookmarks, "")
	if len(rows) == 0 || len(rows[0].Waits) == 0 {
		return ""
	}
	all := rows[0].Waits
	return fmt.Sprintf("%.1f, %.1f", all[len(all)/2], all[len(all)-1])
}

// monthText is what an idle month of the functions that tick costs.
func (s size) monthText() string {
	rows := s.rowsOf(heartbeats, scheduledFunctions()...)
	if len(rows) == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", s.monthOf(rows...))
}
