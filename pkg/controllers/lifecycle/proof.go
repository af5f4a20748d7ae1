package lifecycle

import (
	"context"
	"maps"
	"slices"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// decideProven decides what is to be done. What takes something away is decided on the cluster and the instances as
// they are now; the instances are listed before the claims then, so that a launch in between cannot look leaked.
func (l *Controller) decideProven(ctx context.Context) (s cluster.Snapshot, next lifecycle.Plan, err error) {
	controllers.NoteStage(ctx, controllers.StageReading)
	if s, err = l.Read.CachedSnapshot(ctx); err != nil {
		return s, next, err
	}
	seen := instancesSeen{live: map[string]bool{}}
	instances, err := l.listInstances(ctx, &seen, controllers.InstanceQuery{Named: lifecycle.DoubtfulInstances(s)})
	if err != nil {
		return s, next, err
	}
	l.readInstanceStatus(ctx, instances)
	if s, next, err = l.decide(ctx, s, instances); err != nil {
		return s, next, err
	}
	if uncertain := actionsToProve(s, next.Actions); len(uncertain) > 0 {
		if query := seen.queryFor(s, uncertain); query.All || len(query.Named) > 0 {
			if instances, err = l.listInstances(ctx, &seen, query); err != nil {
				return s, next, err
			}
		}
		controllers.NoteStage(ctx, controllers.StageReading)
		if s, err = l.Read.ReadSnapshot(ctx); err != nil {
			return s, next, err
		}
		if s, next, err = l.decide(ctx, s, instances); err != nil {
			return s, next, err
		}
		seen.leaveUnproven(s, &next)
	}
	next.Actions, err = l.confirmTerminations(ctx, s, next.Actions)
	return s, next, err
}

// instancesSeen are the instances that a pass has seen as they are now.
type instancesSeen struct {
	live map[string]bool // by id
	all  bool
}

// listInstances lists the instances, those looked for as they are now.
func (l *Controller) listInstances(ctx context.Context, seen *instancesSeen, query controllers.InstanceQuery) (
	[]cluster.Instance, error) {
	controllers.NoteStage(ctx, controllers.StageInstances)
	query.Now = l.Now()
	out, err := l.Known.ListInstances(ctx, l.Instances, query)
	for _, id := range query.Named {
		seen.live[id] = true
	}
	seen.all = seen.all || query.All
	return out, err
}

// queryFor asks for what the actions are about, as far as this pass has not seen it.
func (s *instancesSeen) queryFor(snapshot cluster.Snapshot, actions []plan.Action) (query controllers.InstanceQuery) {
	index := lifecycle.NewInstanceIndex(snapshot)
	named := map[string]bool{}
	for _, a := range actions {
		ids, all := index.InstancesOf(a)
		query.All = query.All || all && !s.all
		for _, id := range ids {
			if !s.all && !s.live[id] {
				named[id] = true
			}
		}
	}
	query.Named = slices.Sorted(maps.Keys(named))
	return query
}

// leaveUnproven leaves to the next pass what became due only while this one looked, and is about instances that it has
// not seen as they are now.
func (s *instancesSeen) leaveUnproven(snapshot cluster.Snapshot, next *lifecycle.Plan) {
	if s.all {
		return
	}
	ending, index, left := endingClaims(snapshot), lifecycle.NewInstanceIndex(snapshot), len(next.Actions)
	next.Actions = slices.DeleteFunc(slices.Clone(next.Actions), func(a plan.Action) bool {
		ids, all := index.InstancesOf(a)
		return needsProof(ending, a) && (all || slices.ContainsFunc(ids, func(id string) bool { return !s.live[id] }))
	})
	next.Busy = next.Busy || len(next.Actions) < left
}

func endingClaims(s cluster.Snapshot) map[string]bool {
	ending := lists.Where(s.Claims, func(c cluster.Claim) bool { return !c.Deleting.IsZero() })
	return lists.Set(ending, func(c cluster.Claim) string { return c.Name })
}

// actionsToProve are the actions that need proof.
func actionsToProve(s cluster.Snapshot, actions []plan.Action) []plan.Action {
	ending := endingClaims(s)
	return lists.Where(actions, func(a plan.Action) bool { return needsProof(ending, a) })
}

// needsProof reports whether the action must not be taken on the word of a cache: it takes something away, or is a step
// of a claim that ends.
func needsProof(ending map[string]bool, a plan.Action) bool {
	switch a.Do {
	case plan.WriteStatus, plan.RegisterNode, plan.InitializeNode, plan.Unreserve, plan.OpenNode, plan.TagInstance,
		plan.AdoptClaim, plan.Tell:
		return ending[a.Claim] // refused when the object has changed
	case plan.CountPool, plan.Registrations, plan.NoteShifts:
		return false // counted again by every pass, or once for each claim
	}
	return true
}

// confirmTerminations leaves out the ends of instances that would not be decided if their claims, and the pods of the
// claims' nodes, were as they are stored now, and all steps of a claim of which that cannot be read. Instances without
// a claim are not asked about: they were listed before the claims.
func (l *Controller) confirmTerminations(ctx context.Context, s cluster.Snapshot, actions []plan.Action) ([]plan.Action,
	error) {
	ending := map[string]bool{}
	for _, a := range actions {
		if a.Do == plan.Terminate && a.Claim != "" {
			ending[a.Claim] = true
		}
	}
	if len(ending) == 0 {
		return actions, nil
	}
	live, unread, err := l.readLiveClaims(ctx, s, ending)
	if err != nil {
		return nil, err
	}
	for name, err := range unread {
		l.failed.AddFailure(actionSubject(plan.Action{Claim: name}), err, l.Now())
	}
	confirmed := map[string]bool{}
	for _, a := range lifecycle.Next(live).Actions {
		if a.Do == plan.Terminate {
			confirmed[a.Instance] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool {
		if unread[a.Claim] != nil {
			return true
		}
		drop := a.Do == plan.Terminate && a.Claim != "" && !confirmed[a.Instance]
		if drop {
			l.Log.Info("not done, its claim or its pods have changed: " + a.String())
		}
		return drop
	}), nil
}

// readLiveClaims returns the snapshot with these claims, and the pods of their nodes, as they are stored now. unread
// says by claim why that one cannot be read: its steps wait, and the others go on.
func (l *Controller) readLiveClaims(ctx context.Context, s cluster.Snapshot,
	claims map[string]bool) (live cluster.Snapshot, unread map[string]error, err error) {
	s.Claims = slices.Clone(s.Claims)
	looks := make([]liveLook, len(s.Claims))
	controllers.ForEach(parallelSteps, s.Claims, func(i int, c cluster.Claim) {
		if !claims[c.Name] {
			return
		}
		for _, n := range s.Nodes {
			if n.ProviderID == c.ProviderID && c.ProviderID != "" {
				looks[i].nodes = append(looks[i].nodes, n.Name)
			}
		}
		looks[i].read(ctx, l.Live, c)
	})
	if ctx.Err() != nil {
		return s, nil, ctx.Err()
	}
	unread = map[string]error{}
	nodes, pods := map[string]bool{}, []cluster.Pod(nil)
	for i, k := range looks {
		switch name := s.Claims[i].Name; {
		case k.err != nil:
			unread[name] = k.err
		case claims[name]:
			s.Claims[i] = k.claim
			pods = append(pods, k.pods...)
			for _, n := range k.nodes {
				nodes[n] = true
			}
		}
	}
	s.Pods = append(slices.DeleteFunc(slices.Clone(s.Pods), func(p cluster.Pod) bool { return nodes[p.NodeName] }),
		pods...)
	i := -1
	s.Claims = slices.DeleteFunc(s.Claims, func(cluster.Claim) bool { i++; return looks[i].gone })
	return s, unread, nil
}

// liveLook is a claim, and the pods of its nodes, as they are stored now.
type liveLook struct {
	nodes []string
	claim cluster.Claim
	gone  bool
	pods  []cluster.Pod
	err   error
}

func (k *liveLook) read(ctx context.Context, live LiveReader, was cluster.Claim) {
	found := false
	if k.claim, found, k.err = live.ReadClaim(ctx, was.Name); k.err != nil {
		return
	}
	k.gone = !found // one that was made anew under the name, as by a restore, has the instance by now or has not
	for _, name := range k.nodes {
		some, err := live.PodsOn(ctx, name)
		if k.err = err; err != nil {
			return
		}
		k.pods = append(k.pods, slices.DeleteFunc(some, cluster.Pod.Terminal)...)
	}
}
