// Command generate makes a workload file: services of log-normal sizes with mixed constraints, or those of another file
// grown to more pods, and if wanted a cluster that runs some of them already. Equal flags give an equal file.
package main

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/workload"
)

// wish is what the file should hold.
type wish struct {
	pods, jobs, nodes, bound, full int
	seed                           uint64
	name, pools, out, grown        string
	halfEmpty                      bool
}

func main() {
	var w wish
	flag.IntVar(&w.pods, "pods", 10000, "pods that wait")
	flag.IntVar(&w.nodes, "nodes", 0, "nodes that exist")
	flag.IntVar(&w.bound, "bound", 0, "pods that run on them, at most")
	flag.IntVar(&w.full, "full", 67, "how full those nodes are at most, in percent")
	flag.StringVar(&w.grown, "grow", "", "workload file whose groups are grown to so many pods, each by the same factor, instead of new services")
	flag.Uint64Var(&w.seed, "seed", 1, "where chance starts")
	flag.StringVar(&w.name, "name", "services", "name of the workload")
	flag.StringVar(&w.pools, "nodepools", "nodepools/mixed.yaml", "file of NodePools to name, relative to the workload")
	flag.StringVar(&w.out, "out", "", "file to write, packed when it ends in .gz; standard output when empty")
	flag.IntVar(&w.jobs, "jobs", 0, "pods of jobs with GPUs and Neuron devices beside the services, for nodepools/accelerated.yaml")
	flag.BoolVar(&w.halfEmpty, "half-empty", false, "pods of 60 Deployments, and so many nodes that are 30 to 70 % full")
	flag.Parse()
	if err := w.generateWorkload(); err != nil {
		log.Fatalf("generate: %v", err)
	}
}

func (w wish) generateWorkload() error {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		return err
	}
	g := &generator{rand: rand.New(rand.NewPCG(w.seed, 0)),
		types: instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, workload.CreationTime())}
	f := workload.File{
		Schema: workload.Schema, Name: w.name, NodePools: w.pools, DaemonSets: daemonGroups(),
		Description: fmt.Sprintf("%d pods of services with mixed constraints, %d nodes, seed %d", w.pods, w.nodes,
			w.seed),
	}
	switch {
	case w.grown != "":
		if f, err = w.growWorkload(f); err != nil {
			return err
		}
	case w.halfEmpty:
		g.halfEmpty(&f, w.pods, w.nodes)
	default:
		f.Groups = append(g.serviceGroups(w.pods), g.jobGroups(w.jobs)...)
	}
	if w.nodes > 0 && !w.halfEmpty {
		g.addCluster(&f, w.nodes, w.bound, w.full)
	}
	return writeWorkload(f, w.out)
}

// growWorkload returns f with the groups and DaemonSets of the file that is to grow.
func (w wish) growWorkload(f workload.File) (workload.File, error) {
	old, err := workload.LoadWorkload(os.ReadFile, w.grown, "")
	if err != nil {
		return f, err
	}
	all := 0
	for _, g := range old.Groups {
		all += g.Count
	}
	f.Description = fmt.Sprintf("%s, its %d groups grown to %d pods, %d nodes, seed %d", old.Name, len(old.Groups),
		w.pods, w.nodes, w.seed)
	f.DaemonSets = old.DaemonSets
	passed, given := 0, 0
	for _, g := range old.Groups {
		passed += g.Count
		g.Count = w.pods*passed/all - given // so that rounding adds up to what was asked for
		given += g.Count
		f.Groups = append(f.Groups, g)
	}
	return f, nil
}

func writeWorkload(f workload.File, path string) error {
	var out io.Writer = os.Stdout
	if path != "" {
		file, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("write workload: %w", err)
		}
		defer file.Close()
		out = file
	}
	var zw *gzip.Writer
	if strings.HasSuffix(path, ".gz") {
		zw = gzip.NewWriter(out)
		out = zw
	}
	if err := json.NewEncoder(out).Encode(f); err != nil {
		return fmt.Errorf("write workload: %w", err)
	}
	if zw != nil {
		if err := zw.Close(); err != nil {
			return fmt.Errorf("write workload: %w", err)
		}
	}
	return nil
}
