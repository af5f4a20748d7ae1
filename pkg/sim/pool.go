package sim

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
	"joiner/pkg/resource"
)

// CountPool stores what the nodes of the pool have.
func (p *Ports) CountPool(ctx context.Context, pool string, has resource.List) error {
	return try(ctx, p, "count pool", fmt.Sprintf("%s %s", pool, has), func() error {
		for i := range p.w.pools {
			if have := &p.w.pools[i]; have.Name == pool && (have.Uncounted || !reflect.DeepEqual(have.Counted, has)) {
				p.w.mutated("count pool")
				have.Counted, have.Uncounted = has, false
			}
		}
		return nil
	})
}

// RecordRegistrations notes how registrations went, each claim's once.
func (p *Ports) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	return try(ctx, p, "record registrations", pool, func() error {
		for _, o := range outcomes {
			known := func(have cluster.Registration) bool { return have.ClaimUID == o.ClaimUID }
			if !slices.ContainsFunc(p.w.registrations[pool], known) {
				p.w.mutated("record registrations")
				p.w.registrations[pool] = append(p.w.registrations[pool], o)
			}
		}
		return nil
	})
}

// PoolAnnotations are what a person wrote onto the pool.
func (p *Ports) PoolAnnotations(ctx context.Context, name string) (map[string]string, error) {
	return do(ctx, p, "get pool", name, func() (map[string]string, error) { return nil, nil })
}

// quotaOf is how many things may be done.
const quotaOf = 3

// Take lets a few things through.
func (p *Ports) Take(ctx context.Context, thing string) (bool, error) {
	return do(ctx, p, "take of quota", thing, func() (bool, error) {
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
	return do(ctx, p, "list pods of node", name, func() ([]cluster.Pod, error) {
		var out []cluster.Pod
		for _, pod := range p.w.podsOn(name) {
			out = append(out, pod.Pod)
		}
		return out, nil
	})
}

// RemovePod removes the object at once, as if its kubelet had said that its processes ended.
func (p *Ports) RemovePod(ctx context.Context, pod cluster.Pod) error {
	return try(ctx, p, "remove pod", pod.Key(), func() error {
		if have, ok := p.w.pods[pod.Key()]; ok && have.UID == pod.UID {
			p.w.checkRemoval(have)
			p.w.mutated("remove pod")
			p.w.removePod(have)
		}
		return nil
	})
}

// Recall returns what disrupt remembered last.
func (p *Ports) Recall(ctx context.Context) (disrupt.Memory, error) {
	return do(ctx, p, "recall", "", func() (disrupt.Memory, error) { return p.w.memory, nil })
}

// Remember stores it.
func (p *Ports) Remember(ctx context.Context, m disrupt.Memory) error {
	return try(ctx, p, "remember", "", func() error {
		p.w.memory = m
		return nil
	})
}
