package sim

import (
	"context"
	"fmt"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// podPorts read, mark and end pods.
type podPorts struct {
	*caller
	api       *apiServer
	kubelets  *kubelets
	scheduler *scheduler
	workloads *workloads
}

// TolerateNomination makes the pod tolerate the taint of a held node.
func (p *podPorts) TolerateNomination(ctx context.Context, pod cluster.Pod, t cluster.Taint) error {
	return tryPort(ctx, p.caller, "let tolerate", pod.Key()+" "+t.Value, func() error {
		have, ok := p.api.pods[pod.Key()]
		if !ok || have.UID != pod.UID || slices.Contains(have.Holds, t.Value) {
			return nil
		}
		p.countMutation("let tolerate")
		have.Holds = append(slices.Clone(have.Holds), t.Value)
		p.scheduler.trySchedule()
		return nil
	})
}

func (p *podPorts) listPods() []cluster.Pod {
	p.seen[aPod] = p.api.version
	return p.api.listPods()
}

// EvictPod ends the pod unless a budget forbids it.
func (p *podPorts) EvictPod(ctx context.Context, pod cluster.Pod) (cluster.Eviction, error) {
	return callPort(ctx, p.caller, "evict pod", pod.Key(), func() (cluster.Eviction, error) {
		have, ok := p.api.pods[pod.Key()]
		if !ok || have.UID != pod.UID {
			return cluster.Eviction{Outcome: cluster.Gone}, nil
		}
		if have.Terminating() {
			return cluster.Eviction{Outcome: cluster.Evicted}, nil
		}
		p.observe(podEvicted{have})
		if b := have.app.budget; b != nil && have.Phase != "Pending" {
			free := have.Ready || !b.unhealthy && p.workloads.healthyPods(have.app) < b.minAvailable
			if free && p.workloads.allowedEvictions(have.app) <= 0 {
				p.addTrace("eviction of %s is refused", have.Key())
				return cluster.Eviction{Outcome: cluster.Refused, Message: "budget " + have.app.name}, nil
			}
		}
		p.observe(podMoved{have})
		p.countMutation("evict pod")
		p.kubelets.endPod(have, have.GraceSec)
		return cluster.Eviction{Outcome: cluster.Evicted}, nil
	})
}

// DeletePod ends the pod within the grace given.
func (p *podPorts) DeletePod(ctx context.Context, pod cluster.Pod, graceSec int64) error {
	return tryPort(ctx, p.caller, "delete pod", fmt.Sprintf("%s in %d s", pod.Key(), graceSec), func() error {
		if have, ok := p.api.pods[pod.Key()]; ok && have.UID == pod.UID {
			p.observe(podDeleted{have, graceSec})
			p.countMutation("delete pod")
			p.kubelets.endPod(have, graceSec)
		}
		return nil
	})
}

// PodsOn lists the pods of a node.
func (p *podPorts) PodsOn(ctx context.Context, name string) ([]cluster.Pod, error) {
	return callPort(ctx, p.caller, "list pods of node", name, func() ([]cluster.Pod, error) {
		var out []cluster.Pod
		for _, pod := range p.api.podsOn(name) {
			out = append(out, pod.Pod)
		}
		return out, nil
	})
}

// RemovePod removes the object at once, as if its kubelet had said that its processes ended.
func (p *podPorts) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return tryPort(ctx, p.caller, "remove pod", pod.Key(), func() error {
		if have, ok := p.api.pods[pod.Key()]; ok && have.UID == pod.UID {
			p.observe(podRemoved{have})
			p.countMutation("remove pod")
			p.kubelets.removePod(have)
		}
		return nil
	})
}
