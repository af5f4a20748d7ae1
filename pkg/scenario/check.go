package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner/pkg/cluster"
	"joiner/pkg/plan"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// machine is a node as it may turn out, with the pods on it. A new node turns out in many ways: each type, zone and
// capacity type that its claim allows.
type machine struct {
	name   string
	taints []cluster.Taint
	shapes []shape
	pods   []cluster.Pod // all of them
	came   []cluster.Pod // those that the plan put there
	own    []string      // those that a claim was made for
	limits map[string]int64
}

type shape struct {
	labels map[string]string
	has    resource.List
}

// Check returns what is wrong with the plan by the rules of Kubernetes and of NodePools, looking at every shape that a new
// node may take.
func (w *World) Check(p plan.Plan) []string {
	var bad []string
	machines, faults := w.machines(p)
	bad = append(bad, faults...)
	for _, m := range machines {
		for _, s := range m.shapes {
			for _, why := range w.misfits(m, s) {
				bad = append(bad, fmt.Sprintf("%s as %s in %s: %s", m.name, s.labels[key("type")], s.labels[key("zone")], why))
			}
		}
		for _, pod := range m.came {
			for _, t := range cluster.Untolerated(m.taints, pod.Tolerations) {
				if t.Effect != "PreferNoSchedule" {
					bad = append(bad, fmt.Sprintf("%s: %s does not tolerate %s", m.name, pod.Name, t))
				}
			}
		}
		bad = append(bad, portClashes(m)...)
		bad = append(bad, tooManyVolumes(m)...)
	}
	bad = append(bad, w.together(machines)...)
	bad = append(bad, w.limits(p)...)
	slices.Sort(bad)
	return slices.Compact(bad)
}

// machines puts every pod where the plan wants it.
func (w *World) machines(p plan.Plan) ([]*machine, []string) {
	var bad []string
	waiting := map[string]cluster.Pod{}
	for _, pod := range w.Snapshot.Pods {
		waiting[pod.Key()] = pod
	}
	var out []*machine
	byName := map[string]*machine{}
	for _, m := range w.standing() {
		byName[m.name] = m
		out = append(out, m)
	}
	moved := map[string]int{}
	put := func(m *machine, name string) {
		pod, ok := waiting[name]
		if moved[name]++; !ok || moved[name] > 1 {
			bad = append(bad, fmt.Sprintf("%s: pod %s is unknown or placed twice", m.name, name))
			return
		}
		m.pods, m.came = append(m.pods, pod), append(m.came, pod)
	}
	for i, l := range p.Launches {
		pool, _ := w.Snapshot.PoolOf(l.Pool)
		m := &machine{name: fmt.Sprintf("launch %d", i), taints: l.Taints, shapes: w.shapes(pool, l.Labels, l.Requirements)}
		if len(m.shapes) == 0 || len(l.Types) == 0 || len(l.Types) > 60 {
			bad = append(bad, fmt.Sprintf("%s can be nothing: %s", m.name, l.Requirements))
		}
		for _, name := range l.Pods {
			put(m, name)
		}
		out = append(out, m)
	}
	for _, e := range p.Existing {
		m := byName[e.Node]
		if m == nil {
			bad = append(bad, "no node "+e.Node)
			continue
		}
		if put(m, e.Pod); slices.Contains(m.own, e.Pod) {
			m.came = m.came[:len(m.came)-1] // it was checked when the claim was made
		}
	}
	for _, u := range p.Unplaced {
		if moved[u.Pod]++; moved[u.Pod] > 1 || len(u.Why) == 0 {
			bad = append(bad, u.Pod+" is placed and unplaced, or has no reason")
		}
	}
	for _, pod := range w.Snapshot.Pods {
		switch m := byName[pod.NodeName]; {
		case pod.NodeName == "" && pod.Provisionable() && moved[pod.Key()] == 0:
			bad = append(bad, pod.Key()+" is neither placed nor unplaced")
		case m != nil && moved[pod.Key()] == 0 && !pod.Terminal():
			m.pods = append(m.pods, pod)
		}
	}
	return out, bad
}

// standing are the machines that exist or are on their way, without pods.
func (w *World) standing() []*machine {
	var out []*machine
	for _, h := range w.Snapshot.Hosts() {
		m := &machine{name: h.Name(), taints: h.Taints(), shapes: []shape{{h.Labels(), h.Allocatable()}}}
		if h.Node != nil {
			m.limits = h.Node.VolumeLimits
		}
		if h.Registered() && h.Node.Labels[key("host")] == "" {
			m.shapes[0].labels = maps.Clone(m.shapes[0].labels)
			m.shapes[0].labels[key("host")] = h.Name()
		}
		if h.Node == nil && h.Claim.ProviderID == "" {
			pool, _ := w.Snapshot.PoolOf(h.Claim.Pool)
			m.shapes = w.shapes(pool, h.Claim.Labels, h.Claim.Requirements)
		}
		if h.Claim != nil {
			m.own = strings.Split(h.Claim.Annotations["joiner.sh/nominated-pods"], ",")
		}
		out = append(out, m)
	}
	return out
}

