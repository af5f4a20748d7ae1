package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/api/joiner/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	// noneFor is the time for which nobody asks again in a cluster without a NodeRollout.
	noneFor = 30 * time.Second
	// labelRollout is the NodeRollout that a ControllerRevision is of, labelClass its EC2NodeClass.
	labelRollout = "joiner.sh/node-rollout"
	labelClass   = "joiner.sh/ec2nodeclass"
)

// Rollouts reads and writes NodeRollouts and the revisions of EC2NodeClasses that they keep, as ControllerRevisions in
// our namespace.
type Rollouts struct {
	*connection
	memory *rolloutMemory
}

// rolloutMemory holds what was read last.
type rolloutMemory struct {
	mu   sync.Mutex
	none time.Time // since when it is known that there is no NodeRollout
	// why they could not be read then
	forbidden error
	stored    map[string]*v1alpha1.NodeRollout
	kept      map[string]*appsv1.ControllerRevision // by name
	next      int64
}

// ListRollouts lists the NodeRollouts with their revisions, sorted by name. A cluster that does not know the kind has
// none; without one nobody asks again for half a minute, and no other request is made. The error is a *ForbiddenError
// for as long where Joiner may not read them.
func (r Rollouts) ListRollouts(ctx context.Context) ([]cluster.Rollout, error) {
	r.memory.mu.Lock()
	none, forbidden := r.now().Sub(r.memory.none) < noneFor, r.memory.forbidden
	r.memory.mu.Unlock()
	if none {
		return nil, forbidden
	}
	began := r.now()
	stored, _, err := listAll(ctx, r.connection, listQuery{place: rolloutPath()},
		func(l *v1alpha1.NodeRolloutList) []v1alpha1.NodeRollout { return l.Items })
	forbidden = nil
	switch {
	case apierrors.IsForbidden(err):
		forbidden = &ForbiddenError{err}
	case err != nil && !isNotFound(err):
		return nil, err
	}
	if err != nil || len(stored) == 0 {
		r.memory.mu.Lock()
		r.memory.none, r.memory.forbidden = began, forbidden
		r.memory.mu.Unlock()
		return nil, forbidden
	}
	pools, err := Pools{r.connection}.ListPools(ctx)
	if err != nil {
		return nil, err
	}
	classes, err := Classes{r.connection}.ListClasses(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := r.listRevisions(ctx)
	if err != nil {
		return nil, err
	}
	r.remember(stored, kept)
	slices.SortFunc(stored, func(a, b v1alpha1.NodeRollout) int { return strings.Compare(a.Name, b.Name) })
	out := make([]cluster.Rollout, 0, len(stored))
	for i := range stored {
		rollout := translate.Rollout(&stored[i], pools)
		for j := range kept {
			v, ok := describeRevision(&kept[j], classes)
			if ok && kept[j].Labels[labelRollout] == rollout.Name {
				rollout.Revisions = append(rollout.Revisions, v)
			}
		}
		out = append(out, rollout)
	}
	return out, nil
}

func (r Rollouts) remember(stored []v1alpha1.NodeRollout, kept []appsv1.ControllerRevision) {
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	r.memory.stored, r.memory.kept = map[string]*v1alpha1.NodeRollout{}, map[string]*appsv1.ControllerRevision{}
	for i := range stored {
		r.memory.stored[stored[i].Name] = &stored[i]
	}
	for i := range kept {
		r.memory.kept[kept[i].Name] = &kept[i]
		r.memory.next = max(r.memory.next, kept[i].Revision)
	}
}

// listRevisions lists the revisions of all rollouts, oldest first.
func (r Rollouts) listRevisions(ctx context.Context) ([]appsv1.ControllerRevision, error) {
	out, _, err := listAll(ctx, r.connection, listQuery{place: controllerRevisions(), namespace: Namespace},
		func(l *appsv1.ControllerRevisionList) []appsv1.ControllerRevision { return l.Items })
	out = slices.DeleteFunc(out, func(revision appsv1.ControllerRevision) bool {
		return revision.Labels[labelRollout] == ""
	})
	slices.SortFunc(out, func(a, b appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision), cmp.Compare(a.Name, b.Name))
	})
	return out, err
}

