package stack

// conditions are operator, then key, then values.
type conditions map[string]map[string][]string

// The tags that mark what is ours. Every create call must carry all three, every change and
// deletion works only on what carries the first two.
const (
	tagNodePool    = "karpenter.sh/nodepool"
	tagNodeClaim   = "karpenter.sh/nodeclaim"
	tagNodeClass   = "karpenter.k8s.aws/ec2nodeclass"
	tagClusterName = "eks:eks-cluster-name"
	tagRegion      = "topology.kubernetes.io/region"
)

// ownedTags holds for things that we tagged when we made them.
func (p permissions) ownedTags() conditions {
	return conditions{
		"StringEquals": {"aws:ResourceTag/" + p.tagCluster(): {"owned"}},
		"StringLike":   {"aws:ResourceTag/" + tagNodePool: {"*"}},
	}
}

// requestedAsOwned holds for calls that tag what they make as ours.
func (p permissions) requestedAsOwned() conditions {
	return conditions{
		"StringEquals": {"aws:RequestTag/" + p.tagCluster(): {"owned"}, "aws:RequestTag/" +
			tagClusterName: {p.cluster}},
		"StringLike": {"aws:RequestTag/" + tagNodePool: {"*"}},
	}
}

// withTest adds one test to conditions made for this statement alone.
func (c conditions) withTest(operator, key string, values ...string) conditions {
	if c[operator] == nil {
		c[operator] = map[string][]string{}
	}
	c[operator][key] = values
	return c
}
