package translate

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// shelf is a storage with one claim in namespace ns, called as the claim is.
func shelf(t *testing.T, claim, volume, class string) Storage {
	t.Helper()
	return Storage{
		Claims:  map[string]corev1.PersistentVolumeClaim{"ns/data": *read[corev1.PersistentVolumeClaim](t, claim)},
		Volumes: map[string]corev1.PersistentVolume{"pv": *read[corev1.PersistentVolume](t, volume)},
		Classes: map[string]storagev1.StorageClass{"gp3": *read[storagev1.StorageClass](t, class)},
	}
}

const bound = `{metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: pv}}`

func TestVolumeProblems(t *testing.T) {
	for _, c := range []struct{ claim, volume, class, want string }{
		{`{metadata: {deletionTimestamp: "2026-03-01T12:00:00Z"}}`, `{}`, `{}`, "persistentvolumeclaim ns/data is being deleted"},
		{`{status: {phase: Lost}}`, `{}`, `{}`, "persistentvolumeclaim ns/data has lost its volume"},
		{`{spec: {volumeName: pv}}`, `{}`, `{}`, "persistentvolumeclaim ns/data is being bound to volume pv"},
		{`{metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: other}}`, `{}`, `{}`, "persistentvolume other does not exist"},
		{bound, `{metadata: {deletionTimestamp: "2026-03-01T12:00:00Z"}}`, `{}`, "persistentvolume pv is being deleted"},
		{bound, `{spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n]}]}]}}}}`, `{}`,
			"persistentvolume pv: node affinity by field (metadata.name in matchFields) is not supported"},
		{`{}`, `{}`, `{}`, "persistentvolumeclaim ns/data is unbound and names no storage class"},
		{`{spec: {storageClassName: ""}}`, `{}`, `{}`, "persistentvolumeclaim ns/data is unbound and names no storage class"},
		{`{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: ""}}, spec: {storageClassName: gp3}}`, `{}`, `{}`,
			"persistentvolumeclaim ns/data is unbound and names no storage class"},
		{`{spec: {storageClassName: io2}}`, `{}`, `{}`, "storage class io2 of persistentvolumeclaim ns/data does not exist"},
		{`{spec: {storageClassName: gp3}}`, `{}`, `{metadata: {name: gp3}, provisioner: x, volumeBindingMode: Immediate}`,
			"persistentvolumeclaim ns/data is unbound though its storage class gp3 binds immediately"},
	} {
		zones, problems := shelf(t, c.claim, c.volume, c.class).allowedRequirements("ns", []string{"data"}, false)
		if diff := cmp.Diff([]string{c.want}, problems); diff != "" || zones != nil {
			t.Errorf("claim %s: zones %v, problems (-want +got):\n%s", c.claim, zones, diff)
		}
	}
	_, problems := Storage{}.allowedRequirements("ns", []string{"a", "b"}, false)
	if diff := cmp.Diff([]string{"persistentvolumeclaim ns/a does not exist", "persistentvolumeclaim ns/b does not exist"}, problems); diff != "" {
		t.Errorf("problems of two volumes (-want +got):\n%s", diff)
	}
}

