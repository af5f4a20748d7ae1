// Command ablation says what each layer and each constant of the search for cheap nodes brings: it takes a layer out,
// or halves or doubles a constant, builds the packer with that change, packs workloads, and compares prices and
// processor time with those of the packer as it is. For changes of pkg/disruption it consolidates clusters instead.
// A run that was ended goes on where it was.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	pack := flag.Bool("pack", false, "pack the workloads by this very program and print a line of JSON for each")
	layers := flag.String("layers", "infra/lab/ablation/layers.txt", "file with the layers that can be taken out")
	rooms := flag.String("rooms", "pkg/scheduling/packing,pkg/scheduling/search,pkg/scheduling/lowerbound,"+
		"pkg/scheduling/cover,pkg/scheduling/prices,pkg/disruption,pkg/disruption/simulator",
		"folders whose constants are halved and doubled; none when empty")
	only := flag.String("only", "", "regular expression of the names of variants to try")
	work := flag.Int("milliseconds", 0, "bound of the work of a plan, as the setting packingMilliseconds; 0 for none")
	clusters := flag.String("clusters", "-sizes 200 -seeds 1,2,3", "arguments of infra/lab/bench/disruption, for "+
		"variants of pkg/disruption")
	state := flag.String("state", ".local/ablation", "folder that keeps what was measured at a commit")
	out := flag.String("out", "infra/lab/ablation/results.md", "page to write")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: ablation [flags] WORKLOAD..., in the root of the repository")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *pack {
		if err := packWorkloads(os.Stdout, flag.Args(), *work); err != nil {
			log.Fatal(err)
		}
		return
	}
	variants, err := listVariants(os.DirFS("."), *layers, *rooms)
	if err == nil {
		variants, err = chooseVariants(variants, *only)
	}
	if err == nil {
		err = measureAll(variants, runner{folder: *state, work: *work,
			workloads: flag.Args(), clusters: *clusters}, *out)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// chooseVariants keeps the variant that changes nothing, and those whose names match.
func chooseVariants(all []variant, only string) ([]variant, error) {
	name, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	kept := []variant{{Name: asItIs}}
	for _, v := range all {
		if name.MatchString(v.Name) {
			kept = append(kept, v)
		}
	}
	return kept, nil
}

// measureAll measures the variants that were not measured at this commit yet, and writes the page after each. An
// interrupt ends it.
func measureAll(variants []variant, r runner, page string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := os.MkdirAll(r.folder, 0o755); err != nil {
		return err
	}
	commit, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return fmt.Errorf("name the commit: %w", err)
	}
	name := strings.TrimSpace(string(commit))
	file := filepath.Join(r.folder, fmt.Sprintf("%s-%d.json", name, r.work))
	known, err := readState(file)
	if err != nil {
		return err
	}
	for i, v := range variants {
		if _, is := known[v.Name]; is {
			continue
		}
		rows, err := r.measure(ctx, v)
		if ctx.Err() != nil {
			return errors.New("ended; the same command goes on here")
		}
		if err != nil && v.Name == asItIs {
			return err
		}
		known[v.Name] = outcome{Rows: rows}
		if err != nil {
			known[v.Name] = outcome{Failed: err.Error()}
		}
		text, err := json.Marshal(known)
		if err == nil {
			err = os.WriteFile(file, text, 0o644)
		}
		if err == nil {
			err = os.WriteFile(page, []byte(writePage(variants, known, name)), 0o644)
		}
		if err != nil {
			return fmt.Errorf("keep what was measured: %w", err)
		}
		fmt.Printf("%d of %d: %s\n", i+1, len(variants), compareRows(v.Name, known[asItIs].Rows, known[v.Name]))
	}
	return os.WriteFile(page, []byte(writePage(variants, known, name)), 0o644)
}

// readState reads what was measured; nothing when there is no such file.
func readState(file string) (map[string]outcome, error) {
	known := map[string]outcome{}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &known)
	}
	if err != nil {
		return nil, fmt.Errorf("read what was measured before: %w; remove %s to begin anew", err, file)
	}
	return known, nil
}
