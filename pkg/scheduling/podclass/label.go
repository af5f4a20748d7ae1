package podclass

import (
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// LabelHost is the topology key of single nodes.
const LabelHost = "kubernetes.io/hostname"

// IsWellKnownLabel reports whether the instance, and not the pool's author, decides the label's value.
func IsWellKnownLabel(key string) bool {
	switch key {
	case LabelHost, instancetypes.LabelZone, instancetypes.LabelRegion, instancetypes.LabelArch, instancetypes.LabelOS,
		instancetypes.LabelType, instancetypes.LabelZoneID, api.LabelNodePool, instancetypes.LabelCapacityType,
		api.LabelWindowsBuild:
		return true
	}
	return strings.HasPrefix(key, "karpenter.k8s.aws/")
}

// VariesByOffering reports whether offerings of one instance type differ in the label.
func VariesByOffering(key string) bool {
	_, own := instancetypes.Offering{}.Label(key)
	return own
}

// OnEveryNode reports whether every node has the label.
func OnEveryNode(key string) bool {
	switch key {
	case instancetypes.LabelZone, instancetypes.LabelCapacityType, instancetypes.LabelArch, instancetypes.LabelOS,
		instancetypes.LabelType, instancetypes.LabelRegion:
		return true
	}
	return false
}
