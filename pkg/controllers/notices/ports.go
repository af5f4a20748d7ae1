package notices

import (
	"context"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// ClaimReader finds claims. It may be repeated.
type ClaimReader interface {
	// ClaimsOf lists those of our NodeClaims that have one of the instances and, unless all of the instances have one,
	// those that do not say by a label which they have: those that are being launched, or were made by somebody else.
	// Of these it may leave out others when one is enough; nil for none.
	ClaimsOf(ctx context.Context, instances []string, enough func(cluster.Claim) bool) ([]cluster.Claim, error)
}

// NodeReader finds one node. It may be repeated.
type NodeReader interface {
	// ReadNode reads one node. When there is none the error has a method NotFound that reports true.
	ReadNode(ctx context.Context, name string) (cluster.Node, error)
}

// WatchAwareWaker is a Waker that can tell whether it would have anybody to wake, as WakeUnlessWatching is.
type WatchAwareWaker interface {
	controllers.Waker
	// IsWatched reports whether an invocation watches, so that Wake would run none. May be repeated.
	IsWatched(ctx context.Context) bool
}

// ConfirmingWaker is a Waker that can make sure, as WakeUnlessWatching is.
type ConfirmingWaker interface {
	controllers.Waker
	// WakeAndConfirm is Wake. What it returns, if anything, makes sure that somebody acts, which may take seconds. May
	// be repeated.
	WakeAndConfirm(ctx context.Context) (confirm func(context.Context) error, err error)
}

// PoolReader finds what a person wrote onto a pool. It may be repeated.
type PoolReader interface {
	// PoolAnnotations are the annotations of the NodePool itself, not of its template; none when it is gone.
	PoolAnnotations(ctx context.Context, name string) (map[string]string, error)
}

// RateQuota bounds how often something is done in a time.
type RateQuota interface {
	// TakeOne reports whether the thing of that name may be done. Asking again for the same thing gives the same answer
	// while it counts.
	TakeOne(ctx context.Context, thing string) (bool, error)
}

// NodePods takes the pods of one node away. All calls may be repeated; they act on the pod of that UID only.
type NodePods interface {
	// PodsOn lists the pods of a node.
	PodsOn(ctx context.Context, node string) ([]cluster.Pod, error)
	// DeletePod deletes the pod with the given grace in seconds.
	DeletePod(ctx context.Context, p cluster.Pod, graceSec int64) error
	// RemovePod removes a pod whose processes have ended, without asking its kubelet.
	RemovePod(ctx context.Context, p cluster.Pod) error
}
