package nodeclass_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclass"
)

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestClass(t *testing.T) {
	n := read[awsv1.EC2NodeClass](t, `
metadata: {name: default, generation: 3, annotations: {karpenter.k8s.aws/ec2nodeclass-hash: "12", karpenter.k8s.aws/ec2nodeclass-hash-version: v5}}
spec:
  amiSelectorTerms: [{alias: bottlerocket@latest}]
  instanceStorePolicy: RAID0
  cpuOptions: {nestedVirtualization: enabled}
  placementGroupSelector: {name: close}
  connectionTracking: {udpTimeout: 30}
  networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface}, {networkCardIndex: 2, deviceIndex: 1, interfaceType: efa-only}]
  kubelet: {maxPods: 50, podsPerCore: 4, kubeReserved: {cpu: 100m}, systemReserved: {memory: 1Gi}, evictionHard: {memory.available: 5%}}
status:
  subnets: [{id: subnet-2, zone: us-west-2b, zoneID: usw2-az2}, {id: subnet-1, zone: us-west-2a, zoneID: usw2-az1}]
  securityGroups: [{id: sg-2}, {id: sg-1, name: nodes}]
  amis: [{id: ami-2, name: bottlerocket-aws-k8s-1.35-aarch64-v1.50.0-1f, requirements: [{key: kubernetes.io/arch, operator: In, values: [arm64]}]}, {id: ami-1, name: bottlerocket-aws-k8s-1.36-x86_64-v1.50.0-1f, requirements: []}]
  capacityReservations:
  - {id: cr-2, availabilityZone: us-west-2b, instanceType: p5.48xlarge, instanceMatchCriteria: targeted, ownerID: "111122223333", reservationType: capacity-block, state: expiring, endTime: "2026-11-21T11:30:00Z"}
  - {id: cr-1, availabilityZone: us-west-2a, instanceType: m5.large, instanceMatchCriteria: open, ownerID: "111122223333", interruptible: true, state: active}
  conditions: [{type: Ready, status: "True", observedGeneration: 3, reason: Ready}]
`)
	maxPods := int64(50)
	want := instancetypes.Class{
		Name: "default", Ready: true, Hash: "12", HashVersion: "v5", Family: "Bottlerocket", KubeletMinor: 35, MaxPods: &maxPods, PodsPerCore: 4, EphemeralBytes: 20 << 30,
		Images: []instancetypes.Image{
			{ID: "ami-2", Requirements: requirements.NewSet(requirements.Of("kubernetes.io/arch", "arm64"))}, {ID: "ami-1"}},
		SecurityGroups: []string{"sg-1", "sg-2"},
		ZoneIDs:        map[string]string{"us-west-2a": "usw2-az1", "us-west-2b": "usw2-az2"},
		Subnets:        []instancetypes.Subnet{{ID: "subnet-2", Zone: "us-west-2b"}, {ID: "subnet-1", Zone: "us-west-2a"}},
		KubeReserved:   map[string]string{"cpu": "100m"}, SystemReserved: map[string]string{"memory": "1Gi"},
		EvictionHard: map[string]string{"memory.available": "5%"}, Disks: instancetypes.FamilyDisks(instancetypes.Bottlerocket), RAID0: true, NitroOnly: true, NestedVirtualization: true, Placement: &instancetypes.Placement{Name: "close"}, Interfaces: []instancetypes.Interface{{}, {Card: 2, Device: 1, EFAOnly: true}},
		Reservations: []instancetypes.Reservation{
			{ID: "cr-1", Type: "m5.large", Zone: "us-west-2a", Kind: "default", Interruptible: true},
			{ID: "cr-2", Type: "p5.48xlarge", Zone: "us-west-2b", Kind: "capacity-block", Expiring: true, Ends: time.Date(2026, 11, 21, 11, 30, 0, 0, time.UTC)}},
	}
	if diff := cmp.Diff(want, nodeclass.DescribeClass(n)); diff != "" {
		t.Errorf("class (-want +got):\n%s", diff)
	}
	disabled := "disabled"
	n.Spec.CPUOptions.NestedVirtualization, n.Spec.PlacementGroupSelector = &disabled, &awsv1.PlacementGroupSelector{ID: "pg-1"}
	if got := nodeclass.DescribeClass(n); got.NestedVirtualization || *got.Placement != (instancetypes.Placement{ID: "pg-1"}) {
		t.Errorf("nested virtualization that is disabled, and a group by id: %t %+v", got.NestedVirtualization, got.Placement)
	}
	n.Generation = 4
	if got := nodeclass.DescribeClass(n); got.Ready || !got.Unseen || got.Message != "it was changed and has not been looked at again yet" {
		t.Errorf("a class that was changed: %t %q", got.Ready, got.Message)
	}
	n.Status.Conditions[0] = metav1.Condition{Type: "Ready", Status: "False", Reason: "SubnetsNotFound", Message: "none match"}
	if got := nodeclass.DescribeClass(n); got.Ready || got.Message != "SubnetsNotFound: none match" {
		t.Errorf("a class without subnets: %t %q", got.Ready, got.Message)
	}
	n.Status.Conditions = nil
	if got := nodeclass.DescribeClass(n); got.Ready || !got.Unseen || got.Message != "it has not been looked at yet" {
		t.Errorf("a new class: %t %t %q", got.Ready, got.Unseen, got.Message)
	}
	n.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	if got := nodeclass.DescribeClass(n); got.Ready || got.Unseen || got.Message != "it is being deleted" {
		t.Errorf("a class that goes: %t %t %q", got.Ready, got.Unseen, got.Message)
	}
}

