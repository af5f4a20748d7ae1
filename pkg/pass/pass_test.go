package pass_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner/pkg/pass"
	"joiner/pkg/scenario"
)

// TestScenarios plays testdata: the words of a scenario's world, in which nothing is sold, and "decide", which prints the plan of a pass.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := scenario.New()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "decide" {
				return pass.Decide(w.Snapshot).Plan.String() + "\n"
			}
			if known, err := w.Do(d); err != nil || !known {
				d.Fatalf(t, "%q: %v", d.Cmd, err)
			}
			return "ok\n"
		})
	})
}
