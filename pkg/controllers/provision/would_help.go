package provision

import (
	"cmp"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/whatif"
)

// Bounds of the search for what would give a pod a node.
const (
	longWait       = 5 * time.Minute // that a pod has waited before it is searched for
	wouldHelpWork  = whatif.DefaultWork / 5
	wouldHelpValid = 10 * time.Minute
	mostWouldHelp  = 100 // answers that are kept
)

// wouldHelp is what was found to give pods a node, by what makes them and why they wait.
type wouldHelp map[string]helpFound

type helpFound struct {
	at  time.Time
	say string // nothing where nothing helps
}

// withHelp is what wouldHelp.withHelp says with what this process found before.
func (a *Aside) withHelp(s cluster.Snapshot, unplaced []plan.Unplaced) []plan.Unplaced {
	if a.help == nil {
		a.help = wouldHelp{}
	}
	return a.help.withHelp(s, unplaced)
}

// withHelp adds to what is said about pods that have waited for long what would give them a node. One pod of a pass is
// asked about; what was found holds for all that the same object makes and that wait for the same reasons.
func (h wouldHelp) withHelp(s cluster.Snapshot, unplaced []plan.Unplaced) []plan.Unplaced {
	waits := map[string]*cluster.Pod{}
	for i := range s.Pods {
		if p := &s.Pods[i]; p.NodeName == "" && !p.Virtual && s.Now.Sub(p.Created) >= longWait {
			waits[p.Key()] = p
		}
	}
	asked := false
	out := make([]plan.Unplaced, len(unplaced))
	for i, u := range unplaced {
		out[i] = u
		p := waits[u.Pod]
		if p == nil || u.Fault {
			continue
		}
		id := cmp.Or(p.Controller, p.UID) + " " + u.Message()
		found, known := h[id]
		if fresh := known && s.Now.Sub(found.at) < wouldHelpValid; !fresh && !asked {
			asked, found = true, helpFound{at: s.Now}
			a := whatif.ForPod(s, binpack.ResolveOfferings(s), u.Pod, whatif.Limits{Work: wouldHelpWork})
			if len(a.Changes) > 0 {
				found.say = "would help: " + strings.ReplaceAll(a.Changes[0].String(), "Pod "+u.Pod, "the pod")
			}
			if len(h) >= mostWouldHelp {
				clear(h)
			}
			h[id] = found
		}
		if found.say != "" { // first, for a message may be cut
			out[i].Why = append([]string{found.say}, u.Why...)
		}
	}
	return out
}
