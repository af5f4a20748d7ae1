package translate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/resources"
)

// What a node must have free for a pod, as the scheduler counts it.
func TestNeed(t *testing.T) {
	for name, c := range map[string]struct {
		pod         string
		cpu, memory int64
	}{
		"sum of containers":       {`spec: {containers: [{name: a, resources: {requests: {cpu: 300m, memory: 1Mi}}}, {name: b, resources: {requests: {cpu: 200m}}}]}`, 500, 1 << 20},
		"limits alone":            {`spec: {containers: [{name: a, resources: {limits: {cpu: "4"}}}]}`, 0, 0},
		"largest init container":  {`spec: {initContainers: [{name: i, resources: {requests: {cpu: "2"}}}, {name: j, resources: {requests: {cpu: "1"}}}], containers: [{name: a, resources: {requests: {cpu: 300m}}}]}`, 2000, 0},
		"sidecar before the init": {`spec: {initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 100m}}}, {name: i, resources: {requests: {cpu: "2"}}}], containers: [{name: a, resources: {requests: {cpu: 300m}}}]}`, 2100, 0},
		"sidecar after the init":  {`spec: {initContainers: [{name: i, resources: {requests: {cpu: "2"}}}, {name: s, restartPolicy: Always, resources: {requests: {cpu: 100m}}}], containers: [{name: a, resources: {requests: {cpu: 300m}}}]}`, 2000, 0},
		"sidecar beside the pod":  {`spec: {initContainers: [{name: s, restartPolicy: Always, resources: {requests: {cpu: 100m}}}], containers: [{name: a, resources: {requests: {cpu: 300m}}}]}`, 400, 0},
		"overhead":                {`spec: {overhead: {cpu: 50m, memory: 2Mi}, containers: [{name: a, resources: {requests: {cpu: 300m}}}]}`, 350, 2 << 20},
		"of the pod as a whole":   {`spec: {resources: {requests: {cpu: "3"}}, containers: [{name: a, resources: {requests: {cpu: 300m, memory: 1Mi}}}]}`, 3000, 1 << 20},
		"while it is resized": {`{spec: {containers: [{name: a, resources: {requests: {cpu: 300m}}}]},
			status: {containerStatuses: [{name: a, allocatedResources: {cpu: 900m}, resources: {requests: {cpu: 900m}}}]}}`, 900, 0},
		"while it is resized as a whole": {`{spec: {resources: {requests: {cpu: "1", memory: 1Mi}}, containers: [{name: a}]},
			status: {allocatedResources: {cpu: "3", memory: 1Mi}, resources: {requests: {cpu: "3", memory: 1Mi}}}}`, 3000, 1 << 20},
		"a resize that is deferred": {`{spec: {containers: [{name: a, resources: {requests: {cpu: "3"}}}]}, status: {conditions: [{type: PodResizePending, reason: Deferred}],
			containerStatuses: [{name: a, allocatedResources: {cpu: "1"}, resources: {requests: {cpu: "1"}}}]}}`, 3000, 0},
		"a resize that its node can never do": {`{spec: {containers: [{name: a, resources: {requests: {cpu: "3"}}}]}, status: {conditions: [{type: PodResizePending, reason: Infeasible}],
			containerStatuses: [{name: a, allocatedResources: {cpu: "1"}, resources: {requests: {cpu: "1"}}}]}}`, 1000, 0},
		"more than can be counted": {`spec: {containers: [{name: a, resources: {requests: {cpu: 9e17, memory: 1e30}}}]}`, 1 << 52, 1 << 52},
		"less than can be counted": {`spec: {resources: {requests: {cpu: -9e17, memory: -1e30}}, containers: [{name: a}]}`, -1 << 52, -1 << 52},
	} {
		want := resources.List{CPU: c.cpu, Memory: c.memory, Pods: 1}
		if diff := cmp.Diff(want, Pod(read[corev1.Pod](t, c.pod)).Need); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// What a kubelet reports of a pod is what its node lacks, in CPU and memory: it names no other resource, and another pod
// in its stead asks for what the pod asks for.
func TestWhatAKubeletReportsOfAPod(t *testing.T) {
	got := Pod(read[corev1.Pod](t, `{spec: {containers: [{name: a, resources: {requests: {cpu: 300m, memory: 1Mi}}}]},
		status: {containerStatuses: [{name: a, allocatedResources: {cpu: "180"}, resources: {requests: {cpu: "180", memory: 1Mi, evil.example/x: "5", ephemeral-storage: 1Ti}}}]}}`))
	asked := resources.List{CPU: 300, Memory: 1 << 20, Pods: 1}
	if d := cmp.Diff([]resources.List{{CPU: 180_000, Memory: 1 << 20, Pods: 1}, asked, asked}, []resources.List{got.Need, got.NeedAnew, got.NextNeed()}); d != "" {
		t.Errorf("need, that of the next pod (-want +got):\n%s", d)
	}
	same := Pod(read[corev1.Pod](t, `{spec: {containers: [{name: a, resources: {requests: {cpu: 300m}}}]}, status: {containerStatuses: [{name: a, resources: {requests: {cpu: 0.3}}}]}}`))
	if !same.NeedAnew.IsZero() || same.NextNeed().CPU != 300 {
		t.Errorf("of a pod that is not resized: %s, and %s", same.Need, same.NeedAnew)
	}
}
