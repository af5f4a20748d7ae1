package kube_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	units "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/providers/kube"
)

func (c env) storedClaim(t *testing.T, name string) map[string]any {
	t.Helper()
	o, err := c.dynamic.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}).
		Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o.Object
}

func TestClaimAsStored(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, _ := c.client(t)
	claim := c.addClaim(t, k)
	stored := c.storedClaim(t, claim.Name)
	wantSpec := map[string]any{
		"expireAfter": "48h0m0s", "terminationGracePeriod": "30m0s",
		"nodeClassRef": map[string]any{"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": c.name},
		"requirements": []any{
			map[string]any{"key": "karpenter.k8s.aws/instance-cpu", "operator": "Gte", "values": []any{"4"}},
			map[string]any{"key": "karpenter.k8s.aws/instance-cpu", "operator": "NotIn", "values": []any{"6"}},
			map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"on-demand", "spot"}},
			map[string]any{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": []any{"c5.large", "m5.large"}},
			map[string]any{"key": "topology.kubernetes.io/zone", "operator": "Exists"},
		},
		"resources":     map[string]any{"requests": map[string]any{"cpu": "1500m", "memory": "3Gi", "pods": "4", "nvidia.com/gpu": "1"}},
		"taints":        []any{map[string]any{"key": "team", "value": "a", "effect": "NoSchedule"}},
		"startupTaints": []any{map[string]any{"key": "warming", "effect": "NoExecute"}},
	}
	if diff := cmp.Diff(wantSpec, stored["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	meta, _ := stored["metadata"].(map[string]any)
	want := map[string]any{
		"annotations": map[string]any{"note": "hello", "karpenter.sh/nodepool-hash": "123", "karpenter.sh/nodepool-hash-version": "v3"},
		"labels":      map[string]any{"team": "a", "karpenter.sh/nodepool": c.name, "karpenter.k8s.aws/ec2nodeclass": c.name},
		"finalizers":  []any{"karpenter.sh/termination"},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": c.name, "uid": c.pool(t).UID, "blockOwnerDeletion": true}},
	}
	for k, v := range want {
		if diff := cmp.Diff(v, meta[k]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", k, diff)
		}
	}
	if !strings.HasPrefix(claim.Name, c.name+"-") {
		t.Errorf("the claim is called %s, want %s-...", claim.Name, c.name)
	}
	read, err := k.ListClaims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]cluster.Claim{claim}, read); diff != "" {
		t.Errorf("Claims (-created +read):\n%s", diff)
	}
}

// A client in Go reads a claim into its types and writes it back with a label: the API server compares what it writes
// of the spec, letter by letter, with what is stored, and refuses a change of it.
func TestClaimUpdatedByAGoClient(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, _ := c.client(t)
	claims := c.dynamic.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
	for _, amount := range []int64{100_000_000, 2000, 1<<30 + 1000, 1536 << 20, 1 << 20, 999} {
		l := c.launch()
		l.Requests = units.List{CPU: amount, Memory: amount, Ephemeral: amount, Pods: amount, Extended: []units.Extended{{Name: "nvidia.com/gpu", Count: amount}}}
		claim := c.storeClaim(t, k, l)
		stored, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var typed karpv1.NodeClaim
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, &typed); err != nil {
			t.Fatal(err)
		}
		typed.Labels["seen-by"] = "go"
		written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&typed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := claims.Update(t.Context(), &unstructured.Unstructured{Object: written}, metav1.UpdateOptions{}); err != nil {
			t.Errorf("%d: %v", amount, err)
		}
	}
}

// The reply to the creation is lost after the deed: the repeated request must find its own claim, not make a second
// one.
func TestLostReplyMakesOneClaim(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	lost := 0
	r.lose = func(req *http.Request) bool {
		if req.Method != http.MethodPost || lost == 1 {
			return false
		}
		lost++
		return true
	}
	claim := c.addClaim(t, k)
	read, err := k.ListClaims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if lost != 1 || len(read) != 1 || read[0].UID != claim.UID {
		t.Errorf("%d replies lost, %d claims stored, want 1 and the one returned", lost, len(read))
	}
}

