package instancetypes

// PCIeRoots says what each PCIe root of an instance of the type has, by the extended resource that counts it: NVIDIA
// GPUs and EFA interfaces. It is empty for a type of which nobody knows.
//
// The facts are those of github.com/aws/karpenter-provider-aws v1.15.2, pkg/providers/drametadata, whose authors took
// them from instances; Apache License 2.0. infra/lab/bench/provider compares them.
func PCIeRoots(name string) (out []map[string]int64) {
	add := func(times int, gpus, efas int64) {
		for range times {
			out = append(out, map[string]int64{ResourceNVIDIA: gpus, ResourceEFA: efas})
		}
	}
	switch name {
	case "g4dn.12xlarge", "g5.12xlarge", "g5.24xlarge":
		add(1, 4, 1)
	case "g4dn.16xlarge", "g4dn.8xlarge", "g5.16xlarge", "g5.8xlarge", "g7e.8xlarge", "p5.4xlarge":
		add(1, 1, 1)
	case "g4dn.2xlarge", "g4dn.4xlarge", "g4dn.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.xlarge", "g5g.2xlarge",
		"g5g.4xlarge", "g5g.8xlarge", "g5g.xlarge", "g6.2xlarge", "g6.4xlarge", "g6.xlarge", "g6e.2xlarge",
		"g6e.4xlarge", "g6e.xlarge", "g7.2xlarge", "g7.4xlarge", "g7e.2xlarge", "g7e.4xlarge", "gr6.4xlarge":
		add(1, 1, 0)
	case "g4dn.metal":
		add(4, 2, 0)
		add(1, 0, 1)
	case "g5.48xlarge", "p3dn.24xlarge":
		add(1, 8, 1)
	case "g5g.16xlarge", "g5g.metal":
		add(1, 2, 0)
	case "g6.12xlarge", "g6.24xlarge", "g6e.12xlarge", "g7.24xlarge":
		add(4, 1, 0)
		add(1, 0, 1)
	case "g6.16xlarge", "g6.8xlarge", "g6e.16xlarge", "g6e.8xlarge", "g7.8xlarge", "gr6.8xlarge":
		add(1, 1, 0)
		add(1, 0, 1)
	case "g6.48xlarge":
		add(8, 1, 0)
		add(1, 0, 1)
	case "g6e.24xlarge":
		add(4, 1, 0)
		add(1, 0, 2)
	case "g6e.48xlarge":
		add(8, 1, 0)
		add(2, 0, 2)
	case "g7.12xlarge":
		add(2, 1, 0)
		add(1, 0, 1)
	case "g7.48xlarge":
		add(8, 1, 0)
		add(2, 0, 1)
	case "g7e.12xlarge":
		add(1, 2, 1)
	case "g7e.24xlarge":
		add(2, 2, 1)
	case "g7e.48xlarge", "p4d.24xlarge", "p4de.24xlarge":
		add(4, 2, 1)
	case "p5.48xlarge", "p5e.48xlarge":
		add(8, 1, 4)
	case "p5en.48xlarge":
		add(4, 2, 4)
	case "p6-b200.48xlarge":
		add(4, 2, 2)
	case "p6-b300.48xlarge":
		add(8, 1, 2)
	}
	return out
}
