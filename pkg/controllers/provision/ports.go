package provision

import (
	"context"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// Launcher starts instances.
type Launcher interface {
	// LaunchInstances starts one instance. The same token never starts a second one. It returns a
	// *instancetypes.NoCapacityError when EC2 has none, or a *launch.TokenUsedError. After another error, if it has a
	// method TokenSpent that reports true, the same token would bring the same error for ever; if it has a method
	// Refused that reports true, EC2 answered no, and may answer otherwise when other offerings are asked for.
	// Unavailable offerings may come with an instance and with an error.
	LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
		[]instancetypes.UnavailableOffering, error)
	// LaunchBatch starts an instance for each claim of the order's batch, or fewer: then the error is what Launch would
	// return. The same token never starts more; it brings those of the first time, some of which may have ended.
	LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance,
		[]instancetypes.UnavailableOffering, error)
}

// Tolerator lets pods onto held nodes. It may be repeated; a pod that is gone is no error.
type Tolerator interface {
	// TolerateNomination makes the pod tolerate the taint.
	TolerateNomination(ctx context.Context, p cluster.Pod, t cluster.Taint) error
}

// PurchaseBrake remembers nodes that were bought in vain. It may be repeated.
type PurchaseBrake interface {
	// NoteUnusedNodes notes them, and by their instance ids those of which pods came to run after all. It returns the
	// types of classes that are left out now.
	NoteUnusedNodes(ctx context.Context, unused []instancetypes.UnusedNode,
		used []string) ([]instancetypes.UnavailableOffering, error)
}
