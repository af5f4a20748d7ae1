package cli_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/cli/migrate"
)

const karpenter = `apiVersion: apps/v1
kind: Deployment
metadata: {name: karpenter, namespace: kube-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: karpenter}}
  template:
    metadata: {labels: {app: karpenter}}
    spec:
      containers:
      - name: controller
        image: "public.ecr.aws/karpenter/controller:1.14.1@sha256:0123456789012345678901234567890123456789012345678901234567890123"
        args: [--batch-idle-duration=3s]
        envFrom: [{configMapRef: {name: karpenter-options}}, {configMapRef: {name: nobody-has-it}}]
        env:
        - {name: FEATURE_GATES, value: "SpotToSpotConsolidation=true,NodeRepair=true"}
        - {name: RESERVED_ENIS, valueFrom: {configMapKeyRef: {name: karpenter-options, key: enis}}}
        - {name: CLUSTER_CA_BUNDLE, valueFrom: {secretKeyRef: {name: ca, key: bundle}}}
        - {name: SYSTEM_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: karpenter-options, namespace: kube-system}
data: {PREFERENCE_POLICY: Ignore, enis: "1", BATCH_IDLE_DURATION: 1s}
`

// lead has somebody hold Karpenter's leader lease, as of the time given.
func (e env) lead(t *testing.T, since time.Time) {
	t.Helper()
	o := parse(t, fmt.Sprintf(`apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: karpenter-leader-election, namespace: kube-system}
spec: {holderIdentity: karpenter-1, leaseDurationSeconds: 600, renewTime: "%s"}
`, since.UTC().Format("2006-01-02T15:04:05.000000Z")))[0]
	e.apply(t, o)
	e.cleanUp(t, o)
}

