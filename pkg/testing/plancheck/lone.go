package plancheck

import (
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
)

// checkPossibleNode checks what concerns one node and its pods: labels, taints, amounts, host ports and volumes, in
// every shape that it may take.
func (t *planCheck) checkPossibleNode(m *possibleNode) {
	if len(m.came) == 0 {
		return
	}
	// what the claim may become is no news to them
	mine := func(p *cluster.Pod) bool { return m.own[p.Namespace+"/"+p.Name] }
	if len(m.shapes) == 0 && (m.launch != nil || !allPods(m.came, mine)) {
		t.addViolation("%s: nothing that is sold meets its requirements", m.name)
	}
	for _, p := range m.came {
		if x, out := keepsOut(p, m.taints); out {
			t.addViolation("%s: %s does not tolerate %s", m.name, p.Name, x)
		}
	}
	t.checkParts(m)
	for _, s := range m.shapes {
		t.checkRoom(m, s)
		t.checkPorts(m, s)
		t.besideGuests(m, s)
		for _, p := range m.came {
			if !podSuits(p, s.labels, false) {
				t.addViolation("%s as %s: its labels keep %s away: %v", m.name, s, p.Name, s.labels)
			}
		}
	}
	if m.launch != nil {
		t.checkRequests(m)
	}
	t.checkVolumes(m, m.limits, "")
	if m.launch != nil {
		for _, s := range m.shapes {
			t.checkVolumes(m, s.limits, " as "+s.labels[labelType])
		}
	}
}

// checkParts checks that the node has the features and CSI drivers that its pods require.
func (t *planCheck) checkParts(m *possibleNode) {
	for _, p := range m.came {
		for _, part := range p.Requires {
			if t.lacksPart(m, part) {
				t.addViolation("%s: it is without %s, which %s requires", m.name, part, p.Name)
			}
		}
	}
}

// lacksPart reports whether the node is without the feature or CSI driver. Drivers come soon after their node, and
// Kubernetes 1.36 was the first whose kubelets declare features; the images of a class may be older.
func (t *planCheck) lacksPart(m *possibleNode, part string) bool {
	driver := strings.HasPrefix(part, "CSI driver ")
	if m.node != nil {
		return !slices.Contains(m.node.Provides, part) && (m.served || !driver)
	}
	class, _ := t.Snapshot.ClassOf(m.class)
	return !driver && class.KubeletMinor > 0 && class.KubeletMinor < 36
}

// attachedByNew returns the number of EBS volumes that a new node of the type attaches: what EC2 says, unless nodes of
// it say less or more. One that says less than half of all others is not believed. Where none of it does, and two or
// more of the types sold say less than half of what EC2 says of them, it attaches as few as the one that says most.
func (t *planCheck) attachedByNew(typ instancetypes.Type, sold []instancetypes.Type) map[string]int64 {
	const driver = "ebs.csi.aws.com"
	var told, elsewhere []int64
	for _, n := range t.Snapshot.Nodes {
		switch most := n.VolumeLimits[driver]; {
		case most <= 0:
		case n.Labels[labelType] == typ.Name:
			told = append(told, most)
		default:
			elsewhere = append(elsewhere, most)
		}
	}
	if few := fewAttached(t.Snapshot.Nodes, sold, driver); len(told) == 0 && few > 0 && typ.EBSVolumes > 0 {
		return map[string]int64{driver: min(few, typ.EBSVolumes)}
	}
	slices.Sort(told)
	slices.Sort(elsewhere)
	switch doubted := func(next int64) bool { return told[0] < next/2 }; {
	case len(told) == 0 && typ.EBSVolumes == 0:
		return nil
	case len(told) == 0:
		told = []int64{typ.EBSVolumes}
	case len(told) > 1:
		if doubted(told[1]) {
			told = told[1:]
		}
	case len(elsewhere) > 0 && elsewhere[0] <= told[0]: // no liar: another attaches as few
	case typ.EBSVolumes > 0:
		if doubted(typ.EBSVolumes) {
			told = []int64{typ.EBSVolumes}
		}
	case len(elsewhere) > 0 && doubted(elsewhere[0]):
		told = elsewhere
	}
	return map[string]int64{driver: told[0]}
}

