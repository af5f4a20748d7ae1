package sim

import (
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/objects"
)

// kubelets are the kubelets of all nodes, and the controllers that look after nodes: they make Node objects and run
// pods.
type kubelets struct {
	*engine
	api       *apiServer
	account   *account
	catalog   *catalog
	scheduler *scheduler
	volumes   *volumes
	workloads *workloads
	short     *shortNodes
	unusable  *unusableNodes
}

// bootMachine is the way of an instance to a Ready node, which begins then. Some never get there.
func (k *kubelets) bootMachine(m *machine, after time.Duration) {
	if k.troubleChance(k.plan.neverJoins) {
		k.addTrace("instance %s will never join", m.ID)
		return
	}
	neverReady := k.troubleChance(k.plan.neverReady) || k.account.faults[m.ImageID].neverReady
	boot := m.boots
	k.runAfter(after+k.drawDuration(15*time.Second, k.plan.bootTime), func() {
		if m.State != "pending" && m.State != "running" || m.node != nil || m.boots != boot {
			return
		}
		k.joinNode(m)
		if neverReady {
			k.addTrace("node %s will never be ready", m.node.Name)
			return
		}
		k.runAfter(k.drawDuration(time.Second, 10*time.Second), func() {
			if !m.node.down {
				k.setReady(m.node, true)
			}
		})
	})
}

// joinNode makes the Node object of an instance, or goes on with one that is there.
func (k *kubelets) joinNode(m *machine) {
	k.made++
	n := &node{machine: m, Node: objects.NewNode(m.Instance, k.catalog.types[m.Type], m.labels, m.taints, k.toSecond())}
	n.Allocatable = k.short.allocatable(m.Type, n.Allocatable)
	if m.boots > 0 {
		n.UID = fmt.Sprintf("%s-%d", n.UID, m.boots)
	}
	if old := k.api.nodes[n.Name]; old != nil {
		m.node, old.down = old, false
		k.addTrace("node %s is back", n.Name)
		for _, p := range k.api.podsOn(n.Name) {
			k.startPod(p, old)
		}
		return
	}
	n.Taints = append(n.Taints, cluster.Taint{Key: taintNotReady, Effect: "NoSchedule"})
	m.node = n
	k.api.nodes[n.Name] = n
	k.volumes.join(n.Name)
	k.addTrace("node %s joins", n.Name)
	k.api.notifyChange(aNode, nil)
	k.runAfter(time.Second, func() {
		for _, a := range k.workloads.apps {
			if a.daemon {
				k.workloads.reconcileApp(a)
			}
		}
	})
}

// silenceMachine ends everything on the machine. Kubernetes notices after forty seconds.
func (k *kubelets) silenceMachine(m *machine) {
	n := m.node
	if n == nil || n.down {
		return
	}
	n.down = true
	for _, p := range k.api.podsOn(n.Name) {
		p.starts++ // nothing starts or ends there any more
		k.setUnready(p)
	}
	k.runAfter(k.drawDuration(40*time.Second, 50*time.Second), func() {
		if n.down {
			k.setReady(n, false)
		}
	})
}

// setReady is a change of the Ready condition. The node lifecycle controller taints a node that is silent, and evicts
// its pods after five minutes.
func (k *kubelets) setReady(n *node, ready bool) {
	if k.api.nodes[n.Name] != n || n.Ready == ready {
		return
	}
	n.Ready, n.ReadySince = ready, k.toSecond()
	n.Taints = slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool {
		return t.Key == taintUnreachable || t.Key == taintNotReady
	})
	k.addTrace("node %s ready=%t", n.Name, ready)
	if ready {
		n.Taints = slices.Concat(n.Taints, k.short.taintOf(n), k.unusable.taintsOf(n.machine))
	} else {
		n.Taints = append(n.Taints, cluster.Taint{Key: taintUnreachable, Effect: "NoSchedule"},
			cluster.Taint{Key: taintUnreachable, Effect: "NoExecute"})
		for _, pod := range k.api.podsOn(n.Name) {
			k.setUnready(pod)
		}
		since := n.ReadySince
		k.runAfter(5*time.Minute, func() {
			if k.api.nodes[n.Name] == n && !n.Ready && n.ReadySince.Equal(since) {
				for _, pod := range k.api.podsOn(n.Name) {
					k.endPod(pod, pod.GraceSec)
				}
			}
		})
	}
	k.api.notifyChange(aNode, nil)
	k.scheduler.trySchedule()
}

