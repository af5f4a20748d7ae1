package workload

import (
	"fmt"
	"strings"
	"testing"
)

// An object about devices of a version or with fields that no API server takes is refused, with the field.
func TestDevicesThatNoAPIServerTakes(t *testing.T) {
	claim := func(devices string) string {
		return "{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: " + devices + "}}"
	}
	request := func(exactly string) string {
		return claim("{requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, " + exactly + "}}]}")
	}
	old := func(version, kind, spec string) string {
		return fmt.Sprintf("{apiVersion: resource.k8s.io/%s, kind: %s, metadata: {name: c}, spec: %s}", version, kind, spec)
	}
	const rule = "{deviceSelector: {driver: gpu.nvidia.com}, taint: {key: ill, effect: NoSchedule}}"
	const slice = "{driver: d, nodeName: n1, pool: {name: n1, generation: 1, resourceSliceCount: 1}}"
	const known = `apiVersion: "resource.k8s.io/v1alpha3" is not known for kind %s; v1, v1beta2, v1beta1 of resource.k8s.io are`
	for in, want := range map[string]string{
		old("v1alpha3", "ResourceClaim", "{}"):         fmt.Sprintf(known, "ResourceClaim"),
		old("v1alpha3", "ResourceClaimTemplate", "{}"): fmt.Sprintf(known, "ResourceClaimTemplate"),
		old("v1alpha3", "DeviceClass", "{}"):           fmt.Sprintf(known, "DeviceClass"),
		old("v1alpha3", "ResourceSlice", slice):        fmt.Sprintf(known, "ResourceSlice"),
		old("v1alpha2", "ResourceClaim", "{}"):         "v1, v1beta2, v1beta1 of",
		old("v1beta1", "ResourceClaim", "{}"):          "",
		old("v1beta2", "ResourceSlice", slice):         "",
		old("v1beta1", "DeviceTaintRule", rule): `apiVersion: "resource.k8s.io/v1beta1" is not known for kind DeviceTaintRule; ` +
			"v1, v1beta2, v1alpha3 of resource.k8s.io are",
		old("v1alpha3", "DeviceTaintRule", rule):                                           "",
		old("v1", "DeviceTaintRule", rule):                                                 "",
		old("v1", "DeviceTaintRule", strings.Replace(rule, "NoSchedule", "Never", 1)):      `spec.taint.effect: it is "Never"; use NoSchedule, NoExecute or None`,
		old("v1", "DeviceTaintRule", strings.Replace(rule, ", effect: NoSchedule", "", 1)): `spec.taint.effect: it is ""`,
		request("count: 2"):                                "",
		request("allocationMode: All"):                     "",
		request("allocationMode: ExactCount, count: -1"):   "spec.devices.requests[0].exactly.count: it is -1; it must be 1 or more",
		request("count: -1"):                               "spec.devices.requests[0].exactly.count: it is -1",
		request("allocationMode: All, count: 2"):           "spec.devices.requests[0].exactly.count: it is 2; with allocationMode All there is none",
		request("tolerations: [{key: a, operator: Near}]"): `spec.devices.requests[0].exactly.tolerations[0].operator: it is "Near"; use Equal or Exists`,
		request("tolerations: [{operator: Exists, value: a}]"): "spec.devices.requests[0].exactly.tolerations[0].value: it is given; " +
			"with operator Exists there is none",
		request("tolerations: [{operator: Exists, effect: Never}]"): `spec.devices.requests[0].exactly.tolerations[0].effect: it is "Never"`,
		request("tolerations: [{key: a}, {operator: Exists}]"):      "",
		claim("{requests: [{exactly: {deviceClassName: a}}]}"):      `spec.devices.requests[0].name: it is ""; each request has a name of its own`,
		claim("{requests: [{name: r, exactly: {deviceClassName: a}}, {name: r, exactly: {deviceClassName: b}}]}"): `spec.devices.requests[1].name: it is "r"; ` +
			"each request has a name of its own",
		claim("{requests: [{name: r, firstAvailable: [{name: s, deviceClassName: b}]}], constraints: [{requests: [r/s], matchAttribute: a/b}]}"): "",
		claim("{requests: [{name: r, exactly: {deviceClassName: a}}], constraints: [{requests: [r, s], matchAttribute: a/b}]}"): "spec.devices.constraints[0].requests: " +
			"it names s, which is no request of the claim",
		claim("{requests: [{name: r, exactly: {deviceClassName: a}}], config: [{requests: [r/s], opaque: {driver: d}}]}"): "spec.devices.config[0].requests: it names r/s",
		strings.NewReplacer("kind: ResourceClaim", "kind: ResourceClaimTemplate", "spec: {devices", "spec: {spec: {devices", "}]}}}", "}]}}}}").
			Replace(request("count: -1")): "spec.spec.devices.requests[0].exactly.count: it is -1",
		"{apiVersion: resource.k8s.io/v1beta1, kind: ResourceClaim, metadata: {name: c}, spec: {devices: {requests: [{name: r, deviceClassName: a, count: -1}]}}}": "count: it is -1",
	} {
		_, _, err := collect(t, in)
		_, alone := ParseManifests([]byte(in))
		for _, err := range []error{err, alone} {
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s\n gives %v\n want %s", in, err, want)
			}
		}
	}
}