// describeRevision returns a revision as a class of a snapshot; ok is false when its EC2NodeClass is gone, and of one
// that cannot be read, which then counts as not stored.
func describeRevision(r *appsv1.ControllerRevision, classes []awsv1.EC2NodeClass) (v cluster.NodeRevision, ok bool) {
	i := slices.IndexFunc(classes, func(n awsv1.EC2NodeClass) bool { return n.Name == r.Labels[labelClass] })
	if i < 0 {
		return v, false
	}
	kept, err := classIn(r)
	if err != nil {
		return v, false
	}
	v = cluster.NodeRevision{Name: r.Name,
		Resolved: nodeclass.DescribeClass(nodeclass.RestoreRevision(kept, &classes[i]))}
	v.Resolved.Name = cluster.RevisionKey(classes[i].Name, r.Name)
	v.KubeletVersions = nodeclass.KubeletVersions(kept.Status.AMIs)
	return v, true
}

func classIn(r *appsv1.ControllerRevision) (*awsv1.EC2NodeClass, error) {
	out := &awsv1.EC2NodeClass{}
	if err := json.Unmarshal(r.Data.Raw, out); err != nil {
		return nil, fmt.Errorf("decode ControllerRevision %s: %w", r.Name, err)
	}
	return out, nil
}

// ReadRevision returns the EC2NodeClass as the revision keeps it. The error is a *NotFoundError if there is no such
// revision or no such class any more.
func (r Rollouts) ReadRevision(ctx context.Context, class, revision string) (*awsv1.EC2NodeClass, error) {
	object := &appsv1.ControllerRevision{}
	what := apiCall{verb: "get", place: controllerRevisions(), namespace: Namespace, name: revision}
	if err := r.getObject(ctx, what, object); err != nil {
		return nil, err
	}
	kept, err := classIn(object)
	if err != nil {
		return nil, err
	}
	now, err := Classes{r.connection}.ReadClass(ctx, class)
	if err != nil {
		return nil, err
	}
	return nodeclass.RestoreRevision(kept, now), nil
}

// KeepRevision stores the class as a revision of the rollout. May be repeated.
func (r Rollouts) KeepRevision(ctx context.Context, rollout, revision string, class *awsv1.EC2NodeClass) error {
	slim := class.DeepCopy()
	slim.ManagedFields = nil
	raw, err := json.Marshal(slim)
	if err != nil {
		return fmt.Errorf("encode EC2NodeClass %s: %w", class.Name, err)
	}
	r.memory.mu.Lock()
	r.memory.next++
	number, owner := r.memory.next, r.memory.stored[rollout]
	r.memory.mu.Unlock()
	object := &appsv1.ControllerRevision{TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ControllerRevision"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: revision,
			Labels: map[string]string{labelRollout: rollout, labelClass: class.Name}},
		Revision: number, Data: runtime.RawExtension{Raw: raw}}
	if owner != nil {
		object.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion().String(),
			Kind: v1alpha1.NodeRolloutKind, Name: owner.Name, UID: owner.UID}}
	}
	err = r.createObject(ctx,
		apiCall{verb: "create", place: controllerRevisions(), namespace: Namespace, name: revision}, object,
		&appsv1.ControllerRevision{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// ForgetRevision deletes a revision as it was listed. May be repeated; one that is gone is no error.
func (r Rollouts) ForgetRevision(ctx context.Context, revision string) error {
	r.memory.mu.Lock()
	object := r.memory.kept[revision]
	r.memory.mu.Unlock()
	if object == nil {
		return nil
	}
	return r.deleteObject(ctx,
		apiCall{verb: "delete", place: controllerRevisions(), namespace: Namespace, name: revision},
		string(object.UID), nil)
}

// WriteRolloutStatus stores the status of the rollout, on the condition that the object was not changed since it was
// listed. May be repeated.
func (r Rollouts) WriteRolloutStatus(ctx context.Context, name string, s cluster.RolloutStatus) error {
	r.memory.mu.Lock()
	stored := r.memory.stored[name]
	r.memory.mu.Unlock()
	if stored == nil {
		return newConflict(apiCall{verb: "write status of", place: rolloutPath(), name: name}, "it was not listed")
	}
	out := stored.DeepCopy()
	translate.SetRolloutStatus(out, s, r.now())
	kind := v1alpha1.GroupVersion().WithKind(v1alpha1.NodeRolloutKind)
	if err := writeStatus(ctx, r.connection, rolloutPath(), kind, out); err != nil {
		return err
	}
	r.memory.mu.Lock()
	defer r.memory.mu.Unlock()
	r.memory.stored[name] = out
	return nil
}
