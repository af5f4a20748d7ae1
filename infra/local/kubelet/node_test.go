package kubelet

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func amounts(list corev1.ResourceList, names ...corev1.ResourceName) string {
	var out []string
	for _, name := range names {
		q := list[name]
		out = append(out, q.String())
	}
	return strings.Join(out, " ")
}

func TestResources(t *testing.T) {
	m5Large := Facts{VCPU: 2, MemoryMiB: 8192, Arch: "amd64", PodsByENI: 29}
	cases := []struct {
		name                  string
		boot                  Boot
		facts                 Facts
		capacity, allocatable string // cpu memory pods ephemeral-storage
	}{
		// 8192 MiB less 5 % is 7782 MiB; less 11*29+255 = 574 and 100 MiB it is 7108 MiB.
		{"m5.large", Boot{Format: FormatNodeadm}, m5Large, "2 7782Mi 29 20Gi", "1930m 7108Mi 29 17Gi"},
		{"more pods reserve no more on AL2023", Boot{Format: FormatNodeadm, MaxPods: 110}, m5Large, "2 7782Mi 110 20Gi", "1930m 7108Mi 110 17Gi"},
		{"but on Bottlerocket", Boot{Format: FormatBottlerock, MaxPods: 110}, m5Large, "2 7782Mi 110 20Gi", "1930m 6217Mi 110 17Gi"},
		{"pods per core", Boot{Format: FormatNodeadm, PodsPerCore: 4}, m5Large, "2 7782Mi 8 20Gi", "1930m 7108Mi 8 17Gi"},
		{"own reservation", Boot{
			Format: FormatNodeadm, KubeReserved: map[string]string{"cpu": "500m"}, SystemReserved: map[string]string{"memory": "1Gi"},
			EvictionHard: map[string]string{"memory.available": "10%"},
		}, m5Large, "2 7782Mi 29 20Gi", "1500m 5668392141 29 17Gi"},
		{"flags replace all", Boot{
			Format: FormatBootstrap, ReplacesKube: true, KubeReserved: map[string]string{"cpu": "500m"},
			EvictionHard: map[string]string{"memory.available": "200Mi"},
		}, m5Large, "2 7782Mi 29 20Gi", "1500m 7582Mi 29 20Gi"},
		{"big", Boot{Format: FormatNodeadm}, Facts{VCPU: 96, MemoryMiB: 393216, PodsByENI: 737}, "96 373555Mi 737 20Gi", "95690m 365093Mi 737 17Gi"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			capacity, allocatable, err := Instance{RootGiB: 20}.nodeResources(c.boot, c.facts)
			if err != nil {
				t.Fatal(err)
			}
			names := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage}
			if got := amounts(capacity, names...); got != c.capacity {
				t.Errorf("capacity = %s, want %s", got, c.capacity)
			}
			if got := amounts(allocatable, names...); got != c.allocatable {
				t.Errorf("allocatable = %s, want %s", got, c.allocatable)
			}
		})
	}
}

func TestReservedCPU(t *testing.T) {
	for cores, want := range map[int64]int64{1: 60, 2: 70, 4: 80, 8: 90, 16: 110, 32: 150, 48: 190, 64: 230, 96: 310, 128: 390, 192: 550} {
		if got := reservedCPU(cores); got != want {
			t.Errorf("%d cores: %dm, want %dm", cores, got, want)
		}
	}
}

func TestNodeOfAGPUInstance(t *testing.T) {
	i := Instance{ID: "i-1", Zone: "us-west-2a", PrivateDNS: "ip-10-0-0-1.us-west-2.compute.internal", PrivateIP: "10.0.0.1", RootGiB: 20}
	n, err := i.newNode(
		Boot{Format: FormatNodeadm, Labels: map[string]string{"team": "a"}, RAID0: true, Taints: []corev1.Taint{{Key: "x", Effect: "NoSchedule"}}},
		Facts{VCPU: 4, MemoryMiB: 16384, Arch: "amd64", PodsByENI: 29, Devices: map[string]int64{"nvidia.com/gpu": 1}, InstanceStoreGB: 475})
	if err != nil {
		t.Fatal(err)
	}
	if got := amounts(n.Status.Allocatable, "nvidia.com/gpu"); got != "1" {
		t.Errorf("gpus = %s", got)
	}
	// 475 GB less a tenth and 1 GiB.
	disk := n.Status.Allocatable[corev1.ResourceEphemeralStorage]
	if disk.Value() != 475_000_000_000-47_500_000_000-gib {
		t.Errorf("disk = %s", disk.String())
	}
	if n.Labels["team"] != "a" || n.Labels[corev1.LabelArchStable] != "amd64" || n.Labels[corev1.LabelHostname] != i.PrivateDNS {
		t.Errorf("labels = %v", n.Labels)
	}
	if len(n.Spec.Taints) != 2 || n.Spec.Taints[0].Key != uninitialized || n.Spec.ProviderID != "aws:///us-west-2a/i-1" {
		t.Errorf("spec = %+v", n.Spec)
	}
}

func TestKubeletRefusesLabels(t *testing.T) {
	cases := []struct{ key, value, want string }{
		{"team", "a", ""},
		{"karpenter.sh/capacity-type", "spot", ""},
		{"topology.k8s.aws/zone-id", "usw2-az1", ""},
		{"node.kubernetes.io/instance-type", "m5.large", ""},
		{"custom.node.kubernetes.io/x", "", ""},
		{"node-restriction.kubernetes.io/x", "", "unknown 'kubernetes.io' or 'k8s.io' label"},
		{"node-role.kubernetes.io/worker", "", "unknown 'kubernetes.io' or 'k8s.io' label"},
		{"k8s.io/x", "", "unknown 'kubernetes.io' or 'k8s.io' label"},
		{"a b", "", "label"},
		{"team", "a b", "label"},
	}
	for _, c := range cases {
		err := checkLabels(map[string]string{c.key: c.value})
		if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s=%s: error = %v, want %q", c.key, c.value, err, c.want)
		}
	}
}
