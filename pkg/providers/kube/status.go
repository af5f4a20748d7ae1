package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "joiner/pkg/api/aws/v1"
	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/resources"
	"joiner/pkg/nodeclass"
	"joiner/pkg/nodeclass/translate"
)

func uidOf(s string) types.UID { return types.UID(s) }

// keepEqual is want as quantities, or the stored list if it says the same in other words.
func keepEqual(have corev1.ResourceList, want resources.List) corev1.ResourceList {
	out := translate.Quantities(want)
	if len(out) == 0 {
		out = nil
	}
	if equality.Semantic.DeepEqual(translate.Amounts(have), want) {
		return have
	}
	return out
}

// statusPatch is a merge patch of a claim's status. Resources that are gone from a list are named with null.
func statusPatch(before, after *karpv1.NodeClaimStatus) patchFields {
	return patchFields{
		"providerID": after.ProviderID, "nodeName": after.NodeName, "imageID": after.ImageID,
		"conditions":       after.Conditions,
		"lastPodEventTime": after.LastPodEventTime,
		"capacity":         resourcePatch(before.Capacity, after.Capacity),
		"allocatable":      resourcePatch(before.Allocatable, after.Allocatable),
	}
}

func resourcePatch(before, after corev1.ResourceList) patchFields {
	out := patchFields{}
	for name := range before {
		out[string(name)] = nil
	}
	for name, q := range after {
		out[string(name)] = q
	}
	return out
}

// WriteClassStatus stores the status of the class, on the condition that the class was not changed since it was read.
// On success the class given is as stored.
func (c *Client) WriteClassStatus(ctx context.Context, class *awsv1.EC2NodeClass) error {
	what := apiCall{verb: "write status of", place: classPath(), name: class.Name}
	in := class.DeepCopy()
	in.APIVersion, in.Kind = awsv1.GroupVersion().String(), awsv1.EC2NodeClassKind
	out := &awsv1.EC2NodeClass{}
	if err := c.putStatus(ctx, what, in, out); err != nil {
		return err
	}
	*class = *out
	return nil
}

// WritePoolStatus stores the status of the pool, on the condition that the pool was not changed since it was read. On
// success the pool given is as stored.
func (c *Client) WritePoolStatus(ctx context.Context, pool *karpv1.NodePool) error {
	what := apiCall{verb: "write status of", place: poolPath(), name: pool.Name}
	in := pool.DeepCopy()
	in.APIVersion, in.Kind = karpv1.GroupVersion().String(), karpv1.NodePoolKind
	out := &karpv1.NodePool{}
	if err := c.putStatus(ctx, what, in, out); err != nil {
		return err
	}
	*pool = *out
	return nil
}

func (c *Client) putStatus(ctx context.Context, what apiCall, in, out metaObject) error {
	if in.GetResourceVersion() == "" {
		return fmt.Errorf("%s: its version is not known", what)
	}
	err := c.replaceObject(ctx, what, "status", in, out)
	if isNotFound(err) {
		return &ConflictError{err}
	}
	return err
}

// MetaChange is a change of an object's annotations and finalizers. Empty fields change nothing.
type MetaChange struct {
	Annotations   map[string]string
	AddFinalizer  string
	DropFinalizer string
}

// PatchClassMeta changes annotations and finalizers of a class. It writes nothing if all is as wanted already. A class
// that is gone is a *ConflictError, unless all that was wanted is to drop a finalizer.
func (c *Client) PatchClassMeta(ctx context.Context, name string, m MetaChange) error {
	_, err := changeObject(ctx, c, apiCall{verb: "patch", place: classPath(), name: name},
		func(o *awsv1.EC2NodeClass) patchFields { return m.asPatch(o) },
		func() *awsv1.EC2NodeClass { return &awsv1.EC2NodeClass{} })
	if isNotFound(err) && len(m.Annotations) == 0 && m.AddFinalizer == "" {
		return nil
	}
	return err
}

// CountPool stores in the status of a pool what its nodes have, "nodes" included. It writes nothing if that is there
// already. A pool that is gone is no error.
func (c *Client) CountPool(ctx context.Context, pool string, has resources.List) error {
	return c.changePoolStatus(ctx, pool, func(p *karpv1.NodePool) bool { return nodeclass.UpdatePoolCounts(p, has) })
}

// RecordRegistrations notes in a pool how registrations of its claims went. Repeating it changes nothing:
// each claim counts once. A pool that is gone is no error.
func (c *Client) RecordRegistrations(ctx context.Context, pool string, outcomes []cluster.Registration) error {
	// The condition comes first: what is in the annotation counts as done.
	err := c.changePoolStatus(ctx, pool, func(p *karpv1.NodePool) bool {
		_, news := nodeclass.RecordRegistrations(p, outcomes, c.now())
		return news
	})
	if err != nil {
		return err
	}
	_, err = changeObject(ctx, c, apiCall{verb: "patch", place: poolPath(), name: pool},
		func(o *karpv1.NodePool) patchFields {
			record, news := nodeclass.RecordRegistrations(o.DeepCopy(), outcomes, c.now())
			if !news {
				return nil
			}
			return MetaChange{Annotations: map[string]string{karpv1.AnnotationRegistrationHistory: record}}.asPatch(o)
		}, newPool)
	return unlessGone(err)
}

// changePoolStatus edits the status of a pool as it is, anew when somebody else was faster. edit says whether it
// changed anything.
func (c *Client) changePoolStatus(ctx context.Context, name string, edit func(*karpv1.NodePool) bool) error {
	var err error
	for range maxConflicts {
		p := newPool()
		if err = c.getObject(ctx, apiCall{verb: "get", place: poolPath(), name: name}, p); err != nil {
			return unlessGone(err)
		}
		if !edit(p) {
			return nil
		}
		if err = c.WritePoolStatus(ctx, p); !isConflict(err) {
			return unlessGone(err)
		}
	}
	return err
}

func newPool() *karpv1.NodePool { return &karpv1.NodePool{} }

func unlessGone(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// PatchPoolMeta sets annotations of a pool. It writes nothing if they are there already.
func (c *Client) PatchPoolMeta(ctx context.Context, name string, annotations map[string]string) error {
	m := MetaChange{Annotations: annotations}
	_, err := changeObject(ctx, c, apiCall{verb: "patch", place: poolPath(), name: name},
		func(o *karpv1.NodePool) patchFields { return m.asPatch(o) }, newPool)
	return err
}

func (m MetaChange) asPatch(o metaObject) patchFields {
	meta := patchFields{}
	if set := missingEntries(o.GetAnnotations(), m.Annotations); set != nil {
		meta["annotations"] = set
	}
	finalizers := editedPatch(o.GetFinalizers(), m.AddFinalizer, m.DropFinalizer)
	if !equality.Semantic.DeepEqual(finalizers, o.GetFinalizers()) {
		meta["finalizers"] = finalizers
	}
	if len(meta) == 0 {
		return nil
	}
	return patchFields{"metadata": meta}
}

func editedPatch(all []string, add, drop string) []string {
	var out []string
	for _, f := range all {
		if f != drop || drop == "" {
			out = append(out, f)
		}
		if f == add {
			add = ""
		}
	}
	if add != "" {
		out = append(out, add)
	}
	return out
}
