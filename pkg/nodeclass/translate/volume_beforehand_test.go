package translate

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// Volumes that somebody makes beforehand: local ones are on some nodes, and new nodes bring more; others are where they
// are.
func TestVolumesMadeBeforehand(t *testing.T) {
	const part = "free volume of StorageClass local"
	volume := func(name, more, phase string) string {
		return `{metadata: {name: ` + name + `}, spec: {storageClassName: local, ` + more + `}, status: {phase: ` + phase + `}}`
	}
	on := func(node string) string {
		return `local: {path: /x}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [` + node + `]}]}]}}`
	}
	zoned := `csi: {driver: ebs.csi.aws.com, volumeHandle: v}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [b]}]}]}}`
	for _, c := range []struct {
		name     string
		volumes  []string
		requires []string
		zones    [][]requirements.Requirement
		provides []string // nodes, and how many they have
	}{
		{"local ones", []string{volume("a", on("n1"), "Available"), volume("a2", on("n1"), "Available"), volume("b", on("n2"), "Bound"), volume("c", `claimRef: {name: x}, `+on("n2"), "Available")},
			[]string{part}, nil, []string{"n1: 2"}},
		{"all of them claimed", []string{volume("b", on("n2"), "Bound")}, []string{part}, nil, nil},
		{"none, of whatever kind", nil, nil, nil, nil},
		{"in a zone", []string{volume("a", zoned, "Available")}, nil, [][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", "b")}}, nil},
		{"anywhere", []string{volume("a", `nfs: {server: s, path: /}`, "Available")}, nil, nil, []string{"n1: 1", "n2: 1"}},
	} {
		s := Storage{Volumes: map[string]corev1.PersistentVolume{},
			Claims: map[string]corev1.PersistentVolumeClaim{"ns/data": *read[corev1.PersistentVolumeClaim](t, `{spec: {storageClassName: local}}`)},
			Classes: map[string]storagev1.StorageClass{"local": *read[storagev1.StorageClass](t,
				`{metadata: {name: local}, provisioner: kubernetes.io/no-provisioner, volumeBindingMode: WaitForFirstConsumer}`)}}
		for _, text := range c.volumes {
			v := SlimVolume(read[corev1.PersistentVolume](t, text))
			s.Volumes[v.Name] = v
		}
		p := cluster.Pod{Namespace: "ns", Unscheduled: true, UnreadClaims: []string{"data"}}
		s.FillPod(&p)
		nodes := []cluster.Node{{Name: "n1", Labels: map[string]string{"kubernetes.io/hostname": "n1"}}, {Name: "n2", Labels: map[string]string{"kubernetes.io/hostname": "n2"}}}
		s.AddVolumes(nodes)
		var provides []string
		for _, n := range nodes {
			if slices.Contains(n.Provides, part) {
				provides = append(provides, fmt.Sprintf("%s: %d", n.Name, n.VolumeLimits[part]))
			}
		}
		if diff := cmp.Diff([]cluster.Volume{{Driver: part, ID: "ns/data"}}, p.Volumes); diff != "" {
			t.Errorf("%s: what the pod takes of nodes (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.zones, p.VolumeZones); diff != "" || !slices.Equal(p.Requires, c.requires) || !slices.Equal(provides, c.provides) {
			t.Errorf("%s: the pod requires %q, %v provide it; alternatives (-want +got):\n%s", c.name, p.Requires, provides, diff)
		}
	}
}
