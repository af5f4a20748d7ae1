package controllers

import (
	"context"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// StoppedCapacity starts nodes whose instances are stopped.
type StoppedCapacity interface {
	// StartNodes starts the instances of the claims, and returns the snapshot with what has become of them. refused
	// says that some could not be started: their pods are to be planned anew, and the snapshot says that those
	// instances are not to be had. May be repeated.
	StartNodes(ctx context.Context, s cluster.Snapshot, starts []plan.Start) (after cluster.Snapshot, refused bool,
		err error)
}
