package cli

import (
	"encoding/json"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/version"
)

func TestVersionCommand(t *testing.T) {
	code, out, _ := run("version", "-o", "json")
	var got versionAnswer
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, out)
	}
	if got.Version != version.Number || got.Go != runtime.Version() ||
		!cmp.Equal(got.APIs, []string{"karpenter.sh/v1", "karpenter.k8s.aws/v1", "karpenter.sh/v1alpha1"}) {
		t.Errorf("%+v", got)
	}
	if code, out, _ := run("--version"); code != 0 || out != "joiner version "+version.Number+"\n" {
		t.Errorf("--version: exit %d, %q", code, out)
	}
	if code, _, _ := run("version", "please"); code != exitUnused {
		t.Errorf("an argument: exit %d", code)
	}
}

func TestVersionSaysWhatTheBuildKnows(t *testing.T) {
	rest := "Karpenter API karpenter.sh/v1, karpenter.k8s.aws/v1, karpenter.sh/v1alpha1\n" +
		runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	build := func(module string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: module}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "abc123"}
	for want, b := range map[string]*debug.BuildInfo{
		"joiner " + version.Number + "\n":                                               build("(devel)"),
		"joiner " + version.Number + " (module v1.2.3-0.20261125184600-abc123abc123)\n": build("v1.2.3-0.20261125184600-abc123abc123"),
		"joiner " + version.Number + "\ncommit abc123\n":                                build("v"+version.Number, revision),
		"joiner " + version.Number + "\ncommit abc123, modified\n":                      build("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
	} {
		if got := describeVersion(b).answerText(); got != want+rest {
			t.Errorf("got %q\nwant %q", got, want+rest)
		}
	}
}

// The number is a semantic version, and the newest heading of the changelog.
func TestVersionIsInTheChangelog(t *testing.T) {
	semantic := regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	if !semantic.MatchString(version.Number) {
		t.Errorf("%q is no semantic version", version.Number)
	}
	text, err := os.ReadFile("../../infra/CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## (.+)$`).FindSubmatch(text)
	if len(first) != 2 || string(first[1]) != version.Number {
		t.Errorf("first heading of the changelog: %q, want %s", first, version.Number)
	}
}
