package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/install"
)

// Where the objects are served that carry finalizers of ours.
const (
	claims  = "/apis/karpenter.sh/v1/nodeclaims"
	classes = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
	nodes   = "/api/v1/nodes"
)

// looksPerWake spares lifecycle, which does all there is to do each time, and queues what comes meanwhile.
const looksPerWake = 10

// longestRest is between two removals of leftovers.
const longestRest = 5 * time.Second

// RemoveFromCluster takes Joiner's hold off the cluster when its stack is deleted. With drain it ends all nodes first,
// within the time given. May be repeated.
func (s *Setup) RemoveFromCluster(ctx context.Context, drain bool, within time.Duration) error {
	until := s.Now().Add(s.IAMDelay)
	if s.Cluster == nil || s.Access.IsGone() {
		s.Log.Info("the cluster is gone, and everything in it with it", "status", s.Access.Status)
		if drain && !s.Observe {
			return s.removeLeftovers(ctx, until)
		}
		return nil
	}
	if err := s.reachCluster(ctx); err != nil {
		return fmt.Errorf("%w. Mend that and delete the stack again, or leave finalizers, webhook and nodes as they are: "+
			"aws cloudformation delete-stack --stack-name STACK --retain-resources LOGICAL-ID-OF-SetupResource", err)
	}
	if err := s.removeWebhook(ctx); err != nil {
		return err
	}
	// The finalizers and NodeClaims of a Karpenter that works here look like ours, and are not ours to touch.
	holder, err := s.karpenterLeader(ctx)
	if err != nil {
		return err
	}
	if s.Observe || holder != "" {
		s.Log.Info("nodes, NodeClaims and finalizers stay as they are", "observe", s.Observe, "leader", holder)
		return s.removePriority(ctx)
	}
	if !drain {
		if err := s.releaseNodes(ctx); err != nil {
			return err
		}
		return s.removePriority(ctx)
	}
	if err := s.drainNodes(ctx, within); err != nil {
		return err
	}
	if err := s.removePriority(ctx); err != nil { // lifecycle needs it to drain
		return err
	}
	return s.removeLeftovers(ctx, until)
}

// removeWebhook removes the webhook of push, since nobody answers any more. One that somebody else installed is his: it
// lets everything through that nobody answers.
func (s *Setup) removeWebhook(ctx context.Context) error {
	if s.External {
		return nil
	}
	s.Push = install.Address{}
	_, err := s.applyWebhook(ctx)
	return err
}

// removeLeftovers deletes what launches left in the account, and again until no refresh can run any more that would
// make it anew: IAM deletes no role that an instance profile holds.
func (s *Setup) removeLeftovers(ctx context.Context, until time.Time) error {
	for {
		if err := s.Leftovers.RemoveLeftovers(ctx); err != nil {
			return fmt.Errorf("remove instance profiles and launch templates: %w", err)
		}
		rest := until.Sub(s.Now())
		if rest <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(min(rest, longestRest)):
		}
	}
}

