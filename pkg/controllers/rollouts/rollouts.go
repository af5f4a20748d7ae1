// Package rollouts takes the steps of NodeRollouts and tells the other functions what they allow.
//
// Start with Controller.AdvanceRollouts: it decides with pkg/rollout and writes what follows. It runs under the lease
// of those who create capacity, because what it allows is counted by what is there.
package rollouts

import (
	"context"
	"reflect"
	"slices"
	"sync/atomic"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/rollout"
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

// AlarmReader reads CloudWatch alarms. It may be repeated.
type AlarmReader interface {
	// ReadAlarms returns the states of alarms by name, as CloudWatch has them. One that does not exist is left out.
	ReadAlarms(ctx context.Context, names []string) (map[string]string, error)
}

// VersionReader reads the version of the API server. It may be repeated.
type VersionReader interface {
	// ReadVersion returns it as 1.36.
	ReadVersion(ctx context.Context) (string, error)
}

// Controller implements controllers.RolloutSteps.
type Controller struct {
	controllers.Deps

	Store   Store
	Classes ClassReader
	Alarms  AlarmReader
	Version VersionReader // nil: nobody compares images with the cluster's version
	Images  ImageReader   // nil: nobody looks whether images are gone
	Told    *Told         // nil: for this invocation
}

// Told holds what was logged already, and what EC2 said of images; it outlives an invocation.
type Told struct {
	forbidden atomic.Bool
	failed    controllers.ObjectBackoff // steps of NodeRollouts
	images    imageMemory
}

// AddRollouts adds the NodeRollouts and gates the snapshot. Where Joiner may not read them there are none, which is
// logged once: nodes must not wait for a right that the next setup brings.
func (c *Controller) AddRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if c.Told == nil {
		c.Told = &Told{}
	}
	var err error
	s.Rollouts, err = c.Store.ListRollouts(ctx)
	if controllers.IsForbidden(err) {
		if !c.Told.forbidden.Swap(true) {
			c.Log.Warn("NodeRollouts are not followed: a changed EC2NodeClass drifts every node", "error", err)
		}
		return s, nil
	}
	if err != nil {
		return s, err
	}
	c.Told.forbidden.Store(false)
	return rollout.Gate(s), nil
}

// ReadRevision reads the revision from the store.
func (c *Controller) ReadRevision(ctx context.Context, class, revision string) (*awsv1.EC2NodeClass, error) {
	return c.Store.ReadRevision(ctx, class, revision)
}

// AdvanceRollouts takes the steps. A step that is not stored is not taken, because who dies after a launch must find
// what allowed it. A rollout whose status cannot be stored allows no further node in this pass: it may be that its
// revision failed that could not be stored. It is tried again later and later, and the others go on. So it is with
// one that Joiner itself fails about.
func (c *Controller) AdvanceRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if len(s.Rollouts) == 0 {
		return s, nil
	}
	if c.Told == nil {
		c.Told = &Told{}
	}
	s.Rollouts = slices.Clone(s.Rollouts)
	c.Told.failed.KeepOnly(lists.Of(s.Rollouts, func(r cluster.Rollout) string { return r.Name }))
	version := c.readVersion(ctx)
	for i := range s.Rollouts {
		r := &s.Rollouts[i]
		if c.Told.failed.IsBackingOff(r.Name, c.Now()) {
			r.Status.Allowed = 0
			continue
		}
		r.ClusterVersion = version
		err := c.Shield().Do("NodeRollout "+r.Name, func() error { return c.advance(ctx, s, r) })
		if err != nil {
			r.Status.Allowed = 0
		}
		c.Told.failed.NoteOutcome(ctx, r.Name, controllers.IgnoreConflict(c.Log, err), c.Now())
	}
	return rollout.Gate(s), c.Told.failed.JoinErrors()
}

// advance takes the step of one rollout, or says what a pass would do that may write.
func (c *Controller) advance(ctx context.Context, s cluster.Snapshot, r *cluster.Rollout) error {
	r.Workloads = rollout.CountPods(s, *r)
	c.readAlarms(ctx, r)
	c.readGoneImages(ctx, s, r)
	out := rollout.Advance(s, *r)
	may, err := controllers.MayWrite(ctx)
	if err == nil && !may {
		controllers.LogDryRun(c.Log, "write status of NodeRollout "+r.Name+": "+out.Status.Phase+" "+out.Status.Message)
		return nil
	}
	if err != nil {
		return err
	}
	return c.apply(ctx, s, r, out)
}

// readVersion is the cluster's version; empty where it cannot be read, which stops nothing.
func (c *Controller) readVersion(ctx context.Context) string {
	if c.Version == nil {
		return ""
	}
	version, err := c.Version.ReadVersion(ctx)
	if err != nil {
		c.Log.Warn("images of NodeRollouts are not compared with the cluster's version", "error", err)
		return ""
	}
	return version
}

// readAlarms fills in the states of the alarms. What cannot be read is noted: no step is taken until it can be.
func (c *Controller) readAlarms(ctx context.Context, r *cluster.Rollout) {
	if len(r.Alarms) == 0 {
		return
	}
	names := lists.Of(r.Alarms, func(a cluster.Alarm) string { return a.Name })
	states, err := c.Alarms.ReadAlarms(ctx, names)
	if err != nil {
		r.AlarmsUnread = err.Error()
		c.Log.Warn("alarms of NodeRollout "+r.Name+" cannot be read", "error", err)
	}
	r.Alarms = slices.Clone(r.Alarms)
	for i := range r.Alarms {
		r.Alarms[i].State = states[r.Alarms[i].Name]
	}
}

// apply keeps the revision, stores the status, tells of it, and forgets surplus revisions, in this order: a status
// names no revision that is not kept.
func (c *Controller) apply(ctx context.Context, s cluster.Snapshot, r *cluster.Rollout, out rollout.Plan) error {
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
		before := r.Status
		r.Status, r.Before = out.Status, &before
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
