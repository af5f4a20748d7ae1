package v1

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	aliasClass = `
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: r
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
`
	fullClass = `
spec:
  amiFamily: Bottlerocket
  amiSelectorTerms: [{id: ami-123}]
  instanceProfile: p
  subnetSelectorTerms: [{id: subnet-1}]
  securityGroupSelectorTerms: [{name: x}]
  capacityReservationSelectorTerms: [{id: cr-1}]
  placementGroupSelector: {name: pg}
  associatePublicIPAddress: true
  ipPrefixCount: 3
  userData: "hello"
  tags: {a: b, c: d}
  kubelet: {clusterDNS: [10.0.0.10, 10.0.0.11], maxPods: 20, podsPerCore: 2, systemReserved: {cpu: 100m},
    kubeReserved: {memory: 1Gi}, evictionHard: {memory.available: 5%}, evictionSoft: {memory.available: 10%},
    evictionSoftGracePeriod: {memory.available: 1m}, evictionMaxPodGracePeriod: 60, imageGCHighThresholdPercent: 80,
    imageGCLowThresholdPercent: 50, cpuCFSQuota: false}
  blockDeviceMappings:
  - {deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: 100Gi, volumeType: gp3, iops: 3000, throughput: 125,
      encrypted: true, deleteOnTermination: false, kmsKeyID: k, snapshotID: snap-1, volumeInitializationRate: 100}}
  - {deviceName: /dev/xvdb, ebs: {volumeSize: 1024Gi}}
  instanceStorePolicy: RAID0
  networkInterfaces: [{networkCardIndex: 0, deviceIndex: 0, interfaceType: interface},
    {networkCardIndex: 1, deviceIndex: 1, interfaceType: efa-only}]
  detailedMonitoring: true
  metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: required}
  connectionTracking: {tcpEstablishedTimeout: 100, udpStreamTimeout: 100, udpTimeout: 40}
  context: ctx
  cpuOptions: {nestedVirtualization: enabled}
`
	caBundle = "Q0EtQlVORExF"
)

func classOf(t *testing.T, text string) *EC2NodeClass {
	t.Helper()
	c := &EC2NodeClass{}
	if err := yaml.UnmarshalStrict([]byte(text), c); err != nil {
		t.Fatal(err)
	}
	return c
}

// The numbers are those that Karpenter 1.14.1 gives the same classes. If one changes, every node of every cluster
// drifts.
func TestHashIsKarpenters(t *testing.T) {
	for _, c := range []struct{ class, ca, want string }{
		{aliasClass, caBundle, "4901230277111031554"},
		{aliasClass, "", "2898637819372767213"},
		{fullClass, caBundle, "2285803815558208829"},
		{fullClass, "", "8324450021419908562"},
	} {
		if got := classOf(t, c.class).Hash(c.ca); got != c.want {
			t.Errorf("with CA %q: %s, want %s of\n%s", c.ca, got, c.want, c.class)
		}
	}
}

func TestWhatMakesNodesDrift(t *testing.T) {
	custom, count := AMIFamilyCustom, int32(9)
	changes := []struct {
		name   string
		drifts bool
		change func(*EC2NodeClass)
	}{
		{"subnets", false, func(c *EC2NodeClass) { c.Spec.SubnetSelectorTerms = nil }},
		{"security groups", false, func(c *EC2NodeClass) { c.Spec.SecurityGroupSelectorTerms = nil }},
		{"capacity reservations", false, func(c *EC2NodeClass) { c.Spec.CapacityReservationSelectorTerms = nil }},
		{"images", false, func(c *EC2NodeClass) { c.Spec.AMISelectorTerms = nil }},
		{"prefixes", false, func(c *EC2NodeClass) { c.Spec.IPPrefixCount = &count }},
		{"order of interfaces", false, func(c *EC2NodeClass) { slices.Reverse(c.Spec.NetworkInterfaces) }},
		{"resolved family", true, func(c *EC2NodeClass) { c.Spec.AMIFamily = &custom }},
		{"volume size", true, func(c *EC2NodeClass) { c.Spec.BlockDeviceMappings[1].EBS.VolumeSize.Set(5) }},
		{"kubelet", true, func(c *EC2NodeClass) { c.Spec.Kubelet.MaxPods = nil }},
		{"tags", true, func(c *EC2NodeClass) { c.Spec.Tags["a"] = "z" }},
	}
	for _, c := range changes {
		changed := classOf(t, fullClass)
		c.change(changed)
		if drifts := changed.Hash(caBundle) != "2285803815558208829"; drifts != c.drifts {
			t.Errorf("%s changes the hash: %t, want %t", c.name, drifts, c.drifts)
		}
	}
}

func TestAliases(t *testing.T) {
	for text, want := range map[string]Alias{
		"al2@latest":           {"AL2", "latest"},
		"al2023@v20250601":     {"AL2023", "v20250601"},
		"bottlerocket@v1.46.0": {"Bottlerocket", "v1.46.0"},
		"windows2019@latest":   {"Windows2019", "latest"},
		"windows2022@latest":   {"Windows2022", "latest"},
		"windows2025@latest":   {"Windows2025", "latest"},
	} {
		if got, ok := ParseAlias(text); !ok || got != want {
			t.Errorf("%s was read as %+v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "al2023", "al2023@", "AL2023@latest", "ubuntu@latest", "@latest",
		"custom@latest"} {
		if got, ok := ParseAlias(text); ok {
			t.Errorf("%q was read as %+v", text, got)
		}
	}
}

func TestResolvedAMIFamily(t *testing.T) {
	class := classOf(t, aliasClass)
	if got := class.ResolvedAMIFamily(); got != AMIFamilyAL2023 {
		t.Errorf("of the alias: %s", got)
	}
	custom := AMIFamilyCustom
	class.Spec.AMIFamily = &custom
	if got := class.ResolvedAMIFamily(); got != AMIFamilyCustom {
		t.Errorf("of an alias with amiFamily Custom: %s", got)
	}
	if got := (&EC2NodeClass{}).ResolvedAMIFamily(); got != AMIFamilyCustom {
		t.Errorf("of nothing: %s", got)
	}
}

func TestWellKnownLabelsAreSortedAndOfOurDomain(t *testing.T) {
	labels := WellKnownLabels()
	if !slices.IsSorted(labels) || len(slices.Compact(labels)) != 28 {
		t.Errorf("%d labels, sorted %t", len(labels), slices.IsSorted(labels))
	}
}
