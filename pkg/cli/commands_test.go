package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/testing/syntax"
)

// TestCommands runs command lines as they stand in the files and shows all that they print. What was measured is
// masked.
func TestCommands(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	words := syntax.NewGrammar(nil, "run")
	datadriven.Walk(t, "testdata/commands", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if err := words.Check(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
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
	// what takes longer than a second on a busy machine
	text = regexp.MustCompile(`(?m)^.*, [0-9]+ s so far\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`packed in [0-9.]+ s( \([0-9.]+ s of CPU\))?`).ReplaceAllString(text, "packed in ...")
	return regexp.MustCompile(`("?(planSeconds|planUserSeconds|maxRSSMiB)"?: )[0-9.e-]+`).ReplaceAllString(text, "$1...")
}

// A comparison for programs: two placements and the difference.
func TestComparisonAsJSON(t *testing.T) {
	code, out, progress := run("plan", "-f", "testdata/files/apps.yaml", "-f", "testdata/files/pools.yaml", "--compare", "testdata/files/cheaper.yaml", "--prices", "instances", "-o", "json")
	var got struct {
		Before, After                    struct{ HourlyUSD float64 }
		DifferenceUSD, DifferencePercent float64
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit %d, %v, %s", code, err, progress)
	}
	if math.Abs(got.Before.HourlyUSD-0.96) > 1e-9 || math.Abs(got.After.HourlyUSD-0.872) > 1e-9 || math.Abs(got.DifferenceUSD+0.088) > 1e-9 ||
		math.Abs(got.DifferencePercent+9.1667) > 0.001 {
		t.Errorf("%+v", got)
	}
}

// Every manifest of the collection converts, and what comes out needs no second conversion.
func TestWhatIsConvertedStays(t *testing.T) {
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		code, once, progress := run("convert", "-f", f, "--cluster", "demo")
		if code != 0 {
			t.Errorf("%s: exit %d, %s", f, code, progress)
			continue
		}
		path := filepath.Join(t.TempDir(), "converted.yaml")
		if err := os.WriteFile(path, []byte(once), 0o600); err != nil {
			t.Fatal(err)
		}
		code, twice, progress := run("convert", "-f", path, "--strict")
		if code != 0 || progress != "" || twice != once {
			t.Errorf("%s: exit %d, says %q; it became\n%s", f, code, progress, twice)
		}
	}
	if code, _, progress := run("convert", "-f", "testdata/manifests/provisioner-v1alpha5-ops.yaml", "--strict"); code != 3 || !strings.Contains(progress, "5 warnings") {
		t.Errorf("exit %d, %s", code, progress)
	}
}

// What can be said without a cluster: that there is none, and what cannot be explained.
func TestExplainWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explain"}, "say what is to be explained"},
		{[]string{"explain", "service", "x"}, `"service" cannot be explained; pod, node, nodeclaim and nodepool can`},
		{[]string{"explain", "pod/x"}, "no cluster given"},
	} {
		if code, out, progress := run(c.args...); code != 2 || out != "" || !strings.Contains(progress, c.want) {
			t.Errorf("%v: exit %d, %s%s", c.args, code, out, progress)
		}
	}
}
