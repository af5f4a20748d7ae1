package karpenter

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
)

// objects is the API server of a disruption: read from memory by index, and written to as far as the disruption
// controller does. What it does not know is not found.
type objects struct {
	client.Client // nil: a call that is not below must be loud

	mu      sync.Mutex
	pools   []karpv1.NodePool
	daemons []appsv1.DaemonSet
	budgets []policyv1.PodDisruptionBudget
	nodes   map[string]*corev1.Node
	claims  map[string]*karpv1.NodeClaim
	pods    map[string]*corev1.Pod
	on      map[string]map[string]*corev1.Pod // by node, "" for none
	written map[string]bool                   // nodes
	dropped map[string]bool                   // claims
	made    int
}

func newObjects() *objects {
	return &objects{nodes: map[string]*corev1.Node{}, claims: map[string]*karpv1.NodeClaim{},
		pods: map[string]*corev1.Pod{},
		on:   map[string]map[string]*corev1.Pod{}, written: map[string]bool{}, dropped: map[string]bool{}}
}

// notePlace notes where the pod is now, and that it is not where it was.
func (s *objects) notePlace(p *corev1.Pod, was string) {
	delete(s.on[was], p.Name)
	if s.on[p.Spec.NodeName] == nil {
		s.on[p.Spec.NodeName] = map[string]*corev1.Pod{}
	}
	s.on[p.Spec.NodeName][p.Name] = p
}

// takeChangedNodes returns the nodes that were written since the last call.
func (s *objects) takeChangedNodes() []string {
	out := slices.Sorted(maps.Keys(s.written))
	clear(s.written)
	return out
}

// takeDeletedClaims returns the claims that were deleted since the last call.
func (s *objects) takeDeletedClaims() []string {
	out := slices.Sorted(maps.Keys(s.dropped))
	clear(s.dropped)
	return out
}

// Get finds nodes, claims and pools.
func (s *objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch o := into.(type) {
	case *corev1.Node:
		if n := s.nodes[key.Name]; n != nil {
			n.DeepCopyInto(o)
			return nil
		}
	case *karpv1.NodeClaim:
		if c := s.claims[key.Name]; c != nil {
			c.DeepCopyInto(o)
			return nil
		}
	case *karpv1.NodePool:
		for i := range s.pools {
			if s.pools[i].Name == key.Name {
				s.pools[i].DeepCopyInto(o)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: fmt.Sprintf("%T", into)}, key.Name)
}

// List finds what there is. Pods are found by node, or by namespace and labels.
func (s *objects) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch list := into.(type) {
	case *corev1.PodList:
		from := s.pods
		if o.FieldSelector != nil {
			name, ok := o.FieldSelector.RequiresExactMatch("spec.nodeName")
			if !ok {
				return fmt.Errorf("list pods: field selector %s is not known here", o.FieldSelector)
			}
			from = s.on[name]
		}
		list.Items = make([]corev1.Pod, 0, len(from))
		for _, name := range slices.Sorted(maps.Keys(from)) {
			p := from[name]
			if (o.Namespace == "" || o.Namespace == p.Namespace) &&
				(o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(p.Labels))) {
				list.Items = append(list.Items, *p)
			}
		}
	case *corev1.NamespaceList:
		n := corev1.Namespace{}
		n.Name, n.Labels = "default", map[string]string{corev1.LabelMetadataName: "default"}
		list.Items = []corev1.Namespace{n}
	case *karpv1.NodePoolList:
		list.Items = slices.Clone(s.pools)
	case *appsv1.DaemonSetList:
		list.Items = slices.Clone(s.daemons)
	case *policyv1.PodDisruptionBudgetList:
		list.Items = slices.Clone(s.budgets)
	case *corev1.NodeList:
		for _, name := range slices.Sorted(maps.Keys(s.nodes)) {
			list.Items = append(list.Items, *s.nodes[name])
		}
	case *karpv1.NodeClaimList:
		for _, name := range slices.Sorted(maps.Keys(s.claims)) {
			list.Items = append(list.Items, *s.claims[name])
		}
	}
	return nil
}

// Create makes a claim.
func (s *objects) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	c, ok := o.(*karpv1.NodeClaim)
	if !ok {
		return fmt.Errorf("create %T: not known here", o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	c.Name = fmt.Sprintf("%s%05d", c.GenerateName, s.made)
	c.UID = types.UID(c.Name)
	s.claims[c.Name] = c.DeepCopy()
	return nil
}

// Delete notes that a claim is to go.
func (s *objects) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.claims[o.GetName()] == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, o.GetName())
	}
	s.dropped[o.GetName()] = true
	return nil
}

// Patch writes a node as it was handed in.
func (s *objects) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.PatchOption) error {
	n, ok := o.(*corev1.Node)
	if !ok {
		return fmt.Errorf("patch %T: not known here", o)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes[n.Name] = n.DeepCopy()
	s.written[n.Name] = true
	return nil
}

// Status writes the status of claims.
func (s *objects) Status() client.SubResourceWriter { return claimStatus{s: s} }

type claimStatus struct {
	client.SubResourceWriter // nil: a call that is not below must be loud

	s *objects
}

// Patch writes a claim as it was handed in.
func (w claimStatus) Patch(_ context.Context, o client.Object, _ client.Patch,
	_ ...client.SubResourcePatchOption) error {
	c, ok := o.(*karpv1.NodeClaim)
	if !ok {
		return fmt.Errorf("patch the status of %T: not known here", o)
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	w.s.claims[c.Name] = c.DeepCopy()
	return nil
}
