package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/topology"
)

// runningCommand is a command under way, as its objects tell.
type runningCommand struct {
	mark   CommandMark
	claims []*stateNode // that go and are not being deleted yet
	with   []*stateNode // replacements
}

// progress looks after the commands under way, and keeps what a pass finds out about them.
type progress struct {
	state         *State
	failures      map[string]CommandFailure // by NodeClaim
	inRow         map[string]FailuresInRow  // by NodePool
	ongoing       map[string]bool           // by id: commands under way that go on
	stalledBefore map[string]time.Time      // by id: since when a command has waited for nothing, as remembered
	stalled       map[string]time.Time      // the same as found
	drains        []trialDrain              // under way, and of commands that are about to finish
	awaitedNodes  map[string]bool           // by name, once asked for: nodes on which pods that wait are about to run
	// once asked for: which pod of a command will have no room later either
	unschedulableLater func(*runningCommand) string
}

func newProgress(st *State, m Memory) *progress {
	return &progress{state: st, failures: st.keepFailures(m.Failed), inRow: st.keepInRow(m.FailedInRow),
		ongoing:       map[string]bool{},
		stalledBefore: m.StalledSince, stalled: map[string]time.Time{}}
}

// advanceCommands finishes commands under way whose pods all fit on nodes that are ready and rolls back those that
// cannot end well. The others wait.
func (pr *progress) advanceCommands(p *Plan) {
	for _, n := range pr.state.nodes {
		if m, marked := markOf(*n.Claim); marked && !n.Deleting() && pr.state.faultyClaims[n.Claim.Name] != nil {
			pr.ongoing[m.ID] = true // it waits, and its replacements with it
		}
	}
	late := pr.podWithoutRoom()
	pr.drains = pr.drainsUnderWay()
	for _, r := range pr.state.underWay() {
		pr.state.tellStage(stageProgress, r.claims)
		p.Starting = append(p.Starting, r.startingReplacements()...)
		pr.splitUnreplaced(r, late, p)
		fault, missing := pr.commandFailure(r), late(r)
		if failed := r.failedRevision(); fault.why == "" && failed != "" {
			fault = commandFault{why: failed, ofRevision: true}
		}
		switch {
		case fault.why == "" && missing != "":
			fault.why = pr.isStalled(r)
		case fault.why == "":
			missing = pr.awaitsClosing(r)
		}
		switch {
		case fault.why != "":
			pr.rollBack(r, fault, p)
		case missing == "":
			pr.finish(r, p)
		default:
			p.Waiting = append(p.Waiting, strings.Join(namesOf(r.claims), ",")+": "+missing)
			pr.ongoing[r.mark.ID] = true
		}
	}
}

// underWay returns the commands under way: marked claims and replacements by command, sorted by the first claim. Claims
// that are being deleted are past it.
func (st *State) underWay() []*runningCommand {
	byID := map[string]*runningCommand{}
	var out []*runningCommand
	for _, n := range st.nodes {
		m, marked := markOf(*n.Claim)
		if !marked || n.Deleting() {
			continue
		}
		if st.faultyClaims[n.Claim.Name] != nil {
			continue // it waits
		}
		r := byID[m.ID]
		if r == nil {
			r = &runningCommand{mark: m}
			byID[m.ID] = r
			out = append(out, r)
		}
		r.claims = append(r.claims, n)
	}
	for _, n := range st.nodes {
		if r := byID[n.Claim.Annotations[AnnotationReplaces]]; r != nil {
			r.with = append(r.with, n)
		}
	}
	slices.SortFunc(out, func(a, b *runningCommand) int {
		return cmp.Compare(a.claims[0].Claim.Name,
			b.claims[0].Claim.Name)
	})
	return out
}

// startingReplacements returns the replacements that have an instance and are not ready.
func (r *runningCommand) startingReplacements() (out []string) {
	for _, n := range r.with {
		if n.Claim.ProviderID != "" && !n.Deleting() && !n.Initialized() && !n.ReadyForNominated() {
			out = append(out, n.Claim.Name)
		}
	}
	return out
}

// isProtected reports whether a user asks that the node stays.
func isProtected(n *stateNode) bool {
	return n.Node != nil && n.Node.Annotations[v1.AnnotationDoNotDisrupt] == "true"
}

// podWithoutRoom returns a function that says which pod of a command still has no room on a node that is ready, or
// nothing.
func (pr *progress) podWithoutRoom() func(*runningCommand) string {
	why := pr.podsWithoutRoomNow()
	ready := map[string]bool{}
	for _, node := range pr.state.snapshot.StateNodes() {
		ready[node.Name()] = node.Initialized() && node.Node.Ready || node.ReadyForNominated()
	}
	for i := range pr.state.snapshot.Pods { // one that is still ending may be in the way
		p := &pr.state.snapshot.Pods[i]
		if p.Terminating() && !p.Terminal() {
			delete(ready, p.NodeName)
		}
	}
	for _, x := range pr.state.base.Existing {
		if !ready[x.Node] {
			why[x.Pod] = fmt.Sprintf("pod %s waits for node %s to be ready", x.Pod, x.Node)
		}
	}
	left := pr.unschedulableOfCommands(ready, why)
	pr.markDependentPods(why, left)
	return func(r *runningCommand) string {
		for _, p := range r.podsToMove() {
			if w := why[p.Key()]; w != "" && left[p.Key()] {
				return w
			}
		}
		for _, n := range r.with {
			if !n.Initialized() && !n.ReadyForNominated() {
				return "replacement " + n.Claim.Name + " is not ready"
			}
		}
		return ""
	}
}

