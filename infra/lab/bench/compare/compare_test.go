package main

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"joiner.sh/infra/lab/bench/compare/filter"
	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/infra/lab/bench/manifests"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

var wanted = struct {
	seeds *int
	first *uint64
}{flag.Int("seeds", 50, "random clusters to judge"), flag.Uint64("first-seed", 0, "seed of the first")}

func TestMain(m *testing.M) {
	flag.Parse()
	karpenter.PrepareProcess()
	filter.PreparePlugins()
	os.Exit(m.Run())
}

func sold(t *testing.T) instancetypes.Catalog {
	t.Helper()
	all, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// No random cluster has a difference that nothing explains.
func TestCompare(t *testing.T) {
	r := run{all: sold(t)}
	placed := 0
	for i := range uint64(*wanted.seeds) {
		f, v, err := r.judgeSeed(context.Background(), *wanted.first+i)
		if err != nil {
			t.Fatalf("seed %d: %v", *wanted.first+i, err)
		}
		for _, one := range f.Faults {
			t.Errorf("seed %d: %s %s: %s", f.Seed, one.Kind, one.Pod, one.Why)
		}
		placed += v.placed
	}
	if placed < 3**wanted.seeds {
		t.Errorf("%d pods placed by %d seeds test little", placed, *wanted.seeds)
	}
}

// Every feature comes up, and a cluster is the same when it was written and read again.
func TestRandomClusters(t *testing.T) {
	all := sold(t)
	seen := map[string]bool{}
	for seed := range uint64(400) {
		c, err := randomCluster(seed, all)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words() {
			seen[word] = seen[word] || strings.Contains(string(text), word)
		}
		if seed%40 > 0 {
			continue
		}
		again, err := manifests.ParseCluster("cluster.yaml", text)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if twice, err := again.YAML(); err != nil || string(twice) != string(text) {
			t.Errorf("seed %d: it is another cluster when it was written and read: %v", seed, err)
		}
	}
	for _, word := range words() {
		if !seen[word] {
			t.Errorf("no cluster of 400 has %q", word)
		}
	}
}

// words stand for what users write.
func words() []string {
	return []string{
		"instance-tenancy", "placement-group-partition", "capacity-block", "instanceMatchCriteria: targeted", "instanceMatchCriteria: open", "capacity-reservation-id",
		"minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy", "matchLabelKeys", "namespaceSelector", "PersistentVolume\n", "WaitForFirstConsumer", "kind: CSINode",
		"hostPort", "kind: DaemonSet", "kind: NodeOverlay", "minValues", "relaxMinValues", "ignorePreferences", "preferredDuringScheduling", "startupTaints", "limits:", "weight:",
		"nominatedNodeName", "deletionTimestamp", "nvidia.com/gpu", "priority:", "karpenter.sh/unregistered", "karpenter.sh/disrupted", "node.kubernetes.io/unschedulable", "soldOut",
		"allowedTopologies", "example.com/fuse", "overhead", "initContainers", "replicas: 1",
	}
}

// Every difference names a page of the repository and a text that stands there.
func TestDifferencesAreDocumented(t *testing.T) {
	for _, d := range knownDifferences() {
		page, err := os.ReadFile("../../../../" + d.page)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), d.row) {
			t.Errorf("%s: %s says nothing of %q", d.name, d.page, d.row)
		}
		if !slices.Contains([]string{left, refused}, d.kind) {
			t.Errorf("%s: nothing explains a fault of kind %q", d.name, d.kind)
		}
	}
}
