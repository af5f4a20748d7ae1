// Command compare puts Joiner's packer beside Karpenter's provisioner and kube-scheduler's plugins on random clusters.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"joiner/infra/bench/compare/filter"
	"joiner/infra/bench/karpenter"
	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
)

func main() {
	seeds := flag.Int("seeds", 100, "")
	first := flag.Uint64("first-seed", 0, "")
	dump := flag.Bool("dump", false, "")
	flag.Parse()
	all, err := catalog.Decode(builtin.Data())
	if err != nil {
		panic(err)
	}
	karpenter.Prepare()
	filter.Prepare()
	start := time.Now()
	explained := map[string]int{}
	bad, placed := 0, 0
	for i := range *seeds {
		seed := *first + uint64(i)
		c, err := randomCluster(seed, all)
		if err != nil {
			fmt.Println(seed, err)
			continue
		}
		if *dump {
			b, _ := c.YAML()
			fmt.Printf("%s\n", b)
		}
		v, err := judge(context.Background(), c, all)
		if err != nil {
			fmt.Println(seed, err)
			continue
		}
		for _, e := range v.explained {
			explained[e]++
		}
		placed += v.placed
		for _, f := range v.faults {
			fmt.Printf("%d %s %s: %.400s\n", seed, f.Kind, f.Pod, f.Why)
		}
		if len(v.faults) > 0 {
			bad++
		}
	}
	fmt.Println(bad, "bad", placed, "placed", explained, time.Since(start)/time.Duration(*seeds))
}
