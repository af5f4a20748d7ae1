package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// readState returns the results that earlier runs have written, by mutant. A last line that was cut off by the end of a
// run is left out.
func readState(path string) (map[string]result, error) {
	done := map[string]result{}
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return done, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r result
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			done[r.Mutant] = r
		}
	}
	return done, lines.Err()
}

// appendState adds one result.
func appendState(path string, r result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// explainedFile lists mutants that survive and make no difference.
const explainedFile = "infra/lab/mutants/explained.tsv"

// readExplained returns why mutants that survive make no difference, by mutant. Each line is a mutant, a tab, and the
// reason. A line that names none of all mutants is an error: its code has changed, and its reason may not hold.
func readExplained(path string, all []mutant) (map[string]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, m := range all {
		known[m.id()] = true
	}
	explained := map[string]string{}
	var errs []error
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, why, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(why) == "" {
			errs = append(errs, fmt.Errorf("%s: want mutant, tab, reason: %s", path, line))
			continue
		}
		if !known[id] {
			errs = append(errs, fmt.Errorf("%s: no such mutant, remove the line or correct the name: %s", path, id))
		}
		if explained[id] != "" {
			errs = append(errs, fmt.Errorf("%s: explained twice, remove one line: %s", path, id))
		}
		explained[id] = why
	}
	return explained, errors.Join(errs...)
}

// score is how many mutants of one area were noticed.
type score struct {
	killed, survived, explained int
	late                        int // of those killed: by a test that did not come to its end
}

// noticed returns the share of mutants that change behaviour and were noticed, in percent.
func (s score) noticed() float64 {
	return 100 * float64(s.killed) / float64(max(s.killed+s.survived, 1))
}

// report prints the score of each area and of all, and every survivor that nobody has explained.
func report(out io.Writer, seed uint64, results []result, explained map[string]string) score {
	areas := map[string]score{}
	var all score
	var open []result
	for _, r := range results {
		file, _, _ := strings.Cut(r.Mutant, " ")
		area := filepath.Dir(file)
		s := areas[area]
		_, why := explained[r.Mutant]
		switch {
		case r.Outcome == invalid:
			continue
		case r.Outcome == killed:
			s.killed, all.killed = s.killed+1, all.killed+1
			if r.Late {
				all.late++
			}
		case why:
			s.explained, all.explained = s.explained+1, all.explained+1
		default:
			s.survived, all.survived = s.survived+1, all.survived+1
			open = append(open, r)
		}
		areas[area] = s
	}
	slices.SortFunc(open, func(a, b result) int { return cmp.Compare(a.Mutant, b.Mutant) })
	for _, r := range open {
		fmt.Fprintf(out, "%s\t%s (line %d)\n", r.Outcome, r.Mutant, r.Line)
	}
	names := make([]string, 0, len(areas))
	for a := range areas {
		names = append(names, a)
	}
	slices.Sort(names)
	for _, a := range names {
		s := areas[a]
		fmt.Fprintf(out, "%-16s %4d noticed, %3d not, %3d make no difference: %5.1f %%\n", a, s.killed, s.survived,
			s.explained, s.noticed())
	}
	fmt.Fprintf(out, "seed %d: %d mutants, %d noticed (%d of them by a test that did not end), %d not, "+
		"%d make no difference: %.1f %%\n",
		seed, all.killed+all.survived+all.explained, all.killed, all.late, all.survived, all.explained, all.noticed())
	return all
}
