package e2e_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/testing/shortrun"
)

// manifest is a manifest of the collection as `joiner convert` gives it.
func (w *world) manifest(name string) text {
	w.t.Helper()
	var out, messages bytes.Buffer
	if code := cli.Run([]string{"convert", "-f", filepath.Join(root(w.t), "pkg/cli/testdata/manifests", name), "--cluster", env.ClusterName}, &out, &messages); code != 0 {
		w.t.Fatalf("convert %s: exit %d, %s", name, code, messages.String())
	}
	return text(out.String())
}

// pooled fails unless these NodePools are ready to be launched from.
func (w *world) pooled(names ...string) {
	w.t.Helper()
	w.tick("refresh")
	for _, name := range names {
		if got := w.condition(env.NodePools(), name, "Ready"); got["status"] != "True" {
			w.t.Fatalf("NodePool %s: Ready is %v", name, got)
		}
	}
}

// upBy counts the ready pods of a selector.
func (w *world) upBy(selector string) int {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Pods("default").List(w.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		w.t.Fatal(err)
	}
	return ready(list.Items)
}

// served ticks until so many pods of each selector are up.
func (w *world) served(want map[string]int) {
	w.t.Helper()
	w.until("the pods of the manifests run", func() (string, bool) {
		got, all := map[string]int{}, true
		for selector, n := range want {
			got[selector] = w.upBy(selector)
			all = all && got[selector] == n
		}
		return fmt.Sprintf("%v of %v", got, want), all
	}, "provision", "lifecycle")
}

// made is what the nodes of a NodePool are to look like.
type made struct {
	labels map[string]string // of every node
	taint  corev1.Taint
	pods   int64                           // maxPods
	check  func(awsemulator.Instance) bool // of every instance
}

// looks fails unless the pool has nodes and all of them look like that.
func (w *world) looks(pool string, m made) {
	w.t.Helper()
	nodes, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	if err != nil || len(nodes.Items) == 0 {
		w.t.Errorf("%s: %d nodes, %v", pool, len(nodes.Items), err)
		return
	}
	instances := map[string]awsemulator.Instance{}
	for _, i := range w.Cloud.DescribedInstances() {
		instances[i.ID] = i
	}
	for _, n := range nodes.Items {
		for k, v := range m.labels {
			if !strings.Contains(","+v+",", ","+n.Labels[k]+",") {
				w.t.Errorf("%s: node %s has %s=%q, want one of %s", pool, n.Name, k, n.Labels[k], v)
			}
		}
		if m.taint.Key != "" && !tainted(n, m.taint) {
			w.t.Errorf("%s: node %s has the taints %v, want %v", pool, n.Name, n.Spec.Taints, m.taint)
		}
		if got := n.Status.Allocatable.Pods().Value(); m.pods > 0 && got != m.pods {
			w.t.Errorf("%s: node %s has room for %d pods, want %d", pool, n.Name, got, m.pods)
		}
		i := instances[n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:]]
		if m.check != nil && !m.check(i) {
			w.t.Errorf("%s: instance %+v is not what the manifest asks for", pool, i)
		}
	}
}

func tainted(n corev1.Node, want corev1.Taint) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == want.Key && t.Value == want.Value && t.Effect == want.Effect {
			return true
		}
	}
	return false
}

const besideGPU = `
      tolerations: [{operator: Exists}]
      nodeSelector: {karpenter.sh/nodepool: default, node.kubernetes.io/instance-type: r5.2xlarge}`