// podsToMove returns the pods that need room before the command ends. Of static pools the number of nodes matters, and
// not where pods go.
func (r *runningCommand) podsToMove() (out []*cluster.Pod) {
	for _, n := range r.claims {
		if !n.inStaticPool() {
			out = append(out, n.moving...)
		}
	}
	return out
}

// podsWithoutRoomNow returns, by pod, why it has no place on a node that exists or is on its way.
func (pr *progress) podsWithoutRoomNow() map[string]string {
	why := map[string]string{}
	for _, u := range pr.state.base.Unplaced {
		why[u.Pod] = pr.state.describeNoRoom(u.Pod, u.Message())
	}
	for _, l := range pr.state.base.Launches {
		for _, p := range l.Pods {
			why[p] = "pod " + p + " waits for a node to be launched"
		}
	}
	return why
}

// markDependentPods gives a reason to those pods of left that have room only once others run where the plan has them,
// on nodes that are not ready.
func (pr *progress) markDependentPods(why map[string]string, left map[string]bool) {
	var later, lean []cluster.Pod
	for i := range pr.state.snapshot.Pods {
		p := &pr.state.snapshot.Pods[i]
		switch {
		case why[p.Key()] != "":
			later = append(later, *p)
		case left[p.Key()] && len(p.Spread)+len(p.Affinity) > 0:
			lean = append(lean, *p)
		}
	}
	namespaces := topology.IndexNamespaces(pr.state.snapshot.Namespaces)
	for _, p := range lean {
		if i := slices.IndexFunc(later, func(other cluster.Pod) bool {
			return topology.DependsOn(p, other, namespaces)
		}); i >= 0 {
			why[p.Key()] = fmt.Sprintf("pod %s has room elsewhere once another has: %s", p.Key(), why[later[i].Key()])
		}
	}
}

// unschedulableOfCommands returns the pods of commands under way that the scheduler would leave without a place on the
// nodes that are ready, were the nodes they run on gone. Pods that wait take their places before. Pods that may not be
// on the new node any more that was made for them are given a reason.
func (pr *progress) unschedulableOfCommands(ready map[string]bool, why map[string]string) map[string]bool {
	out := map[string]bool{}
	all := pr.state.underWay()
	if len(all) == 0 {
		return out
	}
	unready := map[string]bool{}
	for _, node := range pr.state.snapshot.StateNodes() {
		unready[node.Name()] = !ready[node.Name()]
	}
	planned := pr.state.base.NodeByPod()
	b := simulator.New(pr.state.snapshot, unready)
	var moving []*cluster.Pod
	made := map[string]bool{}
	for _, r := range all {
		moving = append(moving, movingOf(r.claims)...)
		for _, n := range r.with {
			made[n.Name()] = true
		}
	}
	slices.SortFunc(moving, simulator.ByKey)
	mine := lists.Set(moving, func(p *cluster.Pod) string { return p.Key() })
	for i := range pr.state.snapshot.Pods {
		p := &pr.state.snapshot.Pods[i]
		if to := planned[p.Key()]; p.NodeName != to && !mine[p.Key()] {
			b.Place(p, to)
		}
	}
	for _, p := range b.BreakingSpread(moving, planned) {
		if x := planned[p.Key()]; made[x] && why[p.Key()] == "" {
			why[p.Key()] = fmt.Sprintf("pod %s has no room elsewhere: its spread does not allow it on node %s any more, which was made for it", p.Key(), x)
		}
	}
	held := pr.heldFor(b, mine)
	for _, p := range b.UnschedulableWithNominated(moving, planned, held) {
		out[p.Key()] = true
	}
	return out
}

// heldFor returns the nodes that are held for some of the pods.
func (pr *progress) heldFor(b *simulator.Simulator, pods map[string]bool) (out []simulator.NominatedNode) {
	for _, node := range pr.state.snapshot.StateNodes() {
		n := b.Node(node.Name())
		if n == nil || !node.AwaitsNominated() {
			continue
		}
		mine := slices.DeleteFunc(pr.state.podsByKeys(node.Claim.NominatedPods()),
			func(p *cluster.Pod) bool { return !pods[p.Key()] })
		out = append(out, simulator.NominatedNode{At: n, Pods: mine})
	}
	return out
}

func namesOf(list []*stateNode) []string {
	out := lists.Of(list, func(n *stateNode) string { return n.Claim.Name })
	slices.Sort(out)
	return out
}