// releaseNodes leaves the nodes running and takes our finalizers off, so that nothing waits for a function that is
// gone. What is being deleted goes at once then, and its instance stays: such are named in the log. NodeClaims and
// nodes of other providers have the same finalizer and stay as they are.
func (s *Setup) releaseNodes(ctx context.Context) error {
	foreign, err := s.listForeignClaims(ctx)
	if err != nil {
		return err
	}
	for _, of := range []struct {
		path, finalizer string
		ours            func(*unstructured.Unstructured) bool
	}{
		{claims, karpv1.FinalizerTermination, isOurClaim},
		{nodes, karpv1.FinalizerTermination, foreign.leavesNode},
		{classes, awsv1.FinalizerTermination, func(*unstructured.Unstructured) bool { return true }},
	} {
		var held []*unstructured.Unstructured
		err := s.Cluster.List(ctx, of.path, func(o *unstructured.Unstructured) error {
			if slices.Contains(o.GetFinalizers(), of.finalizer) && of.ours(o) {
				held = append(held, o)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, o := range held {
			if err := s.removeFinalizer(ctx, of.path+"/"+o.GetName(), o, of.finalizer); err != nil {
				return err
			}
		}
		s.Log.Info("took finalizers off", "path", of.path, "objects", len(held))
	}
	return nil
}

// isOurClaim reports whether the NodeClaim has an EC2NodeClass. Others belong to other providers, such as EKS Auto
// Mode.
func isOurClaim(o *unstructured.Unstructured) bool {
	group, _, _ := unstructured.NestedString(o.Object, "spec", "nodeClassRef", "group")
	kind, _, _ := unstructured.NestedString(o.Object, "spec", "nodeClassRef", "kind")
	return group == awsv1.Group && kind == awsv1.EC2NodeClassKind
}

// labelComputeType is the label that EKS Auto Mode gives its nodes.
const labelComputeType = "eks.amazonaws.com/compute-type"

// foreignClaims are the NodeClaims of other providers, by their names and by the provider ids of their nodes.
type foreignClaims struct{ names, providerIDs map[string]bool }

func (s *Setup) listForeignClaims(ctx context.Context) (foreignClaims, error) {
	f := foreignClaims{names: map[string]bool{}, providerIDs: map[string]bool{}}
	err := s.Cluster.List(ctx, claims, func(o *unstructured.Unstructured) error {
		if isOurClaim(o) {
			return nil
		}
		f.names[o.GetName()] = true
		if id, _, _ := unstructured.NestedString(o.Object, "status", "providerID"); id != "" {
			f.providerIDs[id] = true
		}
		return nil
	})
	return f, err
}

// leavesNode reports whether no other provider has the node.
func (f foreignClaims) leavesNode(o *unstructured.Unstructured) bool {
	id, _, _ := unstructured.NestedString(o.Object, "spec", "providerID")
	if f.providerIDs[id] || o.GetLabels()[labelComputeType] != "" {
		return false
	}
	return !slices.ContainsFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool {
		return r.Kind == karpv1.NodeClaimKind && f.names[r.Name]
	})
}

// removeFinalizer takes one finalizer off an object, whatever others do to it meanwhile.
func (s *Setup) removeFinalizer(ctx context.Context, path string, o *unstructured.Unstructured,
	finalizer string) error {
	if o.GetDeletionTimestamp() != nil {
		s.Log.Warn("let go of an object that is being deleted; look for its instance", "path", path)
	}
	const tries = 5
	for try := 1; ; try++ {
		rest := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == finalizer })
		err := s.Cluster.Patch(ctx, path, map[string]any{"metadata": map[string]any{"finalizers": rest,
			"resourceVersion": o.GetResourceVersion()}})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) || try == tries {
			return err
		}
		found := false
		if o, found, err = s.Cluster.Get(ctx, path); err != nil || !found ||
			!slices.Contains(o.GetFinalizers(), finalizer) {
			return err
		}
	}
}

// drainNodes deletes every NodeClaim of ours and waits until lifecycle has drained and ended the nodes, at most for the
// time given; then it does what keep does for what is left, the classes. Its error names the claims that were not done.
func (s *Setup) drainNodes(ctx context.Context, within time.Duration) error {
	looks := 0
	err := s.pollUntil(ctx, within, func(ctx context.Context) (error, bool, error) {
		left, err := s.deleteClaims(ctx)
		if err != nil || len(left) == 0 {
			return nil, err == nil, err
		}
		if looks%looksPerWake == 0 {
			if err := s.Lifecycle.Wake(ctx); err != nil {
				return nil, false, err
			}
		}
		looks++
		return unfinishedNames(left, within), false, nil
	})
	if err != nil {
		return err
	}
	return s.releaseNodes(ctx)
}

// deleteClaims deletes our claims that nobody deletes yet, and returns all of ours with what holds them.
func (s *Setup) deleteClaims(ctx context.Context) (left []string, err error) {
	var fresh []string
	err = s.Cluster.List(ctx, claims, func(o *unstructured.Unstructured) error {
		if !isOurClaim(o) {
			return nil
		}
		line := o.GetName()
		if o.GetDeletionTimestamp() == nil {
			fresh = append(fresh, o.GetName())
		} else if state, done := conditionText(o, karpv1.ConditionDrained); state != "" && !done {
			line += " (" + state + ")"
		}
		left = append(left, line)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range fresh {
		if err := s.Cluster.Delete(ctx, claims+"/"+name); err != nil {
			return nil, err
		}
	}
	return left, nil
}

func unfinishedNames(left []string, within time.Duration) error {
	const named = 10
	some := left[:min(named, len(left))]
	return fmt.Errorf("%d NodeClaims are not drained within %s: %s. Look at their events, mend what blocks them (a PodDisruptionBudget, "+
		"a pod with do-not-disrupt) and delete the stack again, or deploy it with onDelete=keep first", len(left),
		within, strings.Join(some, ", "))
}
