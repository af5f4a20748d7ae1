package kube_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/pkg/model/cluster"
	units "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

// A claim without our finalizer and the label of its class gets both in one write, and none when it has them.
func TestAdoptClaim(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	claim := c.addClaim(t, k)
	claims := c.dynamic.Resource(schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"})
	if _, err := claims.Patch(t.Context(), claim.Name, "application/merge-patch+json",
		[]byte(`{"metadata":{"finalizers":["example.com/mine"],"labels":{"karpenter.k8s.aws/ec2nodeclass":null}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	got, err := k.AdoptClaim(t.Context(), claim)
	if err != nil || !got.Finalizer || got.Labels["karpenter.k8s.aws/ec2nodeclass"] != c.name || got.Labels["team"] != "a" || got.Version == claim.Version {
		t.Errorf("adopted: %+v %v", got, err)
	}
	o, err := claims.Get(t.Context(), claim.Name, metav1.GetOptions{})
	if err != nil || !slices.Equal(o.GetFinalizers(), []string{"example.com/mine", "karpenter.sh/termination"}) {
		t.Errorf("finalizers %v %v", o.GetFinalizers(), err)
	}
	r.take()
	again, err := k.AdoptClaim(t.Context(), got)
	if err != nil || again.Version != got.Version || len(r.take()) != 1 {
		t.Errorf("again: %+v %v, want one look and no write", again, err)
	}
	if _, err := claims.Patch(t.Context(), claim.Name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":["karpenter.sh/termination"]}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := k.DeleteClaim(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	if _, err := k.AdoptClaim(t.Context(), again); !isConflict(err) {
		t.Errorf("of a claim that is being deleted: %v, want a ConflictError", err)
	}
}

// What lifecycle writes about a pool: counts, and how registrations went. Both are done once however often they are
// asked for.
func TestPoolCountsAndRegistrations(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	has := units.List{CPU: 3500, Memory: 4 << 30, Pods: 20}.With("nvidia.com/gpu", 1).With("nodes", 2)
	failed := []cluster.Registration{{ClaimUID: "a", Reason: "RegistrationFailed", Message: "x"}, {ClaimUID: "b", Reason: "RegistrationFailed", Message: "x"}}
	for try := range 2 {
		r.take()
		if err := k.CountPool(t.Context(), c.name, has); err != nil {
			t.Fatal(err)
		}
		if err := k.RecordRegistrations(t.Context(), c.name, failed); err != nil {
			t.Fatal(err)
		}
		if n := len(r.take()); try == 1 && n != 3 {
			t.Errorf("the second time cost %d requests, want three looks", n)
		}
	}
	pools, err := k.ListPools(t.Context())
	if err != nil || len(pools) != 1 {
		t.Fatal(pools, err)
	}
	if p := translate.Pool(&pools[0], nil); p.Uncounted || !p.Counted.Sub(has).IsZero() {
		t.Errorf("the pool counts %s, want %s", p.Counted, has)
	}
	h, _ := pools[0].StatusConditions().Get("NodeRegistrationHealthy")
	if h.Status != "False" || h.Reason != "RegistrationFailed" || *pools[0].Status.Nodes != 2 || pools[0].Annotations["joiner.sh/registration-history"] != "1/0 failed:a failed:b" {
		t.Errorf("condition %+v, %d nodes, annotations %v", h, *pools[0].Status.Nodes, pools[0].Annotations)
	}
	if err := k.CountPool(t.Context(), "nobody", has); err != nil {
		t.Errorf("a pool that is gone: %v", err)
	}
	if err := k.RecordRegistrations(t.Context(), "nobody", failed); err != nil {
		t.Errorf("a pool that is gone: %v", err)
	}
}

// Volumes are told by node, with who claims them and whether others may have them too; the right to read them is
// lifecycle's.
func TestAttachments(t *testing.T) {
	c := newEnv(t)
	for volume, mode := range map[string]corev1.PersistentVolumeAccessMode{"own": corev1.ReadWriteOnce, "pod": corev1.ReadWriteOncePod, "all": corev1.ReadWriteMany, "read": corev1.ReadOnlyMany, "far": corev1.ReadWriteOnce} {
		name := c.name + "-" + volume
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{mode}, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: name}}}}
		if volume == "own" {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.name, Name: "data"}
		}
		if _, err := c.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		node := c.name
		if volume == "far" {
			node = "elsewhere"
		}
		c.attach(t, name, node, &name)
	}
	inline := &corev1.PersistentVolumeSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "x"}}}
	c.attachSource(t, c.name+"-inline", c.name, storagev1.VolumeAttachmentSource{InlineVolumeSpec: inline})
	k := c.as(t, "joiner-lifecycle")
	got, err := k.ListAttachments(t.Context(), []string{c.name})
	want := []cluster.Attachment{{Node: c.name, Volume: c.name + "-all", Shared: true}, {Node: c.name, Volume: c.name + "-own", Claim: c.name + "/data"},
		{Node: c.name, Volume: c.name + "-pod"}, {Node: c.name, Volume: c.name + "-read", Shared: true}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if got, err := k.ListAttachments(t.Context(), []string{"nobody"}); err != nil || len(got) != 0 {
		t.Errorf("of a node without volumes: %v %v", got, err)
	}
}

func (c env) attach(t *testing.T, name, node string, volume *string) {
	t.Helper()
	c.attachSource(t, name, node, storagev1.VolumeAttachmentSource{PersistentVolumeName: volume})
}

func (c env) attachSource(t *testing.T, name, node string, source storagev1.VolumeAttachmentSource) {
	t.Helper()
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{Attacher: "ebs.csi.aws.com", NodeName: node, Source: source}}
	if _, err := c.StorageV1().VolumeAttachments().Create(t.Context(), a, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Conditions of a node tell type, status and since; a heartbeat changes nothing that a snapshot shows.
func TestConditionsOfANode(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	c.addNode(t, c.name, corev1.Taint{Key: "a", Effect: corev1.TaintEffectNoSchedule})
	since := metav1.Now().Rfc3339Copy()
	patch := func(beat metav1.Time) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []corev1.NodeCondition{
			{Type: "StorageReady", Status: "False", Reason: "NVMe", LastTransitionTime: since, LastHeartbeatTime: beat}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().Nodes().Patch(t.Context(), c.name, "application/strategic-merge-patch+json", body, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	read := func() []cluster.Condition {
		t.Helper()
		n, err := k.ReadNode(t.Context(), c.name)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(n.Conditions, func(k cluster.Condition) bool { return k.Type != "StorageReady" })
	}
	patch(since)
	first := read()
	want := []cluster.Condition{{Type: "StorageReady", Status: "False", Since: since.UTC()}}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	patch(metav1.NewTime(since.Add(60e9)))
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("after a heartbeat (-want +got):\n%s", diff)
	}
}
