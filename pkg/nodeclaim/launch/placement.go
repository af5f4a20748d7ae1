package launch

import (
	"slices"
	"strconv"

	"joiner.sh/pkg/model/instancetypes"
)

// placementPartition returns the partition of the class's placement group that the claim requires, the first as text of
// those that it allows. 0 lets EC2 choose, where the claim refuses none.
func placementPartition(in Input) int32 {
	g := in.Resolved.Placement
	wanted, ok := in.Claim.Requirements.Get(instancetypes.LabelPartition)
	if g == nil || !ok {
		return 0
	}
	var allowed []string
	for n := range g.Partitions {
		if text := strconv.FormatInt(n+1, 10); wanted.Has(text) {
			allowed = append(allowed, text)
		}
	}
	if len(allowed) == 0 || wanted.Not && int64(len(allowed)) == g.Partitions {
		return 0 // the type's requirements leave no other, or all
	}
	n, err := strconv.ParseInt(slices.Min(allowed), 10, 32)
	if err != nil {
		return 0
	}
	return int32(n)
}
