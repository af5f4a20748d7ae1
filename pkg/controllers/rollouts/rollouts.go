// Package rollouts takes the steps of NodeRollouts and tells the other functions what they allow.
//
// Start with Controller.AdvanceRollouts: it decides with pkg/rollout and writes what follows. It runs under the lease
// of those who create capacity, because what it allows is counted by what is there.
package rollouts

import (
	"context"
	"errors"
	"reflect"
	"slices"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/controllers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclass"
	"joiner/pkg/rollout"
)

// Store keeps NodeRollouts and revisions. A write to an object that changed since it was listed has a method Conflict
// that reports true, and changes nothing.
type Store interface {
	// ListRollouts lists the NodeRollouts with their revisions. May be repeated.
	ListRollouts(ctx context.Context) ([]cluster.Rollout, error)
	// ReadRevision reads an EC2NodeClass as a revision keeps it. May be repeated.
	ReadRevision(ctx context.Context, class, revision string) (*awsv1.EC2NodeClass, error)
	// KeepRevision stores the class as a revision of the rollout. May be repeated.
	KeepRevision(ctx context.Context, rollout, revision string, class *awsv1.EC2NodeClass) error
	// ForgetRevision deletes a revision. May be repeated.
	ForgetRevision(ctx context.Context, revision string) error
	// WriteRolloutStatus stores the status. May be repeated.
	WriteRolloutStatus(ctx context.Context, rollout string, s cluster.RolloutStatus) error
}

// ClassReader reads one EC2NodeClass. It may be repeated.
type ClassReader interface {
	ReadClass(ctx context.Context, name string) (*awsv1.EC2NodeClass, error)
}

// Controller implements controllers.RolloutSteps.
type Controller struct {
	controllers.Deps

	Store   Store
	Classes ClassReader
}

// AddRollouts adds the NodeRollouts and gates the snapshot.
func (c *Controller) AddRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	var err error
	if s.Rollouts, err = c.Store.ListRollouts(ctx); err != nil {
		return s, err
	}
	return rollout.Gate(s), nil
}

// ReadRevision is that of the store.
func (c *Controller) ReadRevision(ctx context.Context, class, revision string) (*awsv1.EC2NodeClass, error) {
	return c.Store.ReadRevision(ctx, class, revision)
}

// AdvanceRollouts takes the steps. A rollout whose status cannot be stored allows what the stored one does; the others
// go on. A step that is not stored is not taken, because who dies after a launch must find what allowed it.
func (c *Controller) AdvanceRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if len(s.Rollouts) == 0 {
		return s, nil
	}
	s.Rollouts = slices.Clone(s.Rollouts)
	var errs []error
	for i := range s.Rollouts {
		r := &s.Rollouts[i]
		r.Workloads = rollout.CountPods(s, *r)
		out := rollout.Advance(s, *r)
		may, err := controllers.MayWrite(ctx)
		if err == nil && !may {
			controllers.LogDryRun(c.Log, "write status of NodeRollout "+r.Name+": "+out.Status.Phase+" "+out.Status.Message)
			continue
		}
		if err == nil {
			err = c.apply(ctx, s, r, out)
		}
		errs = append(errs, controllers.IgnoreConflict(c.Log, err))
	}
	return rollout.Gate(s), errors.Join(errs...)
}

// apply keeps the revision, stores the status, tells of it, and forgets surplus revisions, in this order: a status
// names no revision that is not kept.
func (c *Controller) apply(ctx context.Context, s cluster.Snapshot, r *cluster.Rollout, out rollout.Outcome) error {
	if out.Keep != "" {
		if err := c.keep(ctx, s, *r, out.Keep); err != nil {
			return err
		}
	}
	if !reflect.DeepEqual(r.Status, out.Status) {
		if err := c.Store.WriteRolloutStatus(ctx, r.Name, out.Status); err != nil {
			return err
		}
		if r.Status.Phase != out.Status.Phase || r.Status.Step != out.Status.Step ||
			r.Status.Message != out.Status.Message {
			c.Log.Info("rollout", "name", r.Name, "phase", out.Status.Phase, "revision", out.Status.Revision, "step",
				out.Status.Step, "message", out.Status.Message)
		}
		r.Status = out.Status
	}
	for _, e := range out.Events {
		if err := c.Record.RecordEvent(ctx, e); err != nil {
			c.Log.Warn("event on NodeRollout "+r.Name, "error", err)
		}
	}
	for _, name := range out.Forget {
		if err := c.Store.ForgetRevision(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// keep stores the class as it is, if it still is what was decided about.
func (c *Controller) keep(ctx context.Context, s cluster.Snapshot, r cluster.Rollout, revision string) error {
	name, _ := rollout.ClassOf(s, r)
	class, err := c.Classes.ReadClass(ctx, name)
	if err != nil {
		return err
	}
	if now := rollout.RevisionName(nodeclass.DescribeClass(class)); now != revision {
		return &changedError{name}
	}
	return c.Store.KeepRevision(ctx, r.Name, revision, class)
}

// changedError says that a class changed since it was decided about; the next pass decides anew.
type changedError struct{ class string }

// Error names the class.
func (e *changedError) Error() string {
	return "keep revision: EC2NodeClass " + e.class + " has changed"
}

// Conflict reports true.
func (e *changedError) Conflict() bool { return true }
