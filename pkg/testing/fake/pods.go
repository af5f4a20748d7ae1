package fake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/objects"
	"joiner.sh/pkg/testing/scenario"
)

// podStore are the pods, the apps that make them, their budgets, and the scheduler.
type podStore struct {
	*engine
	pods    map[string]*cluster.Pod
	budgets []budget
	apps    map[string]cluster.Pod // pods that are made anew when they go, by app

	Stopped []cluster.StoppedBuffer // what buffers of stopped capacity come to; set before use
	// whether kube-scheduler puts no pod on the node, for reasons of its own; nil for none
	RefusePod func(cluster.Node) bool
}

// PendingPods lists the pods that need a node.
func (p ReadPorts) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	return doCall(ctx, p.invocation, "list pending pods", func() ([]cluster.Pod, error) {
		out := cluster.KeepProvisionable(p.w.listPods())
		for _, b := range p.w.Stopped {
			out = append(out, b.Pods...)
		}
		return out, nil
	})
}

// StaticPools lists the pools with a fixed number of nodes.
func (p ReadPorts) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	return doCall(ctx, p.invocation, "list static pools", func() ([]cluster.Pool, error) {
		return slices.DeleteFunc(slices.Clone(p.w.pools), func(pool cluster.Pool) bool { return !pool.Static }), nil
	})
}

// ReadSnapshot reads everything but what AWS knows.
func (p ReadPorts) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return doCall(ctx, p.invocation, "read snapshot", func() (cluster.Snapshot, error) {
		s := cluster.Snapshot{Now: p.w.now, Pods: p.w.listPods(), Claims: p.w.listClaims(),
			Pools:   slices.Clone(p.w.pools),
			Classes: slices.Clone(p.w.resolved), Namespaces: p.w.namespaces(), Stopped: slices.Clone(p.w.Stopped)}
		for _, name := range slices.Sorted(maps.Keys(p.w.nodes)) {
			s.Nodes = append(s.Nodes, nodeCopy(p.w.nodes[name]))
		}
		for _, b := range p.w.budgets {
			s.Budgets = append(s.Budgets, cluster.PodDisruptionBudget{Namespace: p.w.namespaceOf(b.app), Name: b.app,
				Selector: b.selector, DisruptionsAllowed: max(int32(p.w.availablePods(b)-b.minAvailable), 0)})
		}
		s.Follower = p.w.Follower
		return scenario.Unread(s), nil
	})
}

// CachedSnapshot is ReadSnapshot.
func (p ReadPorts) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return p.ReadSnapshot(ctx)
}

// ReadClass reads one class.
func (p ReadPorts) ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	return doCall(ctx, p.invocation, "get class", func() (*awsv1.EC2NodeClass, error) {
		c, ok := p.w.classes[name]
		if !ok {
			return nil, &objects.NotFoundError{What: "class " + name}
		}
		return c.DeepCopy(), nil
	})
}

// Wait lets a second go by, in which the world goes on. It ends like a wait in which nothing changed.
func (p ReadPorts) Wait(ctx context.Context) error {
	return tryCall(ctx, p.invocation, "wait", func() error {
		p.w.advanceOnce(time.Second)
		return context.DeadlineExceeded
	})
}

// EvictPod ends the pod unless a budget forbids it.
func (p PodPorts) EvictPod(ctx context.Context, pod cluster.Pod) (cluster.Eviction, error) {
	return doCall(ctx, p.invocation, "evict pod", func() (cluster.Eviction, error) {
		have, ok := p.w.pods[pod.Name]
		if !ok || have.UID != pod.UID {
			return cluster.Eviction{Outcome: cluster.Gone}, nil
		}
		if have.Terminating() {
			return cluster.Eviction{Outcome: cluster.Evicted}, nil
		}
		for _, b := range p.w.budgets {
			if p.w.covers(b, have) && have.Ready && p.w.availablePods(b) <= b.minAvailable {
				return cluster.Eviction{Outcome: cluster.Refused, Message: "budget " + b.app + " needs " +
					fmt.Sprint(b.minAvailable)}, nil
			}
		}
		p.w.endPod(have, have.GraceSec)
		return cluster.Eviction{Outcome: cluster.Evicted}, nil
	})
}

// TolerateNomination lets the pod onto a held node.
func (p PodPorts) TolerateNomination(ctx context.Context, pod cluster.Pod, t cluster.Taint) error {
	return tryCall(ctx, p.invocation, "let pod tolerate", func() error {
		if have, ok := p.w.pods[pod.Name]; ok && have.UID == pod.UID && !slices.Contains(have.Holds, t.Value) {
			have.Holds = append(slices.Clone(have.Holds), t.Value)
		}
		return nil
	})
}

