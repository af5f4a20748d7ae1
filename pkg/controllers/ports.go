package controllers

import (
	"context"
	"time"

	v1beta1 "joiner.sh/pkg/api/autoscaling/v1beta1"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/timeseries"
)

// Reader reads Kubernetes. All calls may be repeated.
type Reader interface {
	// PendingPods lists the pods that need a node.
	PendingPods(ctx context.Context) ([]cluster.Pod, error)
	// StaticPools lists the NodePools that have a fixed number of nodes. Whether they are ready is not said.
	StaticPools(ctx context.Context) ([]cluster.Pool, error)
	// ListClaims lists our NodeClaims, some seconds old at most.
	ListClaims(ctx context.Context) ([]cluster.Claim, error)
	// ReadSnapshot reads every Kubernetes object that a decision may see, but for volumes, as it is stored when the
	// pass begins or later.
	ReadSnapshot(ctx context.Context) (cluster.Snapshot, error)
	// CachedSnapshot returns what ReadSnapshot would have shown some seconds ago, with what this process wrote since.
	// Nothing is launched, drained, deleted or ended on its word.
	CachedSnapshot(ctx context.Context) (cluster.Snapshot, error)
	// WithVolumes reads volumes: it is the snapshot with what those of its pods allow and how many of them its nodes
	// can have attached.
	WithVolumes(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error)
	// ReadClass reads one EC2NodeClass.
	ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error)
	// Wait returns when a waiting pod, a claim or a node changed, or with the error of ctx.
	Wait(ctx context.Context) error
}

// Claims writes NodeClaims. A write to an object that changed since it was read has a method Conflict that reports
// true, and changes nothing.
type Claims interface {
	// CreateClaim stores the intent to launch, finalizer included. Repeating it makes a second claim. For a refusal by
	// the API server of what the claim holds see RefusedLabels.
	CreateClaim(ctx context.Context, l plan.Launch, pool cluster.Pool) (cluster.Claim, error)
	// AdoptClaim puts our finalizer and the label of its class on a claim that lacks them, and of its labels the
	// partition. May be repeated. A claim that is being deleted is a conflict.
	AdoptClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error)
	// AnnotateClaim sets annotations. May be repeated. A claim given without its version is annotated whatever else
	// changed on it meanwhile.
	AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error)
	// LabelClaim sets labels and annotations. May be repeated.
	LabelClaim(ctx context.Context, c cluster.Claim, labels, annotations map[string]string) (cluster.Claim, error)
	// UnreserveClaim labels the claim as on-demand and takes the labels of its capacity reservation off. May be
	// repeated.
	UnreserveClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error)
	// WriteClaimStatus stores the status of the claim given. May be repeated.
	WriteClaimStatus(ctx context.Context, c cluster.Claim) (cluster.Claim, error)
	// DeleteClaim gives the claim its deletion time. May be repeated; a claim that is gone is no error.
	DeleteClaim(ctx context.Context, c cluster.Claim) error
	// ReleaseClaim removes our finalizer. May be repeated; a claim that is gone is no error.
	ReleaseClaim(ctx context.Context, c cluster.Claim) error
}

// Nodes writes Node objects. All calls may be repeated; a node that is gone is no error.
type Nodes interface {
	// RegisterNode copies finalizer, owner, labels, annotations and taints of the claim onto its node.
	RegisterNode(ctx context.Context, n cluster.Node, c cluster.Claim) error
	// InitializeNode labels the node as initialized.
	InitializeNode(ctx context.Context, n cluster.Node) error
	// UnreserveNode labels the node as on-demand and takes the labels of its capacity reservation off.
	UnreserveNode(ctx context.Context, n cluster.Node) error
	// TaintForTermination taints the node and takes it out of load balancers.
	TaintForTermination(ctx context.Context, n cluster.Node) error
	// DeleteNode gives the node a deletion time; our finalizer keeps it until ReleaseNode.
	DeleteNode(ctx context.Context, n cluster.Node) error
	// ReleaseNode removes our finalizer.
	ReleaseNode(ctx context.Context, n cluster.Node) error
}

