package disruption

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/syntax"
)

// TestScenarioSyntax checks that the harness understands every word of the scenario files.
func TestScenarioSyntax(t *testing.T) {
	words := syntax.NewGrammar(scenario.Words(), "disrupt all eligible hold asks starting", "changed", "wait SPAN", "now TIME", "ready", "still", "forget",
		"late", "steps COUNT", "waves COUNT", "drifted-nodes COUNT", "hold", "move USD", "price", "lost CLAIM", "spot-types COUNT",
		"spot-to-spot true false",
		"disruption POOL", "change NAME", "rollout POOL", "refused TYPE")
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				t.Errorf("%s: %v", d.Pos, err)
			}
			return d.Expected
		})
	})
}

func errorsOr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