// DeletePod ends the pod within the grace given.
func (p PodPorts) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return tryCall(ctx, p.invocation, "delete pod", func() error {
		if have, ok := p.w.pods[pod.Name]; ok && have.UID == pod.UID {
			p.w.endPod(have, graceSec)
		}
		return nil
	})
}

func (w *podStore) endPod(pod *cluster.Pod, graceSec int64) {
	end := w.now.Add(time.Duration(graceSec) * time.Second)
	if pod.Deleting.IsZero() || end.Before(pod.Deleting) {
		pod.Deleting = end
	}
	pod.Ready = false
	w.watchBudgets()
}

func (w *podStore) listPods() []cluster.Pod {
	var out []cluster.Pod
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		out = append(out, *w.pods[name])
	}
	return out
}

// selectPods returns the names of the pods that are asked for, sorted.
func (w *podStore) selectPods(is func(*cluster.Pod) bool) []string {
	var names []string
	for name, pod := range w.pods {
		if is(pod) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *podStore) addPod(app string) {
	pod := w.apps[app]
	id := w.nextID()
	pod.Name, pod.UID, pod.Created, pod.Phase = fmt.Sprintf("%s-%04d", app, id), fmt.Sprintf("uid-pod-%d", id), w.now,
		"Pending"
	w.pods[pod.Name] = &pod
}

// removePod takes the pod away; its app makes another.
func (w *podStore) removePod(pod *cluster.Pod) {
	delete(w.pods, pod.Name)
	if _, runs := w.apps[pod.Labels["app"]]; runs {
		w.addPod(pod.Labels["app"])
	}
}

// schedulePods binds pods as kube-scheduler would: to the first node by name that takes them.
func (w *podStore) schedulePods() {
	for _, name := range w.selectPods(func(p *cluster.Pod) bool { return p.NodeName == "" && p.Active() }) {
		pod := w.pods[name]
		pod.Unscheduled, pod.Unschedulable = true, "0/9 nodes are available: 9 no. preemption: none."
		for _, n := range slices.Sorted(maps.Keys(w.nodeStore.nodes)) {
			if w.nodeTakes(w.nodeStore.nodes[n], pod) {
				pod.NodeName, pod.Unscheduled, pod.Phase, pod.Ready, pod.Started = n, false, "Running", true, w.now
				break
			}
		}
	}
	w.watchBudgets()
}

func (w *podStore) nodeTakes(n *cluster.Node, pod *cluster.Pod) bool {
	hard := slices.DeleteFunc(slices.Clone(n.Taints), func(t cluster.Taint) bool {
		return t.Effect == "PreferNoSchedule" || t.IsNomination() && len(pod.Holds) > 0 &&
			(t.Value == v1.HoldAtBoot || slices.Contains(pod.Holds, t.Value))
	})
	if w.RefusePod != nil && w.RefusePod(*n) {
		return false
	}
	used := pod.Need
	for _, other := range w.pods {
		if other.NodeName == n.Name && !other.Terminal() {
			used = used.Add(other.Need)
		}
	}
	suits := meetsAny(n, pod.NodeAffinity) && meetsAny(n, pod.VolumeZones)
	for k, v := range pod.NodeSelector {
		suits = suits && n.Labels[k] == v
	}
	return n.Ready && suits && len(cluster.Untolerated(hard, pod.Tolerations)) == 0 && used.FitsIn(n.Allocatable)
}

// meetsAny reports whether the node meets one of the terms, if there are any.
func meetsAny(n *cluster.Node, terms [][]requirements.Requirement) bool {
	return len(terms) == 0 || slices.ContainsFunc(terms, func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(r requirements.Requirement) bool { return !r.Matches(n.Labels) })
	})
}

func (w *podStore) availablePods(b budget) (n int) {
	for _, p := range w.pods {
		if w.covers(b, p) && p.Ready && p.Active() {
			n++
		}
	}
	return n
}

// covers reports whether the budget is about the pod.
func (w *podStore) covers(b budget, p *cluster.Pod) bool {
	return p.Namespace == w.namespaceOf(b.app) && b.selector.Matches(p.Labels)
}

// namespaceOf returns the namespace of an app, default while there is none of that name.
func (w *podStore) namespaceOf(app string) string { return cmp.Or(w.apps[app].Namespace, "default") }

// namespaces are default and those of the apps, sorted.
func (w *podStore) namespaces() (out []cluster.Namespace) {
	names := map[string]bool{"default": true}
	for app := range w.apps {
		names[w.namespaceOf(app)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, cluster.Namespace{Name: name})
	}
	return out
}

