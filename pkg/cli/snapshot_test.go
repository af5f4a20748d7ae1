package cli

import (
	"os"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/workload"
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
