package kubelet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/bootstrap"
)

// What the product writes for each family of images makes the same kubelet here.
func TestProductsUserData(t *testing.T) {
	formats := map[string]string{"AL2023": FormatNodeadm, "AL2": FormatBootstrap, "Bottlerocket": FormatBottlerock}
	for family, format := range formats {
		t.Run(family, func(t *testing.T) {
			node, err := bootstrap.NewNodeRegistration(map[string]string{"karpenter.sh/nodepool": "default", "team": "a"},
				[]cluster.Taint{{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}, {Key: "start", Effect: "NoExecute"}})
			if err != nil {
				t.Fatal(err)
			}
			text, err := bootstrap.RenderUserData(bootstrap.Input{
				Family: family, ClusterName: "demo", Endpoint: "https://127.0.0.1:6443", CABundle: "Q0E=",
				DNSAddress: "10.100.0.10", ServiceCIDR: "10.100.0.0/16", MaxPods: 29, RAID0: true,
				Node: node,
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseUserData(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if got.Labels["karpenter.sh/nodepool"] != "default" || got.Labels["team"] != "a" {
				t.Errorf("labels = %v", got.Labels)
			}
			if err := checkLabels(got.Labels); err != nil {
				t.Error(err)
			}
			want := Boot{
				Format: format, Cluster: "demo", Endpoint: "https://127.0.0.1:6443", CA: "Q0E=", Labels: got.Labels,
				Taints: []corev1.Taint{
					{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: "start", Effect: corev1.TaintEffectNoExecute},
				},
				MaxPods: 29, RAID0: true, ReplacesKube: family == "AL2",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, text)
			}
		})
	}
}
