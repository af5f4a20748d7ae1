package binpack

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

// podClasses are the pods that need a place, by equivalence class.
type podClasses struct {
	list       []*podClass
	waiting    map[*cluster.Pod]bool // pods of the classes
	shapes     map[string]int        // of needs, by their text
	unmodelled []plan.Unplaced       // who is in no class, and why
	aside      setAside              // those of them that are too much work
	sig        signatureWriter
	limits     cluster.VolumeLimits // of the cluster's nodes
	sharing    bool                 // pods of a class share volumes with others
}

// readPodClasses groups the pods of the snapshot that need a place, without those that are set aside. The teller tells
// of stages about these classes.
func readPodClasses(s cluster.Snapshot, all []cluster.StateNode, aside setAside) (*podClasses, stageTeller) {
	cs := &podClasses{shapes: map[string]int{}, limits: cluster.ReadVolumeLimits(all), aside: aside}
	stages := stageTeller{s.Follower, cs}
	list, out := takeUnmodelled(findPendingPods(s, all))
	list, left := aside.leaveOut(list)
	cs.unmodelled = slices.Concat(out, left)
	stages.tellStage(cluster.StageWhole, nil, "")
	cs.sig = signatureWriter{labels: selectedLabelKeys(s), shared: sharedVolumes(s.Pods),
		moving: nodesBeingReplaced(all)}
	cs.list = groupPodClasses(list, cs.sig)
	for _, k := range cs.list {
		stages.tellStage(cluster.StageDemand, k, "")
	}
	cs.sharing = slices.ContainsFunc(cs.list, func(k *podClass) bool { return len(k.disks.shared) > 0 })
	cs.waiting = make(map[*cluster.Pod]bool, len(list))
	for _, p := range list {
		cs.waiting[p] = true
	}
	return cs, stages
}

// distinctPriorities counts the distinct priorities of the pods.
func (cs *podClasses) distinctPriorities() int {
	seen := map[int32]bool{}
	for _, k := range cs.list {
		seen[k.pod.Priority] = true
	}
	return len(seen)
}

// anyPreference reports whether a pod that waits has a preference.
func (cs *podClasses) anyPreference() bool {
	return slices.ContainsFunc(cs.list, func(k *podClass) bool { return len(k.views) > 1 })
}

