package stack_test

import (
	"strings"
	"testing"
)

// TestListsAndObjectsHoldPlainTexts: a comma would make two of one, and what is no text would be left out unseen.
func TestListsAndObjectsHoldPlainTexts(t *testing.T) {
	const inList = "it is a list with something in it that is no plain text"
	const inObject = "it is an object with something in it that is no plain text"
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{"nodePolicies", []any{"One,Two"}, inList},
		{"nodePolicies", []any{"One", []any{"Two"}}, inList},
		{"nodeTags", map[string]any{"team": "red,blue"}, inObject},
		{"nodeTags", map[string]any{"team": []any{"red"}}, inObject},
	} {
		_, err := synth(t, map[string]any{"clusterName": "demo", c.key: c.value})
		if want := "context key " + c.key + ": " + c.want; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s as %v: got error %v, want %q", c.key, c.value, err, want)
		}
	}
}
