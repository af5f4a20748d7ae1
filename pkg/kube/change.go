package kube

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	karpv1 "joiner/pkg/api/v1"
)

// maxConflicts bounds how often a change is worked out again because somebody else was faster. Kubelets write their node all
// the time, so that a single try would often lose.
const maxConflicts = 6

// fields is a piece of a JSON merge patch.
type fields map[string]any

type object interface {
	runtime.Object
	metav1.Object
}

// change reads an object, asks edit for a merge patch of it (nil for nothing to do) and writes that on the condition that the
// object is still the one that was read; if it is not, it starts again. An object that is gone or has another UID than the call names is a
// *ConflictError. It returns the object as it is now.
func change[O object](ctx context.Context, c *Client, what call, edit func(O) fields, fresh func() O) (now O, err error) {
	for range maxConflicts {
		now = fresh()
		if err = c.get(ctx, what, now); isNotFound(err) {
			return now, &ConflictError{err}
		}
		if err != nil {
			return now, err
		}
		if what.uid != "" && string(now.GetUID()) != what.uid {
			return now, conflict(what, "it was replaced, its UID is %s and not %s", now.GetUID(), what.uid)
		}
		patch := edit(now)
		if patch == nil {
			return now, nil
		}
		began, was := time.Now(), now
		now = fresh() // what an answer leaves out, such as the last finalizer, would stay as it was
		err = c.patch(ctx, what, "", versioned(patch, was.GetResourceVersion()), now)
		if err == nil {
			c.wrote(what.place, now, began)
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

// attempt writes a patch that was worked out from an object as it was in that version, without reading it again. It is not done when there is nothing to
// do on the object as it was, or somebody changed it since: then it must be read. The object as stored is put into into.
func (c *Client) attempt(ctx context.Context, what call, patch fields, version string, into object) (done bool, err error) {
	if patch == nil {
		return false, nil
	}
	began := time.Now()
	err = c.patch(ctx, what, "", versioned(patch, version), into)
	switch {
	case err == nil:
		c.wrote(what.place, into, began)
		return true, nil
	case isNotFound(err):
		return true, &ConflictError{err}
	case isConflict(err):
		return false, nil
	}
	return true, err
}

// versioned makes the patch conditional on a version.
func versioned(patch fields, version string) fields {
	meta, ok := patch["metadata"].(fields)
	if !ok {
		meta = fields{}
		patch["metadata"] = meta
	}
	meta["resourceVersion"] = version
	return patch
}

// released is the patch that removes our finalizer, nil if it is not there.
func released[O object](obj O) fields {
	return withoutFinalizer(obj.GetFinalizers(), karpv1.FinalizerTermination)
}

// unlessReleased is the error of a release. An object that is gone, replaced or already released is none.
func unlessReleased(err error) error {
	if _, gone := errors.AsType[*ConflictError](err); gone && !isConflict(err) {
		return nil
	}
	return err
}

func withoutFinalizer(all []string, name string) fields {
	if !slices.Contains(all, name) {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(all), func(f string) bool { return f == name })
	return fields{"metadata": fields{"finalizers": left}}
}

// missing returns what of want is not in have, as a patch of a map; nil if all of it is there.
func missing(have, want map[string]string) fields {
	var out fields
	for k, v := range want {
		if old, ok := have[k]; ok && old == v {
			continue
		}
		if out == nil {
			out = fields{}
		}
		out[k] = v
	}
	return out
}
