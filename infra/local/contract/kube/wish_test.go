package kube_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/buffers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/requirements"
	units "joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/providers/kube"
)

// What a buffer's template and workload ask for: 100m by the limit of the one, 200m by the request of the other.
const (
	templateText = `
apiVersion: v1
kind: PodTemplate
metadata: {name: t, namespace: NAME}
template:
  metadata: {labels: {app: t}}
  spec: {containers: [{name: main, image: none, resources: {limits: {cpu: 100m}}}]}
`
	deploymentText = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: w, namespace: NAME}
spec:
  replicas: 4
  selector: {matchLabels: {app: w}}
  template:
    metadata: {labels: {app: w}}
    spec:
      nodeSelector: {kubetest: nowhere}
      containers: [{name: main, image: none, resources: {requests: {cpu: 200m}}}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: nobody}}]
`
	bufferText = `
apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata: {name: BUFFER, namespace: NAME}
spec: SPEC
`
)

func morning() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

func (c env) addBuffer(t *testing.T, name, spec string) {
	t.Helper()
	c.applyText(t, strings.NewReplacer("BUFFER", name, "SPEC", spec).Replace(bufferText))
}

func TestBuffers(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	c.applyText(t, templateText)
	c.applyText(t, deploymentText)
	c.addBuffer(t, "by-template", "{podTemplateRef: {name: t}, replicas: 1}")
	c.addBuffer(t, "by-workload", "{scalableRef: {kind: Deployment, name: w}, percentage: 50}")
	c.addBuffer(t, "lost", "{podTemplateRef: {name: nobody}, replicas: 1}")
	c.addBuffer(t, "not-ours", "{provisioningStrategy: somebody.example/standby, podTemplateRef: {name: t}, replicas: 1}")

	mine := func(all []cluster.Pod, err error) []cluster.Pod {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(all, func(p cluster.Pod) bool { return p.Namespace != c.name || !p.Virtual })
	}
	pod := func(name, app string, cpu int64) cluster.Pod {
		return cluster.Pod{Namespace: c.name, Name: name, Labels: map[string]string{"app": app}, Priority: math.MinInt32, Unscheduled: true, Virtual: true,
			GraceSec: 30, Need: units.List{CPU: cpu, Pods: 1}}
	}
	want := []cluster.Pod{pod("capacity-buffer-by-template-1", "t", 100), pod("capacity-buffer-by-workload-1", "w", 200), pod("capacity-buffer-by-workload-2", "w", 200)}
	want[1].NodeSelector, want[2].NodeSelector = map[string]string{"kubetest": "nowhere"}, map[string]string{"kubetest": "nowhere"}
	ignored := cmpopts.IgnoreFields(cluster.Pod{}, "UID", "Created")
	if diff := cmp.Diff(want, mine(k.PendingPods(t.Context())), ignored); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	s, err := k.ReadSnapshot(t.Context())
	if diff := cmp.Diff(want, mine(s.Pods, err), ignored); diff != "" {
		t.Errorf("pods of the snapshot (-want +got):\n%s", diff)
	}
	c.bufferStatus(t, k)
}

// bufferStatus writes the status of the test's buffers, once each, and that only to what was read.
func (c env) bufferStatus(t *testing.T, k *kube.Client) {
	t.Helper()
	for round, want := range []string{"by-template by-workload lost", ""} {
		all, err := k.ListBuffers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var written []string
		for _, b := range all {
			if b.Object.Namespace != c.name || !buffers.UpdateStatus(b, map[string]bool{}, morning()) {
				continue
			}
			old := b.Object.DeepCopy()
			if err := k.WriteBufferStatus(t.Context(), b.Object); err != nil {
				t.Fatal(err)
			}
			if err := k.WriteBufferStatus(t.Context(), old); !isConflict(err) {
				t.Errorf("status on an old version: %v, want a ConflictError", err)
			}
			written = append(written, b.Object.Name)
		}
		if got := strings.Join(written, " "); got != want {
			t.Errorf("round %d: wrote %q, want %q", round, got, want)
		}
	}
}

const overlayText = `
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: NAME}
spec:
  weight: 5
  priceAdjustment: "-10%"
  requirements: [{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [us-west-2a]}]
