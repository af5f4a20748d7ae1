package provision

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/ceiling"
)

// Limits of what one pass tells. Events are for people to read, and are not worth keeping pods waiting for.
const (
	maxEvents      = 50
	parallelEvents = 8
)

// eventWriter tells people about a pass.
type eventWriter struct{ *controllers.Deps }

func (c *Controller) events() eventWriter { return eventWriter{&c.Deps} }

// recordEvents writes events, several at a time. One that cannot be written is logged and costs nothing else.
func (w eventWriter) recordEvents(ctx context.Context, all []cluster.Event) {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		return
	}
	controllers.ForEach(parallelEvents, all, func(_ int, e cluster.Event) {
		if err := w.Shield().Do("an event", func() error { return w.Record.RecordEvent(ctx, e) }); err != nil {
			w.Log.Warn("event on "+e.Kind+" "+e.Name, "error", err)
		}
	})
}

// recordUnplaced writes events on pods without a node.
func (w eventWriter) recordUnplaced(ctx context.Context, s cluster.Snapshot, unplaced []plan.Unplaced) {
	if len(unplaced) == 0 {
		return
	}
	why := lists.Index(unplaced, func(u plan.Unplaced) string { return u.Pod })
	byNamespace := map[string][]cluster.Event{}
	for i := range s.Pods {
		pod := &s.Pods[i]
		u, without := why[pod.Key()]
		if !without || pod.Virtual {
			continue
		}
		e := cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Warning: true,
			Reason: "FailedScheduling", Message: u.Message()}
		if u.Fault {
			e.Reason = controllers.ReasonDecisionFailed
		}
		byNamespace[pod.Namespace] = append(byNamespace[pod.Namespace], e)
	}
	events, left := shareEvents(byNamespace)
	if left > 0 {
		w.Log.Warn("unplaced pods without an event", "pods", left)
	}
	w.recordEvents(ctx, events)
}

// shareEvents are the events of a pass: of each namespace the first ones, as many of each where there are too many. It
// returns too how many are left.
func shareEvents(byNamespace map[string][]cluster.Event) (out []cluster.Event, left int) {
	names := slices.Sorted(maps.Keys(byNamespace))
	wants := make([]int64, len(names))
	for i, name := range names {
		wants[i] = int64(len(byNamespace[name]))
	}
	for i, n := range fairshare.MaxMin(maxEvents, wants) {
		out = append(out, byNamespace[names[i]][:n]...)
		left += int(wants[i] - n)
	}
	return out, left
}

// recordLaunches says on NodeClaims what was launched for whom, and on pods which node they are to run on. A claim
// without an instance is told about elsewhere.
func (w eventWriter) recordLaunches(ctx context.Context, s cluster.Snapshot, made launchOutcome) {
	var events []cluster.Event
	on := map[string]string{}
	for i, c := range made.claims {
		if c.ProviderID == "" {
			continue
		}
		got := instancetypes.OfferingKeyOf(c.Labels)
		events = append(events, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Reason: "Launched",
			Message: fmt.Sprintf("launched %s for %s", got, describePods(made.planned[i]))})
		for _, pod := range made.planned[i].Pods {
			on[pod] = fmt.Sprintf("it is to run on a new node, NodeClaim %s: %s", c.Name, got)
		}
	}
	if len(events) == 0 {
		return
	}
	for i := range s.Pods {
		pod := &s.Pods[i]
		if message := on[pod.Key()]; message != "" && !pod.Virtual {
			events = append(events, cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
				Reason: "Nominated", Message: message})
		}
	}
	w.recordEvents(ctx, events[:min(len(events), maxEvents)])
}

// describePods says in words what a node is launched for.
func describePods(l plan.Launch) string {
	switch {
	case l.ForStoppedCapacity():
		return "stopped capacity of CapacityBuffers"
	case len(l.Pods) == 0:
		return "the number of nodes of NodePool " + l.Pool
	}
	return fmt.Sprintf("%d pods: %s", len(l.Pods), plan.NamePods(l.Pods))
}

