package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/workload"
)

// NodeOverlays change prices and capacity, and CapacityBuffers keep room, by a template or in proportion to a group.
func TestOverlaysAndBuffers(t *testing.T) {
	pools := strings.Replace(plainPool, "requirements: []", "requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, c5.large]}, {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]", 1) + `---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: agreed}
spec: {price: "0.01", requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}]}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: fuse}
spec: {requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [c5.large]}], capacity: {example.com/fuse: 2}}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: quarrel-1}
spec: {price: "0.02", requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [r5.large]}]}
---
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: quarrel-2}
spec: {priceAdjustment: "-10%", requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [r5.large, r5.xlarge]}]}
---
apiVersion: v1
kind: PodTemplate
metadata: {name: spare}
template: {spec: {containers: [{name: a, resources: {requests: {cpu: 1500m}}}]}}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: two}
spec: {podTemplateRef: {name: spare}, replicas: 2}
---
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: half}
spec: {scalableRef: {apiGroup: apps, kind: Deployment, name: fused}, percentage: 50}
`
	w := "nodePools: pools.yaml\ngroups:\n- {name: fused, count: 2, pod: {spec: {containers: [{name: a, resources: {requests: {cpu: 800m}, limits: {example.com/fuse: 1}}}]}}}\n"
	code, out, progress := run("plan", "-f", written(t, w, pools), "--prices", "instances", "-o", "json")
	var p workload.Placement
	if err := json.Unmarshal([]byte(out), &p); code != 0 || err != nil {
		t.Fatalf("exit %d, %v, says %s", code, err, progress)
	}
	var got []string
	for _, c := range p.NodeClaims {
		got = append(got, fmt.Sprint(c.InstanceType, " ", c.HourlyUSD, " ", c.Pods))
	}
	want := []string{
		"c5.large 0.085 map[fused:2]", "m5.large 0.01 map[default/capacity-buffer-two:1]",
		"m5.large 0.01 map[default/capacity-buffer-two:1]", "c5.large 0.085 map[default/capacity-buffer-half:1]",
	}
	if diff := cmp.Diff(want, got); diff != "" || p.Pods != 2 {
		t.Errorf("%d pods, claims (-want +got):\n%s", p.Pods, diff)
	}
	if !strings.Contains(progress, "NodeOverlay quarrel-1 is not applied: NodeOverlay quarrel-2 of the same weight sets the price of r5.large") {
		t.Errorf("nothing is said about overlays that contradict each other: %s", progress)
	}
}

// Ten thousand NodePools are many, but no reason to give up.
func TestManyPools(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		b.WriteString(strings.Replace(plainPool, "{name: general}", fmt.Sprintf("{name: pool-%d}", i), 1))
		b.WriteString("---\n")
	}
	code, out, progress := run("plan", "-f", written(t, grouped(small), b.String()), "-o", "json")
	if code != 0 || strings.Count(out, `"instanceType"`) != 1 {
		t.Errorf("exit %d, %s%s", code, out, progress)
	}
}

