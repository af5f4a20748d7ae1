package nodeclass

import (
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// RehashAnnotations returns the annotations of a claim when its pool or class has a drift hash of another version than
// the claim. They are the new version, and the new hash too unless the claim has drifted, which it then stays. A claim
// of that version needs none.
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
