package refresh

import (
	"context"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

// DryRunner asks EC2 whether it would take an order.
type DryRunner interface {
	// DryRun launches nothing. It returns a *launch.RefusedError when EC2 would not. May be repeated.
	DryRun(ctx context.Context, o launch.Order) error
}

// ClassFinder looks up in AWS what a class stands for. All calls may be repeated.
type ClassFinder interface {
	// FindAll looks everything up, and makes the instance profile of a class that names a role.
	FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved
	// DeleteArtifacts deletes what was made in AWS for the class: instance profiles and launch templates.
	DeleteArtifacts(ctx context.Context, c *awsv1.EC2NodeClass) error
	// ListProfiles lists the instance profiles made for classes of the cluster, those of classes that are gone too.
	ListProfiles(ctx context.Context) ([]nodeclass.Profile, error)
	// DeleteProfile deletes one of them.
	DeleteProfile(ctx context.Context, name string) error
}

// ClassLookup looks up in AWS what a class stands for. It makes nothing, and may be repeated.
type ClassLookup interface {
	FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved
}

// Classes reads and writes EC2NodeClasses. Writes are refused with a Conflict when the object changed since it was
// read.
type Classes interface {
	ListClasses(ctx context.Context) ([]awsv1.EC2NodeClass, error)
	// ReadClass reads one class as it is now.
	ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error)
	// WriteClassStatus stores the status; the class given is then as stored.
	WriteClassStatus(ctx context.Context, c *awsv1.EC2NodeClass) error
	// MarkClass sets annotations and puts our finalizer on the class. May be repeated.
	MarkClass(ctx context.Context, name string, annotations map[string]string) error
	// ReleaseClass removes our finalizer. May be repeated.
	ReleaseClass(ctx context.Context, name string) error
}

// NodeLister lists the nodes. It may be repeated.
type NodeLister interface {
	ListNodes(ctx context.Context) ([]cluster.Node, error)
}

// Pools reads and writes NodePools, with the same promise.
type Pools interface {
	ListPools(ctx context.Context) ([]v1.NodePool, error)
	WritePoolStatus(ctx context.Context, p *v1.NodePool) error
	PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error
	ListClaims(ctx context.Context) ([]cluster.Claim, error)
	// AnnotateClaim sets annotations. May be repeated.
	AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error)
}

// CatalogRefresher reads what EC2 sells and stores it.
type CatalogRefresher interface {
	// Refresh brings the stored catalog up to date and says in a line what it did. May be repeated.
	Refresh(ctx context.Context) (did string, err error)
}

// Overlays reads and writes NodeOverlays. A write is refused with a Conflict when the object changed since it was read.
type Overlays interface {
	// ReadOfferingInputs reads pools, classes and overlays as a snapshot, and the overlays as they are stored.
	ReadOfferingInputs(ctx context.Context) (cluster.Snapshot, []v1alpha1.NodeOverlay, error)
	// WriteOverlayStatus stores the status; the overlay given is then as stored.
	WriteOverlayStatus(ctx context.Context, o *v1alpha1.NodeOverlay) error
}
