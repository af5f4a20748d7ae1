package main

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "joiner.sh/pkg/api/v1"
)

// A node may go when each of its replacements is initialized, or is held and lacks nothing but that its hold is taken
// off.
func TestReadyBy(t *testing.T) {
	then := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	claim := func(id, held, status, reason string, since time.Time) unstructured.Unstructured {
		c := unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": v1.ConditionRegistered, "status": "True", "lastTransitionTime": since.Format(time.RFC3339)},
			map[string]any{"type": v1.ConditionInitialized, "status": status, "reason": reason, "lastTransitionTime": since.Format(time.RFC3339)},
		}}}}
		c.SetAnnotations(map[string]string{v1.AnnotationReplaces: id, v1.AnnotationNominatedOwners: held})
		return c
	}
	for name, test := range map[string]struct {
		claim unstructured.Unstructured
		want  int
	}{
		"initialized":         {claim("x", "", "True", v1.ConditionInitialized, then), 1},
		"initialized later":   {claim("x", "", "True", v1.ConditionInitialized, then.Add(time.Second)), 0},
		"of another command":  {claim("y", "", "True", v1.ConditionInitialized, then), 0},
		"held":                {claim("x", "uid=1", "Unknown", v1.ReasonStartupTaintsExist, then), 1},
		"held, not ready yet": {claim("x", "uid=1", "Unknown", v1.ReasonNodeNotReady, then), 0},
		"starts":              {claim("x", "", "Unknown", v1.ReasonStartupTaintsExist, then), 0},
	} {
		if n := readyBy([]unstructured.Unstructured{test.claim}, "x", then); n != test.want {
			t.Errorf("%s: %d are ready, want %d", name, n, test.want)
		}
	}
}
