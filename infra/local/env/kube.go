package env

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns what the environment applies.
const fieldManager = "joiner-local"

// Kube is an administrator's way into the cluster: what kubectl would do by hand.
type Kube struct {
	kubernetes.Interface
	Dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// NewKube makes the clients. It makes no request.
func NewKube(c *rest.Config) (*Kube, error) {
	k, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make kubernetes client: %w", err)
	}
	d, err := dynamic.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("make kubernetes client: %w", err)
	}
	return &Kube{Interface: k, Dynamic: d, mapper: restmapper.NewDeferredDiscoveryRESTMapper(
		memory.NewMemCacheClient(k.Discovery()))}, nil
}

// ApplyManifest applies every document of a YAML stream by server-side apply.
func (k *Kube) ApplyManifest(ctx context.Context, manifest []byte) error {
	return k.eachObject(manifest, func(obj *unstructured.Unstructured) error { return k.ApplyObject(ctx, obj) })
}

// DeleteManifest deletes every object of a YAML stream; those that are gone are no error.
func (k *Kube) DeleteManifest(ctx context.Context, manifest []byte) error {
	return k.eachObject(manifest, func(obj *unstructured.Unstructured) error {
		r, err := k.ResourceClient(obj)
		if err != nil {
			return err
		}
		background := metav1.DeletePropagationBackground
		err = r.Delete(ctx, obj.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// ApplyObject applies one object by server-side apply. A kind whose CRD was applied just now is waited for.
func (k *Kube) ApplyObject(ctx context.Context, obj *unstructured.Unstructured) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			r, err := k.ResourceClient(obj)
			if meta.IsNoMatchError(err) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			_, err = r.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
			if apierrors.IsNotFound(err) {
				return false, nil // the kind is not served yet
			}
			return err == nil, err
		})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}

// NodePools is the resource of our NodePools.
func NodePools() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
}

// NodeClaims is the resource of our NodeClaims.
func NodeClaims() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}
}

// NodeClasses is the resource of our EC2NodeClasses.
func NodeClasses() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "karpenter.k8s.aws", Version: "v1", Resource: "ec2nodeclasses"}
}

func (k *Kube) eachObject(manifest []byte, do func(*unstructured.Unstructured) error) error {
	docs := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), 4096)
	for {
		obj := &unstructured.Unstructured{}
		if err := docs.Decode(&obj.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read manifest: %w", err)
		}
		if len(obj.Object) == 0 {
			continue
		}
		if err := do(obj); err != nil {
			return err
		}
	}
}

// ResourceClient is for objects of the kind of one, in its namespace.
func (k *Kube) ResourceClient(obj *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := obj.GroupVersionKind()
	m, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		k.mapper.Reset()
		m, err = k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	r := k.Dynamic.Resource(m.Resource)
	if m.Scope.Name() != meta.RESTScopeNameNamespace {
		return r, nil
	}
	ns := obj.GetNamespace()
	if ns == "" {
		ns = metav1.NamespaceDefault
	}
	return r.Namespace(ns), nil
}
