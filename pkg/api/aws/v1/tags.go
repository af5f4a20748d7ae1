package v1

import (
	"maps"
	"slices"
	"strings"
)

// RestrictedTag finds a tag of the user's that only we may set; of several the first by name.
func RestrictedTag(tags map[string]string) (key string, found bool) {
	ours := []string{TagNodePool, TagNodeClaim, TagNodeClaimUID, TagLaunchBatch, TagEC2NodeClass, TagClusterName}
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if slices.Contains(ours, k) || strings.HasPrefix(k, TagClusterPrefix) {
			return k, true
		}
	}
	return "", false
}
