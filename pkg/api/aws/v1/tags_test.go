package v1_test

import (
	"testing"

	v1 "joiner.sh/pkg/api/aws/v1"
)

func TestTagsThatOnlyWeMaySet(t *testing.T) {
	for key, want := range map[string]bool{
		"karpenter.sh/nodepool": true, "karpenter.sh/nodeclaim": true, "joiner.sh/nodeclaim-uid": true,
		"eks:eks-cluster-name":           true,
		"karpenter.k8s.aws/ec2nodeclass": true, "kubernetes.io/cluster/other": true, "Name": false, "team": false,
		"karpenter.sh/discovery": false,
	} {
		if got, found := v1.RestrictedTag(map[string]string{"a": "b", key: "x"}); found != want || want && got != key {
			t.Errorf("%s: %q %t", key, got, found)
		}
	}
}