const (
	taintUnreachable = "node.kubernetes.io/unreachable"
	taintNotReady    = "node.kubernetes.io/not-ready"
)

// startPod mounts the volumes of a pod and runs it.
func (k *kubelets) startPod(p *pod, n *node) {
	p.starts++
	mine := p.starts
	boot := p.app.bootTime + k.drawDuration(0, time.Second)
	wanted := func() bool {
		host := k.api.nodes[p.NodeName]
		return p.starts == mine && host != nil && !host.down && k.api.pods[p.Key()] == p
	}
	k.volumes.mount(p.volumeClaims, n.Name, n.Labels[labelZone], wanted, func() {
		k.runAfter(boot, func() {
			if wanted() {
				p.Phase, p.Ready = "Running", true
				k.observe(podRan{p})
				k.crashPod(p, n)
			}
		})
	})
}

// setUnready is a change of the Ready condition of a pod, if it was Ready.
func (k *kubelets) setUnready(p *pod) {
	if p.Ready {
		p.Ready, p.UnreadySince = false, k.toSecond()
	}
}

// crashPod has the pod crash once at its start, as its image lets it.
func (k *kubelets) crashPod(p *pod, n *node) {
	if n.machine == nil {
		return
	}
	if f := k.account.faults[n.machine.ImageID]; f.crash > 0 && k.drawChance(f.crash) {
		p.Trouble = "Crashed"
	}
	k.observe(podStarted{pod: p, image: n.machine.ImageID})
}

// endPod is a graceful deletion: the object stays until the kubelet has ended the processes.
func (k *kubelets) endPod(pod *pod, graceSec int64) {
	if k.api.pods[pod.Key()] != pod {
		return
	}
	end := k.toSecond().Add(time.Duration(graceSec) * time.Second)
	if !pod.Terminating() || end.Before(pod.Deleting) {
		pod.Deleting = end
	} else {
		return
	}
	pod.Ready = false
	if pod.NodeName == "" {
		k.removePod(pod)
		return
	}
	pod.starts++
	mine := pod.starts
	stop := min(time.Duration(graceSec)*time.Second, pod.app.stopTime) + k.drawDuration(0, time.Second)
	k.runAfter(stop, func() {
		if pod.starts == mine {
			k.finishPod(pod)
		}
	})
	k.runAfter(0, func() { k.workloads.reconcileApp(pod.app) })
}

// finishPod removes a pod whose processes have ended, if its kubelet is there to say so.
func (k *kubelets) finishPod(pod *pod) {
	n := k.api.nodes[pod.NodeName]
	switch {
	case k.api.pods[pod.Key()] != pod:
	case n == nil || !n.down:
		k.removePod(pod)
	}
}

// removePod takes the object away.
func (k *kubelets) removePod(pod *pod) {
	if k.api.pods[pod.Key()] != pod {
		return
	}
	pod.starts++
	delete(k.api.pods, pod.Key())
	if n := k.api.nodes[pod.NodeName]; n != nil {
		k.volumes.release(pod.volumeClaims, n.Name, n.down)
	}
	k.runAfter(k.drawDuration(10*time.Millisecond, 300*time.Millisecond), func() { k.workloads.reconcileApp(pod.app) })
	k.scheduler.trySchedule()
}

// forgetMachine does what the cloud controller does once an instance is gone: its node is deleted.
func (k *kubelets) forgetMachine(m *machine) {
	if m.node != nil && k.api.nodes[m.node.Name] == m.node {
		k.setReady(m.node, false)
		k.api.deleteNode(m.node, nil)
	}
}
