// Package gate stands between control and the ports that change something. Open, it lets calls through; closed, it does nothing and
// says in the log what would have been done.
//
// It knows every port of control that changes the cluster or EC2. It refuses to know why it is closed, and it does not stand before
// the catalog in Joiner's own bucket, without which nothing could be decided.
package gate

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/control"
	"joiner/pkg/launch"
	"joiner/pkg/nodeclass"
	"joiner/pkg/plan"
)

// Gate decides about each call.
type Gate struct {
	// Open reports whether changes are allowed now. It is asked before every one of them; with an error none is made.
	Open func(ctx context.Context) (bool, error)
	Log  *slog.Logger
}

// through does the deed if the gate is open; else it logs the deed and answers with instead.
func through[T any](ctx context.Context, g *Gate, what string, instead T, deed func() (T, error)) (T, error) {
	open, err := g.Open(ctx)
	if err != nil {
		return instead, fmt.Errorf("%s: %w", what, err)
	}
	if open {
		return deed()
	}
	g.Log.Info("would " + what)
	return instead, nil
}

// pass is through for a deed without an answer.
func (g *Gate) pass(ctx context.Context, what string, deed func() error) error {
	_, err := through(ctx, g, what, struct{}{}, func() (struct{}, error) { return struct{}{}, deed() })
	return err
}

// Lease takes no lease while the gate is closed, and behaves as if it had.
func (g *Gate) Lease(to control.Lease) control.Lease { return lease{g, to} }

type lease struct {
	g  *Gate
	to control.Lease
}

