package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/requirements"
)

// pod is a Pod object and what runs behind it.
type pod struct {
	cluster.Pod
	app    *app
	disks  []string // names of the claims of its volumes
	starts int      // counts the starts and ends under way, so that a late one is known as stale
}

// budget is a PodDisruptionBudget of one app.
type budget struct {
	minAvailable int
	unhealthy    bool // unhealthyPodEvictionPolicy AlwaysAllow
}

// allowedEvictions is how many pods of the app may go now.
func (w *world) allowedEvictions(a *app) int { return w.healthyPods(a) - a.budget.minAvailable }

func (w *world) healthyPods(a *app) (n int) {
	for _, p := range w.pods {
		if p.app == a && p.Ready && !p.Terminating() {
			n++
		}
	}
	return n
}

// PendingPods lists the pods that need a node.
func (p *Ports) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	return callPort(ctx, p, "list homeless pods", "", func() ([]cluster.Pod, error) {
		return slices.DeleteFunc(p.listPods(), func(pod cluster.Pod) bool { return !pod.Provisionable() }), nil
	})
}

// StaticPools lists the pools with a fixed number of nodes.
func (p *Ports) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	return callPort(ctx, p, "list static pools", "", func() ([]cluster.Pool, error) {
		return slices.DeleteFunc(slices.Clone(p.w.pools), func(pool cluster.Pool) bool { return !pool.Static }), nil
	})
}

// ReadSnapshot reads everything but what AWS knows. Its lists are of different moments, in no certain order.
func (p *Ports) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s := cluster.Snapshot{}
	reads := []struct {
		name string
		deed func()
	}{
		{"read pods", func() { s.Pods = p.listPods() }},
		{"read nodes", func() { s.Nodes = p.listNodes() }},
		{"read claims", func() { s.Claims = p.listClaims() }},
		{"read the rest", func() {
			p.w.readRest(&s)
			p.inv.unseen = p.inv.unseen || slices.ContainsFunc(s.Classes,
				func(c instancetypes.Class) bool { return c.Unseen })
		}},
	}
	errs := make(chan error, len(reads))
	for _, r := range reads {
		go func() { errs <- tryPort(ctx, p, r.name, "", func() error { r.deed(); return nil }) }()
	}
	var first error
	for range reads {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	s.Now = p.w.toSecond()
	return s, first
}

func (w *world) readRest(s *cluster.Snapshot) {
	s.Pools, s.Classes = slices.Clone(w.pools), w.describedClasses()
	s.Namespaces = []cluster.Namespace{{Name: namespace}}
	for _, a := range w.apps {
		if a.daemon {
			s.Daemons = append(s.Daemons, a.pattern)
		}
		if a.budget != nil {
			s.Budgets = append(s.Budgets, cluster.Budget{Namespace: namespace, Name: a.name, Selector: a.appSelector(),
				DisruptionsAllowed: max(int32(w.allowedEvictions(a)), 0), AlwaysAllowUnready: a.budget.unhealthy})
		}
	}
}

func (p *Ports) listPods() []cluster.Pod {
	p.seen[aPod] = p.w.version
	return p.w.listPods()
}

// listPods are the pods that have not ended, by name, with the names of the claims of their volumes.
func (w *world) listPods() []cluster.Pod {
	out := make([]cluster.Pod, 0, len(w.pods))
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if pod := w.pods[key]; !pod.Terminal() {
			seen := pod.Pod
			seen.UnreadClaims = pod.disks
			out = append(out, seen)
		}
	}
	return out
}

// ReadClass reads one class.
func (p *Ports) ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error) {
	return callPort(ctx, p, "get class", name, func() (*awsv1.EC2NodeClass, error) {
		c, ok := p.w.objects[name]
		if !ok {
			return nil, &NotFoundError{"class " + name}
		}
		return c.DeepCopy(), nil
	})
}

// EvictPod ends the pod unless a budget forbids it.
func (p *Ports) EvictPod(ctx context.Context, pod cluster.Pod) (cluster.Eviction, error) {
	return callPort(ctx, p, "evict pod", pod.Key(), func() (cluster.Eviction, error) {
		w := p.w
		have, ok := w.pods[pod.Key()]
		if !ok || have.UID != pod.UID {
			return cluster.Eviction{Outcome: cluster.Gone}, nil
		}
		if have.Terminating() {
			return cluster.Eviction{Outcome: cluster.Evicted}, nil
		}
		w.checkEviction(have)
		if b := have.app.budget; b != nil && have.Phase != "Pending" {
			free := have.Ready || !b.unhealthy && w.healthyPods(have.app) < b.minAvailable
			if free && w.allowedEvictions(have.app) <= 0 {
				w.addTrace("eviction of %s is refused", have.Key())
				return cluster.Eviction{Outcome: cluster.Refused, Message: "budget " + have.app.name}, nil
			}
		}
		w.countMutation("evict pod")
		w.endPod(have, have.GraceSec)
		return cluster.Eviction{Outcome: cluster.Evicted}, nil
	})
}

// DeletePod ends the pod within the grace given.
func (p *Ports) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return tryPort(ctx, p, "delete pod", fmt.Sprintf("%s in %d s", pod.Key(), graceSec), func() error {
		if have, ok := p.w.pods[pod.Key()]; ok && have.UID == pod.UID {
			p.w.checkDeletion(have)
			p.w.checkGrace(have, graceSec)
			p.w.countMutation("delete pod")
			p.w.endPod(have, graceSec)
		}
		return nil
	})
}

// endPod is a graceful deletion: the object stays until the kubelet has ended the processes.
func (w *world) endPod(pod *pod, graceSec int64) {
	if w.pods[pod.Key()] != pod {
		return
	}
	end := w.toSecond().Add(time.Duration(graceSec) * time.Second)
	if !pod.Terminating() || end.Before(pod.Deleting) {
		pod.Deleting = end
	} else {
		return
	}
	w.setPodReady(pod, false)
	if pod.NodeName == "" {
		w.removePod(pod)
		return
	}
	pod.starts++
	mine := pod.starts
	stop := min(time.Duration(graceSec)*time.Second, pod.app.stopTime) + w.drawDuration(0, time.Second)
	w.runAfter(stop, func() {
		if pod.starts == mine {
			w.finishPod(pod)
		}
	})
	w.runAfter(0, func() { w.reconcileApp(pod.app) })
}

// finishPod removes a pod whose processes have ended, if its kubelet is there to say so.
func (w *world) finishPod(pod *pod) {
	n := w.nodes[pod.NodeName]
	switch {
	case w.pods[pod.Key()] != pod:
	case n == nil || !n.down:
		w.removePod(pod)
	}
}

// removePod takes the object away.
func (w *world) removePod(pod *pod) {
	if w.pods[pod.Key()] != pod {
		return
	}
	pod.starts++
	delete(w.pods, pod.Key())
	if n := w.nodes[pod.NodeName]; n != nil {
		w.disks.release(pod.disks, n.Name, n.down)
	}
	w.runAfter(w.drawDuration(10*time.Millisecond, 300*time.Millisecond), func() { w.reconcileApp(pod.app) })
	w.trySchedule()
}

func (w *world) setPodReady(pod *pod, ready bool) { pod.Ready = ready }

func (w *world) podsOn(name string) []*pod {
	var out []*pod
	for _, key := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[key]; p.NodeName == name {
			out = append(out, p)
		}
	}
	return out
}

func (a *app) appSelector() *cluster.Selector {
	return &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", a.name)}}
}
