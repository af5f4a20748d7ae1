package setup

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "joiner.sh/pkg/api/v1"
)

// Limits of what a lease says of itself: who may write one in such a namespace writes what he likes.
const (
	leaseBelievedFor = time.Minute
	// usualNamespace is the namespace in which others than AWS install Karpenter. A tenant may make it where it is not
	// there.
	usualNamespace = "karpenter"
)

// karpenterLeader names a Karpenter that works in the cluster right now; empty for none. It is looked for in the usual
// namespace too, where the functions may not look: what setup leaves alone for its sake costs nobody a node.
func (s *Setup) karpenterLeader(ctx context.Context) (string, error) {
	for _, namespace := range append(slices.Clone(s.KarpenterNamespaces), usualNamespace) {
		o, found, err := s.Cluster.Get(ctx, "/apis/coordination.k8s.io/v1/namespaces/"+namespace+"/leases/"+v1.KarpenterLeaderLease)
		if err != nil {
			return "", fmt.Errorf("look for a Karpenter that leads: %w", err)
		}
		if !found {
			continue
		}
		holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity")
		renewed, _, _ := unstructured.NestedString(o.Object, "spec", "renewTime")
		seconds, _, _ := unstructured.NestedInt64(o.Object, "spec", "leaseDurationSeconds")
		at, err := time.Parse(time.RFC3339, renewed)
		believed := min(time.Duration(seconds)*time.Second, leaseBelievedFor)
		if holder != "" && err == nil && s.Now().Before(at.Add(believed)) && at.Before(s.Now().Add(leaseBelievedFor)) {
			if !slices.Contains(s.KarpenterNamespaces, namespace) {
				s.Log.Warn("a Karpenter leads in a namespace that karpenterNamespaces does not name: Joiner acts beside "+
					"it in mode act", "namespace", namespace, "holder", holder)
			}
			return holder, nil
		}
	}
	return "", nil
}

// crdsAreOthers reports whether CRDs that are there are to be left as they are: their owner works in the cluster, or
// nothing of it may be changed.
func (s *Setup) crdsAreOthers(ctx context.Context) (bool, error) {
	if s.Observe {
		return true, nil
	}
	if s.Access.AutoMode {
		s.Log.Warn("EKS Auto Mode owns CRDs of this cluster: those that are there stay as they are")
		return true, nil
	}
	holder, err := s.karpenterLeader(ctx)
	if holder != "" {
		s.Log.Warn("a Karpenter leads this cluster: its CRDs stay as they are; deploy again once it is gone", "holder",
			holder)
	}
	return holder != "", err
}
