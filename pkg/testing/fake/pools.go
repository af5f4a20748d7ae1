package fake

import (
	"context"
	"slices"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// poolStore are the NodePools with what their status counts, and the EC2NodeClasses.
type poolStore struct {
	*engine
	pools          []cluster.Pool
	classes        map[string]*awsv1.EC2NodeClass
	resolved       []instancetypes.Class
	failedLaunches map[string][]string               // instances that ended before they joined, by class
	registrations  map[string][]cluster.Registration // by pool
	poolNotes      map[string]string                 // annotations of the one pool itself
}

// CountPool stores what the nodes of the pool have.
func (p PoolPorts) CountPool(ctx context.Context, pool string, has resources.List) error {
	return tryCall(ctx, p.invocation, "count pool", func() error {
		for i := range p.w.pools {
			if p.w.pools[i].Name == pool {
				p.w.pools[i].Counted, p.w.pools[i].Uncounted = has, false
			}
		}
		return nil
	})
}

// RecordRegistrations notes how registrations went, each claim's once.
func (p PoolPorts) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	return tryCall(ctx, p.invocation, "record registrations", func() error {
		for _, o := range outcomes {
			known := func(have cluster.Registration) bool { return have.ClaimUID == o.ClaimUID }
			if !slices.ContainsFunc(p.w.registrations[pool], known) {
				p.w.registrations[pool] = append(p.w.registrations[pool], o)
			}
		}
		return nil
	})
}

// NoteShifts notes the zones that events on the pool say to be shifted away from.
func (p PoolPorts) NoteShifts(ctx context.Context, pool string, zoneIDs []string) error {
	return tryCall(ctx, p.invocation, "note shifts", func() error {
		for i := range p.w.pools {
			if p.w.pools[i].Name == pool {
				p.w.pools[i].ToldShifts = zoneIDs
			}
		}
		return nil
	})
}

// RegistrationsOf returns what was recorded about a pool, in the order of recording.
func (w *poolStore) RegistrationsOf(pool string) []cluster.Registration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.registrations[pool])
}

// CountedResources returns what is stored about the nodes of the one pool.
func (w *poolStore) CountedResources() resources.List {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pools[0].Counted
}

// ListAttachments lists the volumes attached to the nodes.
func (p ReadPorts) ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error) {
	return doCall(ctx, p.invocation, "list attachments", func() ([]cluster.Attachment, error) {
		return slices.DeleteFunc(slices.Clone(p.w.attachments),
			func(a cluster.Attachment) bool { return !slices.Contains(nodes, a.Node) }), nil
	})
}

// AttachVolume attaches a volume to a node, until Detach. claim is that which it is bound to, empty for none.
func (w *nodeStore) AttachVolume(node, volume, claim string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attachments = append(w.attachments, cluster.Attachment{Node: node, Volume: volume, Claim: claim})
}

// DetachVolume detaches a volume from where it is attached.
func (w *nodeStore) DetachVolume(volume string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attachments = slices.DeleteFunc(w.attachments, func(a cluster.Attachment) bool { return a.Volume == volume })
}
