package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
)

const replayHelp = `Re-run stored decisions and say whether the plan is the same, byte for byte.

With decisionLog: store the functions keep every pass with a decision whole in the stack's bucket; the log line names it as snapshot. FILE is
such an object. Another version of this program may decide otherwise: then the difference is printed.

Exit code 0: every plan is the same; 2: a file is no stored pass; 3: a plan is another one.`

type replayFlags struct {
	logRange
	output outputForm
}

func replayCommand(term terminalOutput) *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use: "replay [FILE]...", Short: "Re-run stored decisions and compare the plans", Long: replayHelp,
		Example: "  joiner replay 20261122T010203.456Z-provision-0a1b2c3d.json.gz\n  joiner replay --since 2h --catalog-bucket BUCKET",
		RunE:    func(cmd *cobra.Command, args []string) error { return runReplay(cmd.Context(), f, args, term) },
	}
	f.logRange.addFlags(cmd)
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

// replayedPass is one pass decided anew.
type replayedPass struct {
	Pass       string   `json:"pass"`
	Function   string   `json:"function"`
	Time       string   `json:"time"`
	Same       bool     `json:"same"`
	Plan       []string `json:"plan"`
	Difference string   `json:"difference,omitempty"` // of the plans in words, or of their values
}

func runReplay(ctx context.Context, f replayFlags, files []string, term terminalOutput) error {
	if (len(files) > 0) == f.isAsked() {
		return &inputError{errors.New("name files of stored passes, or the stack's bucket with --catalog-bucket and a time with --since")}
	}
	var out []replayedPass
	differ := 0
	again := func(name string, p decisionlog.Pass) error {
		a, err := replay.DecideAgain(p)
		if err != nil {
			return &inputError{fmt.Errorf("%s: %w", name, err)}
		}
		r := replayedPass{Pass: name, Function: p.Function, Time: p.Time.Format(time.RFC3339), Same: a.Same,
			Plan: a.Lines}
		if !a.Same {
			differ++
			r.Difference = lineDifference(a.Was, a.Lines)
			if r.Difference == "" {
				r.Difference = "the plans read alike and differ in values:\nwas " + string(p.Plan) + "\nis  " +
					string(a.Plan)
			}
		}
		out = append(out, r)
		return nil
	}
	if err := f.forEachPass(ctx, files, term, again); err != nil {
		return err
	}
	if err := term.showAnswer(f.output, out, func() error { return showReplays(term, out) }); err != nil {
		return err
	}
	if differ > 0 {
		return &foundError{fmt.Sprintf("%d of %d plans are other ones now", differ, len(out))}
	}
	return nil
}

// forEachPass hands over the stored passes of the files, or those of the bucket.
func (f replayFlags) forEachPass(ctx context.Context, files []string, term terminalOutput,
	do func(name string, p decisionlog.Pass) error) error {
	for _, path := range files {
		data, err := readFile(path)
		if err != nil {
			return &inputError{fmt.Errorf("read file: %w", err)}
		}
		p, err := decisionlog.DecodePass(data)
		if err != nil {
			return &inputError{fmt.Errorf("%s: %w; want a stored pass: an object below %s in the stack's bucket", path, err,
				decisionlog.Prefix)}
		}
		if err := do(path, p); err != nil {
			return err
		}
	}
	if !f.isAsked() {
		return nil
	}
	r, keys, err := f.listKeys(ctx, term)
	if err != nil {
		return err
	}
	return term.withProgress(fmt.Sprintf("deciding %d passes anew", len(keys)), func() error {
		for _, k := range keys {
			p, err := r.ReadPass(ctx, k)
			if err == nil {
				err = do(k, p)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func showReplays(term terminalOutput, all []replayedPass) error {
	var b strings.Builder
	for _, r := range all {
		verdict := term.paintText("same plan", text.FgGreen)
		if !r.Same {
			verdict = term.paintText("another plan", text.FgRed)
		}
		fmt.Fprintf(&b, "%s %s of %s: %s\n", r.Pass, r.Function, r.Time, verdict)
		if len(all) == 1 {
			b.WriteString("  " + strings.Join(r.Plan, "\n  ") + "\n")
		}
		if !r.Same {
			b.WriteString(r.Difference)
		}
	}
	return term.writeText(b.String())
}

// lineDifference has the lines that only one of two plans has, those of the first with a minus.
func lineDifference(was, is []string) string {
	var b strings.Builder
	for _, side := range []struct {
		sign      string
		all, than []string
	}{{"- ", was, is}, {"+ ", is, was}} {
		for _, line := range side.all {
			if !slices.Contains(side.than, line) {
				b.WriteString(side.sign + line + "\n")
			}
		}
	}
	return b.String()
}
