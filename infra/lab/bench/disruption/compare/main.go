// Command compare gives random clusters to Karpenter's disruption controller and to Joiner's. It compares which nodes
// both would take and how many their budgets let go, and lets Karpenter judge each command that Joiner begins. A
// difference that no documented one explains ends it with 1, after it was shrunk to the smallest cluster that shows it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

func main() {
	var r run
	flag.Uint64Var(&r.first, "first-seed", 1, "the first seed")
	flag.Uint64Var(&r.seeds, "seeds", 50, "how many seeds")
	flag.StringVar(&r.state, "state", "", "folder that keeps what was found, by which a run that was cut short goes on; none when empty")
	flag.IntVar(&r.workers, "workers", runtime.GOMAXPROCS(0), "how many seeds at a time")
	file := flag.String("f", "", "a scenario to compare instead, as it is printed for a difference")
	flag.Parse()
	if err := runComparison(r, *file); err != nil {
		fmt.Fprintf(os.Stderr, "compare: %v\n", err)
		os.Exit(1)
	}
}

func runComparison(r run, file string) error {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		return err
	}
	karpenter.PrepareProcess()
	r.sides = newSides(c)
	if file != "" {
		return r.compareFile(file)
	}
	t, err := r.compareSeeds()
	if err != nil {
		return err
	}
	fmt.Print(t)
	if len(t.Open) == 0 {
		return nil
	}
	r.printFindings(t.Open)
	return fmt.Errorf("%d seeds differ and nothing explains it", len(t.Open))
}

// compareFile compares the scenario of the file.
func (r *run) compareFile(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read scenario: %w", err)
	}
	s, err := parseScenario(text)
	if err != nil {
		return err
	}
	out, err := r.sides.compareScenario(s)
	if err != nil {
		return err
	}
	var open []error
	for _, f := range out.Findings {
		why := explainFinding(f)
		fmt.Printf("%s [%s]\n", f, why)
		if why == "" {
			open = append(open, errors.New(f.String()))
		}
	}
	return errors.Join(open...)
}