func TestClaimWritesNeedTheLatestVersion(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, _ := c.client(t)
	old := c.addClaim(t, k)
	annotated, err := k.AnnotateClaim(t.Context(), old, map[string]string{"joiner.sh/x": "1"})
	if err != nil {
		t.Fatal(err)
	}
	labeled, err := k.LabelClaim(t.Context(), annotated, map[string]string{"topology.kubernetes.io/zone": "us-west-2a"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if labeled.Annotations["joiner.sh/x"] != "1" || labeled.Labels["topology.kubernetes.io/zone"] != "us-west-2a" || labeled.Labels["team"] != "a" {
		t.Errorf("claim after two writes: %v %v", labeled.Annotations, labeled.Labels)
	}
	for name, write := range map[string]func() error{
		"annotate": func() error { _, err := k.AnnotateClaim(t.Context(), old, map[string]string{"a": "b"}); return err },
		"label":    func() error { _, err := k.LabelClaim(t.Context(), old, map[string]string{"a": "b"}, nil); return err },
		"status":   func() error { _, err := k.WriteClaimStatus(t.Context(), old); return err },
	} {
		err := write()
		if !isConflict(err) || !strings.Contains(err.Error(), old.Name) {
			t.Errorf("%s with an old version: error %v, want a ConflictError that names the claim", name, err)
		}
	}
	old.Version = ""
	if got, err := k.AnnotateClaim(t.Context(), old, map[string]string{"a": "b"}); err != nil || got.Annotations["a"] != "b" || got.Labels["topology.kubernetes.io/zone"] != "us-west-2a" {
		t.Errorf("annotations that stand by themselves: %v, stored %v %v", err, got.Annotations, got.Labels)
	}
	old.UID = "11111111-2222-3333-4444-555555555555"
	if _, err := k.AnnotateClaim(t.Context(), old, map[string]string{"a": "c"}); !isConflict(err) {
		t.Errorf("annotations of a claim that took the name: error %v, want a ConflictError", err)
	}
}

func TestClaimStatus(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	now := time.Now().Add(time.Hour).Truncate(time.Second).UTC()
	k, r := c.clientWith(t, func(k *kube.Config) { k.Now = func() time.Time { return now } })
	claim := c.addClaim(t, k)
	claim.ProviderID, claim.ImageID = "aws:///us-west-2a/i-1", "ami-1"
	claim.Capacity = units.List{CPU: 4000, Memory: 8 << 30, Pods: 20}
	claim.Allocatable = units.List{CPU: 3920, Memory: 7 << 30, Pods: 20}
	claim.Conditions = []cluster.Condition{{Type: "Launched", Status: "True"}, {Type: "Drifted", Status: "True", Reason: "NodePoolDrifted"}}
	launched, err := k.WriteClaimStatus(t.Context(), claim)
	if err != nil {
		t.Fatal(err)
	}
	launchedAt := now
	now = now.Add(time.Minute)
	next := launched
	next.NodeName = "node-1"
	next.Capacity = units.List{CPU: 4000, Memory: 8 << 30}
	next.Conditions = []cluster.Condition{{Type: "Launched", Status: "True"}, {Type: "Registered", Status: "True"},
		{Type: "Initialized", Status: "Unknown", Reason: "NodeNotReady", Message: "kubelet is starting"}}
	if next, err = k.WriteClaimStatus(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	want := []cluster.Condition{
		{Type: "Initialized", Status: "Unknown", Reason: "NodeNotReady", Message: "kubelet is starting", Since: claim.Created},
		{Type: "Launched", Status: "True", Reason: "Launched", Since: launchedAt},
		{Type: "Ready", Status: "Unknown", Reason: "ReconcilingDependents", Message: "Initialized=Unknown", Since: claim.Created},
		{Type: "Registered", Status: "True", Reason: "Registered", Since: now},
	}
	if diff := cmp.Diff(want, next.Conditions); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	status, _, _ := unstructured.NestedMap(c.storedClaim(t, claim.Name), "status")
	delete(status, "conditions")
	delete(status, "lastPodEventTime")
	if diff := cmp.Diff(map[string]any{
		"providerID": "aws:///us-west-2a/i-1", "imageID": "ami-1", "nodeName": "node-1",
		"capacity":    map[string]any{"cpu": "4", "memory": "8Gi"},
		"allocatable": map[string]any{"cpu": "3920m", "memory": "7Gi", "pods": "20"},
	}, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	r.take()
	same, err := k.WriteClaimStatus(t.Context(), next)
	if err != nil || same.Version != next.Version {
		t.Errorf("writing the same again: version %s after %s, error %v; want no write", same.Version, next.Version, err)
	}
	if got := r.take(); len(got) != 0 {
		t.Errorf("writing the same again cost %v, want nothing: this client wrote it", got)
	}
	other, calls := c.client(t)
	if same, err := other.WriteClaimStatus(t.Context(), next); err != nil || same.Version != next.Version {
		t.Errorf("another client, writing the same: version %s after %s, error %v; want no write", same.Version, next.Version, err)
	}
	if got := calls.take(); len(got) != 1 || !strings.HasPrefix(got[0], "GET ") {
		t.Errorf("another client, writing the same, cost %v, want one GET", got)
	}
}

func TestClaimGoesAfterItsFinalizer(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, _ := c.client(t)
	claim := c.addClaim(t, k)
	if err := k.DeleteClaim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	read, err := k.ListClaims(t.Context())
	if err != nil || len(read) != 1 || read[0].Deleting.IsZero() || !read[0].Finalizer {
		t.Fatalf("after the delete: %+v, error %v; want it to wait for its finalizer", read, err)
	}
	stranger := claim
	stranger.UID = "11111111-2222-3333-4444-555555555555"
	for _, f := range []func(context.Context, cluster.Claim) error{k.DeleteClaim, k.ReleaseClaim} {
		if err := f(t.Context(), stranger); err != nil {
			t.Errorf("a claim of another UID: %v, want no error", err)
		}
	}
	if read, err = k.ListClaims(t.Context()); err != nil || len(read) != 1 {
		t.Fatalf("after touching a stranger of the name: %v %v, want the claim still there", read, err)
	}
	for range 2 {
		if err := k.ReleaseClaim(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.DeleteClaim(t.Context(), claim); err != nil {
		t.Errorf("delete of a claim that is gone: %v", err)
	}
	if read, err = k.ListClaims(t.Context()); err != nil || len(read) != 0 {
		t.Errorf("claims in the end: %v %v", read, err)
	}
	_, err = k.AnnotateClaim(t.Context(), claim, map[string]string{"a": "b"})
	if !isConflict(err) {
		t.Errorf("annotate a claim that is gone: error %v, want a ConflictError", err)
	}
}