func TestVolumeZones(t *testing.T) {
	zone := func(names ...string) requirements.Requirement {
		return requirements.Of("topology.kubernetes.io/zone", names...)
	}
	const topologies = `{provisioner: x, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [` +
		`{matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [b, a]}]}, {matchLabelExpressions: [{key: failure-domain.beta.kubernetes.io/zone, values: [c]}]}]}`
	for _, c := range []struct {
		claim, volume, class string
		want                 [][]requirements.Requirement
	}{
		{bound, `{}`, `{}`, nil},
		{bound, `{spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [a]}]}, ` +
			`{matchExpressions: [{key: disk, operator: Exists}]}]}}}}`, `{}`, [][]requirements.Requirement{{zone("a")}, {requirements.Any("disk")}}},
		// labels alone, as of volumes from before, and beside node affinity
		{bound, `{metadata: {labels: {failure-domain.beta.kubernetes.io/zone: b, failure-domain.beta.kubernetes.io/region: r}}, spec: {awsElasticBlockStore: {volumeID: v}}}`, `{}`,
			[][]requirements.Requirement{{zone("b"), requirements.Of("topology.kubernetes.io/region", "r")}}},
		{bound, `{metadata: {labels: {topology.kubernetes.io/zone: a__b}}, spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: disk, operator: Exists}]}]}}}}`, `{}`,
			[][]requirements.Requirement{{requirements.Any("disk"), zone("a", "b")}}},
		{bound, `{spec: {local: {path: /x}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}}}}`,
			`{}`, [][]requirements.Requirement{{requirements.Of("kubernetes.io/hostname", "n1")}}},
		{`{spec: {storageClassName: gp3}}`, `{}`, `{provisioner: x, volumeBindingMode: WaitForFirstConsumer}`, nil},
		// a volume that is being made for a node
		{`{metadata: {annotations: {volume.kubernetes.io/selected-node: n1}}, spec: {storageClassName: gp3}}`, `{}`, `{provisioner: x, volumeBindingMode: WaitForFirstConsumer}`,
			[][]requirements.Requirement{{requirements.Of("kubernetes.io/hostname", "n1")}}},
		{`{metadata: {annotations: {volume.kubernetes.io/selected-node: n1}}, spec: {storageClassName: gp3}}`, `{}`, topologies,
			[][]requirements.Requirement{{zone("a", "b"), requirements.Of("kubernetes.io/hostname", "n1")}, {zone("c"), requirements.Of("kubernetes.io/hostname", "n1")}}},
		{`{metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes", volume.kubernetes.io/selected-node: n1}}, spec: {volumeName: pv}}`, `{}`, `{}`, nil},
		// the annotation of old claims, which counts before the field
		{`{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: gp3}}}`, `{}`, topologies, [][]requirements.Requirement{{zone("a", "b")}, {zone("c")}}},
		{`{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: gp3}}, spec: {storageClassName: other}}`, `{}`, topologies,
			[][]requirements.Requirement{{zone("a", "b")}, {zone("c")}}},
		{`{spec: {storageClassName: gp3}}`, `{}`, topologies, [][]requirements.Requirement{{zone("a", "b")}, {zone("c")}}},
	} {
		got, problems := shelf(t, c.claim, c.volume, c.class).allowedRequirements("ns", []string{"data"}, false)
		if diff := cmp.Diff(c.want, got); diff != "" || problems != nil {
			t.Errorf("claim %s, volume %s: problems %v, alternatives (-want +got):\n%s", c.claim, c.volume, problems, diff)
		}
	}
}

// An ephemeral volume goes with its pod: another in its stead gets a new one, wherever the class allows. A pod that waits
// has to go where its own volume is, and so has one whose claim outlives it.
func TestEphemeralVolumesOfPodsThatMove(t *testing.T) {
	zone := func(names ...string) [][]requirements.Requirement {
		return [][]requirements.Requirement{{requirements.Of("topology.kubernetes.io/zone", names...)}}
	}
	const (
		owner = `ownerReferences: [{apiVersion: v1, kind: Pod, name: web, controller: true}]`
		inA   = `{spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [a]}]}]}}}}`
		inAB  = `{provisioner: ebs.csi.aws.com, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}]}]}`
	)
	claim := func(owner string) string {
		return `{metadata: {annotations: {pv.kubernetes.io/bind-completed: "yes"}, ` + owner + `}, spec: {volumeName: pv, storageClassName: gp3}}`
	}
	for _, c := range []struct {
		name, claim, class, node string
		want                     [][]requirements.Requirement
	}{
		{"it moves", claim(owner), `{provisioner: ebs.csi.aws.com}`, "n", nil},
		{"it moves, within what the class allows", claim(owner), inAB, "n", zone("a", "b")},
		{"it waits", claim(owner), inAB, "", zone("a")},
		{"its claim stays", claim(""), inAB, "n", zone("a")},
	} {
		s := shelf(t, c.claim, inA, c.class)
		whole := s.Claims["ns/data"]
		s.Claims["ns/data"] = SlimClaim(&whole)
		p := cluster.Pod{Namespace: "ns", NodeName: c.node, UnreadClaims: []string{"data"}}
		s.FillPod(&p)
		if diff := cmp.Diff(c.want, p.VolumeZones); diff != "" {
			t.Errorf("%s: alternatives (-want +got):\n%s", c.name, diff)
		}
	}
}

// A pod that waits has to go where its local volume is, if that node is still there. One that moves gets another volume.
func TestLocalVolumesStayOnTheirNode(t *testing.T) {
	for _, c := range []struct {
		on   string
		want [][]requirements.Requirement
	}{
		{"", [][]requirements.Requirement{{requirements.Of("kubernetes.io/hostname", "n1")}}},
		{"n", [][]requirements.Requirement{{}}},
	} {
		s := shelf(t, bound, `{spec: {local: {path: /x}, nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [n1]}]}]}}}}`, `{}`)
		p := cluster.Pod{Namespace: "ns", NodeName: c.on, UnreadClaims: []string{"data"}}
		s.FillPod(&p)
		if diff := cmp.Diff(c.want, p.VolumeZones); diff != "" {
			t.Errorf("on %q: alternatives (-want +got):\n%s", c.on, diff)
		}
	}
}