// Recorder writes Kubernetes events. Repeating a call counts the event up.
type Recorder interface {
	RecordEvent(ctx context.Context, e cluster.Event) error
}

// Lease keeps two passes from creating capacity at once.
type Lease interface {
	// Acquire takes the named lease for ttl; ok is false while somebody else holds it. An own lease may be taken again.
	Acquire(ctx context.Context, name, holder string, ttl time.Duration) (release func(context.Context) error, ok bool,
		err error)
}

// PassTotals keeps what passes counted and measured on the lease that they hold.
type PassTotals interface {
	// ChangeTotals has a change made to the totals that stand on the lease by the write that gives it back. It asks
	// nobody. Repeating it repeats the change.
	ChangeTotals(lease string, change func(timeseries.Totals))
}

// RemainingCapacity tells what is left of what instances are launched into. All calls may be repeated.
type RemainingCapacity interface {
	// RemainingReservations tells how many instances each capacity reservation has room for; one that is gone is left
	// out.
	RemainingReservations(ctx context.Context, ids []string) (map[string]int64, error)
	// RemainingAddresses tells how many addresses each subnet has left; one that is gone is left out.
	RemainingAddresses(ctx context.Context, subnets []string) (map[string]int64, error)
	// FindGroup looks up a placement group by its id or name; nil when there is none.
	FindGroup(ctx context.Context, p instancetypes.Placement) (*instancetypes.Placement, error)
}

// UnavailableOfferings remembers what EC2 refused to sell, for all functions.
type UnavailableOfferings interface {
	// ListUnavailable lists the offerings that are unavailable now, and for whom.
	ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error)
	// MarkUnavailable makes offerings unavailable for the given time or, when they keep failing, longer. May be
	// repeated.
	MarkUnavailable(ctx context.Context, unavailable []instancetypes.UnavailableOffering, d time.Duration) error
}

// CatalogReader gives the catalog: the stored one, or the built-in snapshot with a reason why.
type CatalogReader interface {
	ReadCatalog(ctx context.Context) (c instancetypes.Catalog, why string, err error)
}

// InstanceLister tells which instances there are. It may be repeated.
type InstanceLister interface {
	// ListInstances lists those of the cluster's instances that the filter selects and that are not terminated for
	// long.
	ListInstances(ctx context.Context, which cluster.InstanceFilter) ([]cluster.Instance, error)
}

// Waker runs another function soon. May be repeated.
type Waker interface {
	Wake(ctx context.Context) error
}

// Buffers reads and writes CapacityBuffers. A write is refused with a Conflict when the object changed since it was
// read.
type Buffers interface {
	// ListBuffers lists the buffers of our strategy with what they refer to.
	ListBuffers(ctx context.Context) ([]buffers.Buffer, error)
	// WriteBufferStatus stores the status; the buffer given is then as stored.
	WriteBufferStatus(ctx context.Context, b *v1beta1.CapacityBuffer) error
}

// DecisionLog keeps what passes decided.
type DecisionLog interface {
	// WritePass keeps one pass. It may be repeated.
	WritePass(ctx context.Context, p decisionlog.Pass) error
}

// Metrics takes what was measured. Repeating a call counts things twice, so it is called once, at the end of an
// invocation.
type Metrics interface {
	Put(records ...metrics.Record)
}

// LeaseHolders tells who holds a lease. It may be repeated.
type LeaseHolders interface {
	// LeaseSign is a sign of life of who holds the named lease: empty when nobody does, and other words after each
	// renewal.
	LeaseSign(ctx context.Context, name string) (string, error)
}

// WatchLease tells others that an invocation watches, and tells it whether one before it seems to. All calls may be
// repeated.
type WatchLease interface {
	Lease
	LeaseHolders
}