// neededResources lists, sorted, the resources that matter.
func (cs *podClasses) neededResources() resourceDims {
	names := map[string]bool{resources.CPU: true, resources.Memory: true, resources.Pods: true}
	for _, k := range cs.list {
		for _, n := range k.pod.Need.Names() {
			names[n] = true
		}
	}
	for _, driver := range cs.limitedDrivers() {
		names[driver] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// measureNeeds turns needs into vectors of the resources.
func (cs *podClasses) measureNeeds(dims resourceDims) {
	var text []byte
	for _, k := range cs.list {
		k.need = dims.vectorOf(k.pod.Need)
		dims.addVolumes(k.need, k.disks)
		text = text[:0]
		for _, x := range k.need {
			text = strconv.AppendInt(append(text, ' '), x, 36)
		}
		if _, ok := cs.shapes[string(text)]; !ok {
			cs.shapes[string(text)] = len(cs.shapes)
		}
		k.shape = cs.shapes[string(text)]
	}
}

// podClass is a set of pods that no rule can tell apart.
type podClass struct {
	id      int
	text    string        // what rules may look at, see signatureWriter
	pod     cluster.Pod   // any one of them
	pods    []string      // namespace/name, oldest first
	need    []int64       // by dimension
	shape   int           // classes of equal need have the same
	views   []*relaxedPod // from strict to relaxed
	stays   bool          // gets no new node
	matched []int         // counters that count its pods
	disks   podVolumes
}

// lastRelaxation is the class as far as it can be relaxed.
func (k *podClass) lastRelaxation() *relaxedPod { return k.views[len(k.views)-1] }

// classMember is one pod of a class in the making.
type classMember struct {
	pod *cluster.Pod
	key string
}

// groupPodClasses groups pods that are alike, larger ones first. Of equal ones those on nodes that are being replaced
// are first: what a disruption was decided on must not be given to others.
func groupPodClasses(list []*cluster.Pod, sig signatureWriter) []*podClass {
	type group struct {
		text    string
		members []classMember
	}
	byText := map[string]*group{}
	var all []*group
	for _, p := range list {
		text := sig.podSignature(p)
		g := byText[string(text)]
		if g == nil {
			g = &group{text: string(text)}
			byText[g.text] = g
			all = append(all, g)
		}
		g.members = append(g.members, classMember{p, p.Key()})
	}
	staysFirst := func(x, y *cluster.Pod) int {
		switch a, b := sig.moving[x.NodeName], sig.moving[y.NodeName]; {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	slices.SortFunc(all, func(x, y *group) int {
		a, b := x.members[0].pod.Need, y.members[0].pod.Need
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory), staysFirst(x.members[0].pod,
			y.members[0].pod), strings.Compare(x.text, y.text))
	})
	out := make([]*podClass, len(all))
	for i, g := range all {
		slices.SortFunc(g.members, func(a, b classMember) int {
			return cmp.Or(a.pod.Created.Compare(b.pod.Created), compareNatural(a.key, b.key))
		})
		k := &podClass{id: i, text: g.text, pod: *g.members[0].pod, pods: make([]string, len(g.members)),
			disks: volumesOf(g.members[0].pod, sig.shared),
			stays: sig.moving[g.members[0].pod.NodeName]}
		for j, m := range g.members {
			k.pods[j] = m.key
		}
		out[i] = k
	}
	return out
}

// compareNatural compares names so that web-2 comes before web-10.
func compareNatural(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// selectedLabelKeys lists, sorted, the label keys that any selector of a spread or affinity term looks at.
func selectedLabelKeys(s cluster.Snapshot) []string {
	keys := map[string]bool{}
	last := "" // most selectors look at what the one before did
	add := func(sel *cluster.Selector) {
		if sel == nil {
			return
		}
		for i := range sel.Requirements {
			if key := sel.Requirements[i].Key; key != last || key == "" {
				keys[key], last = true, key
			}
		}
	}
	for i := range s.Pods {
		p := &s.Pods[i]
		for _, c := range p.Spread {
			add(c.Selector)
		}
		for _, list := range [][]cluster.AffinityTerm{p.Affinity, p.AntiAffinity} {
			for _, t := range list {
				add(t.Selector)
			}
		}
		for _, list := range [][]cluster.WeightedAffinityTerm{p.Prefers, p.Avoids} {
			for _, t := range list {
				add(t.Term.Selector)
			}
		}
	}
	for i := range s.Daemons {
		for _, t := range s.Daemons[i].AntiAffinity {
			add(t.Selector)
		}
	}
	return slices.Sorted(maps.Keys(keys))
}

// findPendingPods finds the pods that need a place: those the scheduler gave up on, and those on condemned nodes.
func findPendingPods(s cluster.Snapshot, all []cluster.StateNode) []*cluster.Pod {
	condemned := map[string]cluster.StateNode{}
	for _, h := range all {
		if h.Node != nil && h.MarkedForDeletion() {
			condemned[h.Node.Name] = h
		}
	}
	var obstacles cluster.Obstacles
	if len(condemned) > 0 {
		obstacles = s.Obstacles()
	}
	var out []*cluster.Pod
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" {
			if p.Provisionable() {
				out = append(out, p)
			}
			continue
		}
		// most pods stay where they are
		if h, ok := condemned[p.NodeName]; ok && isDisplaced(p, h, obstacles, s.Now) {
			out = append(out, p)
		}
	}
	return out
}

// withNeedsAnew are the pods, of which those on condemned nodes need what another in their stead asks for.
func withNeedsAnew(pods []cluster.Pod, all []cluster.StateNode) []cluster.Pod {
	differs := func(p cluster.Pod) bool { return p.NodeName != "" && !p.NeedAnew.IsZero() }
	if !slices.ContainsFunc(pods, differs) {
		return pods
	}
	condemned := map[string]bool{}
	for _, h := range all {
		condemned[h.Name()] = h.Node != nil && h.MarkedForDeletion()
	}
	out := slices.Clone(pods)
	for i := range out {
		if p := &out[i]; differs(*p) && condemned[p.NodeName] {
			p.Need = p.NextNeed()
		}
	}
	return out
}

// replacedAhead is how long before pods are deleted by force their next node is made: it must be ready by then.
const replacedAhead = 5 * time.Minute

// isDisplaced reports whether the pod, which runs on the condemned node, will need room elsewhere. One that nobody may
// evict stays where it is, and so does its node, until the drain ends by force: capacity made before that would only
// stand by. One that ends already is on its way.
func isDisplaced(p *cluster.Pod, h cluster.StateNode, obstacles cluster.Obstacles, now time.Time) bool {
	if !p.Reschedulable() {
		return false
	}
	if p.Terminating() || !p.Protected(now) && !obstacles.Unevictable(p) {
		return true
	}
	end := drainDeadline(h)
	return !end.IsZero() && !now.Before(end.Add(-time.Duration(p.GraceSec)*time.Second-replacedAhead))
}

// drainDeadline is when the drain of a host that is being deleted ends by force, zero for never. Lifecycle may not have
// written it yet.
func drainDeadline(h cluster.StateNode) time.Time {
	switch {
	case !h.Deleting() || h.Claim == nil:
		return time.Time{}
	case h.Claim.TerminationGrace == nil || h.Claim.Deleting.IsZero() || !h.Claim.Deadline().IsZero():
		return h.Claim.Deadline()
	}
	return h.Claim.Deleting.Add(*h.Claim.TerminationGrace)
}

// nodesBeingReplaced names the nodes whose pods may take room elsewhere and get no new nodes: what replaces those was
// decided already.
func nodesBeingReplaced(all []cluster.StateNode) map[string]bool {
	out := map[string]bool{}
	for _, h := range all {
		if h.MarkedForDisruption() {
			out[h.Name()] = true
		}
	}
	return out
}

// mostAmount is beyond what any node has of anything, in millicores, bytes or units; sums of it do not overflow.
const mostAmount = 1 << 50

// takeUnmodelled takes the pods out of list that carry constraints nobody here understands.
func takeUnmodelled(list []*cluster.Pod) (known []*cluster.Pod, out []plan.Unplaced) {
	for _, p := range list {
		why := slices.Clone(p.Unmodelled)
		if len(p.UnreadClaims) > 0 {
			why = append(why, "nobody has read where its volumes are")
		}
		if p.Need.Negative() {
			why = append(why, "it requests a negative amount: "+p.Need.String())
		}
		if slices.ContainsFunc(p.Need.Names(), func(n string) bool { return p.Need.Get(n) > mostAmount }) {
			why = append(why, "nothing has as much as it requests: "+p.Need.String())
		}
		if len(why) > 0 {
			out = append(out, plan.Unplaced{Pod: p.Key(), Why: why})
			continue
		}
		known = append(known, p)
	}
	return known, out
}
