package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/cli/status"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
)

// pastDecisions gathers what is said of each record; what stays the same is said once, with how often.
func (s Source) pastDecisions(say func(decisionlog.Record) []string) []string {
	var out []string
	last, times := "", 0
	counted := func() {
		if times > 1 {
			out[len(out)-1] += fmt.Sprintf(" (%d times)", times)
		}
	}
	for _, r := range s.Records {
		for _, line := range say(r) {
			if line == last {
				times++
				continue
			}
			if len(out) > 0 {
				counted()
			}
			out, last, times = append(out, stampOf(r)+line), line, 1
		}
	}
	if len(out) > 0 {
		counted()
	}
	return out[max(0, len(out)-mostPast):]
}

func (s Source) pastOfPod(key string) []string {
	return s.pastDecisions(func(r decisionlog.Record) (out []string) {
		for _, l := range r.Launches {
			if slices.Contains(l.Names, key) {
				out = append(out, fmt.Sprintf("a node for it and %d others: %s %s in %s from pool %s at %.4f USD/h",
					l.Pods-1, l.CapacityType, l.Type, l.Zone, l.Pool, l.HourlyUSD))
			}
		}
		for _, u := range r.Unplaced {
			if slices.Contains(u.Names, key) {
				out = append(out, "unschedulable: "+u.Why)
			}
		}
		return out
	})
}

func (s Source) pastOfNode(n status.Node) []string {
	on := map[string]bool{}
	for _, p := range s.Snapshot.Pods {
		on[p.Key()] = p.NodeName == n.Name
	}
	return s.pastDecisions(func(r decisionlog.Record) (out []string) {
		for _, l := range r.Launches { // a launch has no name yet: it is known by what it is and whom it was for
			if l.Type == n.Type && l.Zone == n.Zone &&
				slices.ContainsFunc(l.Names, func(pod string) bool { return on[pod] }) {
				out = append(out, fmt.Sprintf("launched from pool %s for %d pods, %s among them, at %.4f USD/h; %d types were possible",
					l.Pool, l.Pods, strings.Join(l.Names, ", "), l.HourlyUSD, l.Types))
			}
		}
		for _, x := range r.Removals {
			if !slices.Contains(x.Claims, n.Claim) {
				continue
			}
			line := strings.TrimSpace(x.Stage + " " + x.Reason)
			if x.SavesUSD != 0 {
				line += fmt.Sprintf(", saves %.4f USD/h", x.SavesUSD)
			}
			if len(x.Replaces) > 0 {
				line += ", for " + strings.Join(x.Replaces, ", ")
			}
			if x.Why != "" {
				line += ": " + x.Why
			}
			out = append(out, line)
		}
		for _, x := range r.NotDisrupted {
			if slices.Contains(x.Names, n.Name) || n.Claim != "" && slices.Contains(x.Names, n.Claim) {
				out = append(out, "not disrupted: "+x.Why)
			}
		}
		return out
	})
}

func (s Source) pastOfPool(name string) []string {
	return s.pastDecisions(func(r decisionlog.Record) (out []string) {
		count, usd := 0, 0.0
		for _, l := range r.Launches {
			if l.Pool == name {
				count, usd = count+1, usd+l.HourlyUSD
			}
		}
		if count > 0 {
			out = append(out, fmt.Sprintf("%d launches for %.4f USD/h", count, usd))
		}
		for _, x := range r.Skipped {
			if slices.Contains(x.Names, name) {
				out = append(out, "took no part: "+x.Why)
			}
		}
		return out
	})
}

// findNode finds a node of the view by its name or its claim's.
func (s Source) findNode(name string) (status.Node, bool) {
	for _, p := range s.View.Pools {
		for _, n := range p.Nodes {
			if n.Name == name || n.Claim == name && name != "" {
				return n, true
			}
		}
	}
	return status.Node{}, false
}

func (s Source) stateNode(name string) (cluster.StateNode, bool) {
	for _, node := range s.Snapshot.StateNodes() {
		if node.Name() == name {
			return node, true
		}
	}
	return cluster.StateNode{}, false
}

func (s Source) nodeNames() (out []string) {
	for _, p := range s.View.Pools {
		for _, n := range p.Nodes {
			out = append(out, n.Name)
		}
	}
	return out
}

func podNames(s cluster.Snapshot) (out []string) {
	for _, p := range s.Pods {
		if !p.Virtual {
			out = append(out, p.Key())
		}
	}
	return out
}

func poolNames(s cluster.Snapshot) []string {
	return lists.Of(s.Pools, func(p cluster.Pool) string { return p.Name })
}

// suggestSimilar names what is similar: the same name in another namespace first, then what begins alike.
func suggestSimilar(kind, name string, all []string) error {
	_, bare, _ := strings.Cut(name, "/")
	bare = cmp.Or(bare, name)
	var same, alike []string
	for _, n := range slices.Sorted(slices.Values(all)) {
		_, short, _ := strings.Cut(n, "/")
		switch short = cmp.Or(short, n); {
		case short == bare:
			same = append(same, n)
		case strings.HasPrefix(short, bare) || strings.HasPrefix(bare, short):
			alike = append(alike, n)
		}
	}
	similar := slices.Concat(same, alike)
	return &NotFoundError{Kind: kind, Name: name, Similar: similar[:min(len(similar), mostOthers)]}
}

func amountText(name string, n int64) string { return resources.Format(name, n) }
