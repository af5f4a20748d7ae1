package podclass

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

// SetAside are pods, by namespace/name, that are left out of a pass for the work that they are, with the reason.
type SetAside map[string]string

// Classes are the pods that need a place, by equivalence class.
type Classes struct {
	List       []*Class              // those whose pods need most CPU first, among equals most memory
	Waiting    map[*cluster.Pod]bool // pods of the classes
	Shapes     map[string]int        // of needs, by their text
	Unmodelled []plan.Unplaced       // who is in no class, and why
	Aside      SetAside              // those of them that are too much work
	Signature  Signature             // writes the texts by which pods were grouped
	Limits     cluster.VolumeLimits  // of the cluster's nodes
	Sharing    bool                  // pods of a class share volumes with others
}

// DistinctPriorities counts the distinct priorities of the pods.
func (cs *Classes) DistinctPriorities() int {
	seen := lists.Set(cs.List, func(class *Class) int32 { return class.Pod.Priority })
	return len(seen)
}

// AnyPreference reports whether a pod that waits has a preference.
func (cs *Classes) AnyPreference() bool {
	return slices.ContainsFunc(cs.List, func(class *Class) bool { return len(class.Views) > 1 })
}

// NeededResources lists, sorted, the resources that matter.
func (cs *Classes) NeededResources() Dims {
	names := map[string]bool{resources.CPU: true, resources.Memory: true, resources.Pods: true}
	for _, class := range cs.List {
		for _, n := range class.Pod.Need.Names() {
			names[n] = true
		}
	}
	for _, driver := range cs.limitedDrivers() {
		names[driver] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// MeasureNeeds turns needs into vectors of the resources.
func (cs *Classes) MeasureNeeds(dims Dims) {
	var text []byte
	for _, class := range cs.List {
		class.Need = dims.VectorOf(class.Pod.Need)
		dims.addVolumes(class.Need, class.Volumes)
		text = text[:0]
		for _, x := range class.Need {
			text = binary.AppendVarint(text, x)
		}
		if _, ok := cs.Shapes[string(text)]; !ok {
			cs.Shapes[string(text)] = len(cs.Shapes)
		}
		class.Shape = cs.Shapes[string(text)]
	}
}

// Class is a set of pods that no rule can tell apart.
type Class struct {
	ID      int           // index in Classes.List
	Text    string        // what rules may look at, see Signature
	Pod     cluster.Pod   // any one of them
	Pods    []string      // namespace/name, oldest first
	Need    []int64       // by dimension
	Shape   int           // classes of equal need have the same
	Views   []*RelaxedPod // from strict to relaxed
	Stays   bool          // gets no new node
	Matched []int         // counters that count its pods
	Volumes Volumes       // of each of the pods
}

// LastRelaxation is the class as far as it can be relaxed.
func (class *Class) LastRelaxation() *RelaxedPod { return class.Views[len(class.Views)-1] }

// classMember is one pod of a class in the making.
type classMember struct {
	pod *cluster.Pod
	key string
}

// groupPodClasses groups pods that are alike, larger ones first. Of equal ones those on nodes that are being replaced
// are first: what a disruption was decided on must not be given to others.
func groupPodClasses(list []*cluster.Pod, sig Signature) []*Class {
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
	out := make([]*Class, len(all))
	for i, g := range all {
		slices.SortFunc(g.members, func(a, b classMember) int {
			return cmp.Or(a.pod.Created.Compare(b.pod.Created), CompareNatural(a.key, b.key))
		})
		class := &Class{ID: i, Text: g.text, Pod: *g.members[0].pod, Pods: make([]string, len(g.members)),
			Volumes: volumesOf(g.members[0].pod, sig.shared),
			Stays:   sig.moving[g.members[0].pod.NodeName]}
		for j, m := range g.members {
			class.Pods[j] = m.key
		}
		out[i] = class
	}
	return out
}

// CompareNatural compares names so that web-2 comes before web-10.
func CompareNatural(a, b string) int {
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

// findPendingPods finds the pods that need a place: those the scheduler gave up on, and those on nodes that are marked
// for deletion.
func findPendingPods(s cluster.Snapshot, all []cluster.StateNode) []*cluster.Pod {
	marked := map[string]cluster.StateNode{}
	for _, node := range all {
		if node.Node != nil && node.MarkedForDeletion() {
			marked[node.Node.Name] = node
		}
	}
	var obstacles cluster.Obstacles
	if len(marked) > 0 {
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
		if node, ok := marked[p.NodeName]; ok && isDisplaced(p, node, obstacles, s.Now) {
			out = append(out, p)
		}
	}
	return out
}

// WithNeedsAnew are the pods, of which those on nodes marked for deletion need what another in their stead asks for.
func WithNeedsAnew(pods []cluster.Pod, all []cluster.StateNode) []cluster.Pod {
	differs := func(p cluster.Pod) bool { return p.NodeName != "" && !p.NeedAnew.IsZero() }
	if !slices.ContainsFunc(pods, differs) {
		return pods
	}
	marked := map[string]bool{}
	for _, node := range all {
		marked[node.Name()] = node.Node != nil && node.MarkedForDeletion()
	}
	out := slices.Clone(pods)
	for i := range out {
		if p := &out[i]; differs(*p) && marked[p.NodeName] {
			p.Need = p.NextNeed()
		}
	}
	return out
}

// replacedAhead is the lead of pods' next node over their deletion by force: it must be ready by then.
const replacedAhead = 5 * time.Minute

// isDisplaced reports whether the pod, which runs on a node marked for deletion, will need room elsewhere. One that
// nobody may evict stays where it is, and so does its node, until the drain ends by force: capacity made before that
// would only stand by. One that ends already is on its way.
func isDisplaced(p *cluster.Pod, node cluster.StateNode, obstacles cluster.Obstacles, now time.Time) bool {
	if !p.Reschedulable() {
		return false
	}
	if p.Terminating() || !p.Protected(now) && !obstacles.Unevictable(p) {
		return true
	}
	end := drainDeadline(node)
	return !end.IsZero() && !now.Before(end.Add(-time.Duration(p.GraceSec)*time.Second-replacedAhead))
}

// drainDeadline returns the time when the drain of a host that is being deleted ends by force, zero for never.
// Lifecycle may not have written it yet.
func drainDeadline(node cluster.StateNode) time.Time {
	switch {
	case !node.Deleting() || node.Claim == nil:
		return time.Time{}
	case node.Claim.TerminationGrace == nil || node.Claim.Deleting.IsZero() || !node.Claim.Deadline().IsZero():
		return node.Claim.Deadline()
	}
	return node.Claim.Deleting.Add(*node.Claim.TerminationGrace)
}

// nodesBeingReplaced names the nodes whose pods may take room elsewhere and get no new nodes: what replaces those was
// decided already.
func nodesBeingReplaced(all []cluster.StateNode) map[string]bool {
	out := map[string]bool{}
	for _, node := range all {
		if node.MarkedForDisruption() {
			out[node.Name()] = true
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
		if len(p.DeviceTemplates)+len(p.DeviceClaims) > 0 {
			why = append(why, "nobody has read which devices its ResourceClaims ask for")
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

// limitedDrivers are the CSI drivers of waiting pods' volumes that may attach only so many to a node, as dimensions.
func (cs *Classes) limitedDrivers() (dims []string) {
	for _, class := range cs.List {
		for _, v := range slices.Concat(class.Volumes.Own, class.Volumes.Shared) {
			limited := cs.Limits.Limits(v.Driver)
			if name := volumesPrefix + v.Driver; (limited || v.Driver == instancetypes.DriverEBS) &&
				!slices.Contains(dims, name) {
				dims = append(dims, name)
			}
		}
	}
	return dims
}
