package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	nameTries  = 3
	suffixSize = 5
	longestRaw = 63 - suffixSize // of a generated name, as the API server does it
)

// Claims reads and writes NodeClaims.
type Claims struct{ *connection }

// CreateClaim stores the NodeClaim of a launch: with our finalizer from the first write on, owned by its pool, named
// after the pool with a random end. A lost reply does not make a second claim: the name is chosen here.
func (c Claims) CreateClaim(ctx context.Context, l plan.Launch, pool cluster.Pool) (cluster.Claim, error) {
	var err error
	for range nameTries {
		want := newClaim(l, pool)
		what := apiCall{verb: "create", place: claimPath(), name: want.Name}
		got, began := &karpv1.NodeClaim{}, time.Now()
		err = c.createObject(ctx, what, want, got)
		if apierrors.IsAlreadyExists(err) {
			got = &karpv1.NodeClaim{}
			if err := c.getObject(ctx, what, got); err != nil {
				return cluster.Claim{}, err
			}
			if !sameWish(want, got) {
				continue // the name belongs to another claim
			}
			err = nil
		}
		if apierrors.IsInvalid(err) {
			err = &RefusedError{err, refusedLabels(want, err)}
		}
		if err != nil {
			return cluster.Claim{}, err
		}
		c.noteWritten(claimPath(), got, began)
		return translate.Claim(got), nil
	}
	return cluster.Claim{}, err
}

// refusedLabels are the labels that the refusal of the claim is about: of the requirements that it points at, and those
// whose key or value it quotes.
func refusedLabels(want *karpv1.NodeClaim, refusal error) (keys []string) {
	status, found := errors.AsType[*apierrors.StatusError](refusal)
	if !found || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		quoted := func(text string) bool { return strings.Contains(cause.Message, strconv.Quote(text)) }
		for i, r := range want.Spec.Requirements {
			at := fmt.Sprintf("spec.requirements[%d]", i)
			if cause.Field == at || strings.HasPrefix(cause.Field, at+".") || quoted(r.Key) ||
				slices.ContainsFunc(r.Values, quoted) {
				keys = append(keys, r.Key)
			}
		}
		for key, v := range want.Labels {
			if quoted(key) || quoted(v) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// sameWish reports whether an existing claim is the echo of our own request.
func sameWish(want, got *karpv1.NodeClaim) bool {
	return got.DeletionTimestamp == nil && got.Status.ProviderID == "" &&
		equality.Semantic.DeepEqual(want.OwnerReferences, got.OwnerReferences) &&
		equality.Semantic.DeepEqual(want.Spec.Requirements, got.Spec.Requirements) &&
		equality.Semantic.DeepEqual(want.Spec.Resources, got.Spec.Resources)
}

func newClaim(l plan.Launch, pool cluster.Pool) *karpv1.NodeClaim {
	prefix := pool.Name + "-"
	labels := mergeLabels(l.Labels, map[string]string{karpv1.LabelNodePool: pool.Name,
		awsv1.LabelEC2NodeClass: l.Class})
	annotations := mergeLabels(l.Annotations, map[string]string{
		karpv1.AnnotationNodePoolHash: pool.Hash, karpv1.AnnotationNodePoolHashVersion: karpv1.NodePoolHashVersion,
	})
	out := &karpv1.NodeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: karpv1.GroupVersion().String(), Kind: karpv1.NodeClaimKind},
		ObjectMeta: metav1.ObjectMeta{
			Name:         prefix[:min(len(prefix), longestRaw)] + rand.String(suffixSize),
			GenerateName: prefix,
			Labels:       labels,
			Annotations:  annotations,
			Finalizers:   []string{karpv1.FinalizerTermination},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: karpv1.GroupVersion().String(), Kind: karpv1.NodePoolKind, Name: pool.Name,
				UID:                uidOf(pool.UID),
				BlockOwnerDeletion: new(true),
			}},
		},
		Spec: karpv1.NodeClaimSpec{
			Taints:        translate.CoreTaints(l.Taints),
			StartupTaints: translate.CoreTaints(l.Startup),
			Requirements:  translate.ClaimRequirements(l.Requirements),
			Resources:     karpv1.ResourceRequirements{Requests: translate.Quantities(l.Requests)},
			NodeClassRef:  &karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: l.Class},
			ExpireAfter:   karpv1.NeverAfter(),
		},
	}
	if pool.ExpireAfter > 0 {
		out.Spec.ExpireAfter = karpv1.After(pool.ExpireAfter)
	}
	if pool.TerminationGrace != nil {
		out.Spec.TerminationGracePeriod = new(karpv1.NewDuration(*pool.TerminationGrace))
	}
	return out
}

