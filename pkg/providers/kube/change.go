package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "joiner.sh/pkg/api/v1"
)

// maxConflicts bounds how often a change is worked out again because somebody else was faster. Kubelets write their
// node all the time, so that a single try would often lose.
const maxConflicts = 6

// patchFields is a piece of a JSON merge patch.
type patchFields map[string]any

type metaObject interface {
	runtime.Object
	metav1.Object
}

// changeObject reads an object, asks edit for a merge patch of it (nil for nothing to do) and writes that on the
// condition that the object is still the one that was read; if it is not, it starts again. An object that is gone or
// has another UID than the call names is a *ConflictError. It returns the object as it is now.
func changeObject[X any, O interface {
	*X
	metaObject
}](ctx context.Context, c *connection, what apiCall, edit func(O) patchFields) (now O, err error) {
	for range maxConflicts {
		now = new(X)
		if err = c.getObject(ctx, what, now); isNotFound(err) {
			return now, &ConflictError{err}
		}
		if err != nil {
			return now, err
		}
		if what.uid != "" && string(now.GetUID()) != what.uid {
			return now, newConflict(what, "it was replaced, its UID is %s and not %s", now.GetUID(), what.uid)
		}
		patch := edit(now)
		if patch == nil {
			return now, nil
		}
		began, was := time.Now(), now
		now = new(X) // what an answer leaves out, such as the last finalizer, would stay as it was
		err = c.patchObject(ctx, what, "", withVersion(patch, was.GetResourceVersion()), now)
		if err == nil {
			c.noteWritten(what.place, now, began)
			return now, nil
		}
		if isNotFound(err) {
			return now, &ConflictError{err}
		}
		if !isConflict(err) {
			return now, err
		}
	}
	return now, err
}

// patchUnread writes a patch that was worked out from an object as it was in that version, without reading it again. It
// is not done when there is nothing to do on the object as it was, or somebody changed it since: then it must be read.
// The object as stored is put into into.
func (c *connection) patchUnread(ctx context.Context, what apiCall, patch patchFields, version string,
	into metaObject) (done bool, err error) {
	if patch == nil {
		return false, nil
	}
	began := time.Now()
	err = c.patchObject(ctx, what, "", withVersion(patch, version), into)
	switch {
	case err == nil:
		c.noteWritten(what.place, into, began)
		return true, nil
	case isNotFound(err):
		return true, &ConflictError{err}
	case isConflict(err):
		return false, nil
	}
	return true, err
}

// withVersion makes the patch conditional on a version.
func withVersion(patch patchFields, version string) patchFields {
	meta, ok := patch["metadata"].(patchFields)
	if !ok {
		meta = patchFields{}
		patch["metadata"] = meta
	}
	meta["resourceVersion"] = version
	return patch
}

// finalizerPatch is the patch that removes our finalizer, nil if it is not there.
func finalizerPatch[O metaObject](obj O) patchFields {
	all := obj.GetFinalizers()
	if !slices.Contains(all, karpv1.FinalizerTermination) {
		return nil
	}
	return patchFields{"metadata": patchFields{"finalizers": editedFinalizers(all, "", karpv1.FinalizerTermination)}}
}

// unlessReleased is the error of a release. An object that is gone, replaced or already released is none.
func unlessReleased(err error) error {
	if _, gone := errors.AsType[*ConflictError](err); gone && !isConflict(err) {
		return nil
	}
	return err
}

// missingEntries returns what of want is not in have, as a patch of a map; nil if all of it is there.
func missingEntries(have, want map[string]string) patchFields {
	var out patchFields
	for k, v := range want {
		if old, ok := have[k]; ok && old == v {
			continue
		}
		if out == nil {
			out = patchFields{}
		}
		out[k] = v
	}
	return out
}

// MetaChange is a change of an object's annotations and finalizers. Empty fields change nothing.
type MetaChange struct {
	Annotations   map[string]string
	Remove        []string // keys of annotations
	AddFinalizer  string
	DropFinalizer string
}

func (m MetaChange) asPatch(o metaObject) patchFields {
	meta := patchFields{}
	set := missingEntries(o.GetAnnotations(), m.Annotations)
	for _, key := range m.Remove {
		if _, there := o.GetAnnotations()[key]; !there {
			continue
		}
		if set == nil {
			set = patchFields{}
		}
		set[key] = nil
	}
	if set != nil {
		meta["annotations"] = set
	}
	finalizers := editedFinalizers(o.GetFinalizers(), m.AddFinalizer, m.DropFinalizer)
	if !equality.Semantic.DeepEqual(finalizers, o.GetFinalizers()) {
		meta["finalizers"] = finalizers
	}
	if len(meta) == 0 {
		return nil
	}
	return patchFields{"metadata": meta}
}

func editedFinalizers(all []string, add, drop string) []string {
	out := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == drop })
	if add != "" && !slices.Contains(out, add) {
		out = append(out, add)
	}
	return out
}
