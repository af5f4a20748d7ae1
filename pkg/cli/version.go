package cli

import (
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/version"
)

// commit is the commit of a release, which its build gives to the linker; empty in other builds.
//
//nolint:gochecknoglobals // the linker writes variables alone
var commit string

// versionAnswer holds what `joiner version` says about the program.
type versionAnswer struct {
	Version  string   `json:"version"`
	Module   string   `json:"module,omitempty"` // version of the Go module, where the go command knows one
	Commit   string   `json:"commit,omitempty"`
	Modified bool     `json:"modified,omitempty"` // the work tree had changes that the commit has not
	APIs     []string `json:"apis"`               // API versions of Karpenter that it reads and writes
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
}

// describeVersion returns the version of the program with what the go command wrote into it.
func describeVersion(build *debug.BuildInfo) versionAnswer {
	v := versionAnswer{
		Version: version.Number, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		APIs: []string{v1.GroupVersion().String(), awsv1.GroupVersion().String(),
			v1alpha1.GroupVersion().String()},
	}
	if build == nil {
		return v
	}
	if m := build.Main.Version; m != "(devel)" && m != "v"+version.Number {
		v.Module = m
	}
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision" && v.Commit == "":
			v.Commit = s.Value
		case s.Key == "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (v versionAnswer) answerText() string {
	lines := []string{"joiner " + v.Version}
	if v.Module != "" {
		lines[0] += " (module " + v.Module + ")"
	}
	if v.Commit != "" {
		line := "commit " + v.Commit
		if v.Modified {
			line += ", modified"
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, "Karpenter API "+strings.Join(v.APIs, ", "), v.Go+" "+v.Platform), "\n") + "\n"
}

func versionCommand(term terminalOutput) *cobra.Command {
	var output outputForm
	cmd := &cobra.Command{
		Use: "version", Short: "Show the version of this program and the API versions of Karpenter that it speaks",
		Long: `Show the version of this program, its commit where the build knew it, and the API versions of Karpenter that it reads and writes. What is
deployed in a cluster says the output Version of its stack.`,
		Args: noArgs("see --help"), Example: "  joiner version\n  joiner version -o json",
		RunE: func(*cobra.Command, []string) error {
			build, _ := debug.ReadBuildInfo() // nil without it
			v := describeVersion(build)
			return term.showAnswer(output, v, func() error { return term.writeText(v.answerText()) })
		},
	}
	outputFlag(cmd, &output, "text", "json", "yaml")
	return cmd
}
