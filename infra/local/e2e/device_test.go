package e2e_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimingPods are two pods that claim four GPUs each, on nodes of pool gpu.
const claimingPods = `
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four, namespace: default}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nvidia.com, count: 4}}]}}}
`

// claimDevices plays with pods that claim devices. They get nodes that will have them, each node is initialized when the
// driver has published them, and kube-scheduler binds the pods.
func (w *world) claimDevices() {
	w.t.Helper()
	before := map[string]bool{}
	for _, n := range w.nodesOf("gpu") {
		before[n.Name] = true
	}
	w.apply(text(claimingPods), deployment{name: "claiming", replicas: 2, spec: `
      tolerations: [{operator: Exists}]
      nodeSelector: {karpenter.sh/nodepool: gpu}
      resourceClaims: [{name: g, resourceClaimTemplateName: four}]`})
	seen, published := map[string]int{}, 0
	w.until("pods that claim devices run", func() (string, bool) {
		for _, n := range w.nodesOf("gpu") {
			if before[n.Name] {
				continue
			}
			if seen[n.Name]++; seen[n.Name] == 3 {
				if claim := w.claimOf(n.Name); claim["status"] == "True" {
					w.t.Errorf("the claim of node %s is initialized without devices", n.Name)
				}
				count := map[string]int{"p3.8xlarge": 4, "p3dn.24xlarge": 8}[n.Labels[corev1.LabelInstanceTypeStable]]
				w.publishDevices(n, count)
				published += count
			}
		}
		return fmt.Sprintf("%d of 2 on nodes %v", w.up("claiming"), seen), w.up("claiming") == 2
	}, "provision", "lifecycle")
	if published != 8 {
		w.t.Errorf("the nodes %v have %d devices, want as many as the pods claim: 8", seen, published)
	}
	w.until("their nodes are initialized", func() (string, bool) {
		for name := range seen {
			if got := w.claimOf(name); got["status"] != "True" {
				return fmt.Sprintf("%s: %v", name, got), false
			}
		}
		return "", true
	}, "lifecycle")
}

func (w *world) nodesOf(pool string) []corev1.Node {
	w.t.Helper()
	nodes, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{LabelSelector: "karpenter.sh/nodepool=" + pool})
	if err != nil {
		w.t.Fatal(err)
	}
	return nodes.Items
}

// claimOf is the condition Initialized of the node's claim.
func (w *world) claimOf(node string) map[string]any {
	w.t.Helper()
	for _, c := range w.claims() {
		if s, _ := c.Object["status"].(map[string]any); s["nodeName"] == node {
			return status(c, "Initialized")
		}
	}
	return nil
}

// publishDevices publishes n GPUs of the node, as NVIDIA's driver does.
func (w *world) publishDevices(n corev1.Node, count int) {
	w.t.Helper()
	kind := "gpu"
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: n.Name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}}},
		Spec: resourcev1.ResourceSliceSpec{Driver: "gpu.nvidia.com", NodeName: &n.Name, Pool: resourcev1.ResourcePool{Name: n.Name, Generation: 1, ResourceSliceCount: 1}}}
	for i := range count {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": {StringValue: &kind}}})
	}
	if _, err := w.Kube.ResourceV1().ResourceSlices().Create(w.ctx, slice, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
