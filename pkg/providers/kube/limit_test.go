package kube_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclass/translate"
)

// The limit on the price is an annotation; one that nobody understands stops the pool.
func TestLimitOnThePrice(t *testing.T) {
	for text, want := range map[string]struct {
		millionths int64
		ready      bool
	}{
		"12.5": {12_500_000, true}, "0": {0, true}, "0.0000015": {2, true},
		"": {0, false}, "much": {0, false}, "-1": {0, false}, "NaN": {0, false}, "1e7": {0, false},
	} {
		p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{"joiner.sh/limit-usd-per-hour": text}}}
		p.Spec.Template.Spec.NodeClassRef = &karpv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "c"}
		p.Spec.Limits = karpv1.Limits{corev1.ResourceCPU: resource.MustParse("10")}
		got := translate.Pool(p, []instancetypes.Class{{Name: "c", Ready: true}})
		limited := []string{"cpu", "joiner.sh/usd-per-hour"}
		if !want.ready {
			limited = limited[:1]
		}
		if got.Ready != want.ready || got.Limits.Get("joiner.sh/usd-per-hour") != want.millionths || !slices.Equal(got.Limited, limited) || got.Limits.CPU != 10_000 {
			t.Errorf("%q: %t %q, limits %s of %v", text, got.Ready, got.Message, got.Limits, got.Limited)
		}
	}
}
