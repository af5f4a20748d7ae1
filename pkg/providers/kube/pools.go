package kube

import (
	"context"
	"slices"
	"strings"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
)

// PoolAnnotations are the annotations of a NodePool, none when it is gone.
func (p Pools) PoolAnnotations(ctx context.Context, name string) (map[string]string, error) {
	if name == "" {
		return nil, nil // a claim that somebody made by hand
	}
	pool := &karpv1.NodePool{}
	err := p.getObject(ctx, apiCall{verb: "get", place: poolPath(), name: name}, pool)
	if isNotFound(err) {
		return nil, nil
	}
	return pool.Annotations, err
}

// Pools reads and writes NodePools.
type Pools struct{ *connection }

// ListPools lists the NodePools whose class is an EC2NodeClass, sorted by name.
func (p Pools) ListPools(ctx context.Context) ([]karpv1.NodePool, error) {
	out, _, err := listAll(ctx, p.connection, listQuery{place: poolPath()},
		func(l *karpv1.NodePoolList) []karpv1.NodePool {
			return slices.DeleteFunc(l.Items, func(pool karpv1.NodePool) bool {
				return !translate.IsOurClass(pool.Spec.Template.Spec.NodeClassRef)
			})
		})
	slices.SortFunc(out, func(a, b karpv1.NodePool) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

// StaticPools lists the NodePools that have a fixed number of nodes, sorted by name. Whether they are ready is not
// looked at.
func (p Pools) StaticPools(ctx context.Context) ([]cluster.Pool, error) {
	all, err := p.ListPools(ctx)
	if err != nil {
		return nil, err
	}
	var out []cluster.Pool
	for i := range all {
		if all[i].Spec.Replicas != nil {
			out = append(out, translate.Pool(&all[i], nil))
		}
	}
	return out, nil
}

// WritePoolStatus stores the status of the pool, on the condition that the pool was not changed since it was read. On
// success the pool given is as stored.
func (p Pools) WritePoolStatus(ctx context.Context, pool *karpv1.NodePool) error {
	return writeStatus(ctx, p.connection, poolPath(), karpv1.GroupVersion().WithKind(karpv1.NodePoolKind), pool)
}

// CountPool stores in the status of a pool what its nodes have, "nodes" included. It writes nothing if that is there
// already. A pool that is gone is no error.
func (p Pools) CountPool(ctx context.Context, pool string, has resources.List) error {
	return p.changePoolStatus(ctx, pool, func(nodePool *karpv1.NodePool) bool {
		return nodeclass.UpdatePoolCounts(nodePool, has)
	})
}

// RecordRegistrations notes in a pool how registrations of its claims went. Repeating it changes nothing:
// each claim counts once. A pool that is gone is no error.
func (p Pools) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	// The condition comes first: what is in the annotation counts as done.
	err := p.changePoolStatus(ctx, pool, func(nodePool *karpv1.NodePool) bool {
		_, news := nodeclass.RecordRegistrations(nodePool, outcomes, p.now())
		return news
	})
	if err != nil {
		return err
	}
	_, err = changeObject(ctx, p.connection, apiCall{verb: "patch", place: poolPath(), name: pool},
		func(o *karpv1.NodePool) patchFields {
			record, news := nodeclass.RecordRegistrations(o.DeepCopy(), outcomes, p.now())
			if !news {
				return nil
			}
			return MetaChange{Annotations: map[string]string{karpv1.AnnotationRegistrationHistory: record}}.asPatch(o)
		})
	return unlessGone(err)
}

// NoteShifts notes in an annotation of a pool which zones its events say to be shifted away from. A pool that is gone
// is no error.
func (p Pools) NoteShifts(ctx context.Context, pool string, zoneIDs []string) error {
	return unlessGone(p.PatchPoolMeta(ctx, pool,
		map[string]string{karpv1.AnnotationZonalShifts: strings.Join(zoneIDs, ",")}))
}

// changePoolStatus edits the status of a pool as it is, anew when somebody else was faster. edit says whether it
// changed anything.
func (p Pools) changePoolStatus(ctx context.Context, name string, edit func(*karpv1.NodePool) bool) error {
	var err error
	for range maxConflicts {
		pool := &karpv1.NodePool{}
		if err = p.getObject(ctx, apiCall{verb: "get", place: poolPath(), name: name}, pool); err != nil {
			return unlessGone(err)
		}
		if !edit(pool) {
			return nil
		}
		if err = p.WritePoolStatus(ctx, pool); !isConflict(err) {
			return unlessGone(err)
		}
	}
	return err
}

func unlessGone(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// PatchPoolMeta sets annotations of a pool. It writes nothing if they are there already.
func (p Pools) PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error {
	return p.changePoolMeta(ctx, name, MetaChange{Annotations: annotations})
}

// RemovePoolAnnotations removes annotations of a pool. It writes nothing if none is there.
func (p Pools) RemovePoolAnnotations(ctx context.Context, name string, keys ...string) error {
	return p.changePoolMeta(ctx, name, MetaChange{Remove: keys})
}

func (p Pools) changePoolMeta(ctx context.Context, name string, m MetaChange) error {
	_, err := changeObject(ctx, p.connection, apiCall{verb: "patch", place: poolPath(), name: name},
		func(o *karpv1.NodePool) patchFields { return m.asPatch(o) })
	return err
}
