package setup

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "joiner.sh/pkg/api/v1"
)

// karpenterLeader names a Karpenter that works in the cluster right now; empty for none.
func (s *Setup) karpenterLeader(ctx context.Context) (string, error) {
	for _, namespace := range s.KarpenterNamespaces {
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
		if holder != "" && err == nil && s.Now().Before(at.Add(time.Duration(seconds)*time.Second)) {
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