// AdoptClaim puts our finalizer, the label of its class and that of its partition on a claim that lacks them, because a
// user made it by hand or took them off. Repeating it changes nothing. A claim that is gone, was replaced or is being
// deleted is a *ConflictError.
func (c Claims) AdoptClaim(ctx context.Context, claim cluster.Claim) (cluster.Claim, error) {
	what := apiCall{verb: "adopt", place: claimPath(), name: claim.Name, uid: claim.UID}
	got, err := changeObject(ctx, c.connection, what, func(o *karpv1.NodeClaim) patchFields {
		if o.DeletionTimestamp != nil {
			return nil
		}
		meta := patchFields{}
		want := map[string]string{awsv1.LabelEC2NodeClass: claim.Class}
		if id := cluster.InstanceIDOf(o.Status.ProviderID); id != "" {
			want[karpv1.LabelInstance] = id
		}
		if n := claim.Labels[instancetypes.LabelPartition]; n != "" {
			want[instancetypes.LabelPartition] = n
		}
		if set := missingEntries(o.Labels, want); set != nil {
			meta["labels"] = set
		}
		if !slices.Contains(o.Finalizers, karpv1.FinalizerTermination) {
			meta["finalizers"] = append(slices.Clone(o.Finalizers), karpv1.FinalizerTermination)
		}
		if len(meta) == 0 {
			return nil
		}
		return patchFields{"metadata": meta}
	})
	if err == nil && got.DeletionTimestamp != nil {
		err = newConflict(what, "it is being deleted")
	}
	if err != nil {
		return cluster.Claim{}, err
	}
	return translate.Claim(got), nil
}

// AnnotateClaim sets annotations, on the condition that the claim is still as given; if it is given without a version,
// that it is still the one of that UID. The returned claim is as stored.
func (c Claims) AnnotateClaim(ctx context.Context, claim cluster.Claim, set map[string]string) (cluster.Claim, error) {
	meta := patchFields{"annotations": set}
	if claim.Version != "" || claim.UID == "" {
		return c.patchClaim(ctx, "annotate", claim, patchFields{"metadata": meta})
	}
	meta["uid"] = claim.UID
	got, began := &karpv1.NodeClaim{}, time.Now()
	err := c.patchObject(ctx, apiCall{verb: "annotate", place: claimPath(), name: claim.Name}, "",
		patchFields{"metadata": meta}, got)
	if apierrors.IsInvalid(err) { // the answer to another UID
		err = &ConflictError{err}
	}
	return c.claimWritten(got, err, began)
}

// LabelClaim sets labels and annotations, on the condition that the claim is still as given. The returned claim is as
// stored.
func (c Claims) LabelClaim(ctx context.Context, claim cluster.Claim, labels,
	annotations map[string]string) (cluster.Claim, error) {
	meta := patchFields{}
	if len(labels) > 0 {
		meta["labels"] = labels
	}
	if len(annotations) > 0 { // none at all would take off those that are there
		meta["annotations"] = annotations
	}
	return c.patchClaim(ctx, "label", claim, patchFields{"metadata": meta})
}

// UnreserveClaim labels the claim as on-demand instead of reserved, on the condition that it is still as given. The
// returned claim is as stored.
func (c Claims) UnreserveClaim(ctx context.Context, claim cluster.Claim) (cluster.Claim, error) {
	return c.patchClaim(ctx, "unreserve", claim, onDemandPatch())
}

// onDemandPatch is the patch that makes a claim or a node on-demand. That the reservation was interruptible stays on
// it.
func onDemandPatch() patchFields {
	return patchFields{"metadata": patchFields{"labels": patchFields{
		karpv1.LabelCapacityType:         instancetypes.OnDemand,
		instancetypes.LabelReservationID: nil, instancetypes.LabelReservation: nil}}}
}

func (c Claims) patchClaim(ctx context.Context, verb string, claim cluster.Claim, patch patchFields) (cluster.Claim,
	error) {
	what := apiCall{verb: verb, place: claimPath(), name: claim.Name}
	if claim.Version == "" {
		return cluster.Claim{}, fmt.Errorf("%s: its version is not known", what)
	}
	got, began := &karpv1.NodeClaim{}, time.Now()
	err := c.patchObject(ctx, what, "", withVersion(patch, claim.Version), got)
	return c.claimWritten(got, err, began)
}

// claimWritten turns the outcome of a write that began then into a claim. A claim that is gone is a conflict.
func (c Claims) claimWritten(got *karpv1.NodeClaim, err error, began time.Time) (cluster.Claim, error) {
	if isNotFound(err) {
		return cluster.Claim{}, &ConflictError{err}
	}
	if err != nil {
		return cluster.Claim{}, err
	}
	c.noteWritten(claimPath(), got, began)
	c.seen.keepStatus(got)
	return translate.Claim(got), nil
}

