// Command count counts code lines of the product, numeric literals of the rooms that decide, and exported names below
// pkg/scheduling, so that a change that is to make the project smaller can be measured. With two folders it shows the
// difference: what is now, and what was.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"slices"
)

func main() {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: count FOLDER [BEFORE]: roots of the repository, as it is and as it was")
	}
	flag.Parse()
	if n := flag.NArg(); n < 1 || n > 2 {
		flag.Usage()
		os.Exit(2)
	}
	var counts []tally
	for _, root := range flag.Args() {
		t, err := countProduct(os.DirFS(root))
		if err != nil {
			log.Fatalf("count %s: %v", root, err)
		}
		counts = append(counts, t)
	}
	printCounts(os.Stdout, counts)
}

// printCounts prints what is now and, where there is such, what was and the difference.
func printCounts(w io.Writer, counts []tally) {
	now := counts[0]
	row := func(what string, of func(tally) int) {
		fmt.Fprintf(w, "%-28s %7d", what, of(now))
		if len(counts) > 1 {
			fmt.Fprintf(w, " %7d %+7d", of(counts[1]), of(now)-of(counts[1]))
		}
		fmt.Fprintln(w)
	}
	names := map[string]bool{}
	for _, t := range counts {
		for name := range t.lines {
			names[name] = true
		}
	}
	fmt.Fprintln(w, "code lines below pkg, without tests, pkg/testing and generated code")
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row("  "+name, func(t tally) int { return t.lines[name] })
	}
	row("  all", func(t tally) int { return sum(t.lines) })
	fmt.Fprintln(w, "numeric literals other than 0, 1 and 2")
	for _, name := range judged() {
		row("  "+name, func(t tally) int { return t.literals[name] })
	}
	row("  all", func(t tally) int { return sum(t.literals) })
	row("  without bases and shifts", func(t tally) int { return sum(t.literals) - sum(t.notation) })
	fmt.Fprintln(w, "exported names below pkg/scheduling, without methods")
	row("  all", func(t tally) int { return t.names })
}

func sum(m map[string]int) (n int) {
	for _, k := range m {
		n += k
	}
	return n
}