// watchBudgets notes the worst availability of each budget from the time on when it was reached first.
func (w *podStore) watchBudgets() {
	for i := range w.budgets {
		b := &w.budgets[i]
		n := w.availablePods(*b)
		if n >= b.minAvailable && b.lowest < 0 || b.lowest > n {
			b.lowest = n
		}
	}
}

// RecordEvent records an event.
func (p SharedPorts) RecordEvent(ctx context.Context, e cluster.Event) error {
	return tryCall(ctx, p.invocation, "write event", func() error {
		p.w.events = append(p.w.events, e)
		return nil
	})
}

// Acquire takes a lease.
func (p SharedPorts) Acquire(ctx context.Context, name, holder string,
	ttl time.Duration) (func(context.Context) error, bool, error) {
	ok, err := doCall(ctx, p.invocation, "acquire lease", func() (bool, error) {
		if l := p.w.leases[name]; l.holder != "" && l.holder != holder && p.w.now.Before(l.until) {
			return false, nil
		}
		p.w.leases[name] = lease{holder: holder, until: p.w.now.Add(ttl)}
		return true, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	release := func(ctx context.Context) error {
		return tryCall(ctx, p.invocation, "release lease", func() error {
			if p.w.leases[name].holder == holder {
				delete(p.w.leases, name)
			}
			return nil
		})
	}
	return release, true, nil
}

// ListUnavailable lists what is unavailable.
func (p SharedPorts) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	return doCall(ctx, p.invocation, "read unavailable offerings", func() ([]instancetypes.UnavailableOffering, error) {
		out := slices.Clone(p.w.marks)
		for _, m := range p.w.unused {
			out = append(out, m.UnavailableOffering)
		}
		return slices.DeleteFunc(out,
			func(u instancetypes.UnavailableOffering) bool { return !p.w.now.Before(u.Until) }), nil
	})
}

// NoteUnusedNodes notes nodes that were bought in vain, by the rule of the real ledger.
func (p SharedPorts) NoteUnusedNodes(ctx context.Context, unused []instancetypes.UnusedNode,
	used []string) ([]instancetypes.UnavailableOffering, error) {
	return doCall(ctx, p.invocation, "note unused nodes", func() (out []instancetypes.UnavailableOffering, err error) {
		p.w.unused, _ = instancetypes.NoteUnusedNodes(p.w.unused, unused, used, p.w.now)
		for _, m := range p.w.unused {
			if m.LeavesOut() && p.w.now.Before(m.Until) {
				out = append(out, m.UnavailableOffering)
			}
		}
		return out, nil
	})
}

// MarkUnavailable marks offerings as unavailable.
func (p SharedPorts) MarkUnavailable(ctx context.Context, marks []instancetypes.UnavailableOffering,
	d time.Duration) error {
	return tryCall(ctx, p.invocation, "mark unavailable", func() error {
		for _, u := range marks {
			u.Until = p.w.now.Add(d)
			p.w.marks = append(p.w.marks, u)
		}
		return nil
	})
}

// NoteFailedLaunch marks a class from the second of its instances on that ended before it joined, for longer each time.
func (p SharedPorts) NoteFailedLaunch(ctx context.Context, class, instance, why string) error {
	return tryCall(ctx, p.invocation, "note failed launch", func() error {
		if !slices.Contains(p.w.failedLaunches[class], instance) {
			p.w.failedLaunches[class] = append(p.w.failedLaunches[class], instance)
		}
		scope, times := instancetypes.ClassScope(class), 0
		for _, u := range p.w.marks {
			if u.Class() != class {
				continue
			}
			if times++; p.w.now.Before(u.Until) {
				return nil // of the same pass
			}
		}
		if len(p.w.failedLaunches[class]) > 1 {
			p.w.marks = append(p.w.marks, instancetypes.UnavailableOffering{Scope: scope, Why: why,
				Until: p.w.now.Add(min(classRests<<times, longestRest))})
		}
		return nil
	})
}

// How long a class is left alone.
const (
	classRests  = 5 * time.Minute
	longestRest = 30 * time.Minute
)

// ListBuffers lists no object: a world has only what buffers come to.
func (p ReadPorts) ListBuffers(ctx context.Context) ([]buffers.Buffer, error) {
	return doCall(ctx, p.invocation, "list buffers", func() ([]buffers.Buffer, error) { return nil, nil })
}

// WriteBufferStatus writes nothing, for there is no buffer.
func (p ReadPorts) WriteBufferStatus(ctx context.Context, _ *v1beta1.CapacityBuffer) error {
	return tryCall(ctx, p.invocation, "write status of buffer", func() error { return nil })
}
