package launch

import (
	"slices"
	"strconv"

	"joiner/pkg/catalog"
)

// partition is the one of the class's placement group that the claim requires, the first as text; 0 lets EC2 choose (spec aws.md §1.15).
func partition(in Input) int32 {
	g := in.Resolved.Placement
	wanted, ok := in.Claim.Requirements.Get(catalog.LabelPartition)
	if g == nil || !ok || wanted.Not || len(wanted.Values) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(slices.Min(wanted.Values), 10, 32)
	if err != nil || n < 1 || n > g.Partitions {
		return 0 // the type's requirements leave no other
	}
	return int32(n)
}
