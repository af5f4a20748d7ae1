package stack_test

import (
	"strings"
	"testing"
)

// Passes are kept in the bucket only where that is wanted, by those that decide, and not for ever.
func TestTheDecisionLogIsAsTheSettingsSay(t *testing.T) {
	for mode, stores := range map[string]bool{"log": false, "store": true} {
		tmpl := words(t, mustSynth(t, map[string]any{"clusterName": "demo", "distFolder": placeholders(t), "decisionLog": mode, "decisionLogDays": 30}))
		for _, f := range []string{"Provision", "Disrupt", "Lifecycle"} {
			if got := strings.Contains(tmpl.permissions(f), "/ticks/*"); got != (stores && f != "Lifecycle") {
				t.Errorf("decisionLog %s: %s may store passes: %t\n%s", mode, f, got, tmpl.permissions(f))
			}
		}
		found := false
		tmpl.each("AWS::S3::Bucket", func(_ string, p map[string]any) {
			found = strings.Contains(text(p), "ticks/") && strings.Contains(text(p), "30")
		})
		if !found {
			t.Error("stored passes do not end after 30 days")
		}
	}
}
