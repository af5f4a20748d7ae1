// Package dryrun stands between control and the ports that change something. Open, it lets calls through; closed, it does nothing and
// says in the log what would have been done.
//
// It knows every port of control that changes the cluster or EC2. It refuses to know why it is closed, and it does not stand before
// the catalog in Joiner's own bucket, without which nothing could be decided.
package dryrun

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/controllers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/plan"
	"joiner/pkg/nodeclaim/launch"
	"joiner/pkg/nodeclass"
)

// Gate decides about each call.
type Gate struct {
	// Open reports whether changes are allowed now. It is asked before every one of them; with an error none is made. A pass to which it was closed once
	// makes no change any more.
	Open func(ctx context.Context) (bool, error)
	Log  *slog.Logger
}

// isOpen reports whether changes are allowed now to the pass of ctx.
func (g *Gate) isOpen(ctx context.Context) (bool, error) { return controllers.MayWrite(ctx, g.Open) }

// unlessClosed does the deed if the gate is open; else it logs the deed and answers with instead.
func unlessClosed[T any](ctx context.Context, g *Gate, what string, instead T, deed func() (T, error)) (T, error) {
	open, err := g.isOpen(ctx)
	if err != nil {
		return instead, fmt.Errorf("%s: %w", what, err)
	}
	if open {
		return deed()
	}
	g.Log.Info("would " + what)
	return instead, nil
}

// unlessClosedNoAnswer is through for a deed without an answer.
func (g *Gate) unlessClosedNoAnswer(ctx context.Context, what string, deed func() error) error {
	_, err := unlessClosed(ctx, g, what, struct{}{}, func() (struct{}, error) { return struct{}{}, deed() })
	return err
}

// Lease takes no lease while the gate is closed, and behaves as if it had.
func (g *Gate) Lease(to controllers.Lease) controllers.Lease { return dryRunLease{g, to} }

type dryRunLease struct {
	g  *Gate
	to controllers.Lease
}

func (l dryRunLease) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error, bool, error) {
	open, err := l.g.isOpen(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	if !open {
		return func(context.Context) error { return nil }, true, nil
	}
	return l.to.Acquire(ctx, name, holder, ttl)
}

// Vigil is a lease of which everybody may know who holds it.
func (g *Gate) Vigil(to controllers.WatchLease) controllers.WatchLease {
	return dryRunWatchLease{dryRunLease{g, to}, to}
}

type dryRunWatchLease struct {
	dryRunLease
	controllers.LeaseHolders
}

// Launcher starts no instance while the gate is closed; it answers with the cheapest that it would have asked for.
func (g *Gate) Launcher(to controllers.Launcher) controllers.Launcher { return dryRunLauncher{g, to} }

type dryRunLauncher struct {
	g  *Gate
	to controllers.Launcher
}

func (l dryRunLauncher) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance, []instancetypes.UnavailableOffering, error) {
	var marks []instancetypes.UnavailableOffering
	i, err := unlessClosed(ctx, l.g, "launch: "+o.String(), pretendedInstance(o), func() (i cluster.Instance, err error) {
		i, marks, err = l.to.LaunchInstances(ctx, o, token)
		return i, err
	})
	return i, marks, err
}

func (l dryRunLauncher) LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance, []instancetypes.UnavailableOffering, error) {
	var marks []instancetypes.UnavailableOffering
	list, err := unlessClosed(ctx, l.g, "launch: "+o.String(), slices.Repeat([]cluster.Instance{pretendedInstance(o)}, o.Count()), func() (got []cluster.Instance, err error) {
		got, marks, err = l.to.LaunchBatch(ctx, o, token)
		return got, err
	})
	return list, marks, err
}

// pretendedInstance is the instance that the order asks for first.
func pretendedInstance(o launch.Order) cluster.Instance {
	var best *launch.Override
	for _, t := range o.Templates {
		for i := range t.Overrides {
			if best == nil || t.Overrides[i].Price < best.Price {
				best = &t.Overrides[i]
			}
		}
	}
	if best == nil {
		return cluster.Instance{}
	}
	return cluster.Instance{ID: "i-not-launched", State: "pending", Type: best.Type, Zone: best.Zone, CapacityType: best.CapacityType, ImageID: best.ImageID,
		Claim: o.ClaimName, ClaimUID: o.ClaimUID}
}

