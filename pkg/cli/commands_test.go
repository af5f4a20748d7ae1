package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestCommands runs command lines as they stand in the files and shows all that they print. What was measured is masked.
func TestCommands(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	datadriven.Walk(t, "testdata/commands", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			code, out, progress := run(strings.Fields(d.Input)...)
			return masked(out) + indented(masked(progress)) + fmt.Sprintf("exit %d\n", code)
		})
	})
}

// indented are messages as they are told from results.
func indented(text string) string {
	if text == "" {
		return ""
	}
	return "# " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n# ") + "\n"
}

func masked(text string) string {
	text = regexp.MustCompile(`packed in [0-9.]+ s( \([0-9.]+ s of CPU\))?`).ReplaceAllString(text, "packed in ...")
	return regexp.MustCompile(`("?(planSeconds|planUserSeconds|maxRSSMiB)"?: )[0-9.e-]+`).ReplaceAllString(text, "$1...")
}

// A comparison for programs: two placements and the difference.
func TestComparisonAsJSON(t *testing.T) {
	code, out, progress := run("plan", "-f", "testdata/files/apps.yaml", "-f", "testdata/files/pools.yaml", "--compare", "testdata/files/cheaper.yaml", "-o", "json")
	var got struct {
		Before, After                    struct{ HourlyUSD float64 }
		DifferenceUSD, DifferencePercent float64
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit %d, %v, %s", code, err, progress)
	}
	if got.Before.HourlyUSD != 0.576 || got.After.HourlyUSD != 0.543 || math.Abs(got.DifferenceUSD+0.033) > 1e-9 || math.Abs(got.DifferencePercent+5.729) > 0.001 {
		t.Errorf("%+v", got)
	}
}
