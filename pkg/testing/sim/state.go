package sim

import (
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/instancetypes"
)

// productState holds what the product keeps for itself beside Kubernetes objects.
type productState struct {
	marks  []unavailableMark
	unused []instancetypes.UnavailableEntry // about nodes that were bought in vain
	taken  []string                         // of the quota
	memory disruption.Memory
}

// unavailableMark is the mark of an unavailable offering, and when it was made.
type unavailableMark struct {
	instancetypes.UnavailableOffering
	made time.Time
}
