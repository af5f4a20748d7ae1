package sim

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/objects"
)

// poolPorts read and write NodePools.
type poolPorts struct {
	*caller
	api *apiServer
}

// poolReader reads NodePools and the claims of their nodes.
type poolReader struct {
	*poolPorts
	*claimPorts
}

// ListPools lists the NodePools.
func (p *poolPorts) ListPools(ctx context.Context) ([]v1.NodePool, error) {
	return callPort(ctx, p.caller, "list pools", "", func() (out []v1.NodePool, err error) {
		for _, name := range slices.Sorted(maps.Keys(p.api.nodePools)) {
			out = append(out, *p.api.nodePools[name].DeepCopy())
		}
		return out, nil
	})
}

// WritePoolStatus stores the status of a NodePool.
func (p *poolPorts) WritePoolStatus(ctx context.Context, np *v1.NodePool) error {
	return tryPort(ctx, p.caller, "write status of pool", np.Name, func() error {
		p.countMutation("write status of pool")
		p.api.nodePools[np.Name].Status = *np.Status.DeepCopy()
		return nil
	})
}

// PatchPoolMeta sets annotations of a NodePool.
func (p *poolPorts) PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error {
	return tryPort(ctx, p.caller, "annotate pool", name, func() error {
		p.countMutation("annotate pool")
		np := p.api.nodePools[name]
		np.Annotations = objects.Merge(np.Annotations, annotations)
		return nil
	})
}

// CountPool stores what the nodes of the pool have.
func (p *poolPorts) CountPool(ctx context.Context, pool string, has resources.List) error {
	return tryPort(ctx, p.caller, "count pool", fmt.Sprintf("%s %s", pool, has), func() error {
		for i := range p.api.pools {
			if have := &p.api.pools[i]; have.Name == pool && (have.Uncounted || !reflect.DeepEqual(have.Counted, has)) {
				p.countMutation("count pool")
				have.Counted, have.Uncounted = has, false
			}
		}
		return nil
	})
}

// RecordRegistrations notes how registrations went, each claim's once.
func (p *poolPorts) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	return tryPort(ctx, p.caller, "record registrations", pool, func() error {
		for _, o := range outcomes {
			known := func(have cluster.Registration) bool { return have.ClaimUID == o.ClaimUID }
			if !slices.ContainsFunc(p.api.registrations[pool], known) {
				p.countMutation("record registrations")
				p.api.registrations[pool] = append(p.api.registrations[pool], o)
			}
		}
		return nil
	})
}

// NoteShifts notes the zones that events on the pool say to be shifted away from.
func (p *poolPorts) NoteShifts(ctx context.Context, pool string, zoneIDs []string) error {
	return tryPort(ctx, p.caller, "note shifts", pool, func() error {
		p.countMutation("note shifts")
		for i := range p.api.pools {
			if p.api.pools[i].Name == pool {
				p.api.pools[i].ToldShifts = zoneIDs
			}
		}
		return nil
	})
}

// PoolAnnotations returns what a person wrote onto the pool: nothing.
func (p *poolPorts) PoolAnnotations(ctx context.Context, name string) (map[string]string, error) {
	return callPort(ctx, p.caller, "get pool", name, func() (map[string]string, error) { return nil, nil })
}
