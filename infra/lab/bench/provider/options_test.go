package provider

import (
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	aws "github.com/aws/karpenter-provider-aws/pkg/operator/options"
	core "sigs.k8s.io/karpenter/pkg/operator/options"

	"joiner.sh/pkg/cli/migrate"
	"joiner.sh/pkg/model/instancetypes"
)

// Each option of Karpenter is known to migrate, but for those that it says it has no setting for.
func TestEveryOptionIsKnownToMigrate(t *testing.T) {
	fs := &core.FlagSet{FlagSet: flag.NewFlagSet("karpenter", flag.ContinueOnError)}
	(&core.Options{}).AddFlags(fs)
	(&aws.Options{}).AddFlags(fs)
	o := migrate.Options{Known: true, Values: map[string]string{}}
	fs.VisitAll(func(f *flag.Flag) {
		if name := strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); name != "FEATURE_GATES" {
			o.Values[name] = "unusual"
		}
	})
	if len(o.Values) < 25 {
		t.Fatalf("Karpenter has only the options %v", slices.Sorted(maps.Keys(o.Values)))
	}
	r := migrate.ReportTo(migrate.Facts{Options: o}, func(string) []instancetypes.Type { return nil })
	var got []string
	for _, f := range r.Findings {
		if name, _, without := strings.Cut(f.What, ` is "unusual", which Joiner has no setting for`); without {
			got = append(got, name)
		}
	}
	if want := optionsWithoutSetting(); !slices.Equal(got, want) {
		t.Errorf("options that migrate has no setting for: %v, want %v", got, want)
	}
}

// The variable that the chart makes of each setting is the one that migrate takes it for.
func TestVariablesOfTheChart(t *testing.T) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/karpenter-provider-aws").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "charts/karpenter/templates/deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`with \.Values\.settings\.(\w+) }}\s+- name: (\w+)`).FindAllStringSubmatch(string(text), -1)
	for _, l := range lines {
		if got := migrate.VariableName(l[1]); got != l[2] {
			t.Errorf("settings.%s is %s, not %s", l[1], l[2], got)
		}
	}
	if len(lines) < 12 {
		t.Errorf("only %d settings were found in the chart", len(lines))
	}
}