// taint puts a taint on a node.
func (e env) taint(t *testing.T, node, key string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"taints":[{"key":%q,"value":"","effect":"NoSchedule"}]}}`, key)
	if _, err := e.dynamic.Resource(nodes()).Patch(t.Context(), node, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// tainted reports whether a node has a taint of that key.
func (e env) tainted(t *testing.T, node, key string) bool {
	t.Helper()
	o, err := e.dynamic.Resource(nodes()).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var n corev1.Node
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &n); err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == key })
}

// report is what migrate prints for programs, whatever its exit code is.
func (e env) report(t *testing.T, args ...string) (r migrate.Report, progress string) {
	t.Helper()
	code, out, progress := e.joiner(append([]string{"migrate", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 && code != 3 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, progress)
	}
	return r, progress
}

// What Karpenter left half done is mended once it does not lead any more, and Joiner's holds are ended on the way back.
func TestMigrationThereAndBack(t *testing.T) {
	e := newEnv(t)
	e.node(t, "moved")
	e.applyAll(t, karpenter)
	e.taint(t, "moved-node", "karpenter.sh/disrupted")
	if _, err := e.dynamic.Resource(claims()).Patch(t.Context(), "moved-claim", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}

	e.lead(t, time.Now())
	code, out, progress := e.joiner("migrate", "--apply")
	if code != 1 || !strings.Contains(progress, "nothing was changed: karpenter-1 leads the cluster") || !e.tainted(t, "moved-node", "karpenter.sh/disrupted") {
		t.Errorf("while Karpenter leads: exit %d, %s%s", code, out, progress)
	}

	e.lead(t, time.Now().Add(-time.Hour)) // it is gone, and its lease has run out
	r, progress := e.report(t, "--apply")
	want := []migrate.Edit{{Do: migrate.Adopt, Name: "moved-claim"}, {Do: migrate.Untaint, Name: "moved-node"}}
	var got []migrate.Edit
	for _, x := range r.Edits {
		if strings.HasPrefix(x.Name, "moved") {
			got = append(got, migrate.Edit{Do: x.Do, Name: x.Name})
		}
	}
	if !slices.Equal(got, want) || r.From != "Karpenter 1.14.1" || !strings.Contains(progress, "did untaint moved-node") {
		t.Errorf("from %q, edits %v, says %s", r.From, got, progress)
	}
	var lines []string
	for _, l := range r.Settings {
		if l.Name == "nodeRole" {
			continue // of the EC2NodeClasses of other tests
		}
		lines = append(lines, fmt.Sprintf("%s %v", l.Name, l.Value))
	}
	if want := []string{"batchIdle 3s", "nodeRepair true", "preferencePolicy Ignore", "reservedENIs 1"}; !slices.Equal(lines, want) {
		t.Errorf("lines for cdk.json: %v, want %v", lines, want)
	}
	unread := fmt.Sprint(r.Findings)
	for _, want := range []string{"there is no ConfigMap kube-system/nobody-has-it", "CLUSTER_CA_BUNDLE: it is in a Secret", "enis is \"1\", which Joiner has no setting for"} {
		if !strings.Contains(unread, want) {
			t.Errorf("not told: %s", want)
		}
	}
	claim, err := e.dynamic.Resource(claims()).Get(t.Context(), "moved-claim", metav1.GetOptions{})
	if err != nil || !slices.Contains(claim.GetFinalizers(), "karpenter.sh/termination") || e.tainted(t, "moved-node", "karpenter.sh/disrupted") {
		t.Errorf("%v, finalizers %v, tainted %t", err, claim.GetFinalizers(), e.tainted(t, "moved-node", "karpenter.sh/disrupted"))
	}
	if r, _ = e.report(t); slices.ContainsFunc(r.Edits, func(x migrate.Edit) bool { return strings.HasPrefix(x.Name, "moved") }) {
		t.Errorf("after the changes there are more: %v", r.Edits)
	}

	e.node(t, "waits")
	e.annotate(t, claims(), "waits-claim", "joiner.sh/stopped-capacity", "true")
	e.taint(t, "moved-node", "joiner.sh/nominated-pods-only")
	e.annotate(t, claims(), "moved-claim", "joiner.sh/disruption-command", "{}")
	written := map[schema.GroupVersionResource]string{pools(): "joiner.sh/zonal-shifts", classes(): "joiner.sh/hashed-spec"}
	for of, key := range written {
		e.annotate(t, of, "moved", key, "17")
		e.annotate(t, of, "moved", "joiner.sh/disruption", "act")
	}
	if _, progress = e.report(t, "--back", "--apply"); !strings.Contains(progress, "did open moved-node") || !strings.Contains(progress, "did unmark moved-claim") {
		t.Errorf("on the way back: %s", progress)
	}
	waits, err := e.dynamic.Resource(claims()).Get(t.Context(), "waits-claim", metav1.GetOptions{})
	if !strings.Contains(progress, "did end waits-claim") || err == nil && waits.GetDeletionTimestamp() == nil || err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("the NodeClaim of stopped capacity stays (%v): %s", err, progress)
	}
	claim, err = e.dynamic.Resource(claims()).Get(t.Context(), "moved-claim", metav1.GetOptions{})
	if err != nil || claim.GetAnnotations()["joiner.sh/disruption-command"] != "" || e.tainted(t, "moved-node", "joiner.sh/nominated-pods-only") {
		t.Errorf("%v, annotations %v, held %t", err, claim.GetAnnotations(), e.tainted(t, "moved-node", "joiner.sh/nominated-pods-only"))
	}
	for of, key := range written {
		o, err := e.dynamic.Resource(of).Get(t.Context(), "moved", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if left, there := o.GetAnnotations()[key]; there || o.GetAnnotations()["joiner.sh/disruption"] != "act" {
			t.Errorf("%s has %s %q; of its user %v", of.Resource, key, left, o.GetAnnotations())
		}
	}
	if r, _ = e.report(t, "--back"); slices.ContainsFunc(r.Edits, func(x migrate.Edit) bool { return strings.HasSuffix(x.Name, "/moved") }) {
		t.Errorf("there is more to forget: %v", r.Edits)
	}
}

func (e env) annotate(t *testing.T, of schema.GroupVersionResource, name, key, value string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, key, value)
	if _, err := e.dynamic.Resource(of).Patch(t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// A NodePool made of a node group is taken by the API server.
func TestNodePoolsOfNodeGroupsAreAccepted(t *testing.T) {
	e := newEnv(t)
	e.applyAll(t, `apiVersion: apps/v1
kind: Deployment
metadata: {name: cluster-autoscaler, namespace: kube-system}
spec:
  replicas: 0
  selector: {matchLabels: {app: ca}}
  template:
    metadata: {labels: {app: ca}}
    spec: {containers: [{name: ca, image: "registry.k8s.io/autoscaling/cluster-autoscaler:v1.33.0"}]}
---
apiVersion: v1
kind: Node
metadata: {name: grouped, labels: {eks.amazonaws.com/nodegroup: shop, eks.amazonaws.com/capacityType: SPOT, kubernetes.io/arch: amd64, node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/zone: us-west-2a, team: shop}}
spec: {taints: [{key: dedicated, value: shop, effect: NoSchedule}]}
`)
	r, progress := e.report(t)
	i := slices.IndexFunc(r.Groups, func(g migrate.NodeGroup) bool { return g.Name == "shop" })
	if !strings.Contains(r.From, "Cluster Autoscaler v1.33.0") || i < 0 {
		t.Fatalf("from %q, groups %v, %s", r.From, r.Groups, progress)
	}
	var stored *unstructured.Unstructured
	for _, o := range parse(t, r.Groups[i].Pool) {
		stored = e.apply(t, o)
		e.cleanUp(t, o)
	}
	requirements, _, _ := unstructured.NestedSlice(stored.Object, "spec", "template", "spec", "requirements")
	if stored.GetName() != "shop" || len(requirements) != 4 {
		t.Errorf("%s with %v", stored.GetName(), requirements)
	}
}
