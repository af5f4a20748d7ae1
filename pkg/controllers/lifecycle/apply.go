package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// refusalEvery is the shortest time between two events that EC2 refuses to end an instance.
const refusalEvery = 10 * time.Minute

// objectIndex finds the objects of a snapshot. It is read by all workers of a pass.
type objectIndex struct {
	claims map[string]cluster.Claim
	nodes  map[string]cluster.Node
	pods   map[string]*cluster.Pod
	pools  map[string]cluster.Pool
}

func newIndex(s cluster.Snapshot) *objectIndex {
	x := &objectIndex{claims: lists.Index(s.Claims, func(c cluster.Claim) string { return c.Name }),
		nodes: lists.Index(s.Nodes, func(n cluster.Node) string { return n.Name }),
		pools: lists.Index(s.Pools, func(p cluster.Pool) string { return p.Name }),
		pods:  make(map[string]*cluster.Pod, len(s.Pods))}
	for i := range s.Pods { // a large cluster has many
		x.pods[s.Pods[i].Key()] = &s.Pods[i]
	}
	return x
}

// actionWorker carries out the actions on one object. It keeps the claim as last written, for the next write's
// precondition.
type actionWorker struct {
	*objectIndex
	l       *Controller
	told    *podEvents // which nothing waits for before the end of the pass
	written cluster.Claim
}

// claimNamed is the claim of that name as it was read, or as last written.
func (w *actionWorker) claimNamed(name string) cluster.Claim {
	if w.written.Name == name && name != "" {
		return w.written
	}
	return w.claims[name]
}

// applyAction carries out one action.
func (w *actionWorker) applyAction(ctx context.Context, a plan.Action) error {
	if a.Do != plan.WriteStatus && a.Do != plan.Evict && a.Do != plan.Tell {
		w.l.Log.Info(a.String())
	}
	claim, node := w.claimNamed(a.Claim), w.nodes[a.Node]
	switch a.Do {
	case plan.WriteStatus:
		return w.writeStatus(ctx, claim, a)
	case plan.SetDeadline:
		return w.setDeadline(ctx, claim, a)
	case plan.NoteFailedLaunch:
		return w.l.Failures.NoteFailedLaunch(ctx, claim.Class, a.Instance, a.Why)
	case plan.NoteMissing, plan.NoteUseless:
		_, err := w.l.Failures.NoteUnusedNodes(ctx, a.Unused, nil)
		return err
	case plan.LeaveNode:
		return w.annotateClaim(ctx, claim, map[string]string{v1.AnnotationReplaceRequested: a.Leave})
	case plan.DeleteClaim:
		w.l.RecordOrLog(ctx, cluster.Event{Kind: "NodeClaim", Name: claim.Name, UID: claim.UID, Reason: "Disrupted",
			Message: a.Reason + ": " + a.Why})
		return w.l.Claims.DeleteClaim(ctx, claim)
	case plan.ReleaseClaim:
		return w.l.Claims.ReleaseClaim(ctx, claim)
	case plan.RegisterNode:
		return w.l.Nodes.RegisterNode(ctx, node, claim)
	case plan.InitializeNode:
		return w.l.Nodes.InitializeNode(ctx, node)
	case plan.Unreserve: // the claim last: it is what the next pass goes by
		if err := w.l.Nodes.UnreserveNode(ctx, node); err != nil {
			return err
		}
		return w.keepClaim(w.l.Claims.UnreserveClaim(ctx, claim))
	case plan.OpenNode:
		return w.l.Holds.OpenNode(ctx, node)
	case plan.TaintNode:
		return w.l.Nodes.TaintNode(ctx, node)
	case plan.TaintForTermination, plan.ExcludeNode:
		return w.l.Nodes.TaintForTermination(ctx, node)
	case plan.DeleteNode:
		return w.l.Nodes.DeleteNode(ctx, node)
	case plan.ReleaseNode:
		return w.l.Nodes.ReleaseNode(ctx, node)
	case plan.Terminate:
		return w.recordRefusal(ctx, claim, w.l.Instances.TerminateInstances(ctx, []string{a.Instance}))
	case plan.StopInstance:
		return w.recordRefusal(ctx, claim, w.l.Instances.StopInstances(ctx, []string{a.Instance}))
	case plan.TagInstance:
		return w.tagInstance(ctx, claim, a)
	case plan.AdoptClaim:
		return w.adoptClaim(ctx, claim, a)
	case plan.CountPool:
		return w.l.Pools.CountPool(ctx, a.Pool, a.Has)
	case plan.Registrations:
		return w.l.Pools.RecordRegistrations(ctx, a.Pool, a.Outcomes)
	case plan.NoteShifts:
		return w.l.Pools.NoteShifts(ctx, a.Pool, a.Zones)
	case plan.Tell:
		return w.recordAction(ctx, claim, node, a)
	case plan.Evict, plan.DeletePod:
		return w.removePod(ctx, a)
	}
	return fmt.Errorf("action %q is unknown", a.Do)
}

func (w *actionWorker) setDeadline(ctx context.Context, c cluster.Claim, a plan.Action) error {
	w.l.RecordOrLog(ctx, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true,
		Reason: a.Reason, Message: a.Why})
	return w.annotateClaim(ctx, c, map[string]string{
		v1.AnnotationTerminationTimestamp: a.Deadline.UTC().Format(time.RFC3339)})
}

func (w *actionWorker) adoptClaim(ctx context.Context, c cluster.Claim, a plan.Action) error {
	c.Labels = maps.Clone(c.Labels)
	maps.Copy(c.Labels, a.Labels)
	return w.keepClaim(w.l.Claims.AdoptClaim(ctx, c))
}

