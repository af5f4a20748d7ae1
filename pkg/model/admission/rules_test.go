package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

const rules = `
LimitRanges:
- metadata: {name: usual, namespace: shop}
  spec:
    limits:
    - {type: Container, max: {memory: 4Gi}, default: {cpu: 500m}, defaultRequest: {cpu: 200m}, min: {ephemeral-storage: 1Gi}}
    - {type: Pod, max: {cpu: 8}}
RuntimeClasses:
- metadata: {name: kata}
  overhead: {podFixed: {cpu: 250m}}
  scheduling: {nodeSelector: {kata: "yes"}, tolerations: [{key: kata, operator: Exists}]}
PriorityClasses:
- {metadata: {name: usual}, value: 7, globalDefault: true}
- {metadata: {name: high}, value: 1000}
`

// Each pair is a pod that has its defaults, and what admission makes of it in the namespace.
func TestAdmit(t *testing.T) {
	var r Rules
	if err := yaml.Unmarshal([]byte(rules), &r); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		namespace, given, want string
		missing                []string
	}{
		"a range's defaults": {"shop", "containers: [{name: a, resources: {requests: {cpu: 1}, limits: {cpu: 1}}}]",
			"containers: [{name: a, resources: {requests: {cpu: 1, memory: 4Gi, ephemeral-storage: 1Gi}, limits: {cpu: 1, memory: 4Gi}}}]\npriority: 7", nil},
		"of init containers too": {"shop", "containers: []\ninitContainers: [{name: i}]",
			"containers: []\ninitContainers: [{name: i, resources: {requests: {cpu: 200m, memory: 4Gi, ephemeral-storage: 1Gi}, limits: {cpu: 500m, memory: 4Gi}}}]\npriority: 7", nil},
		"another namespace": {"other", "containers: [{name: a}]", "containers: [{name: a}]\npriority: 7", nil},
		"a runtime class": {"other", "containers: [{name: a}]\nruntimeClassName: kata\nnodeSelector: {a: b}",
			"containers: [{name: a}]\nruntimeClassName: kata\nnodeSelector: {a: b, kata: \"yes\"}\ntolerations: [{key: kata, operator: Exists}]\noverhead: {cpu: 250m}\npriority: 7", nil},
		"priorities": {"other", "containers: []\npriorityClassName: high", "containers: []\npriorityClassName: high\npriority: 1000", nil},
		"the system's own": {"other", "containers: []\npriorityClassName: system-node-critical",
			"containers: []\npriorityClassName: system-node-critical\npriority: 2000001000", nil},
		"names that are not there": {"other", "containers: []\npriorityClassName: gone\nruntimeClassName: gone",
			"containers: []\npriorityClassName: gone\nruntimeClassName: gone", []string{"RuntimeClass gone", "PriorityClass gone"}},
	} {
		var got, want corev1.PodSpec
		for _, err := range []error{yaml.UnmarshalStrict([]byte(c.given), &got), yaml.UnmarshalStrict([]byte(c.want), &want)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		missing := r.Admit(c.namespace, &got)
		if diff := cmp.Diff(want, got) + cmp.Diff(c.missing, missing); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