// shapes lists what a claim with these requirements may become, by what is sold now.
func (w *World) shapes(pool cluster.Pool, labels map[string]string, set require.Set) []shape {
	var out []shape
	for _, t := range w.sold(pool.Name) {
		if !set.Has(key("type"), t.Name) || !set.Intersects(t.Requirements) {
			continue
		}
		for _, o := range t.Offerings {
			if !o.Available || !set.Has(key("zone"), o.Zone) || !set.Has(key("capacity"), o.CapacityType) {
				continue
			}
			l := maps.Clone(pool.Labels)
			if l == nil {
				l = map[string]string{}
			}
			maps.Copy(l, t.Requirements.Labels())
			maps.Copy(l, labels)
			l[key("zone")], l[key("capacity")], l[key("pool")] = o.Zone, o.CapacityType, pool.Name
			l[labelEBSZone] = o.Zone
			out = append(out, shape{l, t.Allocatable})
		}
	}
	return out
}

// misfits says what keeps the machine's pods from a node of this shape.
func (w *World) misfits(m *machine, s shape) []string {
	var bad []string
	if len(m.came) == 0 {
		return nil
	}
	var need, daemons, running resource.List
	for _, d := range w.Snapshot.Daemons {
		hard := slices.DeleteFunc(slices.Clone(m.taints), func(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" })
		if nodeSuits(d, s.labels) && len(cluster.Untolerated(hard, d.Tolerations)) == 0 {
			daemons = daemons.Add(d.Need)
		}
	}
	for _, pod := range m.pods {
		need = need.Add(pod.Need)
		if pod.Owner == cluster.OwnerDaemonSet {
			running = running.Add(pod.Need)
		}
	}
	need = need.Add(daemons.Sub(running).Max(resource.List{}))
	if !need.FitsIn(s.has) {
		bad = append(bad, fmt.Sprintf("%s do not fit in %s", need, s.has))
	}
	for _, pod := range m.came {
		if !nodeSuits(pod, s.labels) {
			bad = append(bad, fmt.Sprintf("%s may not be on a node labelled %v", pod.Name, s.labels))
		}
	}
	return bad
}

// nodeSuits reports whether node selector, required node affinity and volumes let the pod be on a node with these labels.
func nodeSuits(p cluster.Pod, labels map[string]string) bool {
	for k, v := range p.NodeSelector {
		if labels[k] != v {
			return false
		}
	}
	return anyHolds(p.NodeAffinity, labels) && anyHolds(p.VolumeZones, labels)
}

func anyHolds(terms [][]require.Requirement, labels map[string]string) bool {
	if len(terms) == 0 {
		return true
	}
	return slices.ContainsFunc(terms, func(rs []require.Requirement) bool {
		return !slices.ContainsFunc(rs, func(r require.Requirement) bool { return !r.Matches(labels) })
	})
}

func portClashes(m *machine) []string {
	seen := map[string]string{}
	var bad []string
	there := slices.DeleteFunc(slices.Clone(m.pods), func(p cluster.Pod) bool {
		return slices.ContainsFunc(m.came, func(c cluster.Pod) bool { return c.Key() == p.Key() })
	})
	for _, p := range slices.Concat(there, m.came) {
		for _, port := range p.HostPorts {
			id := fmt.Sprintf("%s/%d", port.Protocol, port.Port)
			newcomer := slices.ContainsFunc(m.came, func(c cluster.Pod) bool { return c.Key() == p.Key() })
			if seen[id] != "" && newcomer {
				bad = append(bad, fmt.Sprintf("%s: %s and %s want port %s", m.name, seen[id], p.Name, id))
			}
			seen[id] = p.Name
		}
	}
	return bad
}

// limits checks pools' limits and minValues, whatever the new nodes become.
func (w *World) limits(p plan.Plan) []string {
	used := map[string]resource.List{}
	grew := map[string]bool{}
	for _, h := range w.Snapshot.Hosts() {
		if h.Deleting() {
			continue
		}
		has := h.Capacity()
		if has.IsZero() {
			for _, t := range w.sold(h.Pool()) {
				if h.Claim.Requirements.Has(key("type"), t.Name) && h.Claim.Requirements.Intersects(t.Requirements) {
					has = has.Max(t.Capacity)
				}
			}
		}
		used[h.Pool()] = used[h.Pool()].Add(has.With("nodes", 1))
	}
	var bad []string
	for i, l := range p.Launches {
		var most resource.List
		values := map[string]map[string]bool{}
		for _, name := range l.Types {
			t, _ := w.typeIn(l.Pool, name)
			most = most.Max(t.Capacity)
			for k, v := range t.Requirements.Labels() {
				if values[k] == nil {
					values[k] = map[string]bool{}
				}
				values[k][v] = true
			}
		}
		used[l.Pool] = used[l.Pool].Add(most.With("nodes", 1))
		grew[l.Pool] = true
		for _, r := range l.Requirements.All() {
			if len(values[r.Key]) < r.MinValues {
				bad = append(bad, fmt.Sprintf("launch %d: %s has fewer than %d values", i, r.Key, r.MinValues))
			}
		}
	}
	for _, pool := range w.Snapshot.Pools {
		for _, name := range pool.Limited {
			if grew[pool.Name] && used[pool.Name].Get(name) > pool.Limits.Get(name) {
				bad = append(bad, fmt.Sprintf("pool %s: %s %d is beyond the limit", pool.Name, name, used[pool.Name].Get(name)))
			}
		}
	}
	return bad
}

// domains are the values of the key that the machine may turn out to have.
func (m *machine) domains(k string) []string {
	if k == key("host") {
		return []string{m.name}
	}
	var out []string
	for _, s := range m.shapes {
		if v, ok := s.labels[k]; ok {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (m *machine) String() string { return m.name + " " + strings.Join(m.domains(key("zone")), "/") }
