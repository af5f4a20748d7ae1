package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// Each pair is a pod as it is written, and what the API server keeps of it.
func TestSetDefaults(t *testing.T) {
	for name, c := range map[string]struct{ written, kept string }{
		"limits of containers": {
			"containers: [{name: a, resources: {limits: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}, requests: {cpu: 500m}}}]\ninitContainers: [{name: i, resources: {limits: {cpu: 3}}}]",
			"containers: [{name: a, resources: {limits: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}, requests: {cpu: 500m, memory: 4Gi, nvidia.com/gpu: 1}}}]\ninitContainers: [{name: i, resources: {limits: {cpu: 3}, requests: {cpu: 3}}}]"},
		"a request of zero stays": {
			"containers: [{name: a, resources: {limits: {cpu: 2}, requests: {cpu: 0}}}]",
			"containers: [{name: a, resources: {limits: {cpu: 2}, requests: {cpu: 0}}}]"},
		"the pod's own limit, no container speaks": {
			"containers: [{name: a}]\nresources: {limits: {cpu: 3, memory: 1Gi}}",
			"containers: [{name: a}]\nresources: {limits: {cpu: 3, memory: 1Gi}, requests: {cpu: 3, memory: 1Gi}}"},
		"the pod's own limit, containers ask": {
			"containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 500m}}}]\nresources: {limits: {cpu: 3, memory: 1Gi}}",
			"containers: [{name: a, resources: {requests: {cpu: 1}}}, {name: b, resources: {limits: {cpu: 500m}, requests: {cpu: 500m}}}]\nresources: {limits: {cpu: 3, memory: 1Gi}, requests: {cpu: 1500m, memory: 1Gi}}"},
		"huge pages of containers become the pod's": {
			"containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi, memory: 1Gi}}}]\nresources: {limits: {memory: 2Gi}}",
			"containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi, memory: 1Gi}, requests: {hugepages-2Mi: 4Mi, memory: 1Gi}}}]\nresources: {limits: {memory: 2Gi, hugepages-2Mi: 4Mi}, requests: {memory: 1Gi, hugepages-2Mi: 4Mi}}"},
		"ports on the network of the node": {
			"hostNetwork: true\ncontainers: [{name: a, ports: [{containerPort: 80}, {containerPort: 81, hostPort: 82}]}]\ninitContainers: [{name: i, ports: [{containerPort: 83}]}]",
			"hostNetwork: true\ncontainers: [{name: a, ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 82}]}]\ninitContainers: [{name: i, ports: [{containerPort: 83, hostPort: 83}]}]"},
		"ports on its own network": {
			"containers: [{name: a, ports: [{containerPort: 80}]}]",
			"containers: [{name: a, ports: [{containerPort: 80}]}]"},
		"thousandths": {
			"containers: [{name: a, resources: {requests: {cpu: 100u}}}]\noverhead: {cpu: 1500u}",
			"containers: [{name: a, resources: {requests: {cpu: 1m}}}]\noverhead: {cpu: 2m}"},
	} {
		var given, got, want corev1.PodSpec
		for _, err := range []error{yaml.UnmarshalStrict([]byte(c.written), &given), yaml.UnmarshalStrict([]byte(c.kept), &want)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		got = *given.DeepCopy()
		SetDefaults(&got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		copied := given // what it shares with others must not change
		SetDefaults(&copied)
		var again corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(c.written), &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again, given); diff != "" {
			t.Errorf("%s: the original was changed (-want +got):\n%s", name, diff)
		}
	}
}
