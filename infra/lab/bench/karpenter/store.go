package karpenter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// store answers what the scheduler and its cluster state ask the API server, from memory and by index. What it does not
// know is not found; it is written to by nobody.
type store struct {
	client.Client // nil: a call that is not below must be loud

	nodes       map[string]*corev1.Node
	byNode      map[string][]corev1.Pod
	byNamespace map[string][]corev1.Pod
	namespaces  map[string]corev1.Namespace
}

func newStore() *store {
	return &store{
		nodes: map[string]*corev1.Node{}, byNode: map[string][]corev1.Pod{}, byNamespace: map[string][]corev1.Pod{},
		namespaces: map[string]corev1.Namespace{},
	}
}

func (s *store) addPod(p corev1.Pod) {
	s.byNamespace[p.Namespace] = append(s.byNamespace[p.Namespace], p)
	if p.Spec.NodeName != "" {
		s.byNode[p.Spec.NodeName] = append(s.byNode[p.Spec.NodeName], p)
	}
	n := corev1.Namespace{}
	n.Name, n.Labels = p.Namespace, map[string]string{corev1.LabelMetadataName: p.Namespace}
	s.namespaces[p.Namespace] = n
}

// Get finds nodes and nothing else.
func (s *store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if node, ok := into.(*corev1.Node); ok && s.nodes[key.Name] != nil {
		s.nodes[key.Name].DeepCopyInto(node)
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// List finds pods by node, or by namespace and labels, and namespaces by labels.
func (s *store) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	switch list := into.(type) {
	case *corev1.PodList:
		list.Items = nil
		from := s.byNamespace[o.Namespace]
		if o.FieldSelector != nil {
			name, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
			if !ok {
				return fmt.Errorf("list pods: field selector %s is not known here", o.FieldSelector)
			}
			from = s.byNode[name]
		}
		for _, p := range from {
			if o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(p.Labels)) {
				list.Items = append(list.Items, p)
			}
		}
	case *corev1.NamespaceList:
		list.Items = nil
		for _, n := range s.namespaces { // the caller makes a set of them
			if o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(n.Labels)) {
				list.Items = append(list.Items, n)
			}
		}
	}
	return nil
}
