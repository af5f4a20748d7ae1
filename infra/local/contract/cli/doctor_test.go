package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/model/findings"
)

const looseDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: loose, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: loose}}
  template:
    metadata: {labels: {app: loose}}
    spec: {containers: [{name: a, image: a, resources: {requests: {cpu: 10m}}}]}
`

// draObjects are a driver whose devices serve an extended resource.
const draObjects = `apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec:
  extendedResourceName: nvidia.com/gpu
  selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: doctor}
spec:
  driver: gpu.nvidia.com
  nodeName: n1
  pool: {name: n1, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {type: {string: gpu}}}]
`

// findings are those of doctor by check.
func (e env) findings(t *testing.T, wantCode int) map[string][]finding {
	t.Helper()
	code, out, progress := e.joiner("doctor", "-o", "json")
	var all []finding
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != wantCode {
		t.Fatalf("exit %d, want %d, %v: %s%s", code, wantCode, err, out, progress)
	}
	by := map[string][]finding{}
	for _, x := range all {
		by[x.Check] = append(by[x.Check], x)
	}
	return by
}

// What setup installs is found as this version brings it; what is changed or gone, and what pods lack, is told with how
// to mend it.
func TestDoctorLooksIntoTheCluster(t *testing.T) {
	e := newEnv(t)
	e.pool(t, "ill", "m5.large")
	e.applyAll(t, looseDeployment)
	e.applyAll(t, draObjects)
	role := schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	var by map[string][]finding
	by = e.findings(t, 3) // the pool has not been looked at
	for _, check := range []string{"API server", "CRDs", "permissions"} {
		if x := by[check]; len(x) != 1 || x[0].Level != findings.Fine {
			t.Errorf("%s: %v", check, x)
		}
	}
	for _, check := range []string{"EKS", "functions", "access entries", "quotas", "spot role"} {
		if x := by[check]; len(x) != 1 || x[0].Level != findings.Unknown || !strings.Contains(x[0].What, "--cluster") {
			t.Errorf("%s: %v", check, x)
		}
	}
	if x := by["NodePools"]; len(x) == 0 || x[0].Level != findings.Broken || !strings.Contains(x[0].What, "nobody has looked at it yet") {
		t.Errorf("NodePools: %v", x)
	}
	if x := by["DRA"]; len(x) != 1 || x[0].Level != findings.Fine || !strings.Contains(x[0].What, "driver gpu.nvidia.com publishes 1 devices, on 1 nodes; those that DeviceClass gpu.nvidia.com selects count as nvidia.com/gpu") {
		t.Errorf("DRA: %v", x)
	}
	defer e.install(t)
	patch := []byte(`{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`)
	if _, err := e.dynamic.Resource(role).Patch(t.Context(), "joiner-rebalance", "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	e.lead(t, time.Now())
	by = e.findings(t, 3)
	if x := by["permissions"]; len(x) != 1 || x[0].What != "clusterrole/joiner-rebalance differs at rules" || x[0].Level != findings.Broken {
		t.Errorf("permissions: %v", x)
	}
	if x := by["Karpenter"]; len(x) != 1 || !strings.Contains(x[0].What, "karpenter-1 holds kube-system/karpenter-leader-election") {
		t.Errorf("Karpenter: %v", x)
	}
	e.eventually(t, "the three pods to be there and told", func(context.Context) (string, bool) {
		loose := e.findings(t, 3)["pods without requests"]
		return fmt.Sprint(loose), slices.ContainsFunc(loose, func(x finding) bool {
			return strings.Contains(x.What, "3 pods of default deployment/loose ask for no memory")
		})
	})
}
