package checker

import (
	"maps"
	"slices"

	"joiner/pkg/cluster"
)

// lone checks what concerns one machine and its pods: labels, taints, amounts, host ports and volumes, in every shape that it
// may take.
func (t *trial) lone(m *machine) {
	if len(m.came) == 0 {
		return
	}
	mine := func(p *cluster.Pod) bool { return m.own[p.Namespace+"/"+p.Name] } // what the claim may become is no news to them
	if len(m.shapes) == 0 && (m.launch != nil || !all(m.came, mine)) {
		t.bad("%s: nothing that is sold meets its requirements", m.name)
	}
	for _, p := range m.came {
		if x, out := keepsOut(p, m.taints); out {
			t.bad("%s: %s does not tolerate %s", m.name, p.Name, x)
		}
	}
	for _, s := range m.shapes {
		t.fits(m, s)
		t.ports(m, s)
		t.besideGuests(m, s)
		for _, p := range m.came {
			if !suits(p, s.labels, false) {
				t.bad("%s as %s: its labels keep %s away: %v", m.name, s, p.Name, s.labels)
			}
		}
	}
	if m.launch != nil {
		t.asks(m)
	}
	t.volumes(m)
}

func all(pods []*cluster.Pod, is func(*cluster.Pod) bool) bool {
	return !slices.ContainsFunc(pods, func(p *cluster.Pod) bool { return !is(p) })
}

// pods are all pods of the machine.
func (m *machine) pods() []*cluster.Pod { return slices.Concat(m.there, m.came) }

// guests are the DaemonSets' pods that a machine of the shape gets.
func (t *trial) guests(m *machine, s shape) []*cluster.Pod {
	var out []*cluster.Pod
	for i := range t.Snapshot.Daemons {
		d := &t.Snapshot.Daemons[i]
		if _, refused := keepsOut(d, m.taints); !refused && suits(d, s.labels, false) {
			out = append(out, d)
		}
	}
	return out
}

// fits wants room for the pods, and for the daemons that do not run yet.
func (t *trial) fits(m *machine, s shape) {
	need, missing := amounts{}, amounts{}
	for _, d := range t.guests(m, s) {
		missing.add(amountsOf(d.Need), 1)
	}
	for _, p := range m.pods() {
		need.add(amountsOf(p.Need), 1)
		if p.Owner == cluster.OwnerDaemonSet {
			missing.add(amountsOf(p.Need), -1)
		}
	}
	for k, v := range missing { // each key on its own
		need[k] += max(0, v)
	}
	if name, ok := need.fits(s.room); !ok {
		t.bad("%s as %s: its pods and daemons want %d of %s, there is %d", m.name, s, need[name], name, s.room[name])
	}
}

// asks wants a claim to ask for at least what its pods need.
func (t *trial) asks(m *machine) {
	need := amounts{}
	for _, p := range m.came {
		need.add(amountsOf(p.Need), 1)
	}
	if name, ok := need.fits(amountsOf(m.launch.Requests)); !ok {
		t.bad("%s: it asks for less %s than its pods need", m.name, name)
	}
}

// ports wants no port twice on one address because of a newcomer.
func (t *trial) ports(m *machine, s shape) {
	type owner struct {
		pod *cluster.Pod
		cluster.HostPort
	}
	var taken []owner
	guests := t.guests(m, s)
	for _, p := range slices.Concat(guests, m.there, m.came) {
		for _, port := range p.HostPorts {
			for _, o := range taken {
				clash := o.Port == port.Port && o.Protocol == port.Protocol && (o.IP == port.IP || anyAddress(o.IP) || anyAddress(port.IP))
				if clash && o.pod != p && slices.Contains(m.came, p) {
					t.bad("%s: %s and %s want port %s/%d", m.name, o.pod.Name, p.Name, port.Protocol, port.Port)
				}
			}
			taken = append(taken, owner{p, port})
		}
	}
}

// besideGuests wants no newcomer on a machine of which DaemonSets' pods, that come with it, are kept apart by required anti-affinity of either.
func (t *trial) besideGuests(m *machine, s shape) {
	if m.launch == nil {
		return
	}
	for _, d := range t.guests(m, s) {
		for _, p := range m.came {
			for _, pair := range [][2]*cluster.Pod{{p, d}, {d, p}} {
				for _, term := range pair[0].AntiAffinity {
					if _, has := s.labels[term.Key]; (has || term.Key == labelHost) && t.picks(pair[0], term, pair[1]) {
						t.bad("%s as %s: %s must not share a value of %s with %s", m.name, s, pair[0].Name, term.Key, pair[1].Name)
					}
				}
			}
		}
	}
}

// volumes wants no newcomer to need a volume more than can be attached.
func (t *trial) volumes(m *machine) {
	used := map[string]map[string]bool{}
	for _, p := range m.pods() {
		for _, v := range p.Volumes {
			if used[v.Driver] == nil {
				used[v.Driver] = map[string]bool{}
			}
			used[v.Driver][v.ID] = true
		}
	}
	for _, p := range m.came {
		for _, v := range p.Volumes {
			if most, limited := m.limits[v.Driver]; limited && int64(len(used[v.Driver])) > most {
				t.bad("%s: %d volumes of %s, at most %d can be attached", m.name, len(used[v.Driver]), v.Driver, most)
			}
		}
	}
}

// values are what the machine may turn out to have for the label, sorted.
func (m *machine) values(key string) []string {
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

// value is the only one that the machine can have for the label.
func (m *machine) value(key string) (string, bool) {
	all := m.values(key)
	if len(all) != 1 {
		return "", false
	}
	return all[0], true
}