// ReadClaim reads one claim; found is false when there is none of that name and of our class.
func (c Claims) ReadClaim(ctx context.Context, name string) (claim cluster.Claim, found bool, err error) {
	n := &karpv1.NodeClaim{}
	err = c.getObject(ctx, apiCall{verb: "get", place: claimPath(), name: name}, n)
	if isNotFound(err) || err == nil && !translate.IsOurClass(n.Spec.NodeClassRef) {
		return cluster.Claim{}, false, nil
	}
	return translate.Claim(n), err == nil, err
}

// WriteClaimStatus makes the stored status that of the claim given, on the condition that the claim was not changed
// since it was read. A transition time moves only with the status and is set here (Since is not read), True without a
// reason gets its type as the reason, Ready follows from the others and is never taken from the caller, and conditions
// that the claim given does not have are removed, except those that Ready depends on. Nothing is written if nothing
// differs. The returned claim is as stored.
func (c Claims) WriteClaimStatus(ctx context.Context, claim cluster.Claim) (cluster.Claim, error) {
	what := apiCall{verb: "write status of", place: claimPath(), name: claim.Name}
	got := &karpv1.NodeClaim{}
	// as it was read by this client: asking again would only cost a request
	if status := c.seen.statusSeen(claim); status != nil {
		got.Generation, got.CreationTimestamp, got.Status = claim.Generation, metav1.NewTime(claim.Created), *status
	} else {
		if err := c.getObject(ctx, what, got); err != nil {
			return c.claimWritten(nil, err, time.Time{})
		}
		if string(got.UID) != claim.UID || got.ResourceVersion != claim.Version {
			return cluster.Claim{}, newConflict(what, "it was changed since it was read")
		}
	}
	before := got.Status.DeepCopy()
	c.fillStatus(got, claim)
	if equality.Semantic.DeepEqual(before, &got.Status) {
		claim.Conditions = translate.Conditions(before.Conditions)
		return claim, nil
	}
	patch := withVersion(patchFields{"status": statusPatch(before, &got.Status)}, claim.Version)
	out, began := &karpv1.NodeClaim{}, time.Now()
	err := c.patchObject(ctx, what, "status", patch, out)
	return c.claimWritten(out, err, began)
}

func (c Claims) fillStatus(n *karpv1.NodeClaim, claim cluster.Claim) {
	n.Status.ProviderID, n.Status.NodeName, n.Status.ImageID = claim.ProviderID, claim.NodeName, claim.ImageID
	n.Status.LastPodEventTime = metav1.NewTime(claim.LastPodEvent)
	n.Status.Capacity = keepEqual(n.Status.Capacity, claim.Capacity)
	n.Status.Allocatable = keepEqual(n.Status.Allocatable, claim.Allocatable)
	conditions := n.StatusConditions()
	conditions.Initialize()
	for _, old := range slices.Clone(n.Status.Conditions) {
		if !slices.ContainsFunc(claim.Conditions, func(k cluster.Condition) bool { return k.Type == old.Type }) {
			conditions.Clear(old.Type)
		}
	}
	for _, k := range claim.Conditions {
		if k.Type == karpv1.ConditionReady {
			continue
		}
		conditions.Set(metav1.Condition{
			Type: k.Type, Status: metav1.ConditionStatus(k.Status), Reason: k.Reason, Message: k.Message,
		}, c.now())
	}
}

// DeleteClaim gives the claim its deletion time. A claim that is gone is no error.
func (c Claims) DeleteClaim(ctx context.Context, claim cluster.Claim) error {
	return c.deleteObject(ctx, apiCall{verb: "delete", place: claimPath(), name: claim.Name}, claim.UID, nil)
}

// ReleaseClaim removes our finalizer, after which a deleted claim vanishes. A claim that is gone is no error.
func (c Claims) ReleaseClaim(ctx context.Context, claim cluster.Claim) error {
	what := apiCall{verb: "release", place: claimPath(), name: claim.Name, uid: claim.UID}
	if claim.UID == "" {
		return fmt.Errorf("%s: its UID is not known", what)
	}
	if known := c.seen.claimSeen(claim); known != nil {
		into := &karpv1.NodeClaim{}
		if done, err := c.patchUnread(ctx, what, finalizerPatch(known), known.ResourceVersion, into); done {
			return unlessReleased(err)
		}
	}
	_, err := changeObject(ctx, c.connection, what, finalizerPatch[*karpv1.NodeClaim])
	return unlessReleased(err)
}

// mergeLabels is a copy of base with the labels of top.
func mergeLabels(base, top map[string]string) map[string]string {
	out := make(map[string]string, len(base)+len(top))
	maps.Copy(out, base)
	maps.Copy(out, top)
	return out
}
