package lifecycle

import (
	"context"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// Pods removes pods from nodes. All calls may be repeated; they act on the pod of that UID only.
type Pods interface {
	// EvictPod asks the eviction API once.
	EvictPod(ctx context.Context, p cluster.Pod) (cluster.Eviction, error)
	// DeletePod deletes the pod with the given grace in seconds.
	DeletePod(ctx context.Context, p cluster.Pod, graceSec int64) error
}

// Nodes writes Node objects. All calls may be repeated; a node that is gone is no error.
type Nodes interface {
	controllers.Nodes
	// TaintNode keeps new pods off the node. Load balancers go on using it.
	TaintNode(ctx context.Context, n cluster.Node) error
}

// LiveReader reads objects as they are stored now. All calls may be repeated.
type LiveReader interface {
	// ReadClaim reads one claim; found is false when there is none.
	ReadClaim(ctx context.Context, name string) (c cluster.Claim, found bool, err error)
	// PodsOn lists the pods of a node.
	PodsOn(ctx context.Context, node string) ([]cluster.Pod, error)
}

// PoolStatus writes what lifecycle learns about NodePools. All calls may be repeated; a pool that is gone is no error.
type PoolStatus interface {
	// CountPool stores what the nodes of the pool have; the resource "nodes" is their number.
	CountPool(ctx context.Context, pool string, has resources.List) error
	// RecordRegistrations notes how registrations of the pool's claims went. Each claim counts once.
	RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error
	// NoteShifts notes the ids of the zones of which events on the pool say that they are shifted away from.
	NoteShifts(ctx context.Context, pool string, zoneIDs []string) error
}

// LaunchFailures holds failed launches against classes. It may be repeated.
type LaunchFailures interface {
	// NoteFailedLaunch notes that an instance of the class ended before its node joined. From the second one on
	// provision leaves the class alone for a while.
	NoteFailedLaunch(ctx context.Context, class, instance, why string) error
	// NoteUnusedNodes notes nodes that never had a resource, or never became usable: from the second or third one on it
	// counts as zero for a day, or their class is left alone for an hour.
	NoteUnusedNodes(ctx context.Context, unused []instancetypes.UnusedNode,
		used []string) ([]instancetypes.UnavailableOffering, error)
}

// Volumes tells what is attached to nodes. It may be repeated.
type Volumes interface {
	// ListAttachments lists the persistent volumes that are attached to one of the nodes.
	ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error)
}

// NominationOpener ends holds. It may be repeated.
type NominationOpener interface {
	// OpenNode takes the hold off the node.
	OpenNode(ctx context.Context, n cluster.Node) error
}

// Health tells how EC2 says that instances are.
type Health interface {
	// ListStatuses tells which of the running instances named fail a status check, and what is scheduled for them that
	// is not over; it may tell of other instances too. It may be repeated.
	ListStatuses(ctx context.Context, running []string) ([]cluster.Impairment, []cluster.ScheduledChange, error)
}

// ZonalShifts tells which zones ARC shifts traffic away from.
type ZonalShifts interface {
	// ListShifts returns nil when nobody knows. It may be repeated.
	ListShifts(ctx context.Context) *cluster.ZonalShifts
}

// Instances sees and ends instances. All calls may be repeated.
type Instances interface {
	controllers.InstanceLister
	// TerminateInstances ends the instances; one that is gone is no error.
	TerminateInstances(ctx context.Context, ids []string) error
	// StopInstances stops the instances, which keep their volumes and addresses; one that is gone is no error.
	StopInstances(ctx context.Context, ids []string) error
	// TagInstance tags an instance with the names of its node, claim and cluster, those that it lacks.
	TagInstance(ctx context.Context, id, node, claim string) error
	// SweepTemplates deletes our launch templates that are older than age and returns how many.
	SweepTemplates(ctx context.Context, age time.Duration) (int, error)
}
