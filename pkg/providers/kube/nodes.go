package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/nodeclass/translate"
)

// Nodes reads and writes nodes.
type Nodes struct{ *connection }

// RegisterNode makes the node the claim's: finalizer, owner, the claim's taints unless the node brought its own, the
// claim's labels and annotations, the label registered, and no unregistered taint; in one write. Repeating it changes
// nothing. A node that is gone or was replaced is a *ConflictError.
func (n Nodes) RegisterNode(ctx context.Context, node cluster.Node, claim cluster.Claim) error {
	return n.changeNode(ctx, "register", node, func(o *corev1.Node) patchFields { return registrationPatch(o, claim) })
}

// InitializeNode labels the node as initialized. A node that is gone or was replaced is a *ConflictError.
func (n Nodes) InitializeNode(ctx context.Context, node cluster.Node) error {
	return n.changeNode(ctx, "initialize", node, func(o *corev1.Node) patchFields {
		set := missingEntries(o.Labels, map[string]string{karpv1.LabelInitialized: "true"})
		if set == nil {
			return nil
		}
		return patchFields{"metadata": patchFields{"labels": set}}
	})
}

// UnreserveNode labels the node as on-demand instead of reserved. A node that is gone or was replaced is a
// *ConflictError.
func (n Nodes) UnreserveNode(ctx context.Context, node cluster.Node) error {
	return n.changeNode(ctx, "unreserve", node, func(o *corev1.Node) patchFields {
		if o.Labels[karpv1.LabelCapacityType] == instancetypes.OnDemand {
			return nil
		}
		return onDemandPatch()
	})
}

// TaintForTermination taints the node as disrupted and takes it out of load balancers. A node that is gone or was
// replaced is a *ConflictError.
func (n Nodes) TaintForTermination(ctx context.Context, node cluster.Node) error {
	return n.changeNode(ctx, "taint", node, terminationPatch)
}

// TaintNode keeps new pods off the node. A node that is gone or was replaced is a *ConflictError.
func (n Nodes) TaintNode(ctx context.Context, node cluster.Node) error {
	return n.changeNode(ctx, "taint", node,
		func(o *corev1.Node) patchFields { return withTaints(o, withDisruptedTaint(o)) })
}

// UntaintNode takes back what TaintNode did. A node that is gone or was replaced is a *ConflictError.
func (n Nodes) UntaintNode(ctx context.Context, node cluster.Node) error {
	return n.UntaintRevision(ctx, node, karpv1.TaintDisrupted)
}

// TaintRevision keeps new pods off a node because of a NodeRollout, by a taint of that key. A node that is gone or was
// replaced is a *ConflictError.
func (n Nodes) TaintRevision(ctx context.Context, node cluster.Node, key string) error {
	return n.changeNode(ctx, "taint", node, func(o *corev1.Node) patchFields { return revisionPatch(o, key) })
}

// UntaintRevision takes back what TaintRevision did with that key. A node that is gone or was replaced is a
// *ConflictError.
func (n Nodes) UntaintRevision(ctx context.Context, node cluster.Node, key string) error {
	return n.changeNode(ctx, "untaint", node,
		func(o *corev1.Node) patchFields { return withTaints(o, withoutTaint(o, key)) })
}

// DeleteNode gives the node its deletion time. A node that is gone is no error.
func (n Nodes) DeleteNode(ctx context.Context, node cluster.Node) error {
	return n.deleteObject(ctx, apiCall{verb: "delete", place: nodePath(), name: node.Name}, node.UID, nil)
}

// ReleaseNode removes our finalizer, after which a deleted node vanishes. A node that is gone is no error.
func (n Nodes) ReleaseNode(ctx context.Context, node cluster.Node) error {
	if node.UID == "" {
		return fmt.Errorf("release node %s: its UID is not known", node.Name)
	}
	return unlessReleased(n.changeNode(ctx, "release", node, finalizerPatch))
}

func (n Nodes) changeNode(ctx context.Context, verb string, node cluster.Node,
	edit func(*corev1.Node) patchFields) error {
	what := apiCall{verb: verb, place: nodePath(), name: node.Name, uid: node.UID}
	if known := n.seen.nodeSeen(node.UID); known != nil {
		now := &corev1.Node{}
		if done, err := n.patchUnread(ctx, what, edit(known), known.ResourceVersion, now); done {
			if err == nil {
				n.seen.keepNode(now)
			}
			return err
		}
	}
	now, err := changeObject(ctx, n.connection, what, edit)
	if err == nil {
		n.seen.keepNode(now)
	}
	return err
}