// recordRefusal says on the claim that EC2 refuses to end or stop its instance, and what to do about it. It returns
// err.
func (w *actionWorker) recordRefusal(ctx context.Context, c cluster.Claim, err error) error {
	no, refused := errors.AsType[interface {
		error
		Refusal() (reason, message string)
	}](err)
	if !refused || c.Name == "" {
		return err
	}
	reason, message := no.Refusal()
	w.l.RecordOrLog(ctx, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true, Reason: reason,
		Message: message, Every: refusalEvery})
	if have := c.Condition(v1.ConditionInstanceTerminating); have.Status == "False" && have.Reason == reason {
		return err
	}
	return errors.Join(err, w.writeStatus(ctx, c, plan.Action{Do: plan.WriteStatus, Claim: c.Name,
		Conditions: []cluster.Condition{{Type: v1.ConditionInstanceTerminating, Status: "False", Reason: reason,
			Message: message}}}))
}

// tagInstance names the instance after its node, and notes on the claim that it has its tags.
func (w *actionWorker) tagInstance(ctx context.Context, claim cluster.Claim, a plan.Action) error {
	if err := w.l.Instances.TagInstance(ctx, a.Instance, a.Node, a.Claim); err != nil {
		return err
	}
	claim.Version = "" // the instance has its name, whatever else happened to the claim meanwhile
	return w.annotateClaim(ctx, claim, map[string]string{awsv1.AnnotationInstanceTagged: "true",
		awsv1.AnnotationClusterNameTagged: "true"})
}

func (w *actionWorker) removePod(ctx context.Context, a plan.Action) error {
	found, ok := w.pods[a.Pod]
	if !ok {
		return nil
	}
	pod := *found
	about := cluster.Event{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}
	if a.Do == plan.DeletePod {
		about.Reason, about.Message = "Disrupted", a.Why
		w.told.recordOnce(pod.NodeName, about)
		return w.l.Pods.DeletePod(ctx, pod, a.GraceSec)
	}
	e, err := w.l.Pods.EvictPod(ctx, pod)
	w.noteEviction(e, err, a.Claim)
	switch {
	case err != nil || e.Outcome == cluster.Gone:
		return err
	case e.Outcome == cluster.Refused:
		w.l.Refusals.addRefusal(pod.UID, w.claims[a.Claim].Deleting, w.l.Now())
		w.l.Log.Info(a.String(), "outcome", "refused", "why", e.Message)
		about.Reason, about.Message, about.Warning = "FailedDraining", e.Message, true
	default:
		w.l.Refusals.forgetPod(pod.UID)
		w.l.Log.Info(a.String(), "outcome", "evicted")
		about.Reason, about.Message = "Evicted", "Evicted pod: "+disruptionReason(w.claims[a.Claim])
	}
	w.told.recordOnce(pod.NodeName, about)
	return nil
}

// noteEviction counts what the API server answered, by the code that stands for it.
func (w *actionWorker) noteEviction(e cluster.Eviction, err error, claim string) {
	code := http.StatusOK
	switch {
	case err != nil:
		code = http.StatusInternalServerError
	case e.Outcome == cluster.Gone:
		code = http.StatusNotFound
	case e.Outcome == cluster.Refused:
		code = http.StatusTooManyRequests
	}
	w.l.Series.NoteEviction(code, disruptionReason(w.claims[claim]))
}

// disruptionReason returns the reason for which the claim goes, as Karpenter says it.
func disruptionReason(c cluster.Claim) string {
	if k := c.Condition(v1.ConditionDisruptionReason); k.Status == "True" {
		return k.Reason
	}
	return "Forceful Termination"
}

func (w *actionWorker) writeStatus(ctx context.Context, c cluster.Claim, a plan.Action) error {
	news := false
	for _, k := range a.Conditions {
		if k.Since.IsZero() {
			k.Since = w.l.Now()
		}
		if k.Reason == "" {
			k.Reason = k.Type
		}
		if have := c.Condition(k.Type); have.Status != k.Status || have.Reason != k.Reason {
			news = true
		}
		c.Conditions = cluster.WithCondition(c.Conditions, k)
	}
	if news {
		w.l.Log.Info(a.String())
	}
	if a.NodeName != "" || a.NoNode {
		c.NodeName = a.NodeName
	}
	return w.keepClaim(w.l.Claims.WriteClaimStatus(ctx, c))
}

func (w *actionWorker) annotateClaim(ctx context.Context, c cluster.Claim, set map[string]string) error {
	return w.keepClaim(w.l.Claims.AnnotateClaim(ctx, c, set))
}

// keepClaim remembers the claim as written.
func (w *actionWorker) keepClaim(written cluster.Claim, err error) error {
	if err == nil {
		w.written = written
	}
	return err
}

// recordAction writes the event of an action, on its pool, its node or else on its claim. Only that one on a pool
// cannot be written is an error: what was told there is noted after it.
func (w *actionWorker) recordAction(ctx context.Context, c cluster.Claim, n cluster.Node, a plan.Action) error {
	e := cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: a.Warning, Reason: a.Reason,
		Message: a.Why, Every: a.Every}
	if a.Pool != "" {
		e.Kind, e.Name, e.UID = "NodePool", a.Pool, w.pools[a.Pool].UID
		return w.l.Record.RecordEvent(ctx, e)
	}
	if a.Node != "" {
		e.Kind, e.Name, e.UID = "Node", n.Name, n.UID
	}
	w.l.RecordOrLog(ctx, e)
	return nil
}
