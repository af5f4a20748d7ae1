package fake

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// Advance lets time go by: instances boot and end, kubelets end pods, apps make new pods, the scheduler binds them.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; d > time.Second; d -= time.Second {
		w.advanceOnce(time.Second)
	}
	w.advanceOnce(d)
}

// SkipTime lets time go by in one go: what would happen in it happens at its end.
func (w *World) SkipTime(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advanceOnce(d)
}

func (w *World) advanceOnce(d time.Duration) {
	w.now = w.now.Add(d)
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		w.advanceInstance(w.instances[id])
	}
	for _, name := range w.selectPods(w.hasEnded) {
		w.removePod(w.pods[name])
	}
	w.schedulePods()
}

// hasEnded reports whether the pod's grace is over and its kubelet, or nobody, has said so. On a node that is not ready
// no pod is.
func (w *World) hasEnded(pod *cluster.Pod) bool {
	n, there := w.nodes[pod.NodeName]
	if there && !n.Ready {
		pod.Ready = false
	}
	return pod.Terminating() && !w.now.Before(pod.Deleting) && (!there || n.Ready)
}

// advanceInstance has an instance do what it has come to: end, run, join its cluster, get ready.
func (w *ec2) advanceInstance(m *machine) {
	switch {
	case m.State == "shutting-down":
		m.State, m.ended = "terminated", w.now
		for _, n := range w.nodeStore.nodes {
			n.Ready = n.Ready && n.ProviderID != m.ProviderID()
		}
	case m.State == "stopping":
		m.State = "stopped"
		for _, n := range w.nodeStore.nodes {
			n.Ready = n.Ready && n.ProviderID != m.ProviderID()
		}
	case m.failsToStart && m.State == "pending":
		m.State = "shutting-down"
	case m.State == "pending" && !w.now.Before(m.Launched.Add(bootTime/2)):
		m.State = "running"
	case m.State == "running" && !m.joined && !w.now.Before(m.Launched.Add(joinTime)):
		w.joinNode(m)
	}
	if m.joined && !m.booted && m.State == "running" && !w.now.Before(m.Launched.Add(bootTime)) {
		w.bootNode(m)
	}
}

// ListProblems lists what must not be when everything has come to rest: pods without a living home, claims without
// exactly one living instance of their own or whose labels do not tell of it, instances without a claim, and instances
// that ever ran side by side for one claim.
func (w *World) ListProblems() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	bad := slices.Clone(w.doubled)
	alive := map[string]string{} // provider id to instance
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		m := w.instances[id]
		if m.Gone() {
			continue
		}
		alive[m.ProviderID()] = id
		if owners := w.countOwners(m.ProviderID()); owners != 1 {
			bad = append(bad, fmt.Sprintf("instance %s has %d claims", id, owners))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if c := w.claims[name]; alive[c.ProviderID] == "" || !c.Deleting.IsZero() {
			bad = append(bad, fmt.Sprintf("claim %s has no instance that lives, or is being deleted", name))
		} else if m := w.instances[alive[c.ProviderID]]; c.Labels[instancetypes.LabelType] != m.Type ||
			c.Labels[instancetypes.LabelZone] != m.Zone {
			bad = append(bad, fmt.Sprintf("claim %s does not say that it is %s in %s", name, m.Type, m.Zone))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		n, ok := w.nodes[w.pods[name].NodeName]
		if !ok || !n.Ready || alive[n.ProviderID] == "" {
			bad = append(bad, fmt.Sprintf("pod %s has no node", name))
		}
	}
	return append(bad, w.brokenBudgets()...)
}

// countOwners counts the claims of an instance.
func (w *World) countOwners(providerID string) int {
	owners := 0
	for _, c := range w.claims {
		if c.ProviderID == providerID {
			owners++
		}
	}
	return owners
}

// brokenBudgets are the disruption budgets under which too few pods were available at some time.
func (w *podStore) brokenBudgets() []string {
	var bad []string
	for _, b := range w.budgets {
		if b.lowest >= 0 && b.lowest < b.minAvailable {
			bad = append(bad, fmt.Sprintf("budget %s was broken: %d of %d were available", b.app, b.lowest,
				b.minAvailable))
		}
	}
	return bad
}

// DescribeLeftovers counts what exists.
func (w *World) DescribeLeftovers() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	alive := 0
	for _, m := range w.instances {
		if !m.Gone() {
			alive++
		}
	}
	return fmt.Sprintf("%d claims, %d nodes, %d instances, %d pods", len(w.claims), len(w.nodes),
		alive, len(w.pods))
}

// CountStarted counts the instances that were ever started.
func (w *ec2) CountStarted() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.instances)
}

// Instances lists the instances that live, sorted.
func (w *ec2) Instances() []cluster.Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []cluster.Instance
	for _, id := range slices.Sorted(maps.Keys(w.instances)) {
		if m := w.instances[id]; !m.Gone() {
			out = append(out, m.Instance)
		}
	}
	return out
}

// Claims lists the claims, sorted.
func (w *claimStore) Claims() []cluster.Claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.listClaims()
}

// MarkedOfferings lists the offerings that were ever marked, in the order of marking.
func (w *records) MarkedOfferings() []instancetypes.OfferingKey {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []instancetypes.OfferingKey
	for _, u := range w.marks {
		out = append(out, u.OfferingKey)
	}
	return out
}

// Events lists the events on objects of a kind as "Reason: message", in their order.
func (w *records) Events(kind string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		if e.Kind == kind {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

// CountWakeups tells how often a function was woken.
func (w *records) CountWakeups(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wakes[name]
}

// Nodes names the nodes, sorted.
func (w *nodeStore) Nodes() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(w.nodes)), " ")
}

// TaintsOf lists a node's taints as kubectl prints them.
func (w *nodeStore) TaintsOf(node string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	if n, ok := w.nodes[node]; ok {
		for _, t := range n.Taints {
			out = append(out, t.String())
		}
	}
	return out
}