func TestEphemeralBytes(t *testing.T) {
	const gi = int64(1) << 30
	for text, want := range map[string]int64{
		`{amiFamily: AL2023}`:      20 * gi,
		`{amiFamily: Windows2022}`: 50 * gi,
		`{amiFamily: Custom}`:      20 * gi,
		`{amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 7Gi}}]}`:                                                              100 * gi,
		`{amiFamily: Bottlerocket, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 7Gi}}]}`:                                                        7 * gi,
		`{amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/sdf, rootVolume: true, ebs: {volumeSize: 9G}}]}`:                                              100 * gi,
		`{amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/sda1, rootVolume: true, ebs: {volumeSize: 9G}}, {deviceName: /dev/sdf, ebs: {volumeSize: 1Gi}}]}`:                                                9_000_000_000,
		`{amiFamily: Bottlerocket, blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 4Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 100Gi}}]}`:                                      100 * gi,
		`{amiFamily: Bottlerocket, blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 4Gi}}]}`:                                                                                         20 * gi,
		`{amiFamily: Windows2022, blockDeviceMappings: [{deviceName: /dev/sda1, ebs: {volumeSize: 90Gi}}, {deviceName: xvdf, rootVolume: true, ebs: {volumeSize: 9Gi}}]}`:                                             90 * gi,
		`{amiFamily: Custom, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/b, rootVolume: true, ebs: {volumeSize: 6Gi}}, {deviceName: /dev/c, ebs: {volumeSize: 7Gi}}]}`: 6 * gi,
		`{amiFamily: AL2023, blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {snapshotID: s}}]}`:                                                                                                                   20 * gi,
		`{amiFamily: Custom, blockDeviceMappings: [{deviceName: /dev/a, ebs: {volumeSize: 100Gi}}, {deviceName: /dev/b, ebs: {volumeSize: 6Gi}}]}`:                                                                    6 * gi,
	} {
		n := &awsv1.EC2NodeClass{Spec: *read[awsv1.EC2NodeClassSpec](t, text)}
		if got := nodeclass.DescribeClass(n).EphemeralBytes; got != want {
			t.Errorf("%s: %d bytes, want %d", text, got, want)
		}
	}
}
