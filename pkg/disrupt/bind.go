package disrupt

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
	"joiner/pkg/resource"
)

// The packer says that pods can have a place; the scheduler, which gives each the emptiest node, may leave some without. What follows
// plays the scheduler, so that a command brings what its pods will need, and saves what it says.

// site is a node that moved pods may come to.
type site struct {
	name      string
	labels    map[string]string
	taints    []cluster.Taint
	free, all resource.List
	gone      bool // takes no pods
	taken     int  // moved pods that it got
}

// sites are the hosts of s that take pods, but for those that are out, and the nodes that the launches will be.
func (v *view) sites(s cluster.Snapshot, out map[string]bool, launches []plan.Launch) []*site {
	used, daemons := map[string]resource.List{}, map[string]resource.List{}
	for _, p := range s.Pods {
		if p.NodeName == "" || p.Terminal() || p.Virtual {
			continue
		}
		used[p.NodeName] = used[p.NodeName].Add(p.Need)
		if p.Owner == cluster.OwnerDaemonSet {
			daemons[p.NodeName] = daemons[p.NodeName].Add(p.Need)
		}
	}
	var list []*site
	for _, h := range s.Hosts() {
		if out[h.Name()] || h.Condemned() || h.Node == nil {
			continue
		}
		x := &site{name: h.Name(), labels: h.Labels(), taints: h.Taints(), all: h.Allocatable()}
		var kept resource.List
		for _, d := range s.Daemons {
			if x.admits(d) {
				kept = kept.Add(d.Need)
			}
		}
		x.free = x.all.Sub(used[x.name]).Sub(kept.Sub(daemons[x.name]).Max(resource.List{}))
		list = append(list, x)
	}
	for i, l := range launches {
		list = append(list, v.siteOf(l, fmt.Sprintf("launch %d", i)))
	}
	return list
}

// siteOf is the node that a launch will be if it gets its choice.
func (v *view) siteOf(l plan.Launch, name string) *site {
	x := &site{name: name, labels: map[string]string{v1.LabelNodePool: l.Pool}, taints: l.Taints}
	p, _ := v.s.PoolOf(l.Pool)
	t, _ := v.typeIn(p, l.Choice.Type)
	for _, labels := range []map[string]string{t.Requirements.Labels(), l.Labels, {
		corev1.LabelTopologyZone: l.Choice.Zone, v1.LabelCapacityType: l.Choice.CapacityType, corev1.LabelInstanceTypeStable: l.Choice.Type,
	}} {
		for k, value := range labels {
			x.labels[k] = value
		}
	}
	x.all = t.Allocatable
	kept := l.Requests // of its pods and daemons
	for _, key := range l.Pods {
		kept = kept.Sub(v.needOf(key))
	}
	x.free = x.all.Sub(kept.Max(resource.List{}))
	return x
}

// needOf is what the pod of that key asks for.
func (v *view) needOf(key string) resource.List {
	if v.needs == nil {
		v.needs = make(map[string]resource.List, len(v.s.Pods))
		for _, p := range v.s.Pods {
			v.needs[p.Key()] = p.Need
		}
	}
	return v.needs[key]
}

// admits reports whether labels and taints let the pod onto the node.
func (x *site) admits(p cluster.Pod) bool {
	for k, value := range p.NodeSelector {
		if x.labels[k] != value {
			return false
		}
	}
	if len(cluster.Untolerated(x.taints, p.Tolerations)) > 0 {
		return false
	}
	if len(p.NodeAffinity) == 0 {
		return true
	}
	for _, term := range p.NodeAffinity {
		met := true
		for _, r := range term {
			met = met && r.Matches(x.labels)
		}
		if met {
			return true
		}
	}
	return false
}

// emptiness is the mean part of CPU and memory that stays free, as kube-scheduler scores nodes by default.
func (x *site) emptiness(need resource.List) float64 {
	return float64(x.free.CPU-need.CPU)/float64(max(x.all.CPU, 1)) + float64(x.free.Memory-need.Memory)/float64(max(x.all.Memory, 1))
}

// scheduler is kube-scheduler as far as it matters here.
type scheduler struct {
	sites     []*site
	byName    map[string]*site
	admitting map[string][]*site // by kind of pod
	kinds     map[string]string  // by pod
}

func newScheduler(sites []*site) *scheduler {
	k := &scheduler{sites: sites, byName: map[string]*site{}, admitting: map[string][]*site{}, kinds: map[string]string{}}
	for _, x := range sites {
		k.byName[x.name] = x
	}
	return k
}

