package roundtrip_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// randomClass is an EC2NodeClass with a NodePool and a Deployment of its name, whose pods want a node each.
type randomClass struct {
	name   string
	fields []string // of the spec, lines of YAML
}

// randomClasses are classes with a part each of what a class can say. The first is plain.
func randomClasses(r *rand.Rand, n int) (out []randomClass) {
	for i := range n {
		c := randomClass{name: fmt.Sprintf("class-%d", i)}
		family := "al2023"
		if i > 0 && r.IntN(4) == 0 {
			family = "bottlerocket"
		}
		version := "latest"
		if r.IntN(3) == 0 {
			version = map[string]string{"al2023": "v20261012", "bottlerocket": "v1.45.0"}[family]
		}
		c.fields = append(c.fields, fmt.Sprintf("amiSelectorTerms: [{alias: %s@%s}]", family, version))
		c.fields = append(c.fields, pick(r, "role: KarpenterNodeRole-demo", "role: KarpenterNodeRole-demo", "instanceProfile: profile-of-the-team"))
		c.fields = append(c.fields, pick(r, "subnetSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]", "subnetSelectorTerms: [{tags: {Name: demo-private-us-west-2a}}, {tags: {Name: demo-private-us-west-2b}}]"))
		c.fields = append(c.fields, pick(r, "securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]", "securityGroupSelectorTerms: [{name: demo-node}, {name: default}]"))
		if i > 0 {
			c.fields = append(c.fields, further(r, family)...)
		}
		out = append(out, c)
	}
	return out
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// further are fields that a class may leave out.
func further(r *rand.Rand, family string) (out []string) {
	kubelet := []string{"maxPods: 42", "clusterDNS: [10.100.0.53]", "kubeReserved: {cpu: 100m, memory: 500Mi}", "systemReserved: {memory: 100Mi, ephemeral-storage: 1Gi}",
		"evictionHard: {memory.available: 5%, nodefs.available: 10%}", "evictionSoft: {memory.available: 500Mi}, evictionSoftGracePeriod: {memory.available: 1m30s}",
		"imageGCHighThresholdPercent: 85, imageGCLowThresholdPercent: 80", "cpuCFSQuota: false", "evictionMaxPodGracePeriod: 60"}
	data := "userData: \"[settings.kernel]\\nlockdown = 'integrity'\\n\""
	if family == "al2023" {
		kubelet = append(kubelet, "podsPerCore: 20")
		data = pick(r, "userData: \"#!/bin/bash\\necho hello\\n\"", "userData: \"apiVersion: node.eks.aws/v1alpha1\\nkind: NodeConfig\\nspec: {kubelet: {flags: [--v=3]}}\\n\"")
	}
	r.Shuffle(len(kubelet), func(i, j int) { kubelet[i], kubelet[j] = kubelet[j], kubelet[i] })
	possible := []string{data, "tags: {team: a, cost-center: '7'}", "detailedMonitoring: true", "associatePublicIPAddress: " + pick(r, "true", "false"), "instanceStorePolicy: RAID0",
		"metadataOptions: {httpEndpoint: enabled, httpProtocolIPv6: disabled, httpPutResponseHopLimit: " + pick(r, "1", "2", "3") + ", httpTokens: " + pick(r, "required", "optional") + "}",
		"blockDeviceMappings: [{deviceName: /dev/xvda, rootVolume: true, ebs: {volumeSize: " + pick(r, "60Gi", "100G") + ", volumeType: gp3, iops: 4000, throughput: 200, encrypted: true, deleteOnTermination: true}}]",
		"connectionTracking: {tcpEstablishedTimeout: 350, udpStreamTimeout: 60, udpTimeout: 30}", "context: my-context",
		"kubelet: {" + strings.Join(kubelet[:1+r.IntN(4)], ", ") + "}", "kubelet: {" + strings.Join(kubelet[4:6], ", ") + "}"}
	r.Shuffle(len(possible), func(i, j int) { possible[i], possible[j] = possible[j], possible[i] })
	for _, field := range possible[:r.IntN(6)] {
		name, _, _ := strings.Cut(field, ":")
		if !slices.ContainsFunc(out, func(f string) bool { return strings.HasPrefix(f, name+":") }) {
			out = append(out, field)
		}
	}
	return out
}

func (c randomClass) manifest() string {
	return fmt.Sprintf(`
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %[1]s}
spec:
  %[2]s
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s}
  template:
    metadata: {labels: {team: %[1]s}}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
      requirements:
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      nodeSelector: {team: %[1]s}
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %[1]s}}}]}}
      containers: [{name: a, image: pause, resources: {requests: {cpu: 500m, memory: 256Mi}}}]
`, c.name, strings.Join(c.fields, "\n  "))
}
