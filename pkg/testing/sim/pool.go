package sim

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/resources"
)

// CountPool stores what the nodes of the pool have.
func (p *Ports) CountPool(ctx context.Context, pool string, has resources.List) error {
	return tryPort(ctx, p, "count pool", fmt.Sprintf("%s %s", pool, has), func() error {
		for i := range p.w.pools {
			if have := &p.w.pools[i]; have.Name == pool && (have.Uncounted || !reflect.DeepEqual(have.Counted, has)) {
				p.w.countMutation("count pool")
				have.Counted, have.Uncounted = has, false
			}
		}
		return nil
	})
}

// RecordRegistrations notes how registrations went, each claim's once.
func (p *Ports) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	return tryPort(ctx, p, "record registrations", pool, func() error {
		for _, o := range outcomes {
			known := func(have cluster.Registration) bool { return have.ClaimUID == o.ClaimUID }
			if !slices.ContainsFunc(p.w.registrations[pool], known) {
				p.w.countMutation("record registrations")
				p.w.registrations[pool] = append(p.w.registrations[pool], o)
			}
		}
		return nil
	})
}

// PoolAnnotations are what a person wrote onto the pool.
func (p *Ports) PoolAnnotations(ctx context.Context, name string) (map[string]string, error) {
	return callPort(ctx, p, "get pool", name, func() (map[string]string, error) { return nil, nil })
}

// quotaOf is how many things may be done.
const quotaOf = 3

// TakeOne lets a few things through.
func (p *Ports) TakeOne(ctx context.Context, thing string) (bool, error) {
	return callPort(ctx, p, "take of quota", thing, func() (bool, error) {
		w := p.w
		if slices.Contains(w.taken, thing) {
			return true, nil
		}
		if len(w.taken) >= quotaOf {
			return false, nil
		}
		w.taken = append(w.taken, thing)
		return true, nil
	})
}

// PodsOn lists the pods of a node.
func (p *Ports) PodsOn(ctx context.Context, name string) ([]cluster.Pod, error) {
	return callPort(ctx, p, "list pods of node", name, func() ([]cluster.Pod, error) {
		var out []cluster.Pod
		for _, pod := range p.w.podsOn(name) {
			out = append(out, pod.Pod)
		}
		return out, nil
	})
}

// RemovePod removes the object at once, as if its kubelet had said that its processes ended.
func (p *Ports) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return tryPort(ctx, p, "remove pod", pod.Key(), func() error {
		if have, ok := p.w.pods[pod.Key()]; ok && have.UID == pod.UID {
			p.w.checkRemoval(have)
			p.w.countMutation("remove pod")
			p.w.removePod(have)
		}
		return nil
	})
}

// ReadMemory returns what disrupt remembered last.
func (p *Ports) ReadMemory(ctx context.Context) (disruption.Memory, error) {
	return callPort(ctx, p, "recall", "", func() (disruption.Memory, error) { return p.w.memory, nil })
}

// WriteMemory stores it.
func (p *Ports) WriteMemory(ctx context.Context, m disruption.Memory) error {
	return tryPort(ctx, p, "remember", "", func() error {
		p.w.memory = m
		return nil
	})
}
