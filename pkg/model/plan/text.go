package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/lists"
)

// Lines is the plan as text, one line for each decision; the only form in which plans are logged, shown and stored.
func (p Plan) Lines() []string {
	return slices.Concat(
		lists.Of(p.Launches, Launch.String), lists.Of(p.Fixed, Launch.String), lists.Of(p.Starts(), Start.String),
		lists.Of(p.Removals, func(r Removal) string { return fmt.Sprintf("remove %s: %s", r.Claim, r.Why) }),
		lists.Of(p.Short, func(s Skip) string { return fmt.Sprintf("short pool %s: %s", s.Pool, s.Why) }),
		lists.Of(p.Held, func(h Held) string {
			return fmt.Sprintf("hold %d launches of pool %s: %s", h.Nodes, h.Pool, h.Why)
		}),
		placementLines(p.Existing),
		lists.Of(p.Unplaced, func(u Unplaced) string {
			return fmt.Sprintf("unschedulable %s: %s", u.Pod, u.Message())
		}),
		lists.Of(p.Skipped, func(s Skip) string { return fmt.Sprintf("skip pool %s: %s", s.Pool, s.Why) }),
		lists.Of(p.Oversized, func(d OversizedDaemon) string {
			return fmt.Sprintf("oversized DaemonSet %s: %s", d.DaemonSet, d.Message())
		}),
		lists.Of(p.Unread, func(u UnreadPod) string {
			return fmt.Sprintf("unread anti-affinity of %s: %s", u.Pod, u.Message())
		}),
		lists.Of(p.Faults, Fault.String), p.stoppedLines())
}

// placementLines has a line for each node, sorted by its name.
func placementLines(all []Placement) []string {
	pods := map[string][]string{}
	for _, e := range all {
		pods[e.Node] = append(pods[e.Node], e.Pod)
	}
	return lists.Of(slices.Sorted(maps.Keys(pods)),
		func(node string) string { return fmt.Sprintf("use %s for %s", node, NamePods(pods[node])) })
}

// stoppedLines says what is kept for buffers of stopped capacity.
func (p Plan) stoppedLines() []string {
	if p.Stopped == nil {
		return nil
	}
	return slices.Concat(
		lists.Of(placementLines(p.Stopped.Placed), func(line string) string { return "stopped: " + line }),
		lists.Of(p.Stopped.Unplaced, func(u Unplaced) string {
			return fmt.Sprintf("stopped: no node for %s: %s", u.Pod, u.Message())
		}))
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