// recordPools says on NodePools why they took no part and which namespace makes them dear, and on static ones why they
// lack nodes; on pods that their anti-affinity is not read; on DaemonSets why new nodes keep no room for them.
func (w eventWriter) recordPools(ctx context.Context, s cluster.Snapshot, decision plan.Plan) {
	var events []cluster.Event
	for _, x := range decision.Short[:min(len(decision.Short), controllers.MaxPoolEvents)] {
		if pool, ok := s.PoolOf(x.Pool); ok {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
				Reason: "NotUsed", Message: "it lacks nodes: " + x.Why, Every: controllers.PoolEventEvery})
		}
	}
	skipped := slices.DeleteFunc(slices.Clone(decision.Skipped), func(x plan.Skip) bool {
		pool, _ := s.PoolOf(x.Pool)
		return pool.Static // that no pod makes nodes there is no problem
	})
	for _, x := range skipped[:min(len(skipped), controllers.MaxPoolEvents)] {
		if pool, ok := s.PoolOf(x.Pool); ok && !pool.Deleting {
			events = append(events, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
				Reason: "NotUsed", Every: controllers.PoolEventEvery,
				Message: "nothing is launched from it for pods that wait: " + x.Why})
		}
	}
	events = append(events, costlyEvents(s, ceiling.FindCostly(s, decision))...)
	events = append(events, unreadEvents(s, decision.Unread)...)
	w.recordEvents(ctx, append(events, oversizedEvents(s, decision.Oversized)...))
}

// unreadEvents say on pods that nobody looks at their anti-affinity.
func unreadEvents(s cluster.Snapshot, all []plan.UnreadPod) (out []cluster.Event) {
	for _, u := range all[:min(len(all), controllers.MaxPoolEvents)] {
		i := slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Key() == u.Pod })
		if i < 0 {
			continue
		}
		p := &s.Pods[i]
		out = append(out, cluster.Event{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID, Warning: true,
			Reason: "AntiAffinityNotRead", Message: u.Message(), Every: controllers.PoolEventEvery})
	}
	return out
}

// costlyEvents say on NodePools which namespaces make them dear.
func costlyEvents(s cluster.Snapshot, all []ceiling.CostlyNamespace) (out []cluster.Event) {
	for _, x := range all {
		for _, name := range x.Pools {
			pool, ok := s.PoolOf(name)
			if !ok || len(out) == controllers.MaxPoolEvents {
				continue
			}
			out = append(out, cluster.Event{Kind: "NodePool", Name: pool.Name, UID: pool.UID, Warning: true,
				Reason: "CostlyNamespace", Every: controllers.PoolEventEvery,
				Message: fmt.Sprintf("pods of namespace %s are to get %d new nodes for %.2f USD an hour, and all nodes that run cost %.2f; spec.limits and the annotation %s bound a NodePool",
					x.Namespace, x.Nodes, x.USD, x.Running, v1.AnnotationLimitUSD)})
		}
	}
	return out
}

// oversizedEvents say on DaemonSets that new nodes keep no room for their pods.
func oversizedEvents(s cluster.Snapshot, all []plan.OversizedDaemon) (out []cluster.Event) {
	for _, d := range all[:min(len(all), controllers.MaxPoolEvents)] {
		i := slices.IndexFunc(s.Daemons, func(p cluster.Pod) bool { return p.Key() == d.DaemonSet })
		if i < 0 {
			continue
		}
		out = append(out, oversizedEvent(&s.Daemons[i], d.Message()))
	}
	for i := range s.Daemons {
		if set := &s.Daemons[i]; set.Need.IsZero() && len(set.Unmodelled) > 0 && len(out) < controllers.MaxPoolEvents {
			out = append(out, oversizedEvent(set, "new nodes keep no room for its pods: "+strings.Join(set.Unmodelled, "; ")))
		}
	}
	return out
}

func oversizedEvent(set *cluster.Pod, message string) cluster.Event {
	return cluster.Event{Kind: "DaemonSet", Namespace: set.Namespace, Name: set.Name, UID: set.UID, Warning: true,
		Reason: "Oversized", Message: message, Every: controllers.PoolEventEvery}
}