// fewAttached is the most that a node says, if two or more do and each says less than half of what EC2 says of its
// type, else 0.
func fewAttached(nodes []cluster.Node, sold []instancetypes.Type, driver string) (most int64) {
	count := 0
	for _, n := range nodes {
		i := slices.IndexFunc(sold, func(t instancetypes.Type) bool { return t.Name == n.Labels[labelType] })
		if said := n.VolumeLimits[driver]; said > 0 && i >= 0 && sold[i].EBSVolumes > 0 {
			if said >= sold[i].EBSVolumes/2 {
				return 0
			}
			count, most = count+1, max(most, said)
		}
	}
	if count < 2 {
		return 0
	}
	return most
}

func allPods(pods []*cluster.Pod, is func(*cluster.Pod) bool) bool {
	return !slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return !is(p) })
}

// allPods are all pods of the node.
func (m *possibleNode) allPods() []*cluster.Pod { return slices.Concat(m.there, m.came) }

// daemonPods are the DaemonSets' pods that a node of the shape gets.
func (t *planCheck) daemonPods(m *possibleNode, s possibleShape) []*cluster.Pod {
	var out []*cluster.Pod
	for i := range t.Snapshot.Daemons {
		d := &t.Snapshot.Daemons[i]
		if _, refused := keepsOut(d, m.taints); !refused && podSuits(d, s.labels, false) && !t.isOversized(d, m, s) {
			out = append(out, d)
		}
	}
	return out
}

// isOversized reports whether the DaemonSet's pod never runs on the node, because it is larger than the node or, of
// a new one, than any that its pool makes.
func (t *planCheck) isOversized(d *cluster.Pod, m *possibleNode, s possibleShape) bool {
	holds := func(x possibleShape) bool {
		_, ok := amountsOf(d.Need).firstShort(x.room)
		return ok
	}
	pool, known := t.Snapshot.PoolOf(m.pool)
	if known && t.isToldOversized(d, m.pool) && !t.holdsAllDaemons(pool, m) {
		return true
	}
	if holds(s) || m.launch == nil && m.id != "" || !known {
		return !holds(s)
	}
	return !slices.ContainsFunc(t.possibleShapes(pool, nil, nil, true), func(x possibleShape) bool {
		return podSuits(d, x.labels, false) && holds(x)
	})
}

// isToldOversized reports whether the plan says that the DaemonSet counts for no node of the pool.
func (t *planCheck) isToldOversized(d *cluster.Pod, pool string) bool {
	return slices.ContainsFunc(t.plan.Oversized, func(x plan.OversizedDaemon) bool {
		return x.DaemonSet == d.Key() && slices.Contains(x.Pools, pool)
	})
}

// holdsAllDaemons reports whether some node of the pool holds the pods of all DaemonSets that it would get.
func (t *planCheck) holdsAllDaemons(pool cluster.Pool, m *possibleNode) bool {
	return slices.ContainsFunc(t.possibleShapes(pool, nil, nil, true), func(x possibleShape) bool {
		sum := resourceAmounts{}
		for i := range t.Snapshot.Daemons {
			d := &t.Snapshot.Daemons[i]
			if _, refused := keepsOut(d, m.taints); !refused && podSuits(d, x.labels, false) {
				sum.addAmounts(amountsOf(d.Need), 1)
			}
		}
		_, ok := sum.firstShort(x.room)
		return ok
	})
}

