// Command generate makes a workload file: services of log-normal sizes with mixed constraints, and if wanted a cluster that
// runs some of them already. Equal flags give an equal file.
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

	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
	"joiner/pkg/workload"
)

// wish is what the file should hold.
type wish struct {
	pods, nodes, bound int
	seed               uint64
	name, pools, out   string
	batch              bool
}

func main() {
	var w wish
	flag.IntVar(&w.pods, "pods", 10000, "pods that wait")
	flag.IntVar(&w.nodes, "nodes", 0, "nodes that exist")
	flag.IntVar(&w.bound, "bound", 0, "pods that run on them, at most")
	flag.Uint64Var(&w.seed, "seed", 1, "where chance starts")
	flag.StringVar(&w.name, "name", "services", "name of the workload")
	flag.StringVar(&w.pools, "nodepools", "nodepools/mixed.yaml", "file of NodePools to name, relative to the workload")
	flag.StringVar(&w.out, "out", "", "file to write, packed when it ends in .gz; standard output when empty")
	flag.BoolVar(&w.batch, "batch", false, "jobs with GPUs and Neuron devices instead of services, for nodepools/accelerated.yaml")
	flag.Parse()
	if err := w.run(); err != nil {
		log.Fatalf("generate: %v", err)
	}
}

func (w wish) run() error {
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		return err
	}
	g := &generator{rand: rand.New(rand.NewPCG(w.seed, 0)), types: catalog.Resolve(c, catalog.DefaultClass(c), nil, workload.Created())}
	f := workload.File{
		Schema: workload.Schema, Name: w.name, NodePools: w.pools, DaemonSets: daemons(),
		Description: fmt.Sprintf("%d pods of services with mixed constraints, %d nodes, seed %d", w.pods, w.nodes, w.seed),
	}
	f.Groups = g.services(w.pods)
	if w.batch {
		f.Groups = g.jobs(w.pods)
	}
	if w.nodes > 0 {
		g.cluster(&f, w.nodes, w.bound)
	}
	return write(f, w.out)
}

func write(f workload.File, path string) error {
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
