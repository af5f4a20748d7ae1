package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"joiner.sh/pkg/cli"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/testing/plancheck"
	"joiner.sh/pkg/workload"
)

// row is what packing one workload gave.
type row struct {
	Workload  string
	HourlyUSD float64 // of new nodes, as the plan checker adds them up
	Unplaced  int     // pods
	Moved     int     // pods, by consolidation
	CPU       float64 // seconds that the program itself spent on the processor
	Wrong     int     // rules that the plan checker found broken
}

// packWorkloads packs each file and writes a row of JSON for it. The work is the bound of a plan, in milliseconds.
func packWorkloads(w io.Writer, files []string, work int) error {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		return err
	}
	resolved, err := os.ReadFile("pkg/model/instancetypes/testdata/resolved-types.json.gz")
	if err != nil {
		return fmt.Errorf("read what types resolve to, in the root of the repository: %w", err)
	}
	m, err := plancheck.NewMarket(builtin.Data(), resolved)
	if err != nil {
		return err
	}
	for _, path := range files {
		f, err := workload.LoadWorkload(os.ReadFile, path, "")
		if err != nil {
			return err
		}
		p, err := cli.PlanBy(f, c, cluster.Settings{InstancePrices: true, PackingMilliseconds: work})
		if err != nil {
			return fmt.Errorf("pack %s: %w", path, err)
		}
		r := plancheck.CheckPlacement(f, m, p)
		text, err := json.Marshal(row{Workload: f.Name, HourlyUSD: r.HourlyUSD, Unplaced: r.Unplaced,
			CPU: p.PlanUserSeconds, Wrong: len(r.Violations)})
		if err != nil {
			return err
		}
		fmt.Fprintln(w, string(text))
	}
	return nil
}