// Many volumes of one storage class whose terms overlap have no more alternatives than one; of classes that have nothing
// to do with each other a pod may have a few.
func TestAlternativesOfManyVolumes(t *testing.T) {
	s := Storage{Claims: map[string]corev1.PersistentVolumeClaim{}, Classes: map[string]storagev1.StorageClass{
		"overlap": *read[storagev1.StorageClass](t, `{provisioner: x, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [`+
			`{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [a, b]}]}, {matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [b, c]}]}]}`),
	}}
	claims := func(class func(i int) string) (names []string) {
		for i := range 12 {
			c := read[corev1.PersistentVolumeClaim](t, `{spec: {storageClassName: `+class(i)+`}}`)
			names = append(names, fmt.Sprintf("c%d", i))
			s.Claims["ns/"+names[i]] = *c
		}
		return names
	}
	got, problems := s.allowedRequirements("ns", claims(func(int) string { return "overlap" }), false)
	if len(got) != 3 || problems != nil { // a or b, b, b or c
		t.Errorf("%d alternatives of 12 volumes, %v", len(got), problems)
	}
	names := claims(func(i int) string { return fmt.Sprintf("rack%d", i) })
	for i := range names {
		s.Classes[fmt.Sprintf("rack%d", i)] = *read[storagev1.StorageClass](t, fmt.Sprintf(
			`{provisioner: x, volumeBindingMode: WaitForFirstConsumer, allowedTopologies: [{matchLabelExpressions: [{key: rack%d, values: [a]}]}, {matchLabelExpressions: [{key: rack%d, values: [b]}]}]}`, i, i))
	}
	if got, problems = s.allowedRequirements("ns", names[:6], false); len(got) != 64 || problems != nil {
		t.Errorf("%d alternatives of 6 volumes, %v", len(got), problems)
	}
	got, problems = s.allowedRequirements("ns", names, false)
	if diff := cmp.Diff([]string{"its volumes can be in more than 100 combinations of places"}, problems); diff != "" || got != nil {
		t.Errorf("%d alternatives of 12 volumes, problems (-want +got):\n%s", len(got), diff)
	}
}

