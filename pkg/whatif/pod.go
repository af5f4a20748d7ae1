package whatif

import (
	"fmt"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/provisioning/ceiling"
	"joiner.sh/pkg/scheduling/binpack"
)

// Limits are what a search may do.
type Limits struct {
	// Work is how much of it may be done: a question is 400, three more for each node and four for each pod that waits.
	// 0 is for DefaultWork, and less than that for none.
	Work int
	// Accept reports whether the API server would take an edit; nil for one that takes all.
	Accept func(e Edit) bool
}

// DefaultWork is about a second of one core: in a cluster of 500 nodes twenty questions, which is each edit of a usual
// pod alone, and in a small one as many as pairs take.
const DefaultWork = 40_000

// ForPod finds what would give the pod namespace/name a node. Nothing is asked where it has one, or gets one as it is.
func ForPod(s cluster.Snapshot, sells binpack.Offerings, key string, most Limits) Answer {
	i := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Key() == key && !p.Virtual })
	if i < 0 || s.Pods[i].NodeName != "" || !s.Pods[i].Unscheduled || !s.Pods[i].Active() {
		return Answer{}
	}
	s.Rules.PackingIterations = cluster.NoIterations // who finds a place is asked, and about what it costs
	s.Pods = slices.Clone(s.Pods)
	w := placing{s: s, sells: sells, key: key}
	w.before = w.plan(s)
	if _, placed := w.answer(s); placed {
		return Answer{}
	}
	group := waitingAlike(s.Pods, i)
	q := newQuestion(newWorld(s, group), most, w.answer)
	if len(group.Affinity) == 0 { // else it may wait for others
		few := s
		few.Pods = slices.DeleteFunc(slices.Clone(s.Pods),
			func(p cluster.Pod) bool { return p.NodeName == "" && !group.has(&p) })
		if _, placed := w.answer(few); !placed && len(few.Pods) < len(s.Pods) {
			q.few = newWorld(few, group)
		}
	}
	return q.search(podFamilies(s, group))
}

// podFamilies are all edits that could give the pods a node.
func podFamilies(s cluster.Snapshot, group pods) []family {
	all := group.families(s)
	for i, p := range s.Pools {
		if !p.Deleting && !p.Static {
			all = append(all, pool{p, i}.families(group.Pod)...)
		}
	}
	all = append(all, settingFamilies(s.Rules)...)
	return append(all, refusalFamilies(s)...)
}

// waitingAlike are the pods that wait and that the same object makes as pod i.
func waitingAlike(all []cluster.Pod, i int) pods {
	out := pods{Pod: all[i], names: map[string]bool{all[i].Name: true}}
	for j := range all {
		p := &all[j]
		if p.NodeName == "" && p.Controller != "" && p.Controller == all[i].Controller && !p.Virtual {
			out.names[p.Name] = true
		}
	}
	return out
}

// placing asks the packer about a pod.
type placing struct {
	s      cluster.Snapshot
	sells  binpack.Offerings
	key    string
	before plan.Plan
}

// market is what classes may launch in the snapshot.
func (w *placing) market(s cluster.Snapshot) binpack.Offerings {
	if len(s.SoldOut) != len(w.s.SoldOut) {
		return binpack.ResolveOfferings(s)
	}
	return w.sells
}

// plan is what a pass would do.
func (w *placing) plan(s cluster.Snapshot) plan.Plan {
	return ceiling.LimitPlan(s, binpack.PodsFrom(s, w.market(s)))
}

// answer is where the pod comes to in the snapshot.
func (w *placing) answer(s cluster.Snapshot) (out Outcome, placed bool) {
	p := w.plan(s)
	for i, l := range p.Launches {
		if slices.Contains(l.Pods, w.key) {
			pool, _ := s.PoolOf(l.Pool)
			t, _ := overlays.FindType(overlays.ByPool(s, w.market(s)))(pool, l.Choice.Type)
			out.Brings = fmt.Sprintf("a new %s of NodePool %s at %.4f USD/h", l.Choice.Offer, l.Pool, l.Choice.Price)
			out.landing, placed = landing{launch: &p.Launches[i], is: t}, true
		}
	}
	for _, e := range p.Existing {
		if e.Pod == w.key {
			out.Brings, placed = "room on node "+e.Node, true
			out.landing = landing{labels: labelsOf(s, e.Node)}
		}
	}
	if !placed {
		return out, false
	}
	out.AddsUSD = p.TotalPrice() - w.before.TotalPrice()
	without := unplacedPods(p)
	for _, u := range w.before.Unplaced {
		if u.Pod != w.key && !without[u.Pod] {
			out.Others = append(out.Others, u.Pod)
		}
	}
	slices.Sort(out.Others)
	return out, true
}

func unplacedPods(p plan.Plan) map[string]bool {
	out := map[string]bool{}
	for _, u := range p.Unplaced {
		out[u.Pod] = true
	}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			out[pod] = l.Waits != ""
		}
	}
	return out
}

// labelsOf are the labels of a node, or of a NodeClaim while it has none.
func labelsOf(s cluster.Snapshot, name string) map[string]string {
	for _, h := range s.StateNodes() {
		if h.Name() == name {
			return h.Labels()
		}
	}
	return nil
}

// landing is where a pod comes to.
type landing struct {
	launch *plan.Launch
	is     instancetypes.Type // of the launch
	labels map[string]string  // of a node that exists
}

// label is the value of a label there, empty where there is none or nobody can tell.
func (l landing) label(key string) string {
	if l.launch == nil {
		return l.labels[key]
	}
	if v, own := l.launch.Choice.Label(key); own {
		return v
	}
	if v := l.launch.Labels[key]; v != "" {
		return v
	}
	if key == instancetypes.LabelType {
		return l.launch.Choice.Type
	}
	for _, set := range []requirements.Set{l.is.Requirements, l.launch.Requirements} {
		r, _ := set.Get(key)
		if v, one := r.Single(); one {
			return v
		}
	}
	return ""
}