// Every manifest of the collection converts, is taken by the API server, and gives pods nodes that look as it says.
func TestManifestsOfOldAndNewProvision(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	// What the manifests name by its id is in the account.
	for id, zone := range map[string]string{"subnet-0a0000000000000a1": "us-west-2a", "subnet-0a0000000000000c1": "us-west-2c"} {
		if err := w.Cloud.AddSubnet(id, zone); err != nil {
			t.Fatal(err)
		}
	}
	w.Cloud.AddSecurityGroup("sg-0a0000000000000a1")
	w.Cloud.AddSecurityGroup("sg-0a0000000000000a2")
	w.Cloud.AddImage("ami-009fab5adfe7c6e1d", "bottlerocket-of-ours", "arm64")

	for _, name := range []string{"provisioner-v1alpha5-ops", "provisioner-v1alpha5-spot", "provisioner-v1alpha5-taint", "nodepool-v1", "nodeclass-bottlerocket"} {
		w.apply(w.manifest(name + ".yaml"))
	}
	w.pooled("ops-provisioner", "provisioner1", "provisioner2", "default", "bottlerocket")
	for _, name := range []string{"inflate-spot", "inflate-tainted", "inflate-team-affinity", "pdb-graceful", "do-not-disrupt"} {
		w.apply(w.manifest(name + ".yaml"))
	}
	w.apply(
		deployment{name: "ops", replicas: 3, spec: "\n      nodeSelector: {role: ops}\n      tolerations: [{key: role, value: ops}]"},
		deployment{name: "spot", replicas: 2, spec: "\n      nodeSelector: {karpenter.sh/nodepool: provisioner1}"},
		deployment{name: "rocket", replicas: 2, spec: "\n      nodeSelector: {node.role: demo}"})
	w.served(map[string]int{"app=inflate1": 5, "app=inflate2": 5, "app=workload-my-team": 200, "app=my-app": 6, "batch.kubernetes.io/job-name=long-batch": 1,
		"app=ops": 3, "app=spot": 2, "app=rocket": 2})
	w.looks("provisioner1", made{labels: map[string]string{"karpenter.sh/capacity-type": "spot", "kubernetes.io/arch": "amd64", "karpenter.k8s.aws/instance-category": "c,m,r"}})
	w.looks("provisioner2", made{labels: map[string]string{"node.kubernetes.io/instance-type": "c5.xlarge", "topology.kubernetes.io/zone": "us-west-2a",
		"karpenter.sh/capacity-type": "on-demand", "phase": "test2", "nodeType": "cpu-node"}, taint: corev1.Taint{Key: "cpuIntensive", Value: "true", Effect: "NoSchedule"}})
	w.looks("ops-provisioner", made{labels: map[string]string{"role": "ops", "provision": "karpenter", "karpenter.k8s.aws/instance-cpu": "4,8,16,32"},
		taint: corev1.Taint{Key: "role", Value: "ops", Effect: "NoSchedule"}, check: func(i awsemulator.Instance) bool {
			return i.Tags["Name"] == "ops-karpenter-provision" && strings.HasPrefix(i.SubnetID, "subnet-0a0000000000000") && strings.Join(i.SecurityGroups, " ") == "sg-0a0000000000000a1 sg-0a0000000000000a2"
		}})
	w.looks("default", made{labels: map[string]string{"billing-team": "my-team"}})
	w.looks("bottlerocket", made{labels: map[string]string{"node.role": "demo", "node.kubernetes.io/instance-type": "t4g.small,t4g.medium,m6g.large"},
		check: func(i awsemulator.Instance) bool {
			return i.ImageID == "ami-009fab5adfe7c6e1d" && i.Tags["NodeGroupName"] == "demo" && strings.Contains(i.UserData, "lockdown = 'integrity'")
		}})

	gpu := w.manifest("nodepool-v1beta1-gpu.yaml") // its pool default, too, uses the class of nodepool-v1
	w.apply(gpu)
	w.pooled("gpu", "default")
	w.apply(w.manifest("inflate-gpu.yaml"))
	w.exist("inflate-gpu", 3)
	w.until("a pod for types that EC2 does not sell any more is told so", func() (string, bool) {
		got := w.told("inflate-gpu")
		return got, strings.Contains(got, "pool gpu: no instance type meets its requirements")
	}, "provision")
	w.apply(text(strings.Replace(gpu.String(), "p3.16xlarge", "p3dn.24xlarge", 1))) // which it does sell
	w.pooled("gpu")
	w.apply(deployment{name: "beside", replicas: 1, spec: besideGPU})
	w.served(map[string]int{"app=inflate-gpu": 3, "app=beside": 1})
	w.looks("gpu", made{labels: map[string]string{"node.kubernetes.io/instance-type": "p3.8xlarge,p3dn.24xlarge"}, taint: corev1.Taint{Key: "nvidia.com/gpu", Value: "true", Effect: "NoSchedule"}})

	w.claimDevices()

	w.apply(w.manifest("nodepool-v1beta1.yaml"))
	w.pooled("default")
	w.apply(deployment{name: "special", replicas: 2, spec: "\n      nodeSelector: {custom-label: custom-value}\n      tolerations: [{key: example.com/special-taint, operator: Exists}]"})
	w.served(map[string]int{"app=special": 2})
	for _, c := range w.claims() {
		if c.GetLabels()["custom-label"] == "custom-value" && c.GetAnnotations()["custom-annotation"] != "custom-value" {
			t.Errorf("claim %s has the annotations %v", c.GetName(), c.GetAnnotations())
		}
	}
	for _, p := range w.pods("special") {
		n, err := w.Kube.CoreV1().Nodes().Get(w.ctx, p.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := n.Status.Allocatable.Pods().Value(); got != 20 || !tainted(*n, corev1.Taint{Key: "example.com/special-taint", Effect: "NoSchedule"}) {
			t.Errorf("node %s has room for %d pods, want 20, and the taints %v", n.Name, got, n.Spec.Taints)
		}
	}
}
