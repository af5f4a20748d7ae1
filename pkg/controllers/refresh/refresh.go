package refresh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

// Limits of a refresh.
const (
	conflictTries = 3 // of one class, which somebody else changes at the same time
	namesInEvent  = 5
)

const collectEvery = 30 * time.Minute

// Controller keeps the catalog and the status of classes, pools, overlays and buffers up to date. Each part is done
// whether or not the others fail.
type Controller struct {
	controllers.Deps

	Finder   ClassFinder // nil where the cluster could not be found out about: only the catalog is refreshed then
	Classes  Classes
	Pools    Pools
	Nodes    NodeLister
	Market   CatalogRefresher
	Overlays Overlays
	Buffers  controllers.Buffers
	Prices   controllers.CatalogReader
	Rehearse DryRunner                                        // nil: launches are not rehearsed
	Preview  ClassLookup                                      // looks classes up for a pass that may not write
	Cluster  launch.Cluster                                   // its CA bundle is part of the classes' drift hash
	Pause    func(ctx context.Context, d time.Duration) error // nil: as long as it says
	Every    time.Duration                                    // its schedule
	Deployed time.Time                                        // when the stack was, zero for not known

	unsure map[string]bool // classes that are not ready because EC2 did not say anything
}

// Run does all of it once. Classes and pools come first: a new class waits for them. Each part has its share of the
// time, so that a service which does not answer keeps none from the others; what it kept back the next refresh does.
func (r *Controller) Run(ctx context.Context) (err error) {
	ctx, end := controllers.LeaveTimeToEnd(controllers.BeginPass(ctx, r.Permission))
	defer end()
	if why := nodeclass.UnsupportedReason(r.Cluster.Version); r.Finder != nil && why != "" {
		r.Log.Error(why + ": upgrade Joiner, or look for surprises")
	}
	if r.Finder != nil {
		err = r.doPart(ctx, "classes and NodePools", func(ctx context.Context) error {
			return r.refreshObjects(ctx, func(*awsv1.EC2NodeClass) bool { return true })
		})
	}
	did := ""
	marketErr := r.doPart(ctx, "the catalog", func(ctx context.Context) (err error) {
		did, err = r.Market.Refresh(ctx)
		return err
	})
	if did != "" {
		r.Log.Info(did)
	}
	if r.Finder != nil {
		for _, part := range []func(context.Context) error{r.refreshUncertain, r.refreshOverlays, r.refreshBuffers,
			r.measureFleet} {
			err = errors.Join(err, r.doPart(ctx, "overlays, buffers or the fleet", part))
		}
	}
	return errors.Join(err, marketErr)
}

// doPart does a part of the refresh within half of the time left.
func (r *Controller) doPart(ctx context.Context, about string, part func(context.Context) error) error {
	ctx, end := controllers.ShareTime(ctx, 2)
	defer end()
	return r.Shield().Do(about, func() error { return part(ctx) })
}