// checkRoom wants room for the pods, and for the daemons that do not run yet.
func (t *planCheck) checkRoom(m *possibleNode, s possibleShape) {
	need, missing := resourceAmounts{}, resourceAmounts{}
	for _, d := range t.daemonPods(m, s) {
		missing.addAmounts(amountsOf(d.Need), 1)
	}
	for _, p := range slices.Concat(m.nominated, m.allPods()) {
		need.addAmounts(amountsOf(p.Need), 1)
		if p.Owner == cluster.OwnerDaemonSet {
			missing.addAmounts(amountsOf(p.Need), -1)
		}
	}
	for k, v := range missing { // each key on its own
		need[k] += max(0, v)
	}
	if name, ok := need.firstShort(s.room); !ok {
		t.addViolation("%s as %s: its pods and daemons want %d of %s, there is %d", m.name, s, need[name], name,
			s.room[name])
	}
}

// checkRequests wants a claim to ask for at least what its pods need.
func (t *planCheck) checkRequests(m *possibleNode) {
	need := resourceAmounts{}
	for _, p := range m.came {
		need.addAmounts(amountsOf(p.Need), 1)
	}
	if name, ok := need.firstShort(amountsOf(m.launch.Requests)); !ok {
		t.addViolation("%s: it asks for less %s than its pods need", m.name, name)
	}
}

// checkPorts wants no port twice on one address because of a newcomer.
func (t *planCheck) checkPorts(m *possibleNode, s possibleShape) {
	type owner struct {
		pod *cluster.Pod
		cluster.HostPort
	}
	var taken []owner
	guests := t.daemonPods(m, s)
	for _, p := range slices.Concat(guests, m.nominated, m.there, m.came) {
		for _, port := range p.HostPorts {
			for _, o := range taken {
				clash := o.Port == port.Port && o.Protocol == port.Protocol &&
					(o.IP == port.IP || anyAddress(o.IP) || anyAddress(port.IP))
				if clash && o.pod != p && slices.Contains(m.came, p) {
					t.addViolation("%s: %s and %s want port %s/%d", m.name, o.pod.Name, p.Name, port.Protocol,
						port.Port)
				}
			}
			taken = append(taken, owner{p, port})
		}
	}
}

// besideGuests wants no newcomer on a node of which DaemonSets' pods, that come with it, are kept apart by required
// anti-affinity of either.
func (t *planCheck) besideGuests(m *possibleNode, s possibleShape) {
	if m.launch == nil {
		return
	}
	for _, d := range t.daemonPods(m, s) {
		for _, p := range m.came {
			for _, pair := range [][2]*cluster.Pod{{p, d}, {d, p}} {
				for _, term := range pair[0].AntiAffinity {
					if _, has := s.labels[term.Key]; (has || term.Key == labelHost) &&
						t.termSelects(pair[0], term, pair[1]) {
						t.addViolation("%s as %s: %s must not share a value of %s with %s", m.name, s, pair[0].Name,
							term.Key, pair[1].Name)
					}
				}
			}
		}
	}
}

// checkVolumes wants no newcomer to need a volume more than can be attached.
func (t *planCheck) checkVolumes(m *possibleNode, limits map[string]int64, as string) {
	used := map[string]map[string]bool{}
	for _, p := range slices.Concat(m.nominated, m.allPods()) {
		for _, v := range p.Volumes {
			if used[v.Driver] == nil {
				used[v.Driver] = map[string]bool{}
			}
			used[v.Driver][v.ID] = true
		}
	}
	for _, p := range m.came {
		for _, v := range p.Volumes {
			if most, limited := limits[v.Driver]; limited && int64(len(used[v.Driver])) > most {
				t.addViolation("%s%s: %d volumes of %s, at most %d can be attached", m.name, as, len(used[v.Driver]),
					v.Driver, most)
			}
		}
	}
}

// labelValues returns the values that the node may turn out to have for the label, sorted.
func (m *possibleNode) labelValues(key string) []string {
	seen := map[string]bool{}
	for _, s := range m.shapes {
		if v, ok := s.labels[key]; ok {
			seen[v] = true
		} else if key == labelHost {
			seen[m.name] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// singleValue is the only one that the node can have for the label.
func (m *possibleNode) singleValue(key string) (string, bool) {
	all := m.labelValues(key)
	if len(all) != 1 {
		return "", false
	}
	return all[0], true
}