`

func TestOverlays(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	c.applyText(t, overlayText)
	want := []cluster.Overlay{{Name: c.name, Weight: 5, Change: &cluster.PriceChange{Percent: -10},
		Requirements: requirements.NewSet(requirements.Of("topology.kubernetes.io/zone", "us-west-2a"))}}
	s, err := k.ReadSnapshot(t.Context())
	if diff := cmp.Diff(want, s.Overlays); diff != "" || err != nil {
		t.Errorf("error %v, overlays of the snapshot (-want +got):\n%s", err, diff)
	}
	shelves, stored, err := k.ReadOfferingInputs(t.Context())
	if err != nil || len(stored) != 1 || len(shelves.Pools) != 1 || len(shelves.Classes) != 1 || !cmp.Equal(want, shelves.Overlays) {
		t.Fatalf("shelves %+v, stored %d, error %v", shelves, len(stored), err)
	}
	old := stored[0].DeepCopy()
	overlays.UpdateStatus(&stored[0], overlays.Verdict{Conflict: "another"}, morning())
	if err := k.WriteOverlayStatus(t.Context(), &stored[0]); err != nil || stored[0].ResourceVersion == old.ResourceVersion {
		t.Errorf("write status: %v", err)
	}
	if err := k.WriteOverlayStatus(t.Context(), old); !isConflict(err) {
		t.Errorf("status on an old version: %v, want a ConflictError", err)
	}
	if stored, err = k.ListOverlays(t.Context()); err != nil || len(stored) != 1 || overlays.UpdateStatus(&stored[0], overlays.Verdict{Conflict: "another"}, morning().Add(time.Hour)) {
		t.Errorf("stored %+v, error %v", stored, err)
	}
}

// A DaemonSet's sample is what admission made of its newest pod.
func TestDaemonSample(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	c.addDaemon(t)
	c.addNode(t, c.name)
	set, err := c.AppsV1().DaemonSets(c.name).Get(t.Context(), "agent", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	yes := true
	c.addPod(t, "agent-x", c.name, func(p *corev1.Pod) {
		p.Labels = map[string]string{"app": "agent", "pod-template-generation": "1"}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name, UID: set.UID, Controller: &yes}}
		p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("333m")
		// the controller deletes a pod on a node that the template does not select
		p.Finalizers = []string{"kubetest.example/hold"}
	})
	t.Cleanup(func() {
		_, _ = c.CoreV1().Pods(c.name).Patch(context.Background(), "agent-x", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	})
	s, err := k.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := s.Pods[slices.IndexFunc(s.Pods, func(p cluster.Pod) bool { return p.Namespace == c.name })]
	d := s.Daemons[slices.IndexFunc(s.Daemons, func(p cluster.Pod) bool { return p.Namespace == c.name })]
	want := int64(333)
	if !live.Active() { // the controller was faster: a pod that is being deleted is no sample
		want = 50
	}
	if d.Name != "agent" || d.NodeName != "" || d.Need.CPU != want {
		t.Errorf("sample %+v, want one with %d of cpu", d, want)
	}
}

// addVolumeLimit says that the EBS driver can attach so many volumes to the test's node.
func (c env) addVolumeLimit(t *testing.T, most int32) {
	t.Helper()
	_, err := c.StorageV1().CSINodes().Create(t.Context(), &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
			{Name: "ebs.csi.aws.com", NodeID: "i-1", Allocatable: &storagev1.VolumeNodeResources{Count: &most}}, {Name: "efs.csi.aws.com", NodeID: "i-1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.StorageV1().CSINodes().Delete(context.Background(), c.name, metav1.DeleteOptions{}) })
}

// rightsOfWishes has provision, lifecycle and refresh read overlays and buffers, and write what is theirs to write.
func (c env) rightsOfWishes(t *testing.T, p, l, f *kube.Client) {
	t.Helper()
	c.applyText(t, templateText)
	c.applyText(t, deploymentText)
	c.applyText(t, overlayText)
	c.addBuffer(t, "by-template", "{podTemplateRef: {name: t}, replicas: 1}")
	c.addBuffer(t, "by-workload", "{scalableRef: {kind: Deployment, name: w}, percentage: 50}")
	for who, k := range map[string]*kube.Client{"provision": p, "lifecycle": l, "refresh": f} {
		all, err := k.ListBuffers(t.Context())
		if err != nil {
			t.Errorf("%s: buffers: %v", who, err)
		}
		overlays, err := k.ListOverlays(t.Context())
		if err != nil || len(overlays) == 0 {
			t.Errorf("%s: %d overlays: %v", who, len(overlays), err)
			overlays = make([]v1alpha1.NodeOverlay, 1)
		}
		err = k.WriteOverlayStatus(t.Context(), &overlays[0])
		if (err == nil) != (who == "refresh") {
			t.Errorf("%s: status of an overlay: %v", who, err)
		}
		for _, b := range all {
			if b.Object.Namespace != c.name {
				continue
			}
			if b.Template == nil {
				t.Errorf("%s: found nothing for buffer %s", who, b.Object.Name)
			}
			if err := k.WriteBufferStatus(t.Context(), b.Object); (err == nil) != (who != "lifecycle") {
				t.Errorf("%s: %v", who, fmt.Errorf("status of buffer %s: %w", b.Object.Name, err))
			}
		}
	}
}
