package nodeclass

import (
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// RehashAnnotations is what to annotate a claim with when its pool or class has a drift hash of another version than
// the claim: the new version, and the new hash too unless the claim has drifted, which it then stays. hash holds the
// annotations of the owner, that of the version by a key that ends in -version. A claim of that version needs none.
func RehashAnnotations(c cluster.Claim, hash map[string]string) map[string]string {
	drifted := slices.ContainsFunc(c.Conditions, func(k cluster.Condition) bool {
		return k.Type == v1.ConditionDrifted
	})
	out := map[string]string{}
	for key, value := range hash {
		version := strings.HasSuffix(key, "-version")
		if version && c.Annotations[key] == value {
			return nil
		}
		if version || !drifted {
			out[key] = value
		}
	}
	return out
}
