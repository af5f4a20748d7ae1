package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/nodeclass"
)

// ClassFinder looks up in AWS what a class stands for. All calls may be repeated.
type ClassFinder interface {
	// Find looks everything up, and makes the instance profile of a class that names a role.
	Find(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Found
	// DeleteProfiles deletes the instance profiles that Find made for the class.
	DeleteProfiles(ctx context.Context, c *awsv1.EC2NodeClass) error
}

// Classes reads and writes EC2NodeClasses. Writes are refused with a Conflict when the object changed since it was read.
type Classes interface {
	Classes(ctx context.Context) ([]awsv1.EC2NodeClass, error)
	Class(ctx context.Context, name string) (*awsv1.EC2NodeClass, error)
	WriteClassStatus(ctx context.Context, c *awsv1.EC2NodeClass) error
	// MarkClass sets annotations and puts our finalizer on the class. May be repeated.
	MarkClass(ctx context.Context, name string, annotations map[string]string) error
	// ReleaseClass removes our finalizer. May be repeated.
	ReleaseClass(ctx context.Context, name string) error
}

// Pools reads and writes NodePools, with the same promise.
type Pools interface {
	Pools(ctx context.Context) ([]v1.NodePool, error)
	WritePoolStatus(ctx context.Context, p *v1.NodePool) error
	PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error
	Claims(ctx context.Context) ([]cluster.Claim, error)
}

// Market reads what EC2 sells and stores it.
type Market interface {
	// Refresh brings the stored catalog up to date and says in a line what it did. May be repeated.
	Refresh(ctx context.Context) (did string, err error)
}

// Refresh keeps the catalog, the status of classes and the status of pools up to date. Each part is done whether or not the
// others fail.
type Refresh struct {
	Finder   ClassFinder
	Classes  Classes
	Pools    Pools
	Market   Market
	CABundle string // part of the classes' drift hash
	Now      func() time.Time
	Log      *slog.Logger
}

// Run does all of it once. Classes and pools come first: a new class waits for them.
func (r *Refresh) Run(ctx context.Context) error {
	err := errors.Join(r.classes(ctx), r.pools(ctx))
	did, marketErr := r.Market.Refresh(ctx)
	if did != "" {
		r.Log.Info(did)
	}
	return errors.Join(err, marketErr)
}

func (r *Refresh) classes(ctx context.Context) error {
	classes, err := r.Classes.Classes(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range classes {
		if err := r.class(ctx, &classes[i]); err != nil && !isConflict(err) {
			errs = append(errs, fmt.Errorf("refresh EC2NodeClass %s: %w", classes[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Refresh) class(ctx context.Context, c *awsv1.EC2NodeClass) error {
	if c.DeletionTimestamp != nil {
		return r.release(ctx, c)
	}
	c, err := r.mark(ctx, c)
	if err != nil {
		return err
	}
	found := r.Finder.Find(ctx, c)
	if nodeclass.Update(c, found, r.Now()) {
		if err := r.Classes.WriteClassStatus(ctx, c); err != nil {
			return err
		}
		r.Log.Info("EC2NodeClass "+c.Name, "ready", nodeclass.Ready(c), "images", len(c.Status.AMIs), "subnets", len(c.Status.Subnets),
			"securityGroups", len(c.Status.SecurityGroups), "instanceProfile", c.Status.InstanceProfile)
	}
	return found.Err()
}

// mark writes hash and finalizer where they are missing, and returns the class as it is then.
func (r *Refresh) mark(ctx context.Context, c *awsv1.EC2NodeClass) (*awsv1.EC2NodeClass, error) {
	want := map[string]string{awsv1.AnnotationHash: c.Hash(r.CABundle), awsv1.AnnotationHashVersion: awsv1.HashVersion}
	missing := !slices.Contains(c.Finalizers, awsv1.FinalizerTermination)
	for k, v := range want {
		missing = missing || c.Annotations[k] != v
	}
	if !missing {
		return c, nil
	}
	if err := r.Classes.MarkClass(ctx, c.Name, want); err != nil {
		return nil, err
	}
	return r.Classes.Class(ctx, c.Name)
}

// release cleans up behind a deleted class once no NodeClaim needs it (spec aws.md §1.9).
func (r *Refresh) release(ctx context.Context, c *awsv1.EC2NodeClass) error {
	claims, err := r.Pools.Claims(ctx)
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if claim.Class == c.Name {
			r.Log.Info("EC2NodeClass "+c.Name+" waits for its NodeClaims to end", "one", claim.Name)
			return nil
		}
	}
	if err := r.Finder.DeleteProfiles(ctx, c); err != nil {
		return err
	}
	r.Log.Info("EC2NodeClass " + c.Name + " is released")
	return r.Classes.ReleaseClass(ctx, c.Name)
}

func (r *Refresh) pools(ctx context.Context) error {
	classes, err := r.Classes.Classes(ctx)
	if err != nil {
		return err
	}
	pools, err := r.Pools.Pools(ctx)
	if err != nil {
		return err
	}
	claims, err := r.Pools.Claims(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range pools {
		if err := r.pool(ctx, &pools[i], classes, claims); err != nil && !isConflict(err) {
			errs = append(errs, fmt.Errorf("refresh NodePool %s: %w", pools[i].Name, err))
		}
	}
	return errors.Join(errs...)
}

func (r *Refresh) pool(ctx context.Context, p *v1.NodePool, classes []awsv1.EC2NodeClass, claims []cluster.Claim) error {
	if nodeclass.UpdatePool(p, classes, claims, r.Now()) {
		if err := r.Pools.WritePoolStatus(ctx, p); err != nil {
			return err
		}
		r.Log.Info("NodePool "+p.Name, "ready", p.StatusConditions().IsTrue(v1.ConditionReady), "nodes", *p.Status.Nodes)
	}
	return r.Pools.PatchPoolMeta(ctx, p.Name, map[string]string{
		v1.AnnotationNodePoolHash: p.Hash(), v1.AnnotationNodePoolHashVersion: v1.NodePoolHashVersion})
}