func TestClaimNames(t *testing.T) {
	p := read[corev1.Pod](t, `
metadata: {name: web}
spec: {volumes: [{name: a, persistentVolumeClaim: {claimName: z}}, {name: b, ephemeral: {}}, {name: c, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: z}}]}`)
	if diff := cmp.Diff([]string{"web-b", "z"}, claimNames(p)); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestAttachedVolumes(t *testing.T) {
	const class = `{metadata: {name: gp3}, provisioner: kubernetes.io/aws-ebs, volumeBindingMode: WaitForFirstConsumer}`
	ebs := []cluster.Volume{{Driver: "ebs.csi.aws.com", ID: "ns/data"}}
	for _, c := range []struct {
		claim, volume, class string
		want                 []cluster.Volume
	}{
		{bound, `{spec: {csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}}}`, class, ebs},
		{bound, `{spec: {csi: {driver: efs.csi.aws.com, volumeHandle: fs-1}}}`, class, []cluster.Volume{{Driver: "efs.csi.aws.com", ID: "ns/data"}}},
		{bound, `{spec: {awsElasticBlockStore: {volumeID: vol-1}}}`, class, ebs},
		{bound, `{spec: {nfs: {server: s, path: /}}}`, class, nil},
		{`{spec: {storageClassName: gp3}}`, `{}`, class, ebs},
		{`{spec: {storageClassName: gp3}}`, `{}`, `{metadata: {name: gp3}, provisioner: x.example}`, []cluster.Volume{{Driver: "x.example", ID: "ns/data"}}},
		{`{metadata: {annotations: {volume.beta.kubernetes.io/storage-class: gp3}}}`, `{}`, class, ebs},
		{`{spec: {storageClassName: other}}`, `{}`, class, nil},
		{`{}`, `{}`, class, nil},
	} {
		if diff := cmp.Diff(c.want, shelf(t, c.claim, c.volume, c.class).attachedVolumes("ns", []string{"data", "missing"})); diff != "" {
			t.Errorf("claim %s, volume %s, class %s (-want +got):\n%s", c.claim, c.volume, c.class, diff)
		}
	}
	for text, want := range map[string]map[string]int64{
		`{}`: nil,
		`{spec: {drivers: [{name: a, nodeID: n}, {name: b, nodeID: n, allocatable: {}}]}}`:                                                 nil,
		`{spec: {drivers: [{name: ebs.csi.aws.com, nodeID: n, allocatable: {count: 25}}, {name: x, nodeID: n, allocatable: {count: 0}}]}}`: {"ebs.csi.aws.com": 25, "x": 0},
	} {
		if diff := cmp.Diff(want, VolumeLimits(read[storagev1.CSINode](t, text))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// What Storage looks at of a claim and of a volume is all in their slim copies, field by field as in the whole.
func TestSlimCopies(t *testing.T) {
	claim, volume := filled[corev1.PersistentVolumeClaim](), filled[corev1.PersistentVolume]()
	claim.Annotations = map[string]string{bindCompleted: "yes", "other": "x", corev1.BetaStorageClassAnnotation: "gp3",
		"volume.kubernetes.io/selected-node": "n1"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	slimClaim, slimVolume := SlimClaim(&claim), SlimVolume(&volume)
	for _, c := range []struct {
		name        string
		whole, slim any
		want        []string
	}{
		{"claim", claim, slimClaim, []string{"ObjectMeta.Name", "ObjectMeta.Namespace", "ObjectMeta.DeletionTimestamp",
			"ObjectMeta.Annotations", "ObjectMeta.OwnerReferences", "Spec.AccessModes", "Spec.StorageClassName", "Spec.VolumeName", "Status.Phase"}},
		{"volume", volume, slimVolume, []string{"ObjectMeta.Name", "ObjectMeta.DeletionTimestamp", "Spec.NodeAffinity",
			"Spec.PersistentVolumeSource.AWSElasticBlockStore", "Spec.PersistentVolumeSource.HostPath",
			"Spec.PersistentVolumeSource.Local", "Spec.PersistentVolumeSource.CSI", "Spec.StorageClassName", "Spec.ClaimRef", "Status.Phase"}},
	} {
		differ := map[string]bool{"ObjectMeta.Annotations": true, "ObjectMeta.OwnerReferences": true, "Spec.PersistentVolumeSource.CSI": true} // a part of them
		var kept []string
		compareFields("", reflect.ValueOf(c.whole), reflect.ValueOf(c.slim), func(path string, same bool) {
			if kept = append(kept, path); !same && !differ[path] {
				t.Errorf("%s: %s is not as it was", c.name, path)
			}
		})
		slices.Sort(kept)
		slices.Sort(c.want)
		if d := cmp.Diff(c.want, kept); d != "" {
			t.Errorf("%s keeps (-want +got):\n%s", c.name, d)
		}
	}
	if d := cmp.Diff(map[string]string{bindCompleted: "yes", corev1.BetaStorageClassAnnotation: "gp3", "volume.kubernetes.io/selected-node": "n1"},
		slimClaim.Annotations); d != "" {
		t.Errorf("annotations of the claim (-want +got):\n%s", d)
	}
	if d := cmp.Diff(&corev1.CSIPersistentVolumeSource{Driver: volume.Spec.CSI.Driver}, slimVolume.Spec.CSI); d != "" {
		t.Errorf("CSI of the volume (-want +got):\n%s", d)
	}
}

// compareFields tells of each field that the slim copy has whether it is that of the whole. Structs are compared field by
// field, and what they point to as a whole.
func compareFields(path string, whole, slim reflect.Value, tell func(path string, same bool)) {
	if whole.Kind() != reflect.Struct {
		if !slim.IsZero() {
			tell(path, reflect.DeepEqual(whole.Interface(), slim.Interface()))
		}
		return
	}
	for i := range whole.NumField() {
		name := whole.Type().Field(i).Name
		if path != "" {
			name = path + "." + name
		}
		if whole.Type().Field(i).IsExported() {
			compareFields(name, whole.Field(i), slim.Field(i), tell)
		}
	}
}

// filled is a value of which no exported field is zero, down to what it points to.
func filled[T any]() (out T) {
	fill(reflect.ValueOf(&out).Elem(), 0)
	return out
}

func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		if depth < 6 {
			v.Set(reflect.New(v.Type().Elem()))
			if at, ok := v.Interface().(*metav1.Time); ok {
				at.Time = time.Unix(1, 0)
				return
			}
			fill(v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), depth+1)
			}
		}
	}
}
