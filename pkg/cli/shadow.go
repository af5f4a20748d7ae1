package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"joiner.sh/pkg/decisionlog"
)

const shadowHelp = `Show what Joiner would have launched and removed beside the cluster's present autoscaler, and the difference in price.

Deploy the stack with mode: observe, let it watch for a day or a week, and read its decision log: from the stack's bucket (decisionLog:
store), or from log lines in files (aws logs tail of AWS CLI 2, an export, joiner's own output). Launches are counted once for the same pods; growth is
what somebody else added to the cluster meanwhile; removals are what the last pass of disrupt proposed in each span.`

type shadowFlags struct {
	logRange
	files  []string
	span   time.Duration
	output outputForm
}

func shadowCommand(term terminalOutput) *cobra.Command {
	var f shadowFlags
	cmd := &cobra.Command{
		Use: "shadow", Short: "Compare logged decisions with another autoscaler", Long: shadowHelp,
		Example: "  joiner shadow --since 24h --catalog-bucket BUCKET\n  aws logs tail /aws/lambda/joiner-demo-provision --since 24h | joiner shadow -f -",
		Args:    noArgs("log files are given with -f"),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runShadow(cmd.Context(), f, term) },
	}
	cmd.Flags().StringArrayVarP(&f.files, "file", "f", nil,
		"log lines of provision and disrupt; several times, - for standard input")
	cmd.Flags().DurationVar(&f.span, "span", 0, "length of the parts; without it a 24th of the time, at least 5 minutes")
	f.logRange.addFlags(cmd)
	outputFlag(cmd, &f.output, "table", "json", "yaml")
	return cmd
}

func runShadow(ctx context.Context, f shadowFlags, term terminalOutput) error {
	if (len(f.files) > 0) == f.isAsked() {
		return &inputError{errors.New("name log files with -f, or the stack's bucket with --catalog-bucket and a time with --since")}
	}
	all, err := f.recordsOf(ctx, f.files, term)
	if err != nil {
		return err
	}
	span := f.span
	if span <= 0 {
		whole := all[len(all)-1].Time.Sub(all[0].Time)
		span = max(5*time.Minute, (whole / 24).Round(5*time.Minute))
	}
	s := decisionlog.ShadowOf(all, span)
	if s.Acted > 0 {
		term.writeMessage("%d of %d passes were not in mode observe: what they decided was done, and is no shadow",
			s.Acted, s.Passes)
	}
	return term.showAnswer(f.output, s, func() error { return showShadow(term, s) })
}

func showShadow(term terminalOutput, s decisionlog.Comparison) error {
	t := newTable("from", "nodes", "USD/h", "would launch", "USD/h", "others added", "USD/h", "would remove",
		"saves USD/h", "difference")
	row := func(name string, x decisionlog.ComparisonSpan) table.Row {
		usd := func(v float64) string { return fmt.Sprintf("%.4f", v) }
		return table.Row{name, x.Nodes, usd(x.HourlyUSD), x.Launches, usd(x.LaunchUSD), x.Grown, usd(x.GrownUSD),
			x.Removals, usd(x.SavesUSD), signedUSD(term, x.Difference)}
	}
	for _, x := range s.Spans {
		t.AppendRow(row(x.Start.UTC().Format("2006-01-02 15:04"), x))
	}
	t.AppendFooter(row("all", s.Total))
	last := fmt.Sprintf("%s to %s, %d passes: Joiner's launches cost %+.4f USD/h beside what was added, its removals save %.4f USD/h now and would have saved %.4f USD meanwhile",
		s.Since.UTC().Format(time.RFC3339), s.Until.UTC().Format(time.RFC3339), s.Passes,
		s.Total.LaunchUSD-s.Total.GrownUSD, s.Total.SavesUSD, s.SavedUS)
	return term.writeText(t.Render() + "\n\n" + last + "\n")
}
