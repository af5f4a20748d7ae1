package plan

import (
	"fmt"
	"joiner.sh/pkg/model/lists"
	"slices"
	"strings"
)

// Lines is the plan as text, one line for each decision; the only form in which plans are logged, shown and stored.
func (p Plan) Lines() []string {
	out := lists.Of(p.Launches, Launch.String)
	for _, l := range p.Fixed {
		out = append(out, l.String())
	}
	for _, s := range p.Starts() {
		out = append(out, s.String())
	}
	for _, r := range p.Removals {
		out = append(out, fmt.Sprintf("remove %s: %s", r.Claim, r.Why))
	}
	for _, s := range p.Short {
		out = append(out, fmt.Sprintf("short pool %s: %s", s.Pool, s.Why))
	}
	for _, h := range p.Held {
		out = append(out, fmt.Sprintf("hold %d launches of pool %s: %s", h.Nodes, h.Pool, h.Why))
	}
	for _, node := range p.nodeTexts() {
		var pods []string
		for _, e := range p.Existing {
			if e.Node == node {
				pods = append(pods, e.Pod)
			}
		}
		out = append(out, fmt.Sprintf("use %s for %s", node, NamePods(pods)))
	}
	for _, u := range p.Unplaced {
		out = append(out, fmt.Sprintf("unschedulable %s: %s", u.Pod, strings.Join(u.Why, "; ")))
	}
	for _, s := range p.Skipped {
		out = append(out, fmt.Sprintf("skip pool %s: %s", s.Pool, s.Why))
	}
	for _, d := range p.Oversized {
		out = append(out, fmt.Sprintf("oversized DaemonSet %s: %s", d.DaemonSet, d.Message()))
	}
	for _, u := range p.Unread {
		out = append(out, fmt.Sprintf("unread anti-affinity of %s: %s", u.Pod, u.Message()))
	}
	for _, f := range p.Faults {
		out = append(out, f.String())
	}
	return append(out, p.stoppedLines()...)
}

// stoppedLines says what is kept for buffers of stopped capacity.
func (p Plan) stoppedLines() (out []string) {
	if p.Stopped == nil {
		return nil
	}
	kept := Plan{Existing: p.Stopped.Placed}
	for _, line := range kept.Lines() {
		out = append(out, "stopped: "+line)
	}
	for _, u := range p.Stopped.Unplaced {
		out = append(out, fmt.Sprintf("stopped: no node for %s: %s", u.Pod, strings.Join(u.Why, "; ")))
	}
	return out
}

// String joins the lines of the plan.
func (p Plan) String() string { return strings.Join(p.Lines(), "\n") }

// String says what is launched for which pods and at what price.
func (l Launch) String() string {
	whom := NamePods(l.Pods)
	switch {
	case l.ForStoppedCapacity():
		whom = "stopped capacity"
	case len(l.Pods) == 0:
		whom = "the number of nodes of the pool"
	}
	out := fmt.Sprintf("launch %s from pool %s at %s (%d types possible) for %s", l.Choice.OfferingKey, l.Pool,
		l.PriceText(), len(l.Types), whom)
	if l.Waits != "" {
		out += ", which waits: " + l.Waits
	}
	return out
}

// PriceText says what the node costs per hour, and what of that is not for its instance.
func (l Launch) PriceText() string {
	out := fmt.Sprintf("%.4f USD/h", l.Choice.Price)
	if volumes := l.Choice.NodeUSD - l.Choice.DeclaredUSD; volumes > 0 {
		out += fmt.Sprintf(", %.4f of it for volumes and addresses", volumes)
	}
	if l.Choice.DeclaredUSD > 0 {
		out += fmt.Sprintf(", %.4f of it declared", l.Choice.DeclaredUSD)
	}
	return out
}

// NamePods names pods in short: the first few and how many more.
func NamePods(pods []string) string {
	const most = 4
	if len(pods) <= most {
		return strings.Join(pods, ",")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(pods[:most], ","), len(pods)-most)
}

// NodeByPod says by pod which node, there or on its way, has room for it.
func (p Plan) NodeByPod() map[string]string {
	out := make(map[string]string, len(p.Existing))
	for _, e := range p.Existing {
		out[e.Pod] = e.Node
	}
	return out
}

func (p Plan) nodeTexts() []string {
	out := lists.Of(p.Existing, func(e Placement) string { return e.Node })
	slices.Sort(out)
	return slices.Compact(out)
}