// Instances still sees instances while the gate is closed, and changes none.
func (g *Gate) Instances(to controllers.Instances) controllers.Instances {
	return dryRunInstances{g, to}
}

type dryRunInstances struct {
	g  *Gate
	to controllers.Instances
}

func (i dryRunInstances) ListInstances(ctx context.Context) ([]cluster.Instance, error) {
	return i.to.ListInstances(ctx)
}

func (i dryRunInstances) TerminateInstances(ctx context.Context, ids []string) error {
	return i.g.unlessClosedNoAnswer(ctx, fmt.Sprintf("terminate instances %v", ids), func() error { return i.to.TerminateInstances(ctx, ids) })
}

func (i dryRunInstances) TagInstance(ctx context.Context, id, node, claim string) error {
	return i.g.unlessClosedNoAnswer(ctx, "tag instance "+id+" with the names "+node+" and "+claim, func() error { return i.to.TagInstance(ctx, id, node, claim) })
}

func (i dryRunInstances) SweepTemplates(ctx context.Context, age time.Duration) (int, error) {
	return unlessClosed(ctx, i.g, "delete launch templates older than "+age.String(), 0, func() (int, error) { return i.to.SweepTemplates(ctx, age) })
}

// SoldOut still lists marks while the gate is closed, and adds none.
func (g *Gate) SoldOut(to controllers.UnavailableOfferings) controllers.UnavailableOfferings {
	return dryRunUnavailable{g, to}
}

type dryRunUnavailable struct {
	g  *Gate
	to controllers.UnavailableOfferings
}

func (s dryRunUnavailable) ListUnavailable(ctx context.Context) ([]instancetypes.UnavailableOffering, error) {
	return s.to.ListUnavailable(ctx)
}

func (s dryRunUnavailable) MarkUnavailable(ctx context.Context, marks []instancetypes.UnavailableOffering, d time.Duration) error {
	return s.g.unlessClosedNoAnswer(ctx, fmt.Sprintf("mark %d offers as sold out for %s", len(marks), d), func() error { return s.to.MarkUnavailable(ctx, marks, d) })
}

// Waker wakes nobody while the gate is closed: there would be nothing new to see.
func (g *Gate) Waker(to controllers.Waker, name string) controllers.Waker {
	return dryRunWaker{g, to, name}
}

type dryRunWaker struct {
	g    *Gate
	to   controllers.Waker
	name string
}

func (w dryRunWaker) Wake(ctx context.Context) error {
	return w.g.unlessClosedNoAnswer(ctx, "wake "+w.name, func() error { return w.to.Wake(ctx) })
}

// IsWatched passes the question on, which changes nothing.
func (w dryRunWaker) IsWatched(ctx context.Context) bool {
	to, can := w.to.(controllers.WatchAwareWaker)
	return can && to.IsWatched(ctx)
}

// WakeAndConfirm passes what is urgent on, and what makes sure of it later.
func (w dryRunWaker) WakeAndConfirm(ctx context.Context) (confirm func(context.Context) error, err error) {
	to, can := w.to.(controllers.ConfirmingWaker)
	if !can {
		return nil, w.Wake(ctx)
	}
	var sure func(context.Context) error
	if err := w.g.unlessClosedNoAnswer(ctx, "wake "+w.name, func() (err error) { sure, err = to.WakeAndConfirm(ctx); return err }); err != nil || sure == nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return w.g.unlessClosedNoAnswer(ctx, "make sure that "+w.name+" runs", func() error { return sure(ctx) })
	}, nil
}

// ClassFinder looks classes up while the gate is closed with another finder, one that makes nothing.
func (g *Gate) ClassFinder(to, looking controllers.ClassFinder) controllers.ClassFinder {
	return dryRunResolver{g, to, looking}
}

