package instancetypes

import (
	"slices"
	"strings"
)

// PCIeRoots says what each PCIe root of an instance of the type has, by the extended resource that counts it: NVIDIA
// GPUs and EFA interfaces. It is empty for a type of which nobody knows.
//
// The facts are those of github.com/aws/karpenter-provider-aws v1.15.2, pkg/providers/drametadata, whose authors took
// them from instances; Apache License 2.0. infra/lab/bench/provider compares them.
func PCIeRoots(name string) (out []map[string]int64) {
	type group struct{ roots, gpus, efas int64 } // roots that have as many each
	for _, known := range []struct {
		groups []group
		types  string
	}{
		{[]group{{1, 4, 1}}, "g4dn.12xlarge g5.12xlarge g5.24xlarge"},
		{[]group{{1, 1, 1}}, "g4dn.16xlarge g4dn.8xlarge g5.16xlarge g5.8xlarge g7e.8xlarge p5.4xlarge"},
		{[]group{{1, 1, 0}}, "g4dn.2xlarge g4dn.4xlarge g4dn.xlarge g5.2xlarge g5.4xlarge g5.xlarge g5g.2xlarge " +
			"g5g.4xlarge g5g.8xlarge g5g.xlarge g6.2xlarge g6.4xlarge g6.xlarge g6e.2xlarge g6e.4xlarge " +
			"g6e.xlarge g7.2xlarge g7.4xlarge g7e.2xlarge g7e.4xlarge gr6.4xlarge"},
		{[]group{{4, 2, 0}, {1, 0, 1}}, "g4dn.metal"},
		{[]group{{1, 8, 1}}, "g5.48xlarge p3dn.24xlarge"},
		{[]group{{1, 2, 0}}, "g5g.16xlarge g5g.metal"},
		{[]group{{4, 1, 0}, {1, 0, 1}}, "g6.12xlarge g6.24xlarge g6e.12xlarge g7.24xlarge"},
		{[]group{{1, 1, 0}, {1, 0, 1}}, "g6.16xlarge g6.8xlarge g6e.16xlarge g6e.8xlarge g7.8xlarge gr6.8xlarge"},
		{[]group{{8, 1, 0}, {1, 0, 1}}, "g6.48xlarge"},
		{[]group{{4, 1, 0}, {1, 0, 2}}, "g6e.24xlarge"},
		{[]group{{8, 1, 0}, {2, 0, 2}}, "g6e.48xlarge"},
		{[]group{{2, 1, 0}, {1, 0, 1}}, "g7.12xlarge"},
		{[]group{{8, 1, 0}, {2, 0, 1}}, "g7.48xlarge"},
		{[]group{{1, 2, 1}}, "g7e.12xlarge"},
		{[]group{{2, 2, 1}}, "g7e.24xlarge"},
		{[]group{{4, 2, 1}}, "g7e.48xlarge p4d.24xlarge p4de.24xlarge"},
		{[]group{{8, 1, 4}}, "p5.48xlarge p5e.48xlarge"},
		{[]group{{4, 2, 4}}, "p5en.48xlarge"},
		{[]group{{4, 2, 2}}, "p6-b200.48xlarge"},
		{[]group{{8, 1, 2}}, "p6-b300.48xlarge"},
	} {
		if !slices.Contains(strings.Fields(known.types), name) {
			continue
		}
		for _, g := range known.groups {
			for range g.roots {
				out = append(out, map[string]int64{ResourceNVIDIA: g.gpus, ResourceEFA: g.efas})
			}
		}
	}
	return out
}
