package kubelet

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"joiner.sh/infra/local/controlplane/client"
)

const (
	uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"
	kwokKey       = "kwok.x-k8s.io/node"
	mib           = int64(1) << 20
	gib           = int64(1) << 30

	// seenMemory is the share of an instance's nominal memory that its OS sees. Firmware and kernel take the rest; it
	// is more than the 92.5 % that a plan counts on.
	seenMemory = 0.95
)

// Facts is what the hardware of an instance type has.
type Facts struct {
	VCPU            int64
	MemoryMiB       int64 // nominal
	Arch            string
	PodsByENI       int64            // pods by network interfaces, as the image would work it out
	Devices         map[string]int64 // extended resources, nvidia.com/gpu for one
	InstanceStoreGB int64
}

// Cluster is what user data must say to reach this cluster.
type Cluster struct {
	Name     string
	Endpoint string
	CA       []byte // PEM
}

// checkBoot reports what keeps a kubelet with this user data out of the cluster.
func (c Cluster) checkBoot(b Boot) error {
	if b.Cluster != c.Name {
		return fmt.Errorf("the user data is for cluster %q", b.Cluster)
	}
	if strings.TrimSuffix(b.Endpoint, "/") != strings.TrimSuffix(c.Endpoint, "/") {
		return fmt.Errorf("no API server at %q", b.Endpoint)
	}
	ca, err := base64.StdEncoding.DecodeString(strings.TrimSpace(b.CA))
	if err != nil {
		return fmt.Errorf("certificate authority is no base64: %w", err)
	}
	if strings.TrimSpace(string(ca)) != strings.TrimSpace(string(c.CA)) {
		return fmt.Errorf("x509: the API server's certificate is signed by unknown authority")
	}
	return nil
}

// checkLabels refuses what a kubelet refuses to start with.
func checkLabels(labels map[string]string) error {
	for _, key := range sortedKeys(labels) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			return fmt.Errorf("kubelet: label %q: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			return fmt.Errorf("kubelet: label %s=%q: %s", key, labels[key], problems[0])
		}
		domain, _, _ := strings.Cut(key, "/")
		ours := slices.ContainsFunc([]string{"kubernetes.io", "k8s.io"}, func(d string) bool {
			return strings.Contains(key, "/") && (domain == d || strings.HasSuffix(domain, "."+d))
		})
		if ours && !kubeletapis.IsKubeletLabel(key) {
			return fmt.Errorf("kubelet: unknown 'kubernetes.io' or 'k8s.io' label %s in --node-labels", key)
		}
	}
	return nil
}

// newNode is the object that the instance's kubelet registers.
func (i Instance) newNode(b Boot, f Facts) (*corev1.Node, error) {
	if err := checkLabels(b.Labels); err != nil {
		return nil, err
	}
	labels := map[string]string{
		corev1.LabelHostname: i.PrivateDNS, corev1.LabelOSStable: "linux", corev1.LabelArchStable: f.Arch,
		"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": f.Arch,
	}
	maps.Copy(labels, b.Labels)
	capacity, allocatable, err := i.nodeResources(b, f)
	if err != nil {
		return nil, err
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: i.PrivateDNS, Labels: labels,
			Annotations: map[string]string{kwokKey: "fake"}},
		Spec: corev1.NodeSpec{
			// nodeadm, bootstrap.sh and Bottlerocket all tell the kubelet its provider id.
			ProviderID: i.providerID(),
			Taints: append([]corev1.Taint{{Key: uninitialized, Value: "true",
				Effect: corev1.TaintEffectNoSchedule}}, b.Taints...),
		},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: allocatable,
			Addresses: i.nodeAddresses(),
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion: "v" + client.Minor() + ".0-eks-local", Architecture: f.Arch, OperatingSystem: "linux",
				OSImage: map[string]string{
					FormatNodeadm: "Amazon Linux 2023", FormatBootstrap: "Amazon Linux 2",
					FormatBottlerock: "Bottlerocket OS",
				}[b.Format],
				ContainerRuntimeVersion: "containerd://local", SystemUUID: i.ID, MachineID: i.ID, BootID: i.ID,
			},
		},
	}, nil
}

func (i Instance) providerID() string { return "aws:///" + i.Zone + "/" + i.ID }

func (i Instance) nodeAddresses() []corev1.NodeAddress {
	out := []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: i.PrivateDNS}, {Type: corev1.NodeInternalDNS, Address: i.PrivateDNS},
	}
	if i.PrivateIP != "" {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: i.PrivateIP})
	}
	return out
}

