package provision

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// Bounds of the search for what would give a pod a node.
const (
	longWait = 5 * time.Minute // that a pod has waited before it is searched for
	// Half of it asks twice as often; with double of it a change is said for 20 minutes after it has ceased to help.
	wouldHelpValid = 10 * time.Minute
	// answers that are kept, of which a pass asks for one: half of it is as many as minutes in which answers hold, and
	// double of it forgets them later
	mostWouldHelp = 100
	// wouldHelpWork is for questions about the pod alone; two about all pods, such as a pass just asked itself, come on
	// top. It takes half a second of a function of 512 MiB, a third of a core; the command line does more. Half and
	// double of it were not tried: a pod before 20 NodePools takes more than 20,000 where nothing bounds it.
	wouldHelpWork = 8_000
)

// wouldHelp holds what was found to give pods a node, by what makes them and why they wait, and the namespace that was
// asked about last.
type wouldHelp struct {
	found map[string]helpFound
	last  string
}

type helpFound struct {
	at   time.Time
	say  string // nothing where nothing helps
	work int    // that finding it took

	namespace string
}

// unplacedWithHelp returns the pods that stay without a node, and what would give one to pods that have waited for
// long, by pod. Nothing is searched for in a pass that has other things to do.
func unplacedWithHelp(c *Controller, s cluster.Snapshot, decided provisioning.Decision, busy bool) (
	unplaced []plan.Unplaced, help map[string]string) {
	unplaced = interruption.WithoutRunning(s, decided.Replacements, decided.Plan).Unplaced
	if !busy {
		_ = c.Shield().Do("what would help", func() error { // logged
			help = c.Process.help.find(s, unplaced)
			return nil
		})
	}
	return unplaced, help
}

// find asks about one pod of a pass: of namespaces each has a turn, by name. What was found holds for all that the same
// object makes and that wait for the same reasons.
func (h *wouldHelp) find(s cluster.Snapshot, unplaced []plan.Unplaced) map[string]string {
	waits, out, open := map[string]*cluster.Pod{}, map[string]string{}, map[string]plan.Unplaced{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName == "" && !p.Virtual && s.Now.Sub(p.Created) >= longWait {
			waits[p.Key()] = p
		}
	}
	for _, u := range slices.Backward(unplaced) {
		if p := waits[u.Pod]; p == nil || u.Fault {
			delete(waits, u.Pod)
		} else if found, known := h.found[question(p, u)]; !known || s.Now.Sub(found.at) >= wouldHelpValid {
			open[p.Namespace] = u // the first
		}
	}
	if names := slices.Sorted(maps.Keys(open)); len(names) > 0 {
		i, asked := slices.BinarySearch(names, h.last)
		if asked {
			i++
		}
		u := open[names[i%len(names)]]
		h.remember(question(waits[u.Pod], u), names[i%len(names)], askAbout(s, u.Pod))
	}
	for _, u := range unplaced {
		if p := waits[u.Pod]; p != nil && h.found[question(p, u)].say != "" {
			out[u.Pod] = h.found[question(p, u)].say
		}
	}
	return out
}

// question is the same for all pods for which one answer holds.
func question(p *cluster.Pod, u plan.Unplaced) string {
	return cmp.Or(p.Controller, p.UID) + " " + u.Message()
}

// remember keeps an answer about a namespace. Where there are too many, those are forgotten of the namespace that has
// most.
func (h *wouldHelp) remember(question, namespace string, found helpFound) {
	if h.found == nil {
		h.found = map[string]helpFound{}
	}
	if len(h.found) >= mostWouldHelp {
		by := map[string]int{}
		for _, f := range h.found {
			by[f.namespace]++
		}
		most := slices.MaxFunc(slices.Sorted(maps.Keys(by)), func(a, b string) int { return cmp.Compare(by[a], by[b]) })
		maps.DeleteFunc(h.found, func(_ string, f helpFound) bool { return f.namespace == most })
	}
	found.namespace = namespace
	h.found[question], h.last = found, namespace
}

// askAbout finds what would give the pod a node at the least price.
func askAbout(s cluster.Snapshot, pod string) helpFound {
	a := whatif.ForPod(s, binpack.ResolveOfferings(s), pod,
		whatif.Limits{Work: wouldHelpWork + 2*whatif.WorkOf(s)})
	found := helpFound{at: s.Now, work: a.Work}
	if len(a.Changes) > 0 {
		found.say = strings.ReplaceAll(a.Changes[0].String(), "Pod "+pod, "the pod")
	}
	return found
}

// withHelp says first what would help, for a message may be cut.
func withHelp(unplaced []plan.Unplaced, help map[string]string) []plan.Unplaced {
	out := slices.Clone(unplaced)
	for i, u := range out {
		if say := help[u.Pod]; say != "" {
			out[i].Why = append([]string{"would help: " + say}, u.Why...)
		}
	}
	return out
}
