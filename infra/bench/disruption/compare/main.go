// Command compare gives random clusters to Karpenter's disruption controller and to Joiner's. It compares which nodes both would take and
// how many their budgets let go, and lets Karpenter judge each command that Joiner begins.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"joiner/infra/bench/karpenter"
	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
)

func main() {
	first := flag.Uint64("first-seed", 1, "the first seed")
	seeds := flag.Uint64("seeds", 50, "how many seeds")
	show := flag.Bool("show", false, "print scenario")
	flag.Parse()
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	c = smallCatalog(c)
	karpenter.Prepare()
	words := map[string][]uint64{}
	commands := map[string]int{}
	nodes, may := 0, 0
	for seed := *first; seed < *first+*seeds; seed++ {
		r, err := compare(c, generate(c, seed))
		if err != nil {
			fmt.Printf("seed %d: %v\n", seed, err)
			continue
		}
		nodes, may = nodes+r.Nodes, may+r.May
		for k, n := range r.Commands {
			commands[k] += n
		}
		for _, f := range r.unexplained() {
			if *show {
				fmt.Println(seed, f)
			}
			key := fmt.Sprintf("%s %s | %s | %s", f.Kind, f.Reason, word(f.Ours), f.Theirs)
			words[key] = append(words[key], seed)
		}
	}
	if *show {
		fmt.Println(generate(c, *first))
	}
	var keys []string
	for k := range words {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return len(words[b]) - len(words[a]) })
	for _, k := range keys {
		fmt.Println(len(words[k]), k, words[k][:min(3, len(words[k]))])
	}
	fmt.Println("nodes", nodes, "may", may, "commands", commands)
}

func word(s string) string {
	a, _, _ := strings.Cut(s, ":")
	return a
}