type dryRunResolver struct {
	g           *Gate
	to, looking controllers.ClassFinder
}

func (f dryRunResolver) FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	if open, err := f.g.isOpen(ctx); err != nil || !open {
		return f.looking.FindAll(ctx, c) // an error is met again where the outcome is written
	}
	return f.to.FindAll(ctx, c)
}

func (f dryRunResolver) ListProfiles(ctx context.Context) ([]nodeclass.Profile, error) {
	return f.to.ListProfiles(ctx)
}

func (f dryRunResolver) DeleteProfile(ctx context.Context, name string) error {
	return f.g.unlessClosedNoAnswer(ctx, "delete instance profile "+name, func() error { return f.to.DeleteProfile(ctx, name) })
}

func (f dryRunResolver) DeleteArtifacts(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return f.g.unlessClosedNoAnswer(ctx, "delete instance profiles and launch templates of EC2NodeClass "+c.Name, func() error { return f.to.DeleteArtifacts(ctx, c) })
}

// Rehearser rehearses nothing while the gate is closed, because a launch template would be made, and says that all is well.
func (g *Gate) Rehearser(to controllers.DryRunner) controllers.DryRunner {
	return dryRunValidator{g, to}
}

type dryRunValidator struct {
	g  *Gate
	to controllers.DryRunner
}

func (r dryRunValidator) DryRun(ctx context.Context, o launch.Order) error {
	return r.g.unlessClosedNoAnswer(ctx, "rehearse "+o.String(), func() error { return r.to.DryRun(ctx, o) })
}

// Claims stores nothing while the gate is closed. A claim that would be created is answered without a name in the cluster.
func (g *Gate) Claims(to controllers.Claims) controllers.Claims { return dryRunClaims{g, to} }

type dryRunClaims struct {
	g  *Gate
	to controllers.Claims
}

func (p dryRunClaims) CreateClaim(ctx context.Context, l plan.Launch, pool cluster.Pool) (cluster.Claim, error) {
	instead := cluster.Claim{Name: "would-be-" + pool.Name, UID: "none", Pool: l.Pool, Class: l.Class, Requirements: l.Requirements,
		Labels: l.Labels, Annotations: l.Annotations, Taints: l.Taints, StartupTaints: l.Startup, Requests: l.Requests}
	return unlessClosed(ctx, p.g, fmt.Sprintf("create a NodeClaim of pool %s for %d pods", l.Pool, len(l.Pods)), instead,
		func() (cluster.Claim, error) { return p.to.CreateClaim(ctx, l, pool) })
}

func (p dryRunClaims) AdoptClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return unlessClosed(ctx, p.g, "put our finalizer on NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.AdoptClaim(ctx, c) })
}

func (p dryRunClaims) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return unlessClosed(ctx, p.g, "annotate NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.AnnotateClaim(ctx, c, set) })
}

func (p dryRunClaims) LabelClaim(ctx context.Context, c cluster.Claim, labels, annotations map[string]string) (cluster.Claim, error) {
	return unlessClosed(ctx, p.g, "label NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.LabelClaim(ctx, c, labels, annotations) })
}

func (p dryRunClaims) UnreserveClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return unlessClosed(ctx, p.g, "label NodeClaim "+c.Name+" as on-demand", c, func() (cluster.Claim, error) { return p.to.UnreserveClaim(ctx, c) })
}

func (p dryRunClaims) WriteClaimStatus(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return unlessClosed(ctx, p.g, "write the status of NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.WriteClaimStatus(ctx, c) })
}

func (p dryRunClaims) DeleteClaim(ctx context.Context, c cluster.Claim) error {
	return p.g.unlessClosedNoAnswer(ctx, "delete NodeClaim "+c.Name, func() error { return p.to.DeleteClaim(ctx, c) })
}

func (p dryRunClaims) ReleaseClaim(ctx context.Context, c cluster.Claim) error {
	return p.g.unlessClosedNoAnswer(ctx, "take the finalizer off NodeClaim "+c.Name, func() error { return p.to.ReleaseClaim(ctx, c) })
}
