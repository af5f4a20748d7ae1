package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"joiner.sh/infra/lab/bench/compare/filter"
	"joiner.sh/infra/lab/bench/manifests"
)

// What the search found stays mended: each file is a cluster that failed once.
func TestFoundClusters(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cluster in testdata: %v", err)
	}
	all := sold(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := manifests.ParseCluster(file, text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := judgeCluster(context.Background(), c, all)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, f := range v.faults {
			t.Errorf("%s: %s %s: %s", file, f.Kind, f.Pod, f.Why)
		}
	}
}

// The scheduler's plugins refuse what they must: each case puts pods where one of them does not let them.
func TestRefused(t *testing.T) {
	const (
		node = "kind: Node\nmetadata: {name: n1, labels: {topology.kubernetes.io/zone: us-west-2a, topology.ebs.csi.aws.com/zone: us-west-2a, kubernetes.io/hostname: n1}}\n" +
			"status: {allocatable: {cpu: 4, memory: 8Gi, pods: 10}}\n"
		two = "spec: {SPEC}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: default, labels: {app: x}}\nspec: {SPEC}\n"
	)
	for plugin, spec := range map[string]string{
		"NodeResourcesFit":  "containers: [{name: a, image: a, resources: {requests: {cpu: 3}}}]",
		"NodePorts":         "containers: [{name: a, image: a, ports: [{containerPort: 80, hostPort: 80}]}]",
		"InterPodAffinity":  "containers: [{name: a, image: a}], affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: x}}}]}}",
		"PodTopologySpread": "containers: [{name: a, image: a}], topologySpreadConstraints: [{maxSkew: 1, minDomains: 2, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}]",
		"NodeAffinity":      "containers: [{name: a, image: a}], nodeSelector: {topology.kubernetes.io/zone: us-west-2b}",
		"VolumeBinding":     "containers: [{name: a, image: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: v}}]",
		"NodeVolumeLimits":  "containers: [{name: a, image: a}], volumes: [{name: v, persistentVolumeClaim: {claimName: here}}, {name: w, persistentVolumeClaim: {claimName: too}}]",
	} {
		text := "apiVersion: v1\n" + node + storage() + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: default, labels: {app: x}}\n" + strings.ReplaceAll(two, "SPEC", spec)
		c, err := manifests.ParseCluster(plugin, []byte(text))
		if err != nil {
			t.Fatalf("%s: %v", plugin, err)
		}
		no, err := filter.RefusedPods(context.Background(), c, manifests.Outcome{Existing: map[string]string{"default/a": "n1", "default/b": "n1"}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", plugin, err)
		}
		if len(no) == 0 {
			t.Errorf("%s lets both pods there", plugin)
		}
		for pod, why := range no {
			if pluginOf(why) != plugin {
				t.Errorf("%s: %s is refused by %s", plugin, pod, why)
			}
		}
	}
}

// storage is a volume in another zone, two in the node's, and a node that takes one.
func storage() string {
	out := "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: n1}\nspec: {drivers: [{name: ebs.csi.aws.com, nodeID: n1, topologyKeys: [], allocatable: {count: 1}}]}\n"
	for name, zone := range map[string]string{"v": "us-west-2b", "here": "us-west-2a", "too": "us-west-2a"} {
		out += "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-" + name + "}\nspec: {csi: {driver: ebs.csi.aws.com, volumeHandle: " + name + "}, claimRef: {namespace: default, name: " + name +
			"}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [" + zone + "]}]}]}}}\n" +
			"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + ", namespace: default, annotations: {pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {volumeName: pv-" + name +
			", accessModes: [ReadWriteOnce]}\nstatus: {phase: Bound}\n"
	}
	return out
}
