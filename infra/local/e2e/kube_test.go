package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"joiner.sh/infra/local/env"
)

// class is the text of an EC2NodeClass that works, but for what is given.
type class struct {
	name    string
	images  string // amiSelectorTerms, the family included; default al2023@latest
	subnets string // subnetSelectorTerms; default by the discovery tag
}

func (c class) String() string {
	if c.images == "" {
		c.images = `amiSelectorTerms: [{alias: al2023@latest}]`
	}
	if c.subnets == "" {
		c.subnets = `[{tags: {karpenter.sh/discovery: demo}}]`
	}
	return fmt.Sprintf(`
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: %s}
spec:
  %s
  role: KarpenterNodeRole-demo
  subnetSelectorTerms: %s
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: demo}}]
`, c.name, c.images, c.subnets)
}

// pool is the text of a NodePool with the class of the same name.
func pool(name string, requirements ...string) string {
	all := append([]string{`{key: kubernetes.io/arch, operator: In, values: [amd64]}`, `{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}`,
		`{key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m]}`, `{key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}`}, requirements...)
	return fmt.Sprintf(`
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: %[1]s}
      requirements: [%[2]s]
`, name, strings.Join(all, ", "))
}

// deployment is the text of a Deployment. Its pods never share a node with their like when alone is set.
type deployment struct {
	name     string
	replicas int
	cpu      string // default 500m
	alone    bool
	spec     string // more of the pod's spec, one line each
}

func (d deployment) String() string {
	if d.cpu == "" {
		d.cpu = "500m"
	}
	if d.alone {
		d.spec += `
      affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {alone: "true"}}}]}}`
	}
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s, alone: "%[3]t"}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: a, image: pause, resources: {requests: {cpu: %[4]s, memory: 256Mi}}}]%[5]s
`, d.name, d.replicas, d.alone, d.cpu, d.spec)
}

// apply applies texts.
func (w *world) apply(texts ...fmt.Stringer) {
	w.t.Helper()
	for _, text := range texts {
		if err := w.Kube.ApplyManifest(w.ctx, []byte(text.String())); err != nil {
			w.t.Fatal(err)
		}
	}
}

// text is a manifest that is written already.
type text string

func (t text) String() string { return string(t) }

// ready makes pool and class "default" and has them refreshed.
func (w *world) ready() {
	w.t.Helper()
	w.apply(text(pool("default")), class{name: "default"})
	w.tick("refresh")
	if got := w.condition(env.NodePools(), "default", "Ready"); got["status"] != "True" {
		w.t.Fatalf("NodePool default: Ready is %v", got)
	}
}

// pods are those of a Deployment that are not being deleted.
func (w *world) pods(app string) []corev1.Pod {
	w.t.Helper()
	out, err := w.list(w.ctx, app)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) list(ctx context.Context, app string) ([]corev1.Pod, error) {
	list, err := w.Kube.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil }), nil
}

// up counts the pods of a Deployment that are ready.
func (w *world) up(app string) int {
	w.t.Helper()
	return ready(w.pods(app))
}

func ready(pods []corev1.Pod) (n int) {
	for _, p := range pods {
		if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			n++
		}
	}
	return n
}

// exist waits until a Deployment's pods exist and the scheduler has judged each of them.
func (w *world) exist(app string, want int) {
	w.t.Helper()
	w.until(app+" exists", func() (string, bool) {
		pods, judged := w.pods(app), 0
		for _, p := range pods {
			if slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled }) {
				judged++
			}
		}
		return fmt.Sprintf("%d pods, %d judged", len(pods), judged), len(pods) == want && judged == want
	})
}

// run has a Deployment's pods made and served.
func (w *world) run(d deployment) {
	w.t.Helper()
	w.apply(d)
	w.exist(d.name, d.replicas)
	w.serve(d.name, d.replicas)
}

// serve ticks until so many pods are up and every claim is in service, and whom the functions woke has ended: what a
// test does next is seen by nobody before the test has somebody look.
func (w *world) serve(app string, want int) {
	w.t.Helper()
	w.until(app+" is served", func() (string, bool) {
		n := w.up(app)
		waiting := 0
		for _, c := range w.claims() {
			if status(c, "Initialized")["status"] != "True" {
				waiting++
			}
		}
		return fmt.Sprintf("%d of %d pods up, %d claims not initialized", n, want, waiting), n == want && waiting == 0
	}, "provision", "lifecycle")
	w.settled()
}

// claims are all NodeClaims.
func (w *world) claims() []unstructured.Unstructured {
	w.t.Helper()
	list, err := w.Kube.Dynamic.Resource(env.NodeClaims()).List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// amend changes the status of an object, anew if somebody wrote to it in between, and returns what was stored.
func (w *world) amend(r schema.GroupVersionResource, name string, change func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	w.t.Helper()
	var stored *unstructured.Unstructured
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		obj, err := w.Kube.Dynamic.Resource(r).Get(w.ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := change(obj); err != nil {
			return err
		}
		stored, err = w.Kube.Dynamic.Resource(r).UpdateStatus(w.ctx, obj, metav1.UpdateOptions{})
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	return stored
}

// oneClaim is the only claim there is.
func (w *world) oneClaim() *unstructured.Unstructured {
	w.t.Helper()
	all := w.claims()
	if len(all) != 1 {
		w.t.Fatalf("%d NodeClaims, want 1", len(all))
	}
	return &all[0]
}

// nodes are all Nodes.
func (w *world) nodes() []corev1.Node {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Nodes().List(w.ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// providerID is what the claim says it launched.
func providerID(c *unstructured.Unstructured) string {
	id, _, _ := unstructured.NestedString(c.Object, "status", "providerID")
	return id
}

// status is one condition of an object, empty if there is none.
func status(obj unstructured.Unstructured, kind string) map[string]any {
	all, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
	for _, c := range all {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m
		}
	}
	return map[string]any{}
}

func (w *world) condition(r schema.GroupVersionResource, name, kind string) map[string]any {
	w.t.Helper()
	obj, err := w.Kube.Dynamic.Resource(r).Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return status(*obj, kind)
}

// told is the message of our FailedScheduling event on a pod of a Deployment; the scheduler writes one of that name
// too.
func (w *world) told(app string) string {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Events("default").List(w.ctx, metav1.ListOptions{FieldSelector: "reason=FailedScheduling"})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, app+"-") && e.InvolvedObject.Kind == "Pod" &&
			e.ReportingController != "default-scheduler" && e.Source.Component != "default-scheduler" {
			return e.Message
		}
	}
	return ""
}
