package provision

import (
	"context"
	"sync"

	"golang.org/x/sync/singleflight"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/nodeclaim/launch"
)

// orderChooser chooses what the launches of one pass ask EC2 for. It may be used by several goroutines: an offering
// that one learns to be unavailable, and an address that one takes, no other counts on.
type orderChooser struct {
	p *Controller
	s cluster.Snapshot // read only

	reading     singleflight.Group // of classes; no lock is held while a port is asked
	mu          sync.Mutex
	unavailable []instancetypes.UnavailableOffering
	classes     map[string]*awsv1.EC2NodeClass
	market      func(cluster.Pool) []instancetypes.Type // what a pool can buy; nil if nobody asked yet
	reckoned    int                                     // how many unavailable offerings it reckons with
	coming      subnetAddresses                         // what launches of this pass take

	ordering sync.Mutex // held while an order is chosen
}

func newOrderChooser(c *Controller, s cluster.Snapshot) *orderChooser {
	return &orderChooser{p: c, s: s, unavailable: append([]instancetypes.UnavailableOffering(nil), s.Unavailable...),
		classes: map[string]*awsv1.EC2NodeClass{},
		coming:  subnetAddresses{nodes: map[string]int64{}, pods: map[string]int64{}}}
}

// launchTarget is a claim that an order is to be chosen for, or a batch that the claim stands for.
type launchTarget struct {
	claim  cluster.Claim
	batch  cluster.Batch
	class  *awsv1.EC2NodeClass
	mayRun bool // it may have been launched already
}

// chooseOrder chooses what to ask for, and counts the addresses that it may take until back is called. It does so for
// one after the other: each must know what the one before takes.
func (o *orderChooser) chooseOrder(w launchTarget) (order launch.Order, back func([]cluster.Instance), err error) {
	o.ordering.Lock()
	defer o.ordering.Unlock()
	order, err = o.chooseTypes(w, o.typesFor(w.claim))
	if w.mayRun && cannotLaunch(err) {
		// Its instance may run already, without its knowing. The request with its token brings it back, whatever is
		// unavailable by now.
		order, err = o.chooseTypes(w, o.withoutUnavailable(nil)(o.poolOf(w.claim)))
	}
	if err != nil {
		return order, nil, err
	}
	return order, o.reserveAddresses(order), nil
}

func (o *orderChooser) chooseTypes(w launchTarget, types []instancetypes.Type) (launch.Order, error) {
	resolved, ok := o.s.ClassOf(w.claim.ClassKey())
	if !ok {
		return launch.Order{}, &launch.NotReadyError{Class: w.claim.Class, Why: "it does not exist"}
	}
	return launch.ChooseOrder(launch.Input{Claim: w.claim, Batch: w.batch, Class: w.class, Resolved: resolved,
		Cluster: o.p.Cluster, Types: types,
		Addresses: o.freeAddresses(resolved), RelaxMinValues: o.p.Rules.RelaxMinValues})
}

func (o *orderChooser) typeOf(c cluster.Claim, name string) (instancetypes.Type, bool) {
	for _, t := range o.typesFor(c) {
		if t.Name == name {
			return t, true
		}
	}
	return instancetypes.Type{}, false
}

// typesFor returns what the claim's pool can buy under the overlays. The catalog is resolved again only after
// new ones are unavailable.
func (o *orderChooser) typesFor(c cluster.Claim) []instancetypes.Type {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.market == nil || o.reckoned != len(o.unavailable) {
		o.reckoned, o.market = len(o.unavailable), o.withoutUnavailable(o.unavailable)
	}
	return o.market(o.poolOf(c))
}

// withoutUnavailable returns a function that lists the types that pools can buy without unavailable offerings.
func (o *orderChooser) withoutUnavailable(unavailable []instancetypes.UnavailableOffering) func(
	cluster.Pool) []instancetypes.Type {
	return overlays.ByPool(o.s, func(name string) []instancetypes.Type {
		class, found := o.s.ClassOf(name)
		if !found {
			return nil
		}
		return instancetypes.ResolveTypes(o.s.Catalog, class, unavailable, o.p.Now())
	})
}

// poolOf returns the claim's pool, with the class and the revision that the claim was made with.
func (o *orderChooser) poolOf(c cluster.Claim) cluster.Pool {
	pool, _ := o.s.PoolOf(c.Pool)
	pool.Name, pool.Class, pool.Revision = c.Pool, c.Class, c.Annotations[v1.AnnotationNodeRevision]
	return pool
}

// markUnavailable remembers refused offerings, here and for every other invocation.
func (o *orderChooser) markUnavailable(ctx context.Context, unavailable []instancetypes.UnavailableOffering) error {
	if len(unavailable) == 0 {
		return nil
	}
	o.mu.Lock()
	for _, u := range unavailable {
		u.Until = o.p.Now().Add(o.p.UnavailableFor)
		o.unavailable = append(o.unavailable, u)
	}
	o.mu.Unlock()
	return o.p.Unavailable.MarkUnavailable(ctx, unavailable, o.p.UnavailableFor)
}

// knownUnavailable returns what was unavailable before the pass, and what it was refused.
func (o *orderChooser) knownUnavailable() []instancetypes.UnavailableOffering {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]instancetypes.UnavailableOffering(nil), o.unavailable...)
}

// readClass reads the class of the claim once, for all that ask meanwhile: as the revision keeps it that the claim is
// launched with, else as it is.
func (o *orderChooser) readClass(ctx context.Context, c cluster.Claim) (*awsv1.EC2NodeClass, error) {
	key := c.ClassKey()
	o.mu.Lock()
	known := o.classes[key]
	o.mu.Unlock()
	if known != nil {
		return known, nil
	}
	read, err, _ := o.reading.Do(key, func() (any, error) {
		if key != c.Class && o.p.Rollouts != nil {
			return o.p.Rollouts.ReadRevision(ctx, c.Class, c.Annotations[v1.AnnotationNodeRevision])
		}
		return o.p.Read.ReadClass(ctx, c.Class)
	})
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.classes[key] = read.(*awsv1.EC2NodeClass)
	return o.classes[key], nil
}
