package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
)

const (
	maxTries     = 4
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
	maxRestarts  = 2 // of a list whose pages went stale
)

// apiCall is one request as errors name it.
type apiCall struct {
	verb      string
	place     apiPath
	namespace string
	name      string
	uid       string // of the object that is meant, for calls that look at it first; empty for any
}

// String says the call in words, such as "evict pod default/web-1".
func (c apiCall) String() string {
	s := c.verb + " " + c.place.name
	switch {
	case c.namespace != "" && c.name != "":
		return s + " " + c.namespace + "/" + c.name
	case c.name != "":
		return s + " " + c.name
	}
	return s + "s"
}

// findNameProblem is a *NotFoundError for a name that no object can have. Somebody's object may refer to it, and asking
// for it would ask for another path.
func (c apiCall) findNameProblem() error {
	if len(c.name) <= validation.DNS1123SubdomainMaxLength && len(content.IsPathSegmentName(c.name)) == 0 {
		return nil
	}
	c.name = fmt.Sprintf("%.80q", c.name)
	return wrapError(c, apierrors.NewNotFound(schema.GroupResource{Resource: c.place.plural}, c.name))
}

// sendWithRetries sends the request until it gets an answer that means something, at most four times. Repeating must be
// harmless.
func (c *connection) sendWithRetries(ctx context.Context, what apiCall, request func() *rest.Request,
	into runtime.Object) error {
	return retryRequest(ctx, what, func() error { return requestOnce(ctx, request(), into) })
}

func retryRequest(ctx context.Context, what apiCall, ask func() error) error {
	if err := what.findNameProblem(); err != nil {
		return err
	}
	if err := retry(ctx, ask); err != nil {
		return wrapError(what, err)
	}
	return nil
}

// retry asks until there is an answer that means something, at most four times.
func retry(ctx context.Context, ask func() error) error {
	for try, pause := 1, firstPause; ; try, pause = try+1, 3*pause {
		err := ask()
		if err == nil {
			return nil
		}
		wait, again := worthAnotherTry(err, pause)
		if !again || try == maxTries || ctx.Err() != nil || !waitBeforeRetry(ctx, wait) {
			return err
		}
	}
}

func requestOnce(ctx context.Context, r *rest.Request, into runtime.Object) error {
	res := doOnce(ctx, r)
	if into == nil {
		return res.Error()
	}
	return res.Into(into)
}

// worthAnotherTry reports whether the failure may pass by itself and how long to wait for that.
func worthAnotherTry(err error, pause time.Duration) (time.Duration, bool) {
	if _, ok := errors.AsType[*tokenError](err); ok {
		return 0, false
	}
	if _, ok := errors.AsType[*pageTooLargeError](err); ok {
		return 0, false
	}
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return min(pause, longestPause), true // no answer: connection, time-out
	}
	if s, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, time.Duration(s)*time.Second)
	}
	code := int(status.Status().Code)
	// A refused token was dropped by the transport; the next request brings a new one.
	again := code == http.StatusTooManyRequests || code == http.StatusUnauthorized ||
		code >= http.StatusInternalServerError
	return min(pause, longestPause), again
}

func waitBeforeRetry(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *connection) getObject(ctx context.Context, what apiCall, into runtime.Object) error {
	return c.sendWithRetries(ctx, what, func() *rest.Request {
		return c.restClient(what.place).Get().AbsPath(what.place.pathTo(what.namespace, what.name, "")...)
	}, into)
}

// createObject posts an object that carries its name, so that a repeated request is refused and not doubled. Whether
// "already exists" is the echo of our own lost reply is for the caller to find out.
func (c *connection) createObject(ctx context.Context, what apiCall, obj, into runtime.Object) error {
	defer c.own.noteOther(what.place)
	return c.sendWithRetries(ctx, what, func() *rest.Request {
		return c.restClient(what.place).Post().AbsPath(what.place.pathTo(what.namespace, "", "")...).Body(obj)
	}, into)
}

// replaceObject replaces an object, or its subresource; its resourceVersion is the precondition.
func (c *connection) replaceObject(ctx context.Context, what apiCall, sub string, obj, into runtime.Object) error {
	defer c.own.noteOther(what.place)
	return c.sendWithRetries(ctx, what, func() *rest.Request {
		return c.restClient(what.place).Put().AbsPath(what.place.pathTo(what.namespace, what.name, sub)...).Body(obj)
	}, into)
}

// patchObject merges a change into an object, or into its subresource. A resourceVersion in the change is the
// precondition.
func (c *connection) patchObject(ctx context.Context, what apiCall, sub string, change any, into runtime.Object) error {
	defer c.own.noteOther(what.place)
	body, err := json.Marshal(change)
	if err != nil {
		return fmt.Errorf("%s: encode: %w", what, err)
	}
	path := what.place.pathTo(what.namespace, what.name, sub)
	return c.sendWithRetries(ctx, what, func() *rest.Request {
		return c.restClient(what.place).Patch(types.MergePatchType).AbsPath(path...).Body(body)
	}, into)
}

// deleteObject deletes the object of that UID. An object that is gone, or was replaced by another of its name, is no
// error.
func (c *connection) deleteObject(ctx context.Context, what apiCall, uid string, graceSec *int64) error {
	if uid == "" {
		return fmt.Errorf("%s: its UID is not known", what)
	}
	id := types.UID(uid)
	opts := &metav1.DeleteOptions{GracePeriodSeconds: graceSec, Preconditions: metav1.NewUIDPreconditions(uid)}
	var left runtime.Object
	began := time.Now()
	err := retryRequest(ctx, what, func() (err error) {
		left, err = doOnce(ctx, c.restClient(what.place).Delete().AbsPath(what.place.pathTo(what.namespace,
			what.name, "")...).Body(opts)).Get()
		return err
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		c.own.expectEvent(what.place, id, gone) // perhaps by a try whose answer was lost
		return nil
	}
	if err == nil {
		c.noteRemoved(what.place, left, id, began)
	}
	return err
}

// doOnce sends the request, and reads the answer within the time of a call.
func doOnce(ctx context.Context, r *rest.Request) rest.Result {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.MaxRetries(0).Do(ctx)
}

func addParam(r *rest.Request, name, value string) *rest.Request {
	if value == "" {
		return r
	}
	return r.Param(name, value)
}

// readRaw reads a path that is no object, as JSON.
func (c *connection) readRaw(ctx context.Context, what, path string) (body []byte, err error) {
	err = retry(ctx, func() (err error) {
		body, err = rawOnce(ctx, c.custom.Get().AbsPath(path))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return body, nil
}

func rawOnce(ctx context.Context, r *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return r.MaxRetries(0).DoRaw(ctx)
}

// writeStatus stores the status of the object of the kind, on the condition that the object was not changed since it
// was read. On success the object given is as stored.
func writeStatus[X any, O interface {
	*X
	metaObject
	DeepCopy() O
}](ctx context.Context, c *connection, place apiPath, kind schema.GroupVersionKind, o O) error {
	what := apiCall{verb: "write status of", place: place, namespace: o.GetNamespace(), name: o.GetName()}
	if o.GetResourceVersion() == "" {
		return fmt.Errorf("%s: its version is not known", what)
	}
	in, out := o.DeepCopy(), O(new(X))
	in.GetObjectKind().SetGroupVersionKind(kind)
	err := c.replaceObject(ctx, what, "status", in, out)
	switch {
	case isNotFound(err):
		return &ConflictError{err}
	case err == nil:
		*o = *out
	}
	return err
}
