package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// areas returns the packages whose failure hurts users most: packing, disruption, launching, termination, error
// classes, the stack.
func areas() []string {
	return []string{"pkg/scheduling/podclass", "pkg/scheduling/capacity", "pkg/scheduling/podtopology",
		"pkg/scheduling/packing", "pkg/scheduling/prices", "pkg/scheduling/report", "pkg/scheduling/search",
		"pkg/scheduling/binpack", "pkg/scheduling/cover", "pkg/scheduling/lowerbound", "pkg/model/topology", "pkg/disruption",
		"pkg/disruption/drift", "pkg/model/budgets", "pkg/nodeclaim/launch", "pkg/providers/fleet",
		"pkg/nodeclaim/lifecycle", "pkg/nodeclaim/drain", "pkg/nodeclaim/interruption", "pkg/nodeclaim/awserrors",
		"infra/stack"}
}

// findAll returns all mutants of the kinds, whose areas stand below root.
func findAll(root string, k kinds) ([]mutant, error) {
	var all []mutant
	for _, area := range k.areas {
		files, err := filepath.Glob(filepath.Join(root, area, "*.go"))
		if err != nil {
			return nil, err
		}
		slices.Sort(files)
		for _, f := range files {
			if strings.HasSuffix(f, "_test.go") {
				continue
			}
			source, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			found, err := findMutants(filepath.Join(area, filepath.Base(f)), source, k.slips)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}

// sortByRank brings mutants into an order that only the seed decides.
func sortByRank(all []mutant, seed uint64) {
	slices.SortFunc(all, func(a, b mutant) int {
		return cmp.Or(cmp.Compare(rank(seed, a), rank(seed, b)), cmp.Compare(a.id(), b.id()))
	})
}

// rank returns a mutant's place in the order of a seed. It depends on the mutant alone, so that a sample keeps those
// that a change of other code leaves as they are.
func rank(seed uint64, m mutant) uint64 {
	h := sha256.Sum256(fmt.Appendf(nil, "%d %s", seed, m.id()))
	return binary.BigEndian.Uint64(h[:])
}

// drawSample returns the first mutants that compile, and the ones between them that do not.
func drawSample(all []mutant, size int, compiles func(mutant) (bool, error)) (sample, broken []mutant, err error) {
	for _, m := range all {
		if len(sample) == size {
			break
		}
		ok, err := compiles(m)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			sample = append(sample, m)
		} else {
			broken = append(broken, m)
		}
	}
	return sample, broken, nil
}