// bound is a pod with the site that it got.
type bound struct {
	to   *site
	need resource.List
}

// run puts the pods onto the sites one after the other. It returns where they went and those that find no place. Where a pod must be
// told by more than labels, taints and amounts, it goes where the packer put it: planned names the site by pod.
func (k *scheduler) run(pods []cluster.Pod, planned map[string]string) (placed []bound, left []cluster.Pod) {
	put := func(p cluster.Pod, x *site) {
		x.free = x.free.Sub(p.Need)
		x.taken++
		placed = append(placed, bound{x, p.Need})
	}
	for _, p := range pods {
		if !choosy(p) {
			continue
		}
		if x := k.byName[planned[p.Key()]]; x != nil && !x.gone && p.Need.FitsIn(x.free) {
			put(p, x)
		} else {
			left = append(left, p)
		}
	}
	for _, p := range pods {
		if choosy(p) {
			continue
		}
		if x := k.best(p); x != nil {
			put(p, x)
		} else {
			left = append(left, p)
		}
	}
	return placed, left
}

// undo takes pods off their sites again.
func undo(placed []bound) {
	for _, b := range placed {
		b.to.free = b.to.free.Add(b.need)
		b.to.taken--
	}
}

// best is the emptiest site that takes the pod, or nil. Pods of one kind share what admits them.
func (k *scheduler) best(p cluster.Pod) (out *site) {
	kind, known := k.kinds[p.Key()]
	if !known {
		kind = fmt.Sprint(p.NodeSelector, p.NodeAffinity, p.Tolerations)
		k.kinds[p.Key()] = kind
	}
	among, known := k.admitting[kind]
	if !known {
		for _, x := range k.sites {
			if x.admits(p) {
				among = append(among, x)
			}
		}
		k.admitting[kind] = among
	}
	most := 0.0
	for _, x := range among {
		if x.gone || x.free.CPU < p.Need.CPU || x.free.Memory < p.Need.Memory {
			continue
		}
		if e := x.emptiness(p.Need); (out == nil || e > most) && p.Need.FitsIn(x.free) {
			out, most = x, e
		}
	}
	return out
}

// choosy reports whether more than labels, taints and amounts decides where the pod may be.
func choosy(p cluster.Pod) bool {
	return len(p.Affinity)+len(p.AntiAffinity)+len(p.HostPorts)+len(p.VolumeZones)+len(p.Volumes) > 0 ||
		slices.ContainsFunc(p.Spread, func(s cluster.Spread) bool { return !s.Soft })
}

// sturdy adds to the launches of a plan about a set of nodes what pods will need that the scheduler leaves without a place. It is false
// when that does not end.
func (v *view) sturdy(set []*node, p plan.Plan) ([]plan.Launch, bool) {
	const most = 3
	out := map[string]bool{}
	for _, n := range v.nodes {
		if n.taken && n.Node != nil {
			out[n.Node.Name] = true
		}
	}
	var moving []cluster.Pod
	for _, n := range set {
		out[n.Node.Name] = true
		moving = append(moving, n.moving...)
	}
	slices.SortFunc(moving, func(a, b cluster.Pod) int { return strings.Compare(a.Key(), b.Key()) })
	planned := map[string]string{}
	for _, x := range p.Existing {
		planned[x.Pod] = x.Node
	}
	launches := p.Launches
	for range most {
		for i, l := range launches {
			for _, pod := range l.Pods {
				planned[pod] = fmt.Sprintf("launch %d", i)
			}
		}
		_, left := newScheduler(v.sites(v.calm, out, launches)).run(moving, planned)
		if len(left) == 0 {
			return launches, true
		}
		more := v.alone(left, out)
		if len(more) == 0 {
			return nil, false
		}
		launches = append(slices.Clone(launches), more...)
	}
	return nil, false
}

// alone are the launches that the pods need when no node there is takes them.
func (v *view) alone(pods []cluster.Pod, out map[string]bool) []plan.Launch {
	v.asked++
	s := v.drop(v.calm, out, false)
	homeless := map[string]bool{}
	for _, p := range pods {
		homeless[p.Key()] = true
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.NodeName == "" && !homeless[p.Key()] })
	s.Nodes, s.Claims = slices.Clone(s.Nodes), slices.Clone(s.Claims)
	for i := range s.Nodes {
		s.Nodes[i].Allocatable = nothing()
	}
	for i := range s.Claims {
		s.Claims[i].Allocatable = nothing()
	}
	p := v.pack(s)
	if len(p.Unplaced) > 0 {
		return nil
	}
	return p.Launches
}
