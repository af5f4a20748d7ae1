package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/testing/plancheck"
	"joiner.sh/pkg/workload"
)

// A generated workload is the same for the same seed, can be loaded, and its running pods fit their nodes: otherwise no
// plan for it could be valid.
func TestGenerate(t *testing.T) {
	pools, err := filepath.Abs("../workloads/nodepools/mixed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := wish{pods: 800, nodes: 60, bound: 900, full: 67, seed: 5, name: "made", pools: pools}
	f := generateTwice(t, w, "a.json", "b.json.gz")
	bound := 0
	for _, n := range f.Nodes {
		for _, count := range n.Pods {
			bound += count
		}
	}
	if f.Pending() != 800 || len(f.Nodes) != 60 || bound < 500 || bound > 900 {
		t.Errorf("%d pods, %d nodes, %d running", f.Pending(), len(f.Nodes), bound)
	}
	c, err := cli.ReadCatalog("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := cli.PlanBy(f, c, cluster.Settings{InstancePrices: true})
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := os.ReadFile("../../../../pkg/model/instancetypes/testdata/resolved-types.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	m, err := plancheck.NewMarket(builtin.Data(), resolved)
	if err != nil {
		t.Fatal(err)
	}
	if r := plancheck.CheckPlacement(f, m, p); len(r.Violations) > 0 {
		t.Errorf("the plan is not valid: %v", r.Violations)
	}
	if len(p.OnExisting) == 0 {
		t.Error("no pod went onto the nodes that are there")
	}
}

// A workload that is grown has the groups it had, each larger by the same factor, and as many pods as were asked for.
func TestGrow(t *testing.T) {
	pools, err := filepath.Abs("../workloads/nodepools/mixed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := wish{pods: 50001, grown: "../workloads/w3.json.gz", name: "grown", pools: pools, out: filepath.Join(t.TempDir(), "grown.json.gz")}
	if err := w.generateWorkload(); err != nil {
		t.Fatal(err)
	}
	was, err := workload.LoadWorkload(os.ReadFile, w.grown, "")
	if err != nil {
		t.Fatal(err)
	}
	is, err := workload.LoadWorkload(os.ReadFile, w.out, "")
	if err != nil {
		t.Fatal(err)
	}
	if is.Pending() != 50001 || len(is.Groups) != 200 || len(is.DaemonSets) != len(was.DaemonSets) {
		t.Errorf("%d pods in %d groups, %d DaemonSets", is.Pending(), len(is.Groups), len(is.DaemonSets))
	}
	for i, g := range is.Groups {
		if d := g.Count - 5*was.Groups[i].Count; d < -1 || d > 1 {
			t.Errorf("group %s has %d pods, it had %d", g.Name, g.Count, was.Groups[i].Count)
		}
	}
}

// A half-empty cluster has the pods and nodes asked for, is the same for the same seed, and leaves part of its pods no
// room: what its room is used for decides what has to be launched.
func TestHalfEmpty(t *testing.T) {
	pools, err := filepath.Abs("../workloads/nodepools/mixed.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := wish{pods: 900, nodes: 100, seed: 3, name: "half-empty", pools: pools, halfEmpty: true}
	f, empty := generateTwice(t, w, "a.json", "b.json"), 0
	for _, n := range f.Nodes {
		if len(n.Pods) == 0 {
			empty++
		}
	}
	if f.Pending() != 900 || len(f.Groups) != deployments || len(f.Nodes) != 100 || empty == 0 || empty > 40 {
		t.Errorf("%d pods in %d groups, %d nodes, %d of them empty", f.Pending(), len(f.Groups), len(f.Nodes), empty)
	}
}

// generateTwice makes the cluster into two files of these names, which must hold the same, and returns it.
func generateTwice(t *testing.T, w wish, names ...string) workload.File {
	t.Helper()
	var files []workload.File
	for _, name := range names {
		w.out = filepath.Join(t.TempDir(), name)
		if err := w.generateWorkload(); err != nil {
			t.Fatal(err)
		}
		f, err := workload.LoadWorkload(os.ReadFile, w.out, "")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if diff := cmp.Diff(files[0], files[1]); diff != "" {
		t.Errorf("two files of one seed differ:\n%s", diff)
	}
	return files[0]
}
