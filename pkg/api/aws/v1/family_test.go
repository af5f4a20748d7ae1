package v1

import (
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	karpv1 "joiner.sh/pkg/api/v1"
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

// The numbers are those that Karpenter 1.14.1 (v5) and 1.15.2 (v6) give the same classes. If one changes, every node of
// every cluster drifts.
func TestHashIsKarpenters(t *testing.T) {
	for _, c := range []struct{ class, ca, v5, v6 string }{
		{aliasClass, caBundle, "4901230277111031554", "18050902873842057540"},
		{aliasClass, "", "2898637819372767213", "10862433552008651179"},
		{fullClass, caBundle, "2285803815558208829", "11444220562005911348"},
		{fullClass, "", "8324450021419908562", "17504546939184138203"},
	} {
		for version, want := range map[string]string{"v5": c.v5, "v6": c.v6, "": c.v6, "v4": c.v6} {
			if got := hashed(t, c.class, version).Hash(c.ca); got != want {
				t.Errorf("version %q with CA %q: %s, want %s of\n%s", version, c.ca, got, want, c.class)
			}
		}
	}
}

// The numbers are those that Karpenter's own test of version v6 expects of its class.
func TestHashIsThatOfKarpentersTest(t *testing.T) {
	const base = `
spec:
  role: role-1
  tags: {keyTag-1: valueTag-1, keyTag-2: valueTag-2}
  context: fake-context
  detailedMonitoring: false
  associatePublicIPAddress: false
  metadataOptions: {httpEndpoint: disabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 1, httpTokens: optional}
  blockDeviceMappings:
  - {deviceName: map-device-1, rootVolume: false, ebs: {deleteOnTermination: false, encrypted: false, iops: 0,
      kmsKeyID: fakeKMSKeyID, snapshotID: fakeSnapshot, throughput: 0, volumeSize: 2G, volumeType: standard}}
  - {deviceName: map-device-2}
  userData: userdata-test-1
`
	for more, want := range map[string]string{
		"": "11148166120438674859", "  instanceStorePolicy: RAID0\n": "16697988646989909967",
		"  connectionTracking: {udpTimeout: 45}\n":                "17941926745862994490",
		"  cpuOptions: {nestedVirtualization: enabled}\n":         "6157846767212910604",
		"  subnetSelectorTerms: [{tags: {subnet-test-key: v}}]\n": "11148166120438674859",
	} {
		if got := hashed(t, base+more, "v6").Hash("test-ca-bundle"); got != want {
			t.Errorf("%s: %s, want %s", more, got, want)
		}
	}
}

// hashed is the class with a hash of the version on it.
func hashed(t *testing.T, text, version string) *EC2NodeClass {
	t.Helper()
	c := classOf(t, text)
	c.Annotations = map[string]string{AnnotationHashVersion: version}
	return c
}

// A class is not edited by a change of the version: what stands on it stays, as long as its spec does.
func TestAnUneditedClassKeepsItsHash(t *testing.T) {
	for version, want := range map[string]string{"v5": "v5", "v6": "v6", "v4": "v6", "": "v6"} {
		c := hashed(t, fullClass, version)
		c.Annotations[AnnotationHash], c.Annotations[karpv1.AnnotationHashedSpec] = "7", c.SpecHash()
		if kept := c.DriftHash(caBundle) == "7"; kept != (version == want) || c.DriftHashVersion() != want {
			t.Errorf("a hash of version %q is kept: %t, and of version %s; want %s", version, kept, c.DriftHashVersion(), want)
		}
		c.Spec.Kubelet.MaxPods = nil
		if c.Spec.Kubelet.Written = "{}"; c.DriftHash(caBundle) == "7" {
			t.Errorf("an edit leaves the hash of version %q", version)
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
		{"kubelet", true, func(c *EC2NodeClass) { c.Spec.Kubelet.MaxPods, c.Spec.Kubelet.Written = nil, "" }},
		{"tags", true, func(c *EC2NodeClass) { c.Spec.Tags["a"] = "z" }},
	}
	for _, c := range changes {
		for version, plain := range map[string]string{"v5": "2285803815558208829", "v6": "11444220562005911348"} {
			changed := hashed(t, fullClass, version)
			c.change(changed)
			if drifts := changed.Hash(caBundle) != plain; drifts != c.drifts {
				t.Errorf("%s changes the hash of version %s: %t, want %t", c.name, version, drifts, c.drifts)
			}
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

// The schema of NodeClaims refuses the same keys.
func TestRestrictedLabels(t *testing.T) {
	for key, want := range map[string]bool{
		"kubernetes.io/hostname": true, "kubernetes.io/arch": false, "topology.kubernetes.io/zone": false, "team": false,
		"karpenter.sh/capacity-type": false, "karpenter.sh/nodepool": false, "karpenter.sh/nodepool-hash": true,
		"karpenter.sh/initialized": true, "karpenter.sh/provisioner-name": true, "sub.karpenter.sh/x": true,
		"notkarpenter.sh/x": true, "karpenter.sh": true, "karpenter.shop/x": false, "x/karpenter.sh": false,
		"karpenter.k8s.aws/instance-cpu": false, "karpenter.k8s.aws/instance-colour": true, "mykarpenter.k8s.aws/x": true,
		"topology.k8s.aws/zone-id": false,
	} {
		if got := RestrictedLabel(key); got != want {
			t.Errorf("%s: restricted %t", key, got)
		}
	}
}
