package sim

import (
	"maps"
	"slices"
	"time"

	"joiner/pkg/cluster"
)

// boot is the way of an instance from its launch to a Ready node. Some never get there.
func (w *world) boot(m *machine) {
	w.in(w.between(3*time.Second, 12*time.Second), func() { w.enter(m, "running") })
	if w.troubles(w.plan.neverJoins) {
		w.tell("instance %s will never join", m.ID)
		return
	}
	neverReady := w.troubles(w.plan.neverReady)
	w.in(w.between(15*time.Second, w.plan.bootTime), func() {
		if m.State != "pending" && m.State != "running" || m.node != nil {
			return
		}
		w.join(m)
		if neverReady {
			w.tell("node %s will never be ready", m.node.Name)
			return
		}
		w.in(w.between(time.Second, 10*time.Second), func() {
			if !m.node.down {
				w.setReady(m.node, true)
			}
		})
	})
}

// join makes the Node object of an instance.
func (w *world) join(m *machine) {
	w.made++
	t := w.types[m.Type]
	n := &node{machine: m, Node: cluster.Node{Name: "node-" + m.ID[2:], UID: "uid-node-" + m.ID[2:], ProviderID: m.ProviderID(),
		Created: w.second(), Capacity: t.Capacity, Allocatable: t.Allocatable, ReadySince: w.second(),
		Taints: append(slices.Clone(m.taints), cluster.Taint{Key: taintNotReady, Effect: "NoSchedule"})}}
	n.Labels = merged(m.labels, map[string]string{"kubernetes.io/hostname": n.Name})
	m.node = n
	w.nodes[n.Name] = n
	w.disks.join(n.Name)
	w.tell("node %s joins", n.Name)
	w.changed(aNode, nil)
	w.in(time.Second, func() {
		for _, a := range w.apps {
			if a.daemon {
				w.control(a)
			}
		}
	})
}

// enter is a change of an instance's state, which EC2 tells in an event and lists show a little later.
func (w *world) enter(m *machine, name string) {
	if m.Gone() && name != "terminated" || m.State == name || m.State != "pending" && name == "running" {
		return
	}
	m.State = name
	m.states = append(m.states, state{name, time.Now().Add(w.between(0, w.plan.stateLag))})
	w.emit(Event{Kind: EventState, Instance: m.ID, State: name})
}

// stop ends an instance. Its node falls silent; the cloud controller deletes the object once the instance is gone.
func (w *world) stop(m *machine, by string) {
	if m.Gone() {
		return
	}
	m.endedBy, m.stopped = by, time.Now()
	w.tell("instance %s is ended by %s", m.ID, by)
	w.enter(m, "shutting-down")
	w.silence(m)
	w.in(w.between(2*time.Second, 40*time.Second), func() {
		w.enter(m, "terminated")
		m.ended = time.Now()
		w.in(w.between(5*time.Second, 50*time.Second), func() {
			if m.node != nil && w.nodes[m.node.Name] == m.node {
				w.setReady(m.node, false)
				w.deleteNode(m.node, nil)
			}
		})
	})
}

// silence ends everything on the machine. Kubernetes notices after forty seconds.
func (w *world) silence(m *machine) {
	n := m.node
	if n == nil || n.down {
		return
	}
	n.down = true
	for _, p := range w.podsOn(n.Name) {
		p.starts++ // nothing starts or ends there any more
		w.setPodReady(p, false)
	}
	w.in(w.between(40*time.Second, 50*time.Second), func() {
		if n.down {
			w.setReady(n, false)
		}
	})
}

// living lists the instances that run or will, without foreign ones.
func (w *world) living() []*machine {
	var out []*machine
	for _, id := range slices.Sorted(maps.Keys(w.machines)) {
		if m := w.machines[id]; !m.Gone() && !m.foreign {
			out = append(out, m)
		}
	}
	return out
}
