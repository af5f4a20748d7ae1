// Package archive keeps the decision log: a line in the function's log for every pass with a decision, and the whole
// pass in S3 where that is wanted, or where the program failed about something. The checkpoint of the cluster's cache
// stands beside.
//
// It knows S3 and the log. It refuses to know what a pass or a checkpoint holds. Limits: passes of clusters of up to
// 30,000 pods are
// stored whole, because larger ones do not fit into a function's memory twice; a pass takes up to 64 MiB packed; a
// question for passes answers with up to 20,000 keys.
package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/decisionlog"
)

const (
	passType   = "application/gzip"
	mostBytes  = 64 << 20
	mostPods   = 30_000
	mostKeys   = 20_000
	mostHours  = 24 * 400
	recordPart = "bytes=0-131071" // of a pass, in which its record is
)

// Objects is the part of S3 that is used; an *s3.Client does. All calls may be repeated.
type Objects interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	ListObjectsV2(context.Context, *s3.ListObjectsV2Input, ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

// PassWriter writes passes.
type PassWriter struct {
	Log    *slog.Logger
	S3     Objects
	Bucket string // empty: only the log
	Of     Kept   // what is kept of passes in which nothing failed
}

// Kept says how much is kept of a pass. One in which something failed is kept whole in any case, so that it can be
// replayed.
type Kept int

// What is kept.
const (
	Whole Kept = iota // in the bucket, and a line in the log
	InLog             // the line
	Nothing
)

// WritePass writes the record into the log, and the whole pass into the bucket. Repeating it stores the same again.
func (w PassWriter) WritePass(ctx context.Context, p decisionlog.Pass) error {
	failed := len(p.Faults) > 0
	var err error
	if w.Bucket != "" && (failed || w.Of == Whole) {
		p.Snapshot = p.Key()
		if err = w.putPass(ctx, p); err != nil {
			p.Snapshot = ""
		}
	}
	if failed || w.Of != Nothing {
		w.Log.Info("decision", "decision", p.Record)
	}
	switch {
	case failed && p.Snapshot != "":
		w.Log.Error("Joiner itself failed about a part of the pass: replay it and report it", "faults", len(p.Faults),
			"snapshot", "s3://"+w.Bucket+"/"+p.Snapshot, "replay",
			"aws s3 cp s3://"+w.Bucket+"/"+p.Snapshot+" pass.json.gz && joiner replay pass.json.gz")
	case failed:
		w.Log.Error("Joiner itself failed about a part of the pass, which is stored nowhere", "faults", len(p.Faults))
	}
	return err
}

func (w PassWriter) putPass(ctx context.Context, p decisionlog.Pass) error {
	if n := len(p.Saw.Pods); n > mostPods {
		return fmt.Errorf("put pass: of clusters with more than %d pods none is stored, this one has %d", mostPods, n)
	}
	b, err := p.Encode()
	if err != nil {
		return err
	}
	if len(b) > mostBytes {
		return fmt.Errorf("put pass: it is larger than %d MiB", mostBytes>>20)
	}
	_, err = w.S3.PutObject(ctx, &s3.PutObjectInput{Bucket: &w.Bucket, Key: &p.Snapshot, Body: bytes.NewReader(b),
		ContentType: aws.String(passType)})
	if err != nil {
		return fmt.Errorf("put pass into bucket %s: %w", w.Bucket, err)
	}
	return nil
}

// PassReader reads passes from a bucket.
type PassReader struct {
	S3     Objects
	Bucket string
}

// ListKeys lists the passes of a span of time, its beginning included and its end not, the oldest first.
func (r PassReader) ListKeys(ctx context.Context, since, until time.Time) ([]string, error) {
	var out []string
	if until.Sub(since) > mostHours*time.Hour {
		return nil, fmt.Errorf("list passes: %s is a longer time than %d days", until.Sub(since), mostHours/24)
	}
	for at := since.UTC().Truncate(time.Hour); at.Before(until); at = at.Add(time.Hour) {
		keys, err := r.listKeys(ctx, decisionlog.HourPrefix(at)+"/")
		if err != nil {
			return nil, err
		}
		for _, k := range keys {
			if made, ok := decisionlog.KeyTime(k); ok && !made.Before(since) && made.Before(until) {
				out = append(out, k)
			}
		}
		if len(out) > mostKeys {
			return nil, fmt.Errorf("list passes: there are more than %d; ask for a shorter time", mostKeys)
		}
	}
	return out, nil
}

func (r PassReader) listKeys(ctx context.Context, prefix string) (keys []string, err error) {
	in := &s3.ListObjectsV2Input{Bucket: &r.Bucket, Prefix: &prefix}
	for {
		page, err := r.S3.ListObjectsV2(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("list passes of bucket %s: %w", r.Bucket, err)
		}
		for _, o := range page.Contents {
			keys = append(keys, aws.ToString(o.Key))
		}
		if !aws.ToBool(page.IsTruncated) || len(keys) > mostKeys {
			return keys, nil
		}
		in.ContinuationToken = page.NextContinuationToken
	}
}

// ReadPass reads a stored pass.
func (r PassReader) ReadPass(ctx context.Context, key string) (decisionlog.Pass, error) {
	b, err := r.getObject(ctx, key, nil)
	if err != nil {
		return decisionlog.Pass{}, err
	}
	return decisionlog.DecodePass(b)
}

// ReadRecord reads the record of a stored pass, and not the rest.
func (r PassReader) ReadRecord(ctx context.Context, key string) (decisionlog.Record, error) {
	b, err := r.getObject(ctx, key, aws.String(recordPart))
	if err != nil {
		return decisionlog.Record{}, err
	}
	rec, err := decisionlog.DecodeRecord(b)
	if errors.Is(err, io.ErrUnexpectedEOF) { // longer than the part
		whole, err := r.ReadPass(ctx, key)
		return whole.Record, err
	}
	return rec, err
}

func (r PassReader) getObject(ctx context.Context, key string, part *string) ([]byte, error) {
	out, err := r.S3.GetObject(ctx, &s3.GetObjectInput{Bucket: &r.Bucket, Key: &key, Range: part})
	if err != nil {
		return nil, fmt.Errorf("get %s from bucket %s: %w", strings.TrimPrefix(key, decisionlog.Prefix), r.Bucket, err)
	}
	defer out.Body.Close()
	b, err := io.ReadAll(io.LimitReader(out.Body, mostBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s from bucket %s: %w", key, r.Bucket, err)
	}
	if len(b) > mostBytes {
		return nil, fmt.Errorf("read %s from bucket %s: larger than %d MiB", key, r.Bucket, mostBytes>>20)
	}
	return b, nil
}
