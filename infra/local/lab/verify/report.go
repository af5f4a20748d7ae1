package verify

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Report is what became of one workload.
type Report struct {
	Workload      string
	Pods          int // that wanted a node
	ExistingNodes int
	Rounds        []Round
}

// Round is one plan and what the scheduler made of it. Numbers of pods are those after the round; prices are USD per
// hour.
type Round struct {
	Number          int
	NewNodes        int
	AddedUSD        float64 // price of the new nodes
	TotalUSD        float64 // price of the nodes of this round and those before
	OnExisting      int     // pods that the plan put on nodes there were
	Held            int     // pods that were let onto a node held for them
	Unplaced        int     // pods that the plan had no place for
	Scheduled       int
	Pending         int
	Stranded        int // pending, though the first plan had a place
	Surprising      int // scheduled, though the first plan had no place
	Moved           int // scheduled, but not where the plan had it
	DaemonsPending  int // pods of DaemonSets that do not fit on planned nodes
	PlanSeconds     float64
	ScheduleSeconds float64 // from the launch to the last pod that got a node, the boot of the nodes included
	Reasons         []Reason
}

// Reason is why pods are pending, as the scheduler says, with one of them as an example.
type Reason struct {
	Pods int
	Why  string // without numbers of nodes
	Pod  string // namespace/name
	Said string // the whole message
}

// CountLate returns how many pods the scheduler did not place on the nodes of the first plan, though that had a place
// for them.
func (r Report) CountLate() int {
	if len(r.Rounds) == 0 {
		return 0
	}
	return r.Rounds[0].Stranded
}

// HasFailed reports whether the scheduler did not follow to the end: a pod that the plan placed has no node, or a pod
// of a DaemonSet that the plan left room for.
func (r Report) HasFailed() bool {
	if len(r.Rounds) == 0 {
		return true
	}
	last := r.Rounds[len(r.Rounds)-1]
	return last.Stranded > 0 || last.DaemonsPending > 0
}

// Write prints the report for people.
func (r Report) Write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d pods, %d existing nodes\n", r.Workload, r.Pods, r.ExistingNodes)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "round\tnew nodes\tUSD/h\tin all\tunplaced\theld\tscheduled\tpending\tstranded\tmoved\tplan s\tschedule s\t")
	for _, n := range r.Rounds {
		fmt.Fprintf(t, "%d\t%d\t%.2f\t%.2f\t%d\t%d\t%d\t%d\t%d\t%d\t%.2f\t%.1f\t\n", n.Number, n.NewNodes, n.AddedUSD,
			n.TotalUSD,
			n.Unplaced, n.Held, n.Scheduled, n.Pending, n.Stranded, n.Moved, n.PlanSeconds, n.ScheduleSeconds)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	for _, n := range r.Rounds {
		if n.OnExisting > 0 {
			fmt.Fprintf(w, "  round %d: the plan put %d pods on nodes there were\n", n.Number, n.OnExisting)
		}
		if n.Surprising > 0 {
			fmt.Fprintf(w, "  round %d: %d pods run that the plan had no place for\n", n.Number, n.Surprising)
		}
		if n.DaemonsPending > 0 {
			fmt.Fprintf(w, "  round %d: %d pods of DaemonSets do not fit on planned nodes\n", n.Number,
				n.DaemonsPending)
		}
		for _, why := range n.Reasons {
			fmt.Fprintf(w, "  round %d: %d pending: %s\n    %s: %s\n", n.Number, why.Pods, why.Why, why.Pod, why.Said)
		}
	}
	return nil
}