// refreshObjects refreshes classes, or only those of them that are wanted, and then the pools by what the classes have
// become.
func (r *Controller) refreshObjects(ctx context.Context, wanted func(*awsv1.EC2NodeClass) bool) error {
	profiles, profilesErr := r.listProfiles(ctx) // before classes and claims: one that is made meanwhile is not seen
	classes, err := r.Classes.ListClasses(ctx)
	if err != nil {
		return err
	}
	// after the classes: nothing is launched with a class that is seen as deleted
	claims, err := r.Pools.ListClaims(ctx)
	if err != nil {
		return err
	}
	pools, poolsErr := r.Pools.ListPools(ctx)
	nodes, nodesErr := r.listNodes(ctx, claims)
	errs, k := []error{poolsErr, nodesErr}, clusterObjects{claims, pools, nodes}
	for i := range classes {
		if !wanted(&classes[i]) {
			continue
		}
		c := &classes[i] // as it was, where that fails
		inTime, end := controllers.ShareTime(ctx, len(classes)-i+1)
		err := r.Shield().Do("EC2NodeClass "+c.Name, func() error {
			after, err := r.refreshWithRetries(inTime, c, k)
			c = after
			return err
		})
		end()
		if err != nil {
			errs = append(errs, fmt.Errorf("refresh EC2NodeClass %s: %w", classes[i].Name, err))
		}
		classes[i] = *c
	}
	errs = append(errs, r.refreshPools(ctx, classes, k), profilesErr)
	for _, name := range nodeclass.UnusedProfiles(profiles, classes, claims, r.Now()) {
		may, err := controllers.MayBegin(ctx, r.Log, "delete instance profile "+name)
		if err != nil || !may {
			errs = append(errs, err)
			continue
		}
		inTime, end := controllers.ShareTime(ctx, 2)
		err = r.Finder.DeleteProfile(inTime, name)
		end()
		r.Log.Info("instance profile "+name+" is used no more and deleted", "error", err)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// listProfiles lists the instance profiles in the first refresh of each half hour: collecting them is not urgent, and
// IAM takes few calls.
func (r *Controller) listProfiles(ctx context.Context) ([]nodeclass.Profile, error) {
	if now := r.Now(); now.Sub(now.Truncate(collectEvery)) >= r.Every {
		return nil, nil
	}
	ctx, end := controllers.ShareTime(ctx, 4)
	defer end()
	return r.Finder.ListProfiles(ctx)
}

// clusterObjects holds the other objects of the cluster.
type clusterObjects struct {
	claims []cluster.Claim
	pools  []v1.NodePool
	nodes  []cluster.Node
}

// listNodes lists the nodes, if there can be one that something is learned from.
func (r *Controller) listNodes(ctx context.Context, claims []cluster.Claim) ([]cluster.Node, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	return r.Nodes.ListNodes(ctx)
}

// refreshWithRetries refreshes one class, anew when somebody else changed it meanwhile. It returns the class as it is
// stored.
func (r *Controller) refreshWithRetries(ctx context.Context, c *awsv1.EC2NodeClass,
	k clusterObjects) (*awsv1.EC2NodeClass, error) {
	for try := 1; ; try++ {
		got, err := r.refreshClass(ctx, c, k)
		if !controllers.IsConflict(err) || try == conflictTries {
			return got, err
		}
		fresh, err := r.Classes.ReadClass(ctx, c.Name)
		if controllers.IsNotFound(err) {
			return c, nil
		}
		if err != nil {
			return c, err
		}
		c = fresh
	}
}

// refreshClass writes onto the class what it stands for. A pass that may not write logs what it would write.
func (r *Controller) refreshClass(ctx context.Context, c *awsv1.EC2NodeClass, k clusterObjects,
) (*awsv1.EC2NodeClass, error) {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		if err == nil {
			controllers.LogDryRun(r.Log, r.classActions(ctx, c, k.claims)...)
		}
		return c, err
	}
	if c.DeletionTimestamp != nil {
		return c, r.releaseDeletedClass(ctx, c, k.claims)
	}
	rehashErr := r.rehashClaims(ctx, k.claims, r.classHash(c), ofClass(c))
	if errors.Is(rehashErr, controllers.ErrPermissionEnded) {
		return c, rehashErr
	}
	after, err := r.writeClass(ctx, c, k)
	return after, errors.Join(rehashErr, err)
}

// ofClass reports of claims whether they take the class's hash when the way it is made has changed.
func ofClass(c *awsv1.EC2NodeClass) func(cluster.Claim) bool {
	rehashed := c.Annotations[awsv1.AnnotationHashVersion] != c.DriftHashVersion()
	return func(claim cluster.Claim) bool {
		return claim.Class == c.Name && (rehashed || claim.Annotations[awsv1.AnnotationHashVersion] != "")
	}
}

// writeClass writes marks and status of a class that stays.
func (r *Controller) writeClass(ctx context.Context, c *awsv1.EC2NodeClass, k clusterObjects) (*awsv1.EC2NodeClass,
	error) {
	marks := r.classMarks(c)
	if !slices.Contains(c.Finalizers, awsv1.FinalizerTermination) || !hasAllOf(c.Annotations, marks) {
		marked, err := r.markClass(ctx, c, marks)
		if err != nil || marked == nil {
			return c, err
		}
		if marked.DeletionTimestamp != nil || marked.Generation != c.Generation {
			return r.refreshClass(ctx, marked, k)
		}
		c = marked
	}
	looking, end := controllers.ShareTime(ctx, 2) // the rest is for the rehearsal and for writing
	found := r.Finder.FindAll(looking, c)
	end()
	verdict, asked, err := r.dryRunClass(ctx, c, found, k.pools)
	found.Verdict, err = verdict, errors.Join(found.JoinErrors(), err)
	next := c.DeepCopy()
	changed := nodeclass.UpdateStatus(next, found, r.Now())
	r.noteUncertain(next, verdict)
	if changed {
		if failed := r.Classes.WriteClassStatus(ctx, next); failed != nil {
			return c, errors.Join(err, failed)
		}
	}
	memory, learned := nodeclass.ObserveMemory(next, k.claims, k.nodes, r.Now())
	if learned {
		marks[v1.AnnotationObservedMemory] = memory
	}
	shortfalls, short := nodeclass.ObserveShortfalls(next, k.claims, k.nodes, r.Now())
	if short {
		marks[v1.AnnotationObservedShortfalls] = shortfalls
	}
	if asked && verdict.Keep {
		marks[v1.AnnotationDryRunResult] = nodeclass.VerdictAnnotation(next, *verdict, r.Now())
	}
	if learned || short || asked && verdict.Keep {
		err = errors.Join(err, r.Classes.MarkClass(ctx, c.Name, marks))
	}
	if !changed {
		return c, err
	}
	r.Log.Info("EC2NodeClass "+c.Name, "ready", nodeclass.IsReady(next), "images", len(next.Status.AMIs), "subnets",
		len(next.Status.Subnets),
		"securityGroups", len(next.Status.SecurityGroups), "instanceProfile", next.Status.InstanceProfile)
	return next, err
}

// markClass writes finalizer and hash onto the class before anything is made for it, and reads it again, since the
// write changes its version. It returns nil when the class is gone.
func (r *Controller) markClass(ctx context.Context, c *awsv1.EC2NodeClass,
	marks map[string]string) (*awsv1.EC2NodeClass, error) {
	if own := c.Hash(r.Cluster.CABundle); marks[awsv1.AnnotationHash] != own {
		r.Log.Info("EC2NodeClass "+c.Name+" keeps its hash: nobody has edited it, the CA bundle has other bytes here",
			"kept", marks[awsv1.AnnotationHash], "own", own)
	}
	if err := r.Classes.MarkClass(ctx, c.Name, marks); err != nil {
		return nil, err
	}
	marked, err := r.Classes.ReadClass(ctx, c.Name)
	if controllers.IsNotFound(err) {
		return nil, nil
	}
	return marked, err
}

// classActions says in words what refreshClass would do.
func (r *Controller) classActions(ctx context.Context, c *awsv1.EC2NodeClass,
	claims []cluster.Claim) (actions []string) {
	if c.DeletionTimestamp != nil {
		if slices.Contains(c.Finalizers, awsv1.FinalizerTermination) {
			actions = append(actions, "release EC2NodeClass "+c.Name+" when no NodeClaim needs it")
		}
		return actions
	}
	if c.Annotations[awsv1.AnnotationHashVersion] != c.DriftHashVersion() {
		actions = append(actions, rehashActions(claims, r.classHash(c),
			func(claim cluster.Claim) bool { return claim.Class == c.Name })...)
	}
	if !slices.Contains(c.Finalizers, awsv1.FinalizerTermination) || !hasAllOf(c.Annotations, r.classMarks(c)) {
		actions = append(actions, "annotate EC2NodeClass "+c.Name)
	}
	if next := c.DeepCopy(); nodeclass.UpdateStatus(next, r.Preview.FindAll(ctx, c), r.Now()) {
		actions = append(actions, "write status of EC2NodeClass "+c.Name)
	}
	return actions
}

// classMarks are the annotations that say of which spec the class's hash is.
func (r *Controller) classMarks(c *awsv1.EC2NodeClass) map[string]string {
	marks := r.classHash(c)
	marks[v1.AnnotationHashedSpec] = c.SpecHash()
	return marks
}

func (r *Controller) classHash(c *awsv1.EC2NodeClass) map[string]string {
	return map[string]string{awsv1.AnnotationHash: c.DriftHash(r.Cluster.CABundle),
		awsv1.AnnotationHashVersion: c.DriftHashVersion()}
}

// releaseDeletedClass cleans up behind a deleted class once no NodeClaim needs it.
func (r *Controller) releaseDeletedClass(ctx context.Context, c *awsv1.EC2NodeClass, claims []cluster.Claim) error {
	if !slices.Contains(c.Finalizers, awsv1.FinalizerTermination) {
		return nil
	}
	var waiting []string
	for _, claim := range claims {
		if claim.Class == c.Name {
			waiting = append(waiting, claim.Name)
		}
	}
	if len(waiting) > 0 {
		message := "waiting for NodeClaims to end: " + firstNames(waiting)
		r.Log.Info("EC2NodeClass " + c.Name + " is " + message)
		return r.Record.RecordEvent(ctx, cluster.Event{Kind: awsv1.EC2NodeClassKind, Name: c.Name, UID: string(c.UID),
			Reason: "WaitingOnNodeClaimTermination", Message: message})
	}
	if err := r.Finder.DeleteArtifacts(ctx, c); err != nil {
		return err
	}
	if err := r.Classes.ReleaseClass(ctx, c.Name); err != nil {
		return err
	}
	r.Log.Info("EC2NodeClass " + c.Name + " is released")
	return nil
}

// hasAllOf reports whether all of want is in have.
func hasAllOf(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// firstNames lists the first names and counts the rest.
func firstNames(names []string) string {
	if len(names) <= namesInEvent {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d other(s)", strings.Join(names[:namesInEvent], ", "), len(names)-namesInEvent)
}

// refreshBuffers writes onto each buffer what it comes to. Whether there is room is provision's to say.
func (r *Controller) refreshBuffers(ctx context.Context) error {
	return controllers.WriteBufferStatuses(ctx, r.Buffers, buffers.Room{}, r.Now(), r.Log)
}
