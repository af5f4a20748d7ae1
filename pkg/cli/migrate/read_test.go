package migrate

import (
	"maps"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	o := Options{Values: map[string]string{"RESERVED_ENIS": "1", "LOG_LEVEL": "debug"}}
	o.AddArguments([]string{"/karpenter", "--reserved-enis=2", "-batch-max-duration", "30s", "--isolated-vpc", "--feature-gates",
		"NodeRepair=true,StaticCapacity=true"})
	want := map[string]string{"RESERVED_ENIS": "2", "LOG_LEVEL": "debug", "BATCH_MAX_DURATION": "30s", "ISOLATED_VPC": "true",
		"FEATURE_GATES": "NodeRepair=true,StaticCapacity=true"}
	if !maps.Equal(o.Values, want) {
		t.Errorf("%v", o.Values)
	}
}

func TestHelmValues(t *testing.T) {
	o := Options{Values: map[string]string{"RESERVED_ENIS": "1", "CLUSTER_NAME": "prod"}}
	err := o.AddValues([]byte(`
logLevel: debug
settings:
  reservedENIs: 2
  vmMemoryOverheadPercent: 0.05
  clusterCABundle: QQ==
  clusterEndpoint: "{{ .Values.global.endpoint }}"
  isolatedVPC: true
  interruptionQueue: null
  preferencePolicy: Ignore
  featureGates: {nodeRepair: true, spotToSpotConsolidation: false}
  strange: {a: b}
controller:
  env: [{name: DISABLE_DRY_RUN, value: "true"}, {name: SECRET, valueFrom: {secretKeyRef: {name: x, key: y}}}]
`))
	want := map[string]string{"RESERVED_ENIS": "2", "CLUSTER_NAME": "prod", "LOG_LEVEL": "debug", "VM_MEMORY_OVERHEAD_PERCENT": "0.05",
		"CLUSTER_CA_BUNDLE": "QQ==", "ISOLATED_VPC": "true", "PREFERENCE_POLICY": "Ignore", "DISABLE_DRY_RUN": "true",
		"FEATURE_GATES": "NodeRepair=true,SpotToSpotConsolidation=false"}
	if err != nil || !o.Known || !maps.Equal(o.Values, want) {
		t.Errorf("%v, %v", err, o.Values)
	}
	unread := strings.Join(o.Unread, "\n")
	if len(o.Unread) != 2 || !strings.Contains(unread, "CLUSTER_ENDPOINT is a template") || !strings.Contains(unread, "settings.strange") {
		t.Errorf("not read: %s", unread)
	}
	for text, want := range map[string]string{"settings: [": "no values of Karpenter's chart", "replicas: 2": "it has none of settings"} {
		if err := new(Options).AddValues([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
