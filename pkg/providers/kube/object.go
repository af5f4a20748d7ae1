package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// fieldManager owns what setup applies.
const fieldManager = "joiner"

// Objects reads and writes objects of any kind as JSON, each by the path under which the API server serves it, such as
// /apis/karpenter.sh/v1/nodeclaims/web-1. It is for setup, which puts things into a cluster that the other functions
// only use.
type Objects struct{ c *connection }

// Apply makes the object what it says by server-side apply, and takes over fields that somebody else applied. May be
// repeated.
func (o Objects) Apply(ctx context.Context, path string, object *unstructured.Unstructured) error {
	return o.sendJSON(ctx, "apply", path, object, func() *rest.Request {
		return o.c.custom.Patch(types.ApplyPatchType).Param("fieldManager", fieldManager).Param("force", "true")
	})
}

// Get reads one object; found is false when there is none, or no such kind.
func (o Objects) Get(ctx context.Context, path string) (object *unstructured.Unstructured, found bool, err error) {
	body, err := o.sendBytes(ctx, "get "+path, func() *rest.Request { return o.c.custom.Get().AbsPath(path) })
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	object = &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return nil, false, fmt.Errorf("get %s: decode: %w", path, err)
	}
	return object, true, nil
}

// List calls each for every object of a kind, page by page. A kind that the cluster does not have has no objects.
func (o Objects) List(ctx context.Context, path string, each func(*unstructured.Unstructured) error) error {
	for token := ""; ; {
		body, err := o.sendBytes(ctx, "list "+path, func() *rest.Request {
			return addParam(o.c.custom.Get().AbsPath(path).Param("limit", strconv.Itoa(pageSize)), "continue", token)
		})
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var page struct {
			Metadata struct{ Continue string }
			Items    []map[string]any
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("list %s: decode: %w", path, err)
		}
		for _, item := range page.Items {
			if err := each(&unstructured.Unstructured{Object: item}); err != nil {
				return err
			}
		}
		if token = page.Metadata.Continue; token == "" {
			return nil
		}
	}
}

// Patch merges a change into an object. A resourceVersion in it is the precondition.
func (o Objects) Patch(ctx context.Context, path string, change map[string]any) error {
	return o.sendJSON(ctx, "patch", path, change, func() *rest.Request {
		return o.c.custom.Patch(types.MergePatchType)
	})
}

// Replace writes an object as it is; its resourceVersion is the precondition.
func (o Objects) Replace(ctx context.Context, path string, object *unstructured.Unstructured) error {
	return o.sendJSON(ctx, "replace", path, object, func() *rest.Request {
		return o.c.custom.Put().SetHeader("Content-Type", "application/json")
	})
}

// Delete begins the deletion of an object; one that is gone is no error.
func (o Objects) Delete(ctx context.Context, path string) error {
	_, err := o.sendBytes(ctx, "delete "+path, func() *rest.Request { return o.c.custom.Delete().AbsPath(path) })
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// sendJSON sends what is given by the request that is made for each try, which lacks path and body.
func (o Objects) sendJSON(ctx context.Context, verb, path string, what any, request func() *rest.Request) error {
	body, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("%s %s: encode: %w", verb, path, err)
	}
	_, err = o.sendBytes(ctx, verb+" "+path, func() *rest.Request { return request().AbsPath(path).Body(body) })
	return err
}

// sendBytes sends the request until it gets an answer that means something. The error keeps what the API server says is
// wrong, unlike that of a raw read.
func (o Objects) sendBytes(ctx context.Context, what string, request func() *rest.Request) (body []byte, err error) {
	err = retry(ctx, func() error {
		answer := doOnce(ctx, request())
		body, _ = answer.Raw()
		return answer.Error()
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return body, nil
}
