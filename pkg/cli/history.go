package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/providers/archive"
)

// logRange says which part of the decision log is meant.
type logRange struct {
	bucket       string
	since, until time.Duration
}

func (l *logRange) addFlags(cmd *cobra.Command) {
	if cmd.Flags().Lookup("catalog-bucket") == nil {
		cmd.Flags().StringVar(&l.bucket, "catalog-bucket", "",
			"the stack's bucket (its output CatalogBucket), in which passes are stored with decisionLog: store")
	}
	cmd.Flags().DurationVar(&l.since, "since", 0, "how far back to look, such as 2h")
	cmd.Flags().DurationVar(&l.until, "until", 0, "leave out what is younger than this")
}

// isAsked reports whether the bucket is to be read.
func (l logRange) isAsked() bool { return l.bucket != "" || l.since != 0 }

// listKeys lists the stored passes that are meant.
func (l logRange) listKeys(ctx context.Context, term terminalOutput) (r archive.PassReader, keys []string, err error) {
	switch {
	case l.bucket == "":
		return r, nil, &inputError{errors.New("--since needs --catalog-bucket: the stack's output CatalogBucket")}
	case l.since <= 0:
		return r, nil, &inputError{errors.New("--catalog-bucket needs --since: how far back to look, such as 2h")}
	case l.until < 0 || l.until >= l.since:
		return r, nil, &inputError{fmt.Errorf("--until %s is no time after --since %s", l.until, l.since)}
	}
	cfg, err := loadAWSConfig(ctx)
	if err != nil {
		return r, nil, fmt.Errorf("load aws configuration: %w", err)
	}
	r = archive.PassReader{S3: s3.NewFromConfig(cfg, pathStyle), Bucket: l.bucket}
	now := time.Now()
	err = term.withProgress("listing the decision log", func() error {
		keys, err = r.ListKeys(ctx, now.Add(-l.since), now.Add(-l.until))
		return err
	})
	if err == nil && len(keys) == 0 {
		err = fmt.Errorf("bucket %s holds no pass of the last %s; are they stored (setting decisionLog: store), and was there anything to decide", l.bucket, l.since)
	}
	return r, keys, err
}

// atOnce is the number of records that are read from the bucket at a time.
const atOnce = 8

// readRecords reads those of the bucket, the oldest first.
func (l logRange) readRecords(ctx context.Context, term terminalOutput) ([]decisionlog.Record, error) {
	r, keys, err := l.listKeys(ctx, term)
	if err != nil {
		return nil, err
	}
	out := make([]decisionlog.Record, len(keys))
	err = term.withProgress(fmt.Sprintf("reading %d records", len(keys)), func() error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atOnce)
		for i, k := range keys {
			g.Go(func() (err error) {
				out[i], err = r.ReadRecord(ctx, k)
				return err
			})
		}
		return g.Wait()
	})
	return out, err
}

// recordsOf reads the records of files, or those of the bucket.
func (l logRange) recordsOf(ctx context.Context, files []string, term terminalOutput) ([]decisionlog.Record, error) {
	if len(files) == 0 {
		return l.readRecords(ctx, term)
	}
	var out []decisionlog.Record
	for _, path := range files {
		data, err := readFile(path)
		if err != nil {
			return nil, &inputError{fmt.Errorf("read file: %w", err)}
		}
		all, err := logRecords(data)
		for _, note := range all.notes {
			term.writeMessage("%s %s: %s", term.paintMessage("warning:", warningColour), path, note)
		}
		if err == nil && len(all.records) == 0 {
			err = errors.New("there is no record of the decision log: lines with \"msg\":\"decision\" as the functions write them")
		}
		if err != nil {
			return nil, &inputError{fmt.Errorf("%s: %w", path, err)}
		}
		out = append(out, all.records...)
	}
	slices.SortStableFunc(out, func(a, b decisionlog.Record) int { return a.Time.Compare(b.Time) })
	return out, nil
}
