package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/workload"
	"joiner.sh/pkg/workload/manifest"
)

func shop(t testing.TB) cluster.Snapshot {
	t.Helper()
	return snapshotOf(t, "testdata/shop.yaml")
}

// snapshotOf is what a plan of the file is made from.
func snapshotOf(t testing.TB, file string) cluster.Snapshot {
	t.Helper()
	f, err := workload.LoadWorkload(os.ReadFile, file, "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := WorkloadSnapshot(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSnapshot(t *testing.T) {
	s := shop(t)
	var keys []string
	for _, p := range s.Pods {
		keys = append(keys, p.Key())
		if p.Created != workload.CreationTime() || p.UID == "" || p.Provisionable() != (p.NodeName == "") {
			t.Errorf("%s: created %s, UID %q, on %q", p.Key(), p.Created, p.UID, p.NodeName)
		}
	}
	want := []string{"default/broken", "default/giant-0", "default/giant-1", "default/old-on-node-1-0", "shop/web-0", "shop/web-1", "shop/web-2", "shop/web-3"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
	if got := s.Pods[3]; got.NodeName != "node-1" || got.Phase != "Running" {
		t.Errorf("the running pod is %s on %q", got.Phase, got.NodeName)
	}
	if got := s.Daemons[0]; got.Need.CPU != 100 || got.Owner != cluster.OwnerDaemonSet {
		t.Errorf("daemon %+v", got)
	}
	n := s.Nodes[0]
	labels := map[string]string{}
	for _, k := range []string{"mine", "tier", "karpenter.sh/nodepool", "karpenter.sh/capacity-type", "topology.kubernetes.io/zone", "topology.k8s.aws/zone-id",
		"kubernetes.io/hostname", "kubernetes.io/arch", "node.kubernetes.io/instance-type", "karpenter.sh/initialized"} {
		labels[k] = n.Labels[k]
	}
	if diff := cmp.Diff(map[string]string{
		"mine": "1", "tier": "web", "karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "on-demand",
		"topology.kubernetes.io/zone": "us-west-2b", "topology.k8s.aws/zone-id": s.Catalog.Zones["us-west-2b"],
		"kubernetes.io/hostname": "node-1", "kubernetes.io/arch": "amd64", "node.kubernetes.io/instance-type": "m5.xlarge", "karpenter.sh/initialized": "true",
	}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if n.Allocatable.CPU != 3920 || n.Allocatable.Get(resources.Pods) != 58 {
		t.Errorf("allocatable %s", n.Allocatable)
	}
}

// Pods of one group share what their template says: 150,000 pods must not cost 150,000 translations.
func TestPodsOfAGroupShare(t *testing.T) {
	s := shop(t)
	a, b := s.Pods[4], s.Pods[5]
	a.Labels["shared"] = "yes"
	if b.Labels["shared"] != "yes" {
		t.Error("two pods of web have labels of their own")
	}
	if size := unsafe.Sizeof(a); size > 1024 {
		t.Errorf("a pod takes %d bytes without what it shares", size)
	}
}

func TestUnknownTypeOfANode(t *testing.T) {
	f, err := workload.LoadWorkload(os.ReadFile, "testdata/shop.yaml", "")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	f.Nodes[0].InstanceType = "m5.huge"
	if _, err := WorkloadSnapshot(f, c); err == nil || err.Error() != "nodes[0] (node-1).instanceType: the catalog has no m5.huge" {
		t.Errorf("error %v", err)
	}
}

// volumeZones is what the volumes of each pod of the manifests ask of its node.
func volumeZones(t *testing.T, text string) (zones map[string]string, notes []string) {
	t.Helper()
	docs, err := manifest.ParseManifests("f.yaml", []byte(text+anyPool))
	if err != nil {
		t.Fatal(err)
	}
	f, notes, err := workload.CollectManifests(docs, "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	s, err := WorkloadSnapshot(f, c)
	if err != nil {
		t.Fatal(err)
	}
	zones = map[string]string{}
	for _, p := range s.Pods {
		zones[p.Name] = fmt.Sprintf("%v%v", p.VolumeZones, p.Unmodelled)
	}
	return zones, notes
}

const anyPool = `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: any}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: any}, requirements: []}}}
`

// Claims that name no storage class get the default class of the files, those that a StatefulSet or a pod makes for
// itself as well; of several the newest one.
func TestDefaultStorageClass(t *testing.T) {
	const classes = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %s, creationTimestamp: %s, annotations: {%s: "true"}}
provisioner: ebs.csi.aws.com
allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [us-west-2%s]}]}]
---
`
	const pods = `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  template:
    spec:
      containers: [{name: c, image: x}]
      volumes: [{name: own, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1Gi}}}}}}]
  volumeClaimTemplates: [{metadata: {name: d}, spec: {resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: c, image: x}], volumes: [{name: d, persistentVolumeClaim: {claimName: claim}}, {name: e, persistentVolumeClaim: {claimName: not-given}}]}
`
	today, before := "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"
	zone := func(z string) string { return "topology.kubernetes.io/zone in (us-west-2" + z + ")" }
	for _, c := range []struct {
		classes []string
		want    string // of each volume
	}{
		{nil, ""},
		{[]string{fmt.Sprintf(classes, "a", "2026-01-01T00:00:00Z", "joiner.test/none", "a")}, ""},
		{[]string{fmt.Sprintf(classes, "a", "2026-01-01T00:00:00Z", today, "a")}, zone("a")},
		{[]string{fmt.Sprintf(classes, "a", "2026-01-01T00:00:00Z", before, "a")}, zone("a")},
		{[]string{fmt.Sprintf(classes, "a", "2026-01-01T00:00:00Z", today, "a"), fmt.Sprintf(classes, "b", "2026-01-02T00:00:00Z", before, "b")}, zone("b")},
		{[]string{fmt.Sprintf(classes, "b", "2026-01-01T00:00:00Z", today, "b"), fmt.Sprintf(classes, "a", "2026-01-01T00:00:00Z", today, "a")}, zone("a")},
	} {
		got, _ := volumeZones(t, strings.Join(c.classes, "")+pods)
		both := "[][]"
		if c.want != "" {
			both = "[[" + c.want + " " + c.want + "]][]"
		}
		if diff := cmp.Diff(map[string]string{"db-0": both, "web": both}, got); diff != "" {
			t.Errorf("%d classes, want %q (-want +got):\n%s", len(c.classes), c.want, diff)
		}
	}
}

// A StatefulSet counts its pods, and so their claims, from where it says. A claim whose volume exists and is not given
// is told of.
func TestClaimsOfNumberedPods(t *testing.T) {
	got, notes := volumeZones(t, `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  ordinals: {start: 5}
  template: {spec: {containers: [{name: c, image: x}]}}
  volumeClaimTemplates: [{metadata: {name: d}, spec: {resources: {requests: {storage: 1Gi}}}}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: d-db-6}
spec: {volumeName: six, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: d-db-5}
spec: {volumeName: five, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: six}
spec:
  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-6}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: topology.ebs.csi.aws.com/zone, operator: In, values: [us-west-2c]}]}]}}
`)
	if diff := cmp.Diff(map[string]string{"db-0": "[][]", "db-1": "[[topology.kubernetes.io/zone in (us-west-2c)]][]"}, got); diff != "" {
		t.Errorf("volumes (-want +got):\n%s", diff)
	}
	want := []string{"1 PersistentVolumeClaims (default/d-db-5) have volumes that are not among the files, and may be in one zone; their pods are planned for every zone that the class allows: give the output of kubectl get pv -o yaml, too"}
	if diff := cmp.Diff(want, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}
