package controllers

import (
	"context"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
)

// Rollouts limits which revision of its EC2NodeClass a node gets, where a NodeRollout exists. Nil limits nothing.
type Rollouts interface {
	// AddRollouts adds the NodeRollouts to the snapshot, with what they allow. May be repeated.
	AddRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error)
	// ReadRevision reads an EC2NodeClass as a revision keeps it. May be repeated.
	ReadRevision(ctx context.Context, class, revision string) (*awsv1.EC2NodeClass, error)
}

// RolloutSteps also takes the steps of NodeRollouts. Nil takes none.
type RolloutSteps interface {
	Rollouts
	// AdvanceRollouts takes the next step of each NodeRollout of the snapshot, stores it, and returns the snapshot with
	// what that allows. May be repeated; what it could not store it does not allow.
	AdvanceRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error)
}
