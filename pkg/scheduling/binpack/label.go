package binpack

import (
	"strings"

	aws "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// Labels the packer looks at.
const (
	labelHost      = "kubernetes.io/hostname"
	labelZone      = "topology.kubernetes.io/zone"
	labelRegion    = "topology.kubernetes.io/region"
	labelArch      = "kubernetes.io/arch"
	labelOS        = "kubernetes.io/os"
	labelType      = "node.kubernetes.io/instance-type"
	labelZoneID    = aws.LabelZoneID
	labelClass     = aws.LabelEC2NodeClass
	labelPool      = api.LabelNodePool
	labelCapacity  = api.LabelCapacityType
	labelPartition = aws.LabelPlacementGroupPartition
)

// limitNodes is the name under which a pool limits its number of nodes.
const limitNodes = string(api.LimitNodes)

// isWellKnownLabel reports whether the instance, and not the pool's author, decides the label's value.
func isWellKnownLabel(key string) bool {
	switch key {
	case labelHost, labelZone, labelRegion, labelArch, labelOS, labelType, labelZoneID, labelPool, labelCapacity,
		api.LabelWindowsBuild:
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/")
}

// perOffer reports whether offers of one instance type differ in the label.
func perOffer(key string) bool {
	_, own := instancetypes.Offering{}.Label(key)
	return own
}
