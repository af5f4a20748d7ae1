package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// shelves is an API server that lists a node with a pod, whose volume is in zone b, and of all other kinds nothing.
type shelves struct {
	t      *testing.T
	taints []corev1.Taint // of the node
	optIn  *bool          // of the volume's CSI driver; nil where nobody may read it

	mu    sync.Mutex
	asked []string // kinds that are about volumes, as often as they were listed
}

func (s *shelves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	var items []any
	switch kind {
	case "nodes":
		items = []any{corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u-n1"}, Spec: corev1.NodeSpec{Taints: s.taints}}}
	case "pods":
		items = []any{read[corev1.Pod](s.t, `{metadata: {name: db, namespace: ns, uid: u1, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u2}]},
spec: {nodeName: n1, volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]}, status: {phase: Running}}`)}
	case "persistentvolumeclaims":
		c := read[corev1.PersistentVolumeClaim](s.t, bound)
		c.Namespace, c.Name = "ns", "data"
		items = []any{c}
	case "persistentvolumes":
		items = []any{read[corev1.PersistentVolume](s.t, `{metadata: {name: pv}, spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: v}, nodeAffinity: {required: {nodeSelectorTerms: [
{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}}}`)}
	case "csinodes":
		most := int32(25)
		items = []any{storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: "ebs.csi.aws.com", Allocatable: &storagev1.VolumeNodeResources{Count: &most}}}}}}
	}
	if slices.Contains([]string{"persistentvolumeclaims", "persistentvolumes", "storageclasses", "csidrivers", "csinodes"}, kind) {
		s.mu.Lock()
		s.asked = append(s.asked, kind)
		s.mu.Unlock()
	}
	if kind == "csidrivers" {
		if s.optIn == nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		items = []any{storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "ebs.csi.aws.com"}, Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: s.optIn}}}
	}
	kinds := map[string]string{"nodes": "Node", "pods": "Pod", "persistentvolumeclaims": "PersistentVolumeClaim", "persistentvolumes": "PersistentVolume",
		"storageclasses": "StorageClass", "csinodes": "CSINode", "csidrivers": "CSIDriver", "namespaces": "Namespace", "daemonsets": "DaemonSet", "poddisruptionbudgets": "PodDisruptionBudget",
		"nodeclaims": "NodeClaim", "nodepools": "NodePool", "ec2nodeclasses": "EC2NodeClass", "nodeoverlays": "NodeOverlay", "capacitybuffers": "CapacityBuffer"}
	version := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path[:strings.LastIndexByte(r.URL.Path, '/')], "/apis/"), "/api/")
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(map[string]any{"kind": kinds[kind] + "List", "apiVersion": version,
		"metadata": map[string]any{"resourceVersion": "7"}, "items": items}); err != nil {
		s.t.Error(err)
	}
}

// A snapshot lists nothing about volumes and says which claims pods use. These are listed once each for whoever needs
// to know: everybody, while the pod's node is on its way out.
func TestVolumesAreReadForWhatMoves(t *testing.T) {
	disrupted := []corev1.Taint{{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule}}
	for name, c := range map[string]struct {
		taints  []corev1.Taint
		emptied map[string]bool
		matter  bool
		optIn   *bool
	}{
		"at rest":              {},
		"on a node that goes":  {taints: disrupted, matter: true, optIn: new(true)},
		"on a candidate":       {emptied: map[string]bool{"n1": true}, matter: true},
		"beside the candidate": {emptied: map[string]bool{"n2": true}},
	} {
		s := &shelves{t: t, taints: c.taints, optIn: c.optIn}
		server := httptest.NewServer(s)
		t.Cleanup(server.Close)
		client, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.ReadSnapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if p := got.Pods[0]; !slices.Equal(p.UnreadClaims, []string{"data"}) || len(s.asked) > 0 || got.VolumesMatter(c.emptied) != c.matter {
			t.Errorf("%s: claims %v, %v were listed, volumes matter %t; want data, nothing, %t", name, p.UnreadClaims, s.asked, !c.matter, c.matter)
		}
		full, err := client.WithVolumes(t.Context(), got)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(s.asked)
		if diff := cmp.Diff([]string{"csidrivers", "csinodes", "persistentvolumeclaims", "persistentvolumes", "storageclasses"}, s.asked); diff != "" {
			t.Errorf("%s: listed (-want +got):\n%s", name, diff)
		}
		p := full.Pods[0]
		want := []string{"CSI driver ebs.csi.aws.com"}
		if c.optIn == nil {
			want = nil
		}
		if !slices.Equal(p.Requires, want) || !slices.Equal(full.Nodes[0].Provides, want) {
			t.Errorf("%s: the pod requires %q, its node provides %q, want %q", name, p.Requires, full.Nodes[0].Provides, want)
		}
		if diff := cmp.Diff([][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", "b")}}, p.VolumeZones); diff != "" || p.UnreadClaims != nil ||
			!slices.Equal(p.Volumes, []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: "ns/data"}}) || full.Nodes[0].VolumeLimits["ebs.csi.aws.com"] != 25 {
			t.Errorf("%s: volumes %v, limits %v, zones (-want +got):\n%s", name, p.Volumes, full.Nodes[0].VolumeLimits, diff)
		}
		if got.Pods[0].UnreadClaims == nil || got.Nodes[0].VolumeLimits != nil {
			t.Errorf("%s: the snapshot given was changed", name)
		}
	}
}

// Where no pod uses volumes nothing is listed for them.
func TestNoVolumesCostNothing(t *testing.T) {
	s := &shelves{t: t}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	c, err := New(Config{Endpoint: server.URL, Transport: http.DefaultTransport})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.WithVolumes(t.Context(), cluster.Snapshot{Pods: []cluster.Pod{{Name: "web"}}}); err != nil || len(s.asked) > 0 {
		t.Errorf("%v: %v were listed", err, s.asked)
	}
}

const bound = `{metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: pv}}`

func read[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatal(err)
	}
	return out
}
