package pack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"joiner/pkg/cluster"
	"joiner/pkg/plan"
)

// kind is a set of pods that no rule can tell apart.
type kind struct {
	id      int
	pod     cluster.Pod // any one of them
	pods    []string    // namespace/name, oldest first
	need    []int64     // by dimension
	views   []*view     // from strict to relaxed
	matched []int       // counters that count its pods
}

func (k *kind) last() *view { return k.views[len(k.views)-1] }

// demand finds the pods that need a place: those the scheduler gave up on, and those on condemned nodes (spec core.md
// §2.1, §2.2).
func demand(s cluster.Snapshot) []cluster.Pod {
	hosts := map[string]cluster.Host{}
	for _, h := range s.Hosts() {
		if h.Node != nil {
			hosts[h.Node.Name] = h
		}
	}
	var out []cluster.Pod
	for _, p := range s.Pods {
		if p.Provisionable() || displaced(s, p, hosts) {
			out = append(out, p)
		}
	}
	return out
}

// displaced reports whether the pod runs on a condemned node and will need room elsewhere. On a node that is only tainted
// a protected pod stays where it is; a node that is being deleted takes everything with it.
func displaced(s cluster.Snapshot, p cluster.Pod, hosts map[string]cluster.Host) bool {
	h, ok := hosts[p.NodeName]
	if !ok || !h.Condemned() || !p.Reschedulable() {
		return false
	}
	return h.Deleting() || !p.Protected(s.Now) && !fullyBlocked(s, p)
}

func fullyBlocked(s cluster.Snapshot, p cluster.Pod) bool {
	return slices.ContainsFunc(s.Budgets, func(b cluster.Budget) bool {
		return b.FullyBlocking && b.Namespace == p.Namespace && b.Selector.Matches(p.Labels)
	})
}

// unmodelled takes the pods out of list that carry constraints nobody here understands.
func unmodelled(list []cluster.Pod) (known []cluster.Pod, out []plan.Unplaced) {
	for _, p := range list {
		why := slices.Clone(p.Unmodelled)
		if p.Need.Negative() {
			why = append(why, "it requests a negative amount: "+p.Need.String())
		}
		if len(why) > 0 {
			out = append(out, plan.Unplaced{Pod: p.Key(), Why: why})
			continue
		}
		known = append(known, p)
	}
	return known, out
}

// kinds groups pods that are alike, larger ones first.
func kinds(list []cluster.Pod, labels map[string]bool) []*kind {
	byText := map[string]*kind{}
	members := map[string][]cluster.Pod{}
	for _, p := range list {
		text := signature(p, labels)
		if byText[text] == nil {
			byText[text] = &kind{pod: p}
		}
		members[text] = append(members[text], p)
	}
	texts := make([]string, 0, len(byText))
	for text := range byText { // sorted below
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(x, y string) int {
		a, b := byText[x].pod.Need, byText[y].pod.Need
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory), strings.Compare(x, y))
	})
	var out []*kind
	for i, text := range texts {
		k := byText[text]
		k.id = i
		all := members[text]
		slices.SortFunc(all, func(a, b cluster.Pod) int { return cmp.Or(a.Created.Compare(b.Created), natural(a.Key(), b.Key())) })
		k.pod = all[0]
		for _, p := range all {
			k.pods = append(k.pods, p.Key())
		}
		out = append(out, k)
	}
	return out
}

// natural compares names so that web-2 comes before web-10.
func natural(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// signature is everything about a pod that a rule may look at, as text. Of its labels only those count that some
// selector names.
func signature(p cluster.Pod, labels map[string]bool) string {
	kept := map[string]string{}
	for k, v := range p.Labels { // a map again, and written in order by json
		if labels[k] {
			kept[k] = v
		}
	}
	b, err := json.Marshal([]any{
		p.Namespace, kept, p.Priority, p.Need, p.NodeSelector, p.NodeAffinity, p.NodePrefers, p.Tolerations, p.Spread,
		p.Affinity, p.AntiAffinity, p.Prefers, p.Avoids, p.HostPorts, p.VolumeZones,
	})
	if err != nil { // none of these types can fail; a pod of its own is the safe answer
		return fmt.Sprintf("%s: %v", p.Key(), err)
	}
	return string(b)
}

// selected collects the label keys that any selector of a spread or affinity term looks at.
func selected(s cluster.Snapshot) map[string]bool {
	keys := map[string]bool{}
	add := func(sel *cluster.Selector) {
		if sel == nil {
			return
		}
		for _, r := range sel.Requirements {
			keys[r.Key] = true
		}
	}
	for _, p := range s.Pods {
		for _, c := range p.Spread {
			add(c.Selector)
		}
		for _, t := range slices.Concat(p.Affinity, p.AntiAffinity) {
			add(t.Selector)
		}
		for _, t := range slices.Concat(p.Prefers, p.Avoids) {
			add(t.Term.Selector)
		}
	}
	return keys
}
