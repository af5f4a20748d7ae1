package kube_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/scheduling/binpack"
)

// volumeZone is where the volume of the test is. Launches come to another zone where nothing keeps them from it.
const volumeZone = "us-west-2c"

// A node at rest whose pod has a bound volume of one zone: nobody waits and nothing goes, so that a snapshot costs
// nothing for volumes. The function that may replace the node reads them, with the limits of nodes, and replaces it
// where the volume is.
func TestVolumesOfANodeAtRest(t *testing.T) {
	c := newEnv(t)
	k, r := c.client(t)
	c.restingNode(t, k)
	c.addVolumeLimit(t, 25)
	r.take()
	s := c.onlyOurs(t, k)
	if got := storageRequests(r); len(got) > 0 {
		t.Errorf("a snapshot costs %v, want nothing for volumes", got)
	}
	if p := s.Pods[0]; !slices.Equal(p.UnreadClaims, []string{"data"}) || p.VolumeZones != nil || s.VolumesMatter(nil) {
		t.Errorf("claims %v are to be read and volumes may be in %v; they matter: %t", p.UnreadClaims, p.VolumeZones, s.VolumesMatter(nil))
	}
	s.Claims[0].Conditions = append(s.Claims[0].Conditions, cluster.Condition{Type: karpv1.ConditionDrifted, Status: "True", Since: s.Now})
	if !s.VolumesMatter(disruption.MayEmpty(s)) {
		t.Fatal("volumes do not matter to disrupt, which may replace the node")
	}
	s, err := k.WithVolumes(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"csidrivers", "csinodes", "persistentvolumeclaims", "persistentvolumes", "storageclasses"}, storageRequests(r)); diff != "" {
		t.Errorf("requests for volumes (-want +got):\n%s", diff)
	}
	c.checkVolumeZone(t, s)
	if got := s.Nodes[0].VolumeLimits["ebs.csi.aws.com"]; got != 25 {
		t.Errorf("the node attaches %d volumes, want 25", got)
	}
	s = sold(t, s)
	plan, _ := disruption.Next(s, disruption.Memory{}, binpack.ResolveOfferings(s))
	if len(plan.Proposed) != 1 || len(plan.Proposed[0].Launches) != 1 || plan.Proposed[0].Launches[0].Choice.Zone != volumeZone {
		t.Errorf("disrupt has %v, want one replacement in %s", plan.Lines(), volumeZone)
	}
}

// Once the node is on its way out, volumes of its pods matter to everybody, and the pod is planned to where its volume
// is.
func TestVolumesOfANodeThatGoes(t *testing.T) {
	c := newEnv(t)
	k, _ := c.client(t)
	n := c.restingNode(t, k)
	if err := k.TaintForTermination(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	s := c.onlyOurs(t, k)
	if !s.VolumesMatter(nil) {
		t.Fatal("volumes of a node that is marked for deletion do not matter")
	}
	s, err := k.WithVolumes(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	c.checkVolumeZone(t, s)
	if got := binpack.Pods(sold(t, s)); len(got.Launches) != 1 || got.Launches[0].Choice.Zone != volumeZone {
		t.Errorf("provision has %s, want a node in %s", got, volumeZone)
	}
}

func (c env) checkVolumeZone(t *testing.T, s cluster.Snapshot) {
	t.Helper()
	if diff := cmp.Diff([][]requirements.Requirement{{requirements.Of(corev1.LabelTopologyZone, volumeZone)}}, s.Pods[0].VolumeZones); diff != "" {
		t.Errorf("zones that the volume allows (-want +got):\n%s", diff)
	}
	if p := s.Pods[0]; p.UnreadClaims != nil || !slices.Equal(p.Volumes, []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: c.name + "/data"}}) {
		t.Errorf("volumes %v, %v are to be read", p.Volumes, p.UnreadClaims)
	}
}

