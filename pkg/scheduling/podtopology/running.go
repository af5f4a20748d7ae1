package podtopology

import (
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// Required anti-affinity of pods that run keeps pods that wait off their nodes and domains. Each term of its own is
// compared with the pods that wait, and one that keeps any of them away is counted on each node.
const (
	// mostOwnTerms bounds the terms about pods of their own namespace: a cluster may have so many services.
	mostOwnTerms = 10_000
	// mostForeignTerms bounds those about pods of other namespaces.
	mostForeignTerms = 500
)

// awayTerm is a term of the pods of a namespace. Pods of one shape have the same selectors.
type awayTerm struct {
	Namespace, key, namespaces  string
	selector, namespaceSelector *cluster.Selector
}

func awayTermOf(p *cluster.Pod, t cluster.AffinityTerm) awayTerm {
	return awayTerm{p.Namespace, t.Key, strings.Join(t.Namespaces, ","), t.Selector, t.NamespaceSelector}
}

// isForeign reports whether the term may be about pods of other namespaces.
func (t awayTerm) isForeign() bool { return t.namespaces != "" || t.namespaceSelector != nil }

// awayVerdict is the outcome for a term of anti-affinity.
type awayVerdict struct {
	keeps   bool // it selects a pod that waits
	Skipped bool // nobody looked, because its namespace has too many

	terms, read int // of its namespace, where it is skipped
}

// judgeAwayTerms looks at the terms of running pods, of each namespace at as many as it may have: a tenant's terms are
// no work for others. Those about nobody who waits are counted nowhere.
func (top *Counts) judgeAwayTerms() {
	top.Away = map[awayTerm]awayVerdict{}
	terms := map[awayTerm]cluster.AffinityTerm{}
	var order [2][]awayTerm // about the own namespace, and about others
	for i := range top.s.Pods {
		p := &top.s.Pods[i]
		if p.NodeName == "" {
			continue
		}
		for _, t := range p.AntiAffinity {
			id := awayTermOf(p, t)
			if _, known := terms[id]; known {
				continue
			}
			terms[id] = t
			at := 0
			if id.isForeign() {
				at = 1
			}
			order[at] = append(order[at], id)
		}
	}
	if len(terms) == 0 {
		return
	}
	waiting := map[string][]*podclass.Class{}
	for _, class := range top.Classes.List {
		waiting[class.Pod.Namespace] = append(waiting[class.Pod.Namespace], class)
	}
	for at, most := range []int64{mostOwnTerms, mostForeignTerms} {
		left, all := shareTerms(most, order[at])
		share := maps.Clone(left)
		for _, id := range order[at] {
			if left[id.Namespace]--; left[id.Namespace] < 0 {
				top.Away[id] = awayVerdict{Skipped: true, terms: int(all[id.Namespace]), read: int(share[id.Namespace])}
				continue
			}
			g := topology.OfTerm(terms[id], id.Namespace, top.spaces)
			top.Away[id] = awayVerdict{keeps: top.keepsAny(g, waiting)}
		}
	}
}

// keepsAny reports whether the group has any of the pods that wait, which are given by namespace.
func (top *Counts) keepsAny(g topology.PodSelector, waiting map[string][]*podclass.Class) bool {
	about := top.Classes.List
	if name, one := g.OfOneNamespace(); one {
		about = waiting[name]
	}
	return slices.ContainsFunc(about,
		func(class *podclass.Class) bool { return g.Selects(class.Pod.Namespace, class.Pod.Labels) })
}

// withUnread adds a pod of which a term is skipped, for its owner to be told; of each namespace a few.
func withUnread(all []plan.UnreadPod, p *cluster.Pod, is awayVerdict) []plan.UnreadPod {
	if len(all) == lists.MostLines {
		return all
	}
	n := 0
	for _, u := range all {
		if u.Pod == p.Key() {
			return all
		}
		if namespace, _, _ := strings.Cut(u.Pod, "/"); namespace == p.Namespace {
			n++
		}
	}
	if n < lists.MostNamed {
		all = append(all, plan.UnreadPod{Pod: p.Key(), Node: p.NodeName, Terms: is.terms, Read: is.read})
	}
	return all
}

// shareTerms returns by namespace how many of the terms it may have, and how many it has.
func shareTerms(most int64, terms []awayTerm) (shares, count map[string]int64) {
	count = map[string]int64{}
	for _, id := range terms {
		count[id.Namespace]++
	}
	names := slices.Sorted(maps.Keys(count))
	wants := make([]int64, len(names))
	for i, name := range names {
		wants[i] = count[name]
	}
	shares = map[string]int64{}
	for i, share := range fairshare.MaxMin(most, wants) {
		shares[names[i]] = share
	}
	return shares, count
}

// runningPod is a pod that stays where it is.
type runningPod struct {
	pod  *cluster.Pod
	on   *capacity.Bin
	anti []int // by term of its anti-affinity: the counter
}

// countRunningPods counts the pods that stand where they are, and notes which counters will count the pods that are to
// be placed.
func (top *Counts) countRunningPods() {
	running := top.runningPods()
	top.Tally = newTally(top)
	top.Total = make([]int, len(top.Counters))
	for _, b := range top.nodes.Hosts {
		b.Count, b.Anti = make([]int, len(top.Counters)), make([]int, len(top.Counters))
	}
	m := newMatcher(top)
	for _, x := range running {
		top.countPod(x.on, m.countersOf(x.pod), x.anti)
	}
	for _, class := range top.Classes.List {
		class.Matched = slices.DeleteFunc(slices.Clone(m.countersOf(&class.Pod)),
			func(c int) bool { return !top.mayCount(class, c) })
	}
	for _, class := range top.Classes.List {
		top.addUnbound(class)
	}
}

// runningPods lists the pods that stay on their nodes.
func (top *Counts) runningPods() []runningPod {
	byName := map[string]*capacity.Bin{}
	for _, b := range top.nodes.Hosts {
		byName[b.Name] = b
	}
	for _, node := range top.nodes.All {
		if node.Node != nil && byName[node.Node.Name] == nil {
			byName[node.Node.Name] = top.nodes.HostBin(node, nil)
		}
	}
	all := make([]runningPod, 0, len(top.s.Pods))
	for i := range top.s.Pods {
		p := &top.s.Pods[i]
		on := byName[p.NodeName]
		if p.NodeName == "" || on == nil || !p.Active() || top.Classes.Waiting[p] {
			continue
		}
		x := runningPod{pod: p, on: on}
		for _, t := range p.AntiAffinity {
			is := top.Away[awayTermOf(p, t)]
			if is.Skipped { // whom it keeps away is not known
				on.Room = make([]int64, len(on.Room))
				top.Unread = withUnread(top.Unread, p, is)
			}
			if !is.keeps {
				continue
			}
			i := top.counterIndex(podclass.CanonicalKey(t.Key), topology.OfTerm(t, p.Namespace, top.spaces), nil)
			top.Counters[i].strict = true
			x.anti = append(x.anti, i)
		}
		all = append(all, x)
	}
	return all
}

// matcher finds the counters that count a pod. Those about one namespace are no work for pods of another.
type matcher struct {
	top    *Counts
	known  map[string][]int // by identity, what was asked before
	own    map[string][]int // counters about one namespace, by its name
	others []int
	may    map[string][]int // by namespace, once asked: those that may count its pods
}

func newMatcher(top *Counts) matcher {
	m := matcher{top, map[string][]int{}, map[string][]int{}, nil, map[string][]int{}}
	for i, c := range top.Counters {
		if name, one := c.group.OfOneNamespace(); one {
			m.own[name] = append(m.own[name], i)
		} else {
			m.others = append(m.others, i)
		}
	}
	return m
}

// countersOf lists the counters that count the pod.
func (m matcher) countersOf(p *cluster.Pod) []int {
	id := m.top.identities.IdentityOf(&m.top.Classes.Signature, p)
	list, ok := m.known[id]
	if !ok {
		list = lists.Where(m.about(p.Namespace),
			func(i int) bool { return m.top.Counters[i].group.Selector.Matches(p.Labels) })
		m.known[id] = list
	}
	return list
}

// about are the counters that may count pods of the namespace, sorted.
func (m matcher) about(namespace string) []int {
	out, ok := m.may[namespace]
	if !ok {
		covers := func(i int) bool { return m.top.Counters[i].group.Covers(namespace) }
		out = slices.Concat(m.own[namespace], lists.Where(m.others, covers))
		slices.Sort(out)
		m.may[namespace] = out
	}
	return out
}

// addUnbound adds a last step to the relaxation of a class that only preferences, its own or others', or rules about
// nobody else tie to a domain: it is tied no more. A node for it is flexible then, as MinValues may want it.
func (top *Counts) addUnbound(class *podclass.Class) {
	pod := *class.LastRelaxation()
	pod.Unbound = true
	if len(top.KeysOf(&pod)) < len(top.KeysOf(class.LastRelaxation())) {
		class.Views = append(class.Views, &pod)
	}
}
