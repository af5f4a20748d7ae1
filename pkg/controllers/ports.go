package controllers

import (
	"context"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/resources"
	"joiner/pkg/nodeclaim/launch"
)

// Reader reads Kubernetes. All calls may be repeated.
type Reader interface {
	// PendingPods lists the pods that need a node.
	PendingPods(ctx context.Context) ([]cluster.Pod, error)
	// StaticPools lists the NodePools that have a fixed number of nodes. Whether they are ready is not said.
	StaticPools(ctx context.Context) ([]cluster.Pool, error)
	// ListClaims lists our NodeClaims.
	ListClaims(ctx context.Context) ([]cluster.Claim, error)
	// ReadSnapshot reads every Kubernetes object that a decision may see, but for volumes.
	ReadSnapshot(ctx context.Context) (cluster.Snapshot, error)
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
	// CreateClaim stores the intent to launch, finalizer included. Repeating it makes a second claim.
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
	// DeleteClaim condemns the claim. May be repeated; a claim that is gone is no error.
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

// Pods removes pods from nodes. All calls may be repeated; they act on the pod of that UID only.
type Pods interface {
	// EvictPod asks the eviction API once.
	EvictPod(ctx context.Context, p cluster.Pod) (cluster.Eviction, error)
	// DeletePod deletes the pod with the given grace in seconds.
	DeletePod(ctx context.Context, p cluster.Pod, graceSec int64) error
}

// PoolStatus writes what lifecycle learns about NodePools. All calls may be repeated; a pool that is gone is no error.
type PoolStatus interface {
	// CountPool stores what the nodes of the pool have; the resource "nodes" is their number.
	CountPool(ctx context.Context, pool string, has resources.List) error
	// RecordRegistrations notes how registrations of the pool's claims went. Each claim counts once.
	RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error
}

// Volumes tells what is attached to nodes. It may be repeated.
type Volumes interface {
	// ListAttachments lists the persistent volumes that are attached to one of the nodes.
	ListAttachments(ctx context.Context, nodes []string) ([]cluster.Attachment, error)
}

// Tolerator lets pods onto held nodes. It may be repeated; a pod that is gone is no error.
type Tolerator interface {
	// TolerateNomination makes the pod tolerate the taint.
	TolerateNomination(ctx context.Context, p cluster.Pod, t cluster.Taint) error
}

// NominationOpener ends holds. It may be repeated.
type NominationOpener interface {
	// OpenNode takes the hold off the node.
	OpenNode(ctx context.Context, n cluster.Node) error
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

// Launcher starts instances.
type Launcher interface {
	// LaunchInstances starts one instance. The same token never starts a second one. It returns a
	// *instancetypes.NoCapacityError when EC2 has none, or a *launch.TokenUsedError. After another error, if it has a
	// method TokenSpent that reports true, the same token would bring the same error for ever. Marks may come with an
	// instance and with an error.
	LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
		[]instancetypes.UnavailableOffering, error)
	// LaunchBatch starts an instance for each claim of the order's batch, or fewer: then the error is what Launch would
	// return. The same token never starts more; it brings those of the first time, some of which may have ended.
	LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
		[]instancetypes.UnavailableOffering, error)
}

// Instances sees and ends instances. All calls may be repeated.
type Instances interface {
	// ListInstances lists the cluster's instances that are not terminated for long.
	ListInstances(ctx context.Context) ([]cluster.Instance, error)
	// TerminateInstances ends the instances; one that is gone is no error.
	TerminateInstances(ctx context.Context, ids []string) error
	// TagInstance tags an instance with the names of its node, claim and cluster, those that it lacks.
	TagInstance(ctx context.Context, id, node, claim string) error
	// SweepTemplates deletes our launch templates that are older than age and returns how many.
	SweepTemplates(ctx context.Context, age time.Duration) (int, error)
}

// Health tells how EC2 says that instances are.
type Health interface {
	// ListStatuses tells which of the running instances named fail a status check, and what is scheduled for them that
	// is not over; it may tell of other instances too. It may be repeated.
	ListStatuses(ctx context.Context, running []string) ([]cluster.Impairment, []cluster.ScheduledChange, error)
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
	// ListUnavailable lists the marks in force.
	ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error)
	// MarkUnavailable marks offers for the given time or, when they keep failing, longer. May be repeated.
	MarkUnavailable(ctx context.Context, marks []instancetypes.UnavailableOffering, d time.Duration) error
}

// CatalogReader gives the catalog: the stored one, or the built-in snapshot with a reason why.
type CatalogReader interface {
	ReadCatalog(ctx context.Context) (c instancetypes.Catalog, why string, err error)
}

// Waker runs another function soon. May be repeated.
type Waker interface {
	Wake(ctx context.Context) error
}
