package provider

import (
	"testing"

	peerv1 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	"sigs.k8s.io/yaml"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// specs are pieces of a spec; each changes the hash of a class, or leaves it alone.
func specs() map[string]bool {
	return map[string]bool{
		"userData: hello": true, "role: other": true, "instanceProfile: p": true, "tags: {a: b, c: d}": true, "associatePublicIPAddress: true": true, "associatePublicIPAddress: false": true,
		"detailedMonitoring: true": true, "context: c": true, "instanceStorePolicy: RAID0": true, "placementGroupSelector: {name: pg}": true,
		"cpuOptions: {nestedVirtualization: enabled}": true, "connectionTracking: {udpTimeout: 30}": true, interfacesOfTwoCards: true,
		"metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: 2, httpTokens: required}": true,
		"kubelet: {maxPods: 0}": true, "kubelet: {maxPods: 5, podsPerCore: 2, kubeReserved: {cpu: '1'}, evictionSoft: {memory.available: 1Gi}, evictionSoftGracePeriod: {memory.available: 1m30s}}": true,
		"kubelet: {clusterDNS: [10.0.0.10, 10.0.0.11], cpuCFSQuota: false}":                                                                                          true,
		"kubelet: {kubeReserved: {}, evictionHard: {memory.available: 5%}, evictionSoft: {nodefs.available: 10%}, evictionSoftGracePeriod: {nodefs.available: 90s}}": true,
		"blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100Gi}}]":                                                                                   true, "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 100G, iops: 3000, encrypted: true}}, {deviceName: /dev/b, rootVolume: true, ebs: {snapshotID: s}}]": true,
		"ipPrefixCount: 4": false, "subnetSelectorTerms: [{id: subnet-1}]": false, "securityGroupSelectorTerms: [{name: x}]": false, "amiSelectorTerms: [{id: ami-1}]": false,
		"capacityReservationSelectorTerms: [{id: cr-1}]": false, "tags: {}": true, // as there: not the same as none
	}
}

// Every class has the drift hash of the Karpenter that hashed it, 1.14 or 1.15, so that nodes stay when a cluster moves
// from one to the other and back, and an edit meanwhile is seen.
func TestEveryClassHasKarpentersHash(t *testing.T) {
	type pair struct{ theirs, ours string }
	hash := func(spec, ca string) pair {
		peer, ours := &peerv1.EC2NodeClass{}, &awsv1.EC2NodeClass{}
		text := "spec:\n  amiFamily: AL2023\n  " + spec + "\n"
		for _, into := range []any{peer, ours} {
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatalf("%s: %v", spec, err)
			}
		}
		ours.Annotations = map[string]string{awsv1.AnnotationHashVersion: peerv1.EC2NodeClassHashVersion}
		if v := ours.DriftHashVersion(); v != peerv1.EC2NodeClassHashVersion {
			t.Fatalf("version %s, Karpenter's is %s", v, peerv1.EC2NodeClassHashVersion)
		}
		p := pair{peer.Hash(&ca), ours.Hash(ca)}
		if p.theirs != p.ours {
			t.Errorf("with CA %q %s in Karpenter and %s in Joiner, of\n%s", ca, p.theirs, p.ours, text)
		}
		return p
	}
	plain := hash("", "Q0E=")
	for spec, counts := range specs() {
		hash(spec, "")
		h := hash(spec, "Q0E=")
		if (h.theirs != plain.theirs) != counts || (h.ours != plain.ours) != counts {
			t.Errorf("%s: %+v, without it %+v; another hash is wanted: %t", spec, h, plain, counts)
		}
	}
	if h := hash("", "T1RIRVI="); h.theirs == plain.theirs || h.ours == plain.ours {
		t.Error("another certificate authority leaves the hash alone")
	}
}