// nodeResources works out capacity and allocatable as the image and its kubelet do.
func (i Instance) nodeResources(b Boot, f Facts) (capacity, allocatable corev1.ResourceList, err error) {
	pods := f.PodsByENI
	if b.MaxPods > 0 {
		pods = b.MaxPods
	}
	if b.PodsPerCore > 0 {
		pods = min(pods, b.PodsPerCore*f.VCPU)
	}
	disk := i.RootGiB * gib
	if b.RAID0 && f.InstanceStoreGB > 0 {
		disk = f.InstanceStoreGB * 1_000_000_000
	}
	capacity = corev1.ResourceList{
		corev1.ResourceCPU: *resource.NewQuantity(f.VCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(float64(f.MemoryMiB)*seenMemory)*mib,
			resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(pods, resource.DecimalSI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(disk, resource.BinarySI),
	}
	for name, count := range f.Devices {
		if count > 0 {
			capacity[corev1.ResourceName(name)] = *resource.NewQuantity(count, resource.DecimalSI)
		}
	}
	allocatable = capacity.DeepCopy()
	for _, reserved := range []map[string]string{b.kubeReserved(f, pods), b.SystemReserved} {
		for name, text := range reserved {
			amount, err := resource.ParseQuantity(text)
			if err != nil {
				return nil, nil, fmt.Errorf("kubelet: reserved %s=%q: %w", name, text, err)
			}
			subtractAmount(allocatable, corev1.ResourceName(name), amount)
		}
	}
	for signal, name := range map[string]corev1.ResourceName{
		"memory.available": corev1.ResourceMemory, "nodefs.available": corev1.ResourceEphemeralStorage,
	} {
		total := capacity[name]
		amount, err := parseThreshold(b.evictionHard()[signal], total)
		if err != nil {
			return nil, nil, fmt.Errorf("kubelet: eviction %s: %w", signal, err)
		}
		subtractAmount(allocatable, name, amount)
	}
	return capacity, allocatable, nil
}

// kubeReserved is what the image sets aside, with the user data's own entries over it.
func (b Boot) kubeReserved(f Facts, pods int64) map[string]string {
	if b.ReplacesKube && len(b.KubeReserved) > 0 {
		return b.KubeReserved
	}
	counted := f.PodsByENI
	if b.Format == FormatBottlerock {
		counted = pods
	}
	out := map[string]string{
		"cpu":               strconv.FormatInt(reservedCPU(f.VCPU), 10) + "m",
		"memory":            strconv.FormatInt(11*counted+255, 10) + "Mi",
		"ephemeral-storage": "1Gi",
	}
	maps.Copy(out, b.KubeReserved)
	return out
}

// reservedCPU is in millicores: 6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of the rest.
func reservedCPU(cores int64) int64 {
	var tenthsOfMilli int64
	for core := range cores {
		switch {
		case core == 0:
			tenthsOfMilli += 600
		case core == 1:
			tenthsOfMilli += 100
		case core < 4:
			tenthsOfMilli += 50
		default:
			tenthsOfMilli += 25
		}
	}
	return tenthsOfMilli / 10
}

func (b Boot) evictionHard() map[string]string {
	if b.ReplacesKube && len(b.EvictionHard) > 0 {
		return b.EvictionHard
	}
	out := map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%"}
	maps.Copy(out, b.EvictionHard)
	return out
}

// parseThreshold reads an amount or a share of the total. None is none.
func parseThreshold(text string, total resource.Quantity) (resource.Quantity, error) {
	if text == "" {
		return resource.Quantity{}, nil
	}
	percent, isPercent := strings.CutSuffix(text, "%")
	if !isPercent {
		return resource.ParseQuantity(text)
	}
	share, err := strconv.ParseFloat(percent, 64)
	if err != nil || share < 0 || share > 100 {
		return resource.Quantity{}, fmt.Errorf("%q is no percentage", text)
	}
	return *resource.NewQuantity(int64(float64(total.Value())*share/100), resource.BinarySI), nil
}

// subtractAmount lowers an amount, not below zero. What the node does not have at all cannot be taken.
func subtractAmount(from corev1.ResourceList, name corev1.ResourceName, amount resource.Quantity) {
	have, ok := from[name]
	if !ok {
		return
	}
	have.Sub(amount)
	if have.Sign() < 0 {
		have = *resource.NewQuantity(0, have.Format)
	}
	from[name] = have
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
