package binpack

import (
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// labelHost is the topology key of single nodes.
const labelHost = "kubernetes.io/hostname"

// isWellKnownLabel reports whether the instance, and not the pool's author, decides the label's value.
func isWellKnownLabel(key string) bool {
	switch key {
	case labelHost, instancetypes.LabelZone, instancetypes.LabelRegion, instancetypes.LabelArch, instancetypes.LabelOS,
		instancetypes.LabelType, instancetypes.LabelZoneID, api.LabelNodePool, instancetypes.LabelCapacityType,
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

// onEveryNode reports whether every node has the label.
func onEveryNode(key string) bool {
	switch key {
	case instancetypes.LabelZone, instancetypes.LabelCapacityType, instancetypes.LabelArch, instancetypes.LabelOS,
		instancetypes.LabelType, instancetypes.LabelRegion:
		return true
	}
	return false
}
