package launch

import (
	"cmp"
	"maps"
	"slices"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// Tags on what is made in EC2. The two that name the claim are on the instance from the start, unlike with Karpenter,
// so that an instance whose launch reply was lost is found and adopted.
const (
	TagClusterName = awsv1.TagClusterName
	TagNodePool    = awsv1.TagNodePool
	TagNodeClass   = awsv1.TagEC2NodeClass
	TagClaim       = awsv1.TagNodeClaim
	TagClaimUID    = awsv1.TagNodeClaimUID
	TagBatch       = awsv1.TagLaunchBatch
)

// staticTags are the tags of everything that a launch makes; ours beat the user's.
func staticTags(in Input) map[string]string {
	out := lists.CopyMap(in.Class.Spec.Tags)
	out[awsv1.TagClusterPrefix+in.Cluster.Name] = "owned"
	out[TagClusterName] = in.Cluster.Name
	out[TagNodeClass] = in.Class.Name
	out[TagNodePool] = cmp.Or(in.Claim.Pool, in.Claim.Labels[karpv1.LabelNodePool])
	return out
}

func claimTags(in Input, static map[string]string) map[string]string {
	out := maps.Clone(static)
	if in.Batch.ID != "" {
		out[TagBatch] = in.Batch.ID
		return out
	}
	out[TagClaim], out[TagClaimUID] = in.Claim.Name, in.Claim.UID
	return out
}

func sortedTags(m map[string]string) []Tag {
	return lists.Of(slices.Sorted(maps.Keys(m)), func(k string) Tag { return Tag{Key: k, Value: m[k]} })
}