// registrationPatch is the patch that RegisterNode writes, nil if the node is registered as the claim says.
func registrationPatch(o *corev1.Node, claim cluster.Claim) patchFields {
	meta := patchFields{}
	if set := missingEntries(o.Labels, mergeLabels(claim.Labels,
		map[string]string{karpv1.LabelRegistered: "true"})); set != nil {
		meta["labels"] = set
	}
	if set := missingEntries(o.Annotations, claim.Annotations); set != nil {
		meta["annotations"] = set
	}
	if !slices.Contains(o.Finalizers, karpv1.FinalizerTermination) {
		meta["finalizers"] = append(slices.Clone(o.Finalizers), karpv1.FinalizerTermination)
	}
	isClaim := func(r metav1.OwnerReference) bool { return string(r.UID) == claim.UID }
	if !slices.ContainsFunc(o.OwnerReferences, isClaim) {
		meta["ownerReferences"] = append(slices.Clone(o.OwnerReferences), metav1.OwnerReference{
			APIVersion: karpv1.GroupVersion().String(), Kind: karpv1.NodeClaimKind, Name: claim.Name,
			UID:                uidOf(claim.UID),
			BlockOwnerDeletion: new(true),
		})
	}
	out := patchFields{}
	if len(meta) > 0 {
		out["metadata"] = meta
	}
	spec := patchFields{}
	if taints := registeredTaints(o, claim); !slices.Equal(taints, o.Spec.Taints) {
		spec["taints"] = taints
	}
	if claim.Standby() && !o.Spec.Unschedulable { // which DaemonSets tolerate, and others do not
		spec["unschedulable"] = true
	}
	if len(spec) > 0 {
		out["spec"] = spec
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// registeredTaints adds the claim's taints to those of the node, which win, drops those that say it is not registered
// or is stopped capacity, and makes the hold that the node booted with its own. A node that is registered already has
// had its startup taints; whoever removed one since meant it.
func registeredTaints(o *corev1.Node, claim cluster.Claim) []corev1.Taint {
	out := slices.DeleteFunc(withoutTaint(o, karpv1.TaintUnregistered),
		func(t corev1.Taint) bool { return t.Key == karpv1.TaintStoppedCapacity })
	for i, t := range nomination.TaintsOnRegistration(translate.Taints(out), claim) {
		out[i].Value = t.Value
	}
	if o.Labels[karpv1.LabelDoNotSyncTaints] == "true" || o.Labels[karpv1.LabelRegistered] == "true" {
		return out
	}
	for _, t := range translate.CoreTaints(slices.Concat(claim.Taints, claim.StartupTaints)) {
		if !slices.ContainsFunc(out, func(have corev1.Taint) bool { return have.MatchTaint(&t) }) {
			out = append(out, t)
		}
	}
	return out
}

// withDisruptedTaint are the node's taints with the one that says it is disrupted.
func withDisruptedTaint(o *corev1.Node) []corev1.Taint {
	want := karpv1.DisruptedTaint()
	taints := slices.DeleteFunc(slices.Clone(o.Spec.Taints),
		func(t corev1.Taint) bool { return t.Key == want.Key && t.Effect != want.Effect })
	if !slices.ContainsFunc(taints, func(t corev1.Taint) bool { return t.Key == want.Key }) {
		taints = append(taints, want)
	}
	return taints
}

// revisionPatch is the patch that TaintRevision writes; nil where there is nothing to change.
func revisionPatch(o *corev1.Node, key string) patchFields {
	taint := corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}
	if slices.Contains(o.Spec.Taints, taint) {
		return nil
	}
	return withTaints(o, append(withoutTaint(o, key), taint))
}

func withoutTaint(o *corev1.Node, key string) []corev1.Taint {
	return slices.DeleteFunc(slices.Clone(o.Spec.Taints), func(t corev1.Taint) bool { return t.Key == key })
}

// withTaints is the patch that gives the node these taints, nil if it has them.
func withTaints(o *corev1.Node, taints []corev1.Taint) patchFields {
	if slices.Equal(taints, o.Spec.Taints) {
		return nil
	}
	return patchFields{"spec": patchFields{"taints": taints}}
}

// terminationPatch is the patch that TaintForTermination writes, nil if the node has all of that.
func terminationPatch(o *corev1.Node) patchFields {
	out := withTaints(o, withDisruptedTaint(o))
	label := map[string]string{karpv1.LabelExcludeBalancers: karpv1.ExcludeBalancersValue}
	if _, ok := o.Labels[karpv1.LabelExcludeBalancers]; !ok { // one that a user set stays as it is
		if out == nil {
			out = patchFields{}
		}
		out["metadata"] = patchFields{"labels": missingEntries(o.Labels, label)}
	}
	return out
}

// OpenNode takes the hold off the node. A node that is gone or was replaced is a *ConflictError.
func (n Nodes) OpenNode(ctx context.Context, node cluster.Node) error {
	return n.changeNode(ctx, "open", node,
		func(o *corev1.Node) patchFields { return withTaints(o, withoutTaint(o, karpv1.TaintHold)) })
}

// ListNodes lists all nodes, sorted by name.
func (n Nodes) ListNodes(ctx context.Context) ([]cluster.Node, error) {
	out, _, err := n.allNodes(ctx)
	slices.SortFunc(out, func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, err
}

func (n Nodes) allNodes(ctx context.Context) ([]cluster.Node, string, error) {
	heads := map[string]*corev1.Node{}
	out, version, err := listAll(ctx, n.connection, listQuery{place: nodePath()},
		func(l *corev1.NodeList) []cluster.Node {
			for i := range l.Items {
				heads[string(l.Items[i].UID)] = headOf(&l.Items[i])
			}
			return translatePage(l.Items, translate.Node)
		})
	if err == nil {
		n.seen.keepNodes(version, out, heads)
	}
	return out, version, err
}

// ReadNode reads one node. The error is a *NotFoundError if there is none.
func (n Nodes) ReadNode(ctx context.Context, name string) (cluster.Node, error) {
	node := &corev1.Node{}
	if err := n.getObject(ctx, apiCall{verb: "get", place: nodePath(), name: name}, node); err != nil {
		return cluster.Node{}, err
	}
	n.seen.keepNode(node)
	return translate.Node(node), nil
}
