package sim

import (
	"maps"
	"slices"
	"time"

	"joiner/pkg/model/cluster"
)

// bootInstance is the way of an instance from its launch to a Ready node. Some never get there.
func (w *world) bootInstance(m *machine) {
	w.runAfter(w.drawDuration(3*time.Second, 12*time.Second), func() { w.enterState(m, "running") })
	if w.troubleChance(w.plan.neverJoins) {
		w.addTrace("instance %s will never join", m.ID)
		return
	}
	neverReady := w.troubleChance(w.plan.neverReady)
	w.runAfter(w.drawDuration(15*time.Second, w.plan.bootTime), func() {
		if m.State != "pending" && m.State != "running" || m.node != nil {
			return
		}
		w.joinNode(m)
		if neverReady {
			w.addTrace("node %s will never be ready", m.node.Name)
			return
		}
		w.runAfter(w.drawDuration(time.Second, 10*time.Second), func() {
			if !m.node.down {
				w.setReady(m.node, true)
			}
		})
	})
}

// joinNode makes the Node object of an instance.
func (w *world) joinNode(m *machine) {
	w.made++
	t := w.types[m.Type]
	n := &node{machine: m, Node: cluster.Node{Name: "node-" + m.ID[2:], UID: "uid-node-" + m.ID[2:],
		ProviderID: m.ProviderID(),
		Created:    w.toSecond(), Capacity: t.Capacity, Allocatable: t.Allocatable, ReadySince: w.toSecond(),
		Taints: append(slices.Clone(m.taints), cluster.Taint{Key: taintNotReady, Effect: "NoSchedule"})}}
	n.Labels = mergeAnnotations(m.labels, map[string]string{"kubernetes.io/hostname": n.Name})
	m.node = n
	w.nodes[n.Name] = n
	w.disks.join(n.Name)
	w.addTrace("node %s joins", n.Name)
	w.notifyChange(aNode, nil)
	w.runAfter(time.Second, func() {
		for _, a := range w.apps {
			if a.daemon {
				w.reconcileApp(a)
			}
		}
	})
}

// enterState is a change of an instance's state, which EC2 tells in an event and lists show a little later.
func (w *world) enterState(m *machine, name string) {
	if m.Gone() && name != "terminated" || m.State == name || m.State != "pending" && name == "running" {
		return
	}
	m.State = name
	m.states = append(m.states, instanceState{name, time.Now().Add(w.drawDuration(0, w.plan.stateLag))})
	w.emitEvent(Event{Kind: EventState, Instance: m.ID, State: name})
}

// endInstance ends an instance. Its node falls silent; the cloud controller deletes the object once the instance is
// gone.
func (w *world) endInstance(m *machine, by string) {
	if m.Gone() {
		return
	}
	m.endedBy, m.stopped = by, time.Now()
	w.addTrace("instance %s is ended by %s", m.ID, by)
	w.enterState(m, "shutting-down")
	w.silenceMachine(m)
	w.runAfter(w.drawDuration(2*time.Second, 40*time.Second), func() {
		w.enterState(m, "terminated")
		m.ended = time.Now()
		w.runAfter(w.drawDuration(5*time.Second, 50*time.Second), func() {
			if m.node != nil && w.nodes[m.node.Name] == m.node {
				w.setReady(m.node, false)
				w.deleteNode(m.node, nil)
			}
		})
	})
}

// silenceMachine ends everything on the machine. Kubernetes notices after forty seconds.
func (w *world) silenceMachine(m *machine) {
	n := m.node
	if n == nil || n.down {
		return
	}
	n.down = true
	for _, p := range w.podsOn(n.Name) {
		p.starts++ // nothing starts or ends there any more
		w.setPodReady(p, false)
	}
	w.runAfter(w.drawDuration(40*time.Second, 50*time.Second), func() {
		if n.down {
			w.setReady(n, false)
		}
	})
}

// livingInstances lists the instances that run or will, without foreign ones.
func (w *world) livingInstances() []*machine {
	var out []*machine
	for _, id := range slices.Sorted(maps.Keys(w.machines)) {
		if m := w.machines[id]; !m.Gone() && !m.foreign {
			out = append(out, m)
		}
	}
	return out
}