func (l lease) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error, bool, error) {
	open, err := l.g.Open(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	if !open {
		return func(context.Context) error { return nil }, true, nil
	}
	return l.to.Acquire(ctx, name, holder, ttl)
}

// Vigil is a lease of which everybody may know who holds it.
func (g *Gate) Vigil(to control.Vigil) control.Vigil { return vigil{lease{g, to}, to} }

type vigil struct {
	lease
	control.Watchers
}

// Launcher starts no instance while the gate is closed; it answers with the cheapest that it would have asked for.
func (g *Gate) Launcher(to control.Launcher) control.Launcher { return launcher{g, to} }

type launcher struct {
	g  *Gate
	to control.Launcher
}

func (l launcher) Launch(ctx context.Context, o launch.Order, token string) (cluster.Instance, []catalog.Mark, error) {
	var marks []catalog.Mark
	i, err := through(ctx, l.g, "launch: "+o.String(), pretended(o), func() (i cluster.Instance, err error) {
		i, marks, err = l.to.Launch(ctx, o, token)
		return i, err
	})
	return i, marks, err
}

func (l launcher) LaunchBatch(ctx context.Context, o launch.Order, token string) ([]cluster.Instance, []catalog.Mark, error) {
	var marks []catalog.Mark
	list, err := through(ctx, l.g, "launch: "+o.String(), slices.Repeat([]cluster.Instance{pretended(o)}, o.Count()), func() (got []cluster.Instance, err error) {
		got, marks, err = l.to.LaunchBatch(ctx, o, token)
		return got, err
	})
	return list, marks, err
}

// pretended is the instance that the order asks for first.
func pretended(o launch.Order) cluster.Instance {
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
func (g *Gate) Instances(to control.Instances) control.Instances { return instances{g, to} }

type instances struct {
	g  *Gate
	to control.Instances
}

func (i instances) Instances(ctx context.Context) ([]cluster.Instance, error) {
	return i.to.Instances(ctx)
}

func (i instances) Terminate(ctx context.Context, ids []string) error {
	return i.g.pass(ctx, fmt.Sprintf("terminate instances %v", ids), func() error { return i.to.Terminate(ctx, ids) })
}

func (i instances) Name(ctx context.Context, id, node, claim string) error {
	return i.g.pass(ctx, "tag instance "+id+" with the names "+node+" and "+claim, func() error { return i.to.Name(ctx, id, node, claim) })
}

func (i instances) SweepTemplates(ctx context.Context, age time.Duration) (int, error) {
	return through(ctx, i.g, "delete launch templates older than "+age.String(), 0, func() (int, error) { return i.to.SweepTemplates(ctx, age) })
}

// SoldOut still lists marks while the gate is closed, and adds none.
func (g *Gate) SoldOut(to control.SoldOut) control.SoldOut { return soldOut{g, to} }

type soldOut struct {
	g  *Gate
	to control.SoldOut
}

func (s soldOut) Marks(ctx context.Context) ([]catalog.Mark, error) { return s.to.Marks(ctx) }

func (s soldOut) Add(ctx context.Context, marks []catalog.Mark, d time.Duration) error {
	return s.g.pass(ctx, fmt.Sprintf("mark %d offers as sold out for %s", len(marks), d), func() error { return s.to.Add(ctx, marks, d) })
}

// Waker wakes nobody while the gate is closed: there would be nothing new to see.
func (g *Gate) Waker(to control.Waker, name string) control.Waker { return waker{g, to, name} }

type waker struct {
	g    *Gate
	to   control.Waker
	name string
}

func (w waker) Wake(ctx context.Context) error {
	return w.g.pass(ctx, "wake "+w.name, func() error { return w.to.Wake(ctx) })
}

// Watched passes the question on, which changes nothing.
func (w waker) Watched(ctx context.Context) bool {
	to, can := w.to.(control.Attended)
	return can && to.Watched(ctx)
}

// Insist passes what is urgent on, and what makes sure of it later.
func (w waker) Insist(ctx context.Context) (confirm func(context.Context) error, err error) {
	to, can := w.to.(control.Insister)
	if !can {
		return nil, w.Wake(ctx)
	}
	var sure func(context.Context) error
	if err := w.g.pass(ctx, "wake "+w.name, func() (err error) { sure, err = to.Insist(ctx); return err }); err != nil || sure == nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return w.g.pass(ctx, "make sure that "+w.name+" runs", func() error { return sure(ctx) })
	}, nil
}

// ClassFinder looks classes up while the gate is closed with another finder, one that makes nothing.
func (g *Gate) ClassFinder(to, looking control.ClassFinder) control.ClassFinder {
	return finder{g, to, looking}
}

type finder struct {
	g           *Gate
	to, looking control.ClassFinder
}

func (f finder) Find(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Found {
	if open, err := f.g.Open(ctx); err != nil || !open {
		return f.looking.Find(ctx, c) // an error is met again where the outcome is written
	}
	return f.to.Find(ctx, c)
}

func (f finder) Profiles(ctx context.Context) ([]nodeclass.Profile, error) { return f.to.Profiles(ctx) }

func (f finder) DeleteProfile(ctx context.Context, name string) error {
	return f.g.pass(ctx, "delete instance profile "+name, func() error { return f.to.DeleteProfile(ctx, name) })
}

func (f finder) Forget(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return f.g.pass(ctx, "delete instance profiles and launch templates of EC2NodeClass "+c.Name, func() error { return f.to.Forget(ctx, c) })
}

// Rehearser rehearses nothing while the gate is closed, because a launch template would be made, and says that all is well.
func (g *Gate) Rehearser(to control.Rehearser) control.Rehearser { return rehearser{g, to} }

type rehearser struct {
	g  *Gate
	to control.Rehearser
}

func (r rehearser) Rehearse(ctx context.Context, o launch.Order) error {
	return r.g.pass(ctx, "rehearse "+o.String(), func() error { return r.to.Rehearse(ctx, o) })
}

// Claims stores nothing while the gate is closed. A claim that would be created is answered without a name in the cluster.
func (g *Gate) Claims(to control.Claims) control.Claims { return claims{g, to} }

type claims struct {
	g  *Gate
	to control.Claims
}

func (p claims) CreateClaim(ctx context.Context, l plan.Launch, pool cluster.Pool) (cluster.Claim, error) {
	instead := cluster.Claim{Name: "would-be-" + pool.Name, UID: "none", Pool: l.Pool, Class: l.Class, Requirements: l.Requirements,
		Labels: l.Labels, Annotations: l.Annotations, Taints: l.Taints, StartupTaints: l.Startup, Requests: l.Requests}
	return through(ctx, p.g, fmt.Sprintf("create a NodeClaim of pool %s for %d pods", l.Pool, len(l.Pods)), instead,
		func() (cluster.Claim, error) { return p.to.CreateClaim(ctx, l, pool) })
}

func (p claims) AdoptClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return through(ctx, p.g, "put our finalizer on NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.AdoptClaim(ctx, c) })
}

func (p claims) AnnotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) (cluster.Claim, error) {
	return through(ctx, p.g, "annotate NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.AnnotateClaim(ctx, c, set) })
}

func (p claims) LabelClaim(ctx context.Context, c cluster.Claim, labels, annotations map[string]string) (cluster.Claim, error) {
	return through(ctx, p.g, "label NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.LabelClaim(ctx, c, labels, annotations) })
}

func (p claims) UnreserveClaim(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return through(ctx, p.g, "label NodeClaim "+c.Name+" as on-demand", c, func() (cluster.Claim, error) { return p.to.UnreserveClaim(ctx, c) })
}

func (p claims) WriteClaimStatus(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return through(ctx, p.g, "write the status of NodeClaim "+c.Name, c, func() (cluster.Claim, error) { return p.to.WriteClaimStatus(ctx, c) })
}

func (p claims) DeleteClaim(ctx context.Context, c cluster.Claim) error {
	return p.g.pass(ctx, "delete NodeClaim "+c.Name, func() error { return p.to.DeleteClaim(ctx, c) })
}

func (p claims) ReleaseClaim(ctx context.Context, c cluster.Claim) error {
	return p.g.pass(ctx, "take the finalizer off NodeClaim "+c.Name, func() error { return p.to.ReleaseClaim(ctx, c) })
}