// restingNode is an initialized node with a pod that uses a bound volume.
func (c env) restingNode(t *testing.T, k *kube.Client) cluster.Node {
	t.Helper()
	c.applyText(t, classText)
	c.applyText(t, poolText)
	c.addBoundVolume(t)
	c.addNode(t, c.name)
	claim := c.addClaim(t, k)
	n := c.readyNode(t, k, c.name)
	claim.ProviderID, claim.NodeName = n.ProviderID, n.Name
	for _, done := range []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered, karpv1.ConditionInitialized} {
		claim.Conditions = append(claim.Conditions, cluster.Condition{Type: done, Status: "True", Reason: done})
	}
	if _, err := k.WriteClaimStatus(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	c.addPod(t, "db", c.name, func(p *corev1.Pod) {
		p.Spec.NodeSelector = nil
		p.Spec.Tolerations = []corev1.Toleration{{Key: "team", Operator: corev1.TolerationOpExists}}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	return n
}

// addBoundVolume makes a volume and the claim that it is bound to.
func (c env) addBoundVolume(t *testing.T) {
	t.Helper()
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	none := ""
	claim, err := c.CoreV1().PersistentVolumeClaims(c.name).Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: c.name, StorageClassName: &none, AccessModes: modes,
			Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CoreV1().PersistentVolumes().Create(t.Context(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: c.name},
		Spec: corev1.PersistentVolumeSpec{AccessModes: modes, Capacity: size,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: c.name, Name: "data", UID: claim.UID},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{volumeZone}}}}}}},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-1"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.CoreV1().PersistentVolumes().Delete(context.Background(), c.name, metav1.DeleteOptions{})
	})
	eventually(t, "the claim to be bound", func(ctx context.Context) (string, bool) {
		got, err := c.CoreV1().PersistentVolumeClaims(c.name).Get(ctx, "data", metav1.GetOptions{})
		return fmt.Sprint(got.Status, got.Annotations, err), err == nil && got.Annotations["pv.kubernetes.io/bind-completed"] != "" && got.Status.Phase == corev1.ClaimBound
	})
}

// onlyOurs is the snapshot with what the test made, as if there were no more.
func (c env) onlyOurs(t *testing.T, k *kube.Client) cluster.Snapshot {
	t.Helper()
	s, err := k.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.Namespace != c.name })
	s.Nodes = slices.DeleteFunc(s.Nodes, func(n cluster.Node) bool { return n.Name != c.name })
	s.Claims = slices.DeleteFunc(s.Claims, func(n cluster.Claim) bool { return n.Pool != c.name })
	s.Pools = slices.DeleteFunc(s.Pools, func(p cluster.Pool) bool { return p.Name != c.name })
	s.Classes = slices.DeleteFunc(s.Classes, func(o instancetypes.Class) bool { return o.Name != c.name })
	s.Daemons, s.Overlays, s.Budgets = nil, nil, nil
	if len(s.Pods) != 1 || len(s.Nodes) != 1 || len(s.Claims) != 1 || len(s.Pools) != 1 || len(s.Classes) != 1 {
		t.Fatalf("%d pods, %d nodes, %d claims, %d pools and %d classes; want one of each", len(s.Pods), len(s.Nodes), len(s.Claims), len(s.Pools), len(s.Classes))
	}
	return s
}

// sold is the snapshot with one instance type to be had in all zones, for a pool and a class that are ready.
func sold(t *testing.T, s cluster.Snapshot) cluster.Snapshot {
	t.Helper()
	all, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	all.Types = slices.DeleteFunc(all.Types, func(t instancetypes.Facts) bool { return t.Name != "m5.xlarge" })
	s.Catalog = all
	s.Classes = []instancetypes.Class{{Name: s.Classes[0].Name, Ready: true, Family: instancetypes.AL2023, ZoneIDs: all.Zones, Images: []instancetypes.Image{{ID: "ami-1"}}}}
	s.Pools[0].Ready, s.Pools[0].Unseen = true, false
	s.Pools[0].Disruption.Budgets = nil
	return s
}

// storageRequests are the kinds that were asked for since it was asked last, of those that are about volumes, sorted.
func storageRequests(r *recorder) (out []string) {
	for _, line := range r.take() {
		path := strings.Fields(line)[1]
		kind := path[strings.LastIndexByte(path, '/')+1:]
		if slices.Contains([]string{"persistentvolumeclaims", "persistentvolumes", "storageclasses", "csidrivers", "csinodes"}, kind) {
			out = append(out, kind)
		}
	}
	slices.Sort(out)
	return out
}