// Pods that claim GPUs by a ResourceClaimTemplate get the nodes that pods get which request as many, though the files
// have no DeviceClass.
func TestPlanOfDevices(t *testing.T) {
	const template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: two}\n" +
		"spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 2}}]}}}\n---\n"
	deployment := func(claims, resources string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: train}\nspec: {replicas: 6, selector: {matchLabels: {app: train}}, template: {metadata: {labels: {app: train}}, spec: {" +
			claims + "containers: [{name: a, image: a, resources: {requests: {cpu: 1, memory: 1Gi}, " + resources + "}}]}}}\n---\n" + plainPool
	}
	var got [2]workload.Placement
	for i, text := range []string{deployment("", "limits: {nvidia.com/gpu: 2}"),
		template + deployment("resourceClaims: [{name: gpus, resourceClaimTemplateName: two}], ", "claims: [{name: gpus}]")} {
		file := filepath.Join(t.TempDir(), "train.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, progress := run("plan", "-f", file, "-o", "json")
		if err := json.Unmarshal([]byte(out), &got[i]); code != 0 || err != nil || len(got[i].Unplaced) > 0 || len(got[i].NodeClaims) == 0 {
			t.Fatalf("exit %d, %v, %s%s", code, err, out, progress)
		}
	}
	if d := cmp.Diff(got[0].NodeClaims, got[1].NodeClaims); d != "" {
		t.Errorf("nodes for requests and for claims differ (-requests +claims):\n%s", d)
	}
}

// Sixteen pods that claim a GPU and four EFA interfaces on one PCIe root each get two p5.48xlarge, unless a pod wants
// one of such devices alone.
func TestPlanOfDevicesOnOnePCIeRoot(t *testing.T) {
	const template = "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: %s}\nspec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com}}%s}}}\n---\n"
	const pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: %s}\nspec: {replicas: %d, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {resourceClaims: [{name: c, resourceClaimTemplateName: %s}], " +
		"containers: [{name: a, image: a, resources: {requests: {cpu: 8, memory: 64Gi}, claims: [{name: c}]}}]}}}\n---\n"
	train := fmt.Sprintf(template, "root", ", {name: e, exactly: {deviceClassName: efa.networking.k8s.aws, count: 4}}], constraints: [{matchAttribute: resource.kubernetes.io/pcieRoot}]") + fmt.Sprintf(pods, "train", 16, "root")
	for text, want := range map[string]string{train: "p5.48xlarge 8, p5.48xlarge 8; []",
		train + fmt.Sprintf(template, "one", "]") + fmt.Sprintf(pods, "infer", 1, "one"): "; [its devices on one PCIe root cannot be counted: pods ask for deviceclass.resource.kubernetes.io/gpu.nvidia.com too, which may be of the same devices]"} {
		file := filepath.Join(t.TempDir(), "train.yaml")
		if err := os.WriteFile(file, []byte(text+plainPool), 0o600); err != nil {
			t.Fatal(err)
		}
		var p workload.Placement
		code, out, progress := run("plan", "-f", file, "-o", "json")
		if err := json.Unmarshal([]byte(out), &p); code != 0 && code != 2 || err != nil {
			t.Fatalf("exit %d, %v, %s%s", code, err, out, progress)
		}
		var nodes []string
		for _, c := range p.NodeClaims {
			n := 0
			for _, k := range c.Pods {
				n += int(k)
			}
			nodes = append(nodes, fmt.Sprint(c.InstanceType, " ", n))
		}
		var why []string
		for _, u := range p.Unplaced {
			why = append(why, u.Reasons...)
		}
		slices.Sort(why)
		if got := fmt.Sprint(strings.Join(nodes, ", "), "; ", slices.Compact(why)); !strings.HasSuffix(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Claims of files are read as of v1 and of v1beta1, whose requests name a DeviceClass themselves. A driver whose devices
// nobody counts is named, and no field that claims do not have.
func TestPlanOfClaims(t *testing.T) {
	const class = "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: odd}\nspec: {selectors: [{cel: {expression: device.driver == 'odd.example.com'}}]}\n---\n"
	const template = "apiVersion: resource.k8s.io/%s\nkind: ResourceClaimTemplate\nmetadata: {name: t}\nspec: {spec: {devices: {requests: [{name: r, %s}]}}}\n---\n"
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {resourceClaims: [{name: c, resourceClaimTemplateName: t}], " +
		"containers: [{name: a, image: a, resources: {requests: {cpu: 1, memory: 1Gi}, claims: [{name: c}]}}]}\n---\n"
	for _, c := range []struct {
		version, request string
		nodes            int
		says             string
	}{
		{"v1", "exactly: {deviceClassName: gpu.nvidia.com}", 1, ""},
		{"v1beta2", "exactly: {deviceClassName: gpu.nvidia.com}", 1, ""},
		{"v1beta1", "deviceClassName: gpu.nvidia.com, count: 1", 1, ""},
		{"v1beta1", "deviceClassName: gpu.nvidia.com, selectors: [{cel: {expression: 'true'}}]", 0, "request r has selectors of its own"},
		{"v1beta1", "firstAvailable: [{name: g, deviceClassName: gpu.nvidia.com}]", 0, "request r is firstAvailable"},
		{"v1", "exacly: {}", 0, "request r asks for nothing"},
		{"v1", "exactly: {deviceClassName: odd}", 0, "; how many devices of DeviceClass odd (driver odd.example.com) an instance type has is not known: " +
			"a NodeOverlay says it with capacity deviceclass.resource.kubernetes.io/odd"},
	} {
		file := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(file, []byte(class+fmt.Sprintf(template, c.version, c.request)+pod+plainPool), 0o600); err != nil {
			t.Fatal(err)
		}
		var p workload.Placement
		code, out, progress := run("plan", "-f", file, "-o", "json")
		if err := json.Unmarshal([]byte(out), &p); code != 0 && code != 2 || err != nil {
			t.Fatalf("exit %d, %v, %s%s", code, err, out, progress)
		}
		why := ""
		for _, u := range p.Unplaced {
			why = strings.Join(u.Reasons, " ")
		}
		if len(p.NodeClaims) != c.nodes || !strings.Contains(why, c.says) || c.nodes > 0 && strings.Contains(progress, "no such field") {
			t.Errorf("%s %s: %d nodes, %s\n%s", c.version, c.request, len(p.NodeClaims), why, progress)
		}
		if strings.Contains(out, "spec.containers[*].resources.limits.deviceclass") {
			t.Errorf("%s %s: a field that pods do not have is to be changed: %s", c.version, c.request, out)
		}
	}
}

// A DaemonSet of Amazon EKS that the files have is counted as they have it, and not twice.
func TestDaemonSetsOfTheFilesAreCountedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	text := `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: aws-node, namespace: kube-system}
spec: {selector: {matchLabels: {a: c}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 10m}}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, progress := run("plan", "-f", path, "--search-steps", "0")
	if code != 0 || !strings.Contains(progress, "counted on every node, as Amazon EKS has them: kube-proxy;") {
		t.Errorf("exit %d: %s", code, progress)
	}
}

// Anti-affinity to all pods of all namespaces is to those of DaemonSets too, whatever namespace they are in.
func TestDaemonSetsAreInANamespace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	text := `apiVersion: v1
kind: Pod
metadata: {name: alone, labels: {app: alone}}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: "1"}}}]
  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, namespaceSelector: {}, labelSelector: {}}]}}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, out, _ := run("plan", "-f", path, "-o", "json"); !strings.Contains(out, "keeps the pod off nodes that run DaemonSet kube-system/aws-node") {
		t.Errorf("it gets a node: %s", out)
	}
}

// Folders in folders are read with -R alone, and objects that make no pod now are told as such.
func TestFoldersInFoldersAndNothingThatWaits(t *testing.T) {
	if code, _, progress := run("plan", "-R", "-f", "testdata/forms,testdata/files/pools.yaml", "--search-steps", "0"); code != 3 ||
		!strings.Contains(progress, "9 pods in 6 groups") || strings.Contains(progress, "not read: 1 folders") {
		t.Errorf("exit %d: %s", code, progress)
	}
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 0, template: {spec: {containers: [{name: c, image: x}]}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, progress := run("plan", "-f", path); code != 2 || !strings.Contains(progress, "nothing waits: each of the 1 objects that make pods has 0 replicas") {
		t.Errorf("exit %d: %s", code, progress)
	}
}
