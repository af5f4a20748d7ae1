package karpenter

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/apis/v1alpha1"

	"joiner.sh/infra/lab/bench/manifests"
)

// reader answers what Karpenter asks the API server from the objects of a cluster. The status of NodeOverlays is
// written to nowhere.
type reader struct {
	client.Client // nil: a call that is not below must be loud

	items map[reflect.Type][]client.Object // by type, in the order of the cluster
}

// newReader shows the cluster in Karpenter's own types.
func newReader(c *manifests.Cluster) (*reader, error) {
	r := &reader{items: map[reflect.Type][]client.Object{}}
	keepAll(r, c.Namespaces)
	keepAll(r, c.Nodes)
	keepAll(r, c.Pods)
	keepAll(r, c.DaemonSets)
	keepAll(r, c.Volumes)
	keepAll(r, c.VolumeClaims)
	keepAll(r, c.StorageClasses)
	keepAll(r, c.CSINodes)
	for i := range c.NodePools {
		if err := r.keepLike(&c.NodePools[i], &karpv1.NodePool{}); err != nil {
			return nil, err
		}
	}
	for i := range c.NodeClaims {
		if err := r.keepLike(&c.NodeClaims[i], &karpv1.NodeClaim{}); err != nil {
			return nil, err
		}
	}
	for i := range c.NodeOverlays {
		if err := r.keepLike(&c.NodeOverlays[i], &v1alpha1.NodeOverlay{}); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func keepAll[T any, P interface {
	*T
	client.Object
}](r *reader, list []T) {
	for i := range list {
		o := P(&list[i])
		r.items[reflect.TypeOf(o)] = append(r.items[reflect.TypeOf(o)], o)
	}
}

// keepLike keeps the object as one of another Go type with the same fields.
func (r *reader) keepLike(from any, into client.Object) error {
	b, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("translate %T: %w", into, err)
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("translate %T: %w", into, err)
	}
	r.items[reflect.TypeOf(into)] = append(r.items[reflect.TypeOf(into)], into)
	return nil
}

// objectsOf are the objects of the type of the example.
func objectsOf[P client.Object](r *reader, example P) []P {
	var out []P
	for _, o := range r.items[reflect.TypeOf(example)] {
		if p, ok := o.(P); ok {
			out = append(out, p)
		}
	}
	return out
}

// Get finds an object by namespace and name.
func (r *reader) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, o := range r.items[reflect.TypeOf(into)] {
		if o.GetName() == key.Name && o.GetNamespace() == key.Namespace {
			reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.DeepCopyObject()).Elem())
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// List finds objects by namespace, labels and, of pods, the node.
func (r *reader) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	items := reflect.ValueOf(into).Elem().FieldByName("Items")
	found := reflect.MakeSlice(items.Type(), 0, 0)
	for _, one := range r.items[reflect.PointerTo(items.Type().Elem())] {
		if o.Namespace != "" && o.Namespace != one.GetNamespace() || o.LabelSelector != nil &&
			!o.LabelSelector.Matches(labels.Set(one.GetLabels())) {
			continue
		}
		if pod, ok := one.(*corev1.Pod); ok && o.FieldSelector != nil {
			node, known := o.FieldSelector.RequiresExactMatch("spec.nodeName")
			if !known {
				return fmt.Errorf("list pods: field selector %s is not known here", o.FieldSelector)
			}
			if pod.Spec.NodeName != node {
				continue
			}
		}
		found = reflect.Append(found, reflect.ValueOf(one.DeepCopyObject()).Elem())
	}
	items.Set(found)
	return nil
}

// Status takes what Karpenter finds out about NodeOverlays, and keeps nothing of it.
func (r *reader) Status() client.SubResourceWriter { return forgetful{} }

type forgetful struct {
	client.SubResourceWriter // nil: a call that is not below must be loud
}

func (forgetful) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	if _, ok := o.(*v1alpha1.NodeOverlay); !ok {
		return fmt.Errorf("patch the status of %T: not known here", o)
	}
	return nil
}
